"""Runs pods as process groups of this machine, and finds them again after the server was away.

All methods are quick and safe to call from any thread, again, and after a crash at any point: a pod id is started at
most once, whatever dies when. What is known of a pod is in its folder (`aliquot.local.records`); a supervisor beside
each pod (`aliquot.local.supervisor`) does the lasting work. Nothing here decides what should run.
"""

import contextlib
import itertools
import math
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType

from aliquot.core import errors
from aliquot.core.model import Guarantee
from aliquot.local import limits, processes, records, sessions
from aliquot.local.launch import Change, Enforcement, Exit, ExitKind, Launch, Limit, Observation
from aliquot.local.watcher import Watcher

MIN_FREE_BYTES = 64 << 20
"""With less room than this on the disk, nothing new is started: what runs needs it for its records and its log."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_SOURCE = str(Path(__file__).resolve().parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import aliquot.local.supervisor as it; it.main(sys.argv[2])"
_GONE = ".gone-"


class Runner:
    """The pods below one folder. One Runner at a time should hold a folder; `close` leaves the pods running."""

    def __init__(
        self,
        root: Path,
        *,
        limits_here: limits.Limits | None = None,
        min_free_bytes: int = MIN_FREE_BYTES,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        """`limits_here` as probed (`limits.probe`), else nothing but affinity and watching. `on_change` is called from
        a thread of ours, within about 100 ms of a change; it must be quick and not raise."""
        self.root = root
        self._limits = limits_here or limits.Limits()
        self._min_free_bytes = min_free_bytes
        self._boot = processes.boot_id()
        self._lock = threading.RLock()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._kept: dict[tuple[str, str], records.Record] = {}
        """Records that never change once they are there: launch, claim and started, by pod and name."""
        self._over: dict[str, Observation] = {}
        self._numbers = itertools.count()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for gone in root.glob(f"{_GONE}*"):
            shutil.rmtree(gone, ignore_errors=True)
        self._watcher = Watcher(root, self._look_after, on_change)
        self.observe()

    def __enter__(self) -> "Runner":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop watching. The pods run on."""
        self._watcher.close()
        with self._lock:
            for child in self._children.values():
                # It lives on by itself; without this, Python would warn that nobody waits for it.
                child.returncode = child.poll() or 0
            self._children.clear()

    def folder(self, pod: str) -> Path:
        """Where everything of a pod is kept."""
        return self.root / pod

    def start(self, launch: Launch) -> None:
        """See to it that the pod is started, once: again with the same id does nothing more, whatever else it says."""
        _check(launch)
        folder = self.folder(launch.pod)
        with self._lock:
            if not records.exists(str(folder), records.LAUNCH):
                self._check_disk()
                with self._translating_full_disk():
                    folder.mkdir(mode=0o700, exist_ok=True)
                    records.create(str(folder), records.LAUNCH, self._to_record(launch))
                    records.sync_folder(str(self.root))
            with self._translating_full_disk():
                self._ensure_supervisor(launch.pod)

    def end(self, pod: str, *, grace: timedelta | None = None) -> None:
        """Tell all processes of the pod to end (TERM), and kill what is left after `grace` (None: the launch's).

        Returns at once. A second call can only shorten the grace. A pod that nobody knows is no error: it is over.
        """
        folder = str(self.folder(pod))
        launch = self._record(pod, records.LAUNCH)
        if launch is None or records.exists(folder, records.EXIT):
            return
        seconds = launch["grace_seconds"] if grace is None else grace.total_seconds()
        before = records.read(folder, records.END)
        if before is not None:
            seconds = min(seconds, before["grace_seconds"])
        try:
            records.replace(folder, records.END, {"grace_seconds": seconds, "at": time.time()})
        except FileNotFoundError:  # ended and forgotten meanwhile
            return
        except OSError as error:
            if error.errno not in records.FULL_DISK:
                raise
            # What runs can be told by a signal alone, with the grace of its launch.
            if self._record(pod, records.CLAIM) is None:
                raise _disk_full(self.root) from error
        claim = self._record(pod, records.CLAIM)
        if claim is None:
            # Whoever claims it will see the wish, so that it never runs.
            with self._lock:
                self._ensure_supervisor(pod)
            return
        supervisor = processes.find(claim["pid"])
        if claim["boot"] == self._boot and supervisor is not None and supervisor.start == claim["start"]:
            processes.send(supervisor, signal.SIGTERM)
        else:
            self._watcher.look_at(pod)

    def observe(self) -> dict[str, Observation]:
        """What is known of each pod that was started here and not forgotten."""
        found = {}
        for pod in self._pods():
            observation = self._observe(pod)
            if observation is not None:
                found[pod] = observation
        return found

    def forget(self, pod: str) -> None:
        """Delete what is kept of a pod that is over. Its id could then be started again: forget what is settled."""
        folder = self.folder(pod)
        if not _NAME.fullmatch(pod) or not folder.is_dir():
            return
        # Without a launch nothing ever started: a full disk, or the server's end, came between folder and record.
        if records.exists(str(folder), records.LAUNCH) and not records.exists(str(folder), records.EXIT):
            raise errors.Conflict(f"pod {pod} is not over yet", code="pod-not-over")
        gone = self.root / f"{_GONE}{os.getpid()}-{next(self._numbers)}"
        with contextlib.suppress(FileNotFoundError):
            folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        with self._lock:
            for name in (records.LAUNCH, records.CLAIM, records.STARTED):
                self._kept.pop((pod, name), None)
            self._over.pop(pod, None)

    def pids(self, pod: str) -> list[int]:
        """The living processes of the pod. For many pods at once, `owners` is cheaper."""
        return self._tree_of(pod, processes.everyone())

    def owners(self) -> dict[int, str]:
        """Which pod each process belongs to, for all processes of all pods."""
        rows = processes.everyone()
        found = {}
        for pod in self._pods():
            if pod not in self._over:
                found.update(dict.fromkeys(self._tree_of(pod, rows), pod))
        return found

    def exec(
        self, pod: str, argv: Sequence[str], *, environment: Mapping[str, str] | None = None, has_terminal: bool = False
    ) -> sessions.Session:
        """Start a process inside the running pod, with `environment` added to the pod's. Raises Conflict (code
        `pod-not-running`), or InvalidInput where there is no such command."""
        return sessions.Session(self.folder(pod), argv, environment=environment or {}, has_terminal=has_terminal)

    def attach(self, pod: str) -> sessions.Attachment:
        """The standard input and output of the running pod. Raises Conflict (code `pod-not-running`)."""
        return sessions.Attachment(self.folder(pod))

    def follow(self, pod: str) -> contextlib.AbstractContextManager[None]:
        """While this is open, changes of the pod's log are told too (`Change.kind == "log"`)."""
        return self._watcher.follow(pod)

    def wait(self, seconds: float) -> Collection[Change]:
        """Block until something changed since the last call, or the time is over; returns what changed."""
        return self._watcher.wait(seconds)

    def _pods(self) -> list[str]:
        with os.scandir(self.root) as entries:
            return sorted(entry.name for entry in entries if _NAME.fullmatch(entry.name) and entry.is_dir())

    def _tree_of(self, pod: str, rows: dict[int, processes.Process]) -> list[int]:
        launch, claim = self._record(pod, records.LAUNCH), self._record(pod, records.CLAIM)
        if launch is None or claim is None or claim["boot"] != self._boot:
            return []
        found = set(limits.members(launch["limits"]["groups"]))
        supervisor = rows.get(claim["pid"])
        if supervisor is not None and supervisor.start == claim["start"]:
            found.update(process.pid for process in processes.descendants(supervisor.pid, rows))
        return sorted(pid for pid in found if pid in rows and rows[pid].is_alive)

    @contextlib.contextmanager
    def _translating_full_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in records.FULL_DISK:
                raise _disk_full(self.root) from error
            raise

    def _check_disk(self) -> None:
        status = os.statvfs(self.root)
        if status.f_bavail * status.f_frsize < self._min_free_bytes:
            raise _disk_full(self.root)

    def _to_record(self, launch: Launch) -> records.Record:
        return {
            "pod": launch.pod,
            "workload": launch.workload,
            "argv": list(launch.argv),
            "folder": str(launch.folder),
            "environment": dict(launch.environment),
            "memory_bytes": launch.memory_bytes,
            "grace_seconds": launch.grace.total_seconds(),
            "stdin": launch.stdin,
            "token": secrets.token_hex(16),
            "limits": self._limits.plan(
                launch.pod,
                milli_cpus=launch.milli_cpus,
                memory_bytes=launch.memory_bytes,
                cpus=self._choose_cpus(launch.milli_cpus),
            ),
            "log": {
                "segment_bytes": launch.log.segment_bytes,
                "keep_bytes": launch.log.keep_bytes,
                "rotate_seconds": launch.log.rotate_after.total_seconds(),
                "keep_seconds": launch.log.keep_for.total_seconds(),
            },
        }

    def _choose_cpus(self, milli_cpus: int | None) -> list[int]:
        """The CPUs that the fewest other pods are bound to, as many as asked for, parts rounded up."""
        if not milli_cpus:
            return []
        available = sorted(os.sched_getaffinity(0))
        use: Counter[int] = Counter()
        for (pod, name), launch in list(self._kept.items()):
            if name == records.LAUNCH and pod not in self._over:
                use.update(launch["limits"]["cpus"])
        return sorted(sorted(available, key=lambda cpu: (use[cpu], cpu))[: math.ceil(milli_cpus / 1000)])

    def _ensure_supervisor(self, pod: str) -> None:
        """Start a supervisor unless there was or is one. Two would do no harm: one of them would leave at once."""
        folder = str(self.folder(pod))
        self._record(pod, records.LAUNCH)
        if records.exists(folder, records.CLAIM) or records.lock_holder(folder) is not None:
            return
        child = self._children.get(pod)
        if child is not None and child.poll() is None:
            return
        with Path(folder, records.SUPERVISOR_LOG).open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, _SOURCE, folder],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children[pod] = child
        self._watcher.watch(pod, child.pid)

    def _record(self, pod: str, name: str) -> records.Record | None:
        """A record that never changes once it is there."""
        record = self._kept.get((pod, name))
        if record is None and _NAME.fullmatch(pod):
            record = records.read(str(self.folder(pod)), name)
            if record is not None:
                self._kept[pod, name] = record
        return record

    def _observe(self, pod: str) -> Observation | None:
        known = self._over.get(pod)
        if known is not None:
            return known
        folder = str(self.folder(pod))
        launch = self._record(pod, records.LAUNCH)
        if launch is None:
            return None
        claim = self._record(pod, records.CLAIM)
        if claim is None:
            is_ending = records.exists(folder, records.END)
            return Observation(pod, launch["workload"], "starting", is_ending=is_ending)
        # The supervisor writes the exit record before it ends, so this looks for one after asking whether it lives.
        is_supervised = claim["boot"] == self._boot and processes.is_same_alive(claim["pid"], claim["start"])
        over = records.read(folder, records.EXIT)
        if over is None and is_supervised:
            self._watcher.watch(pod, claim["pid"])
        elif over is None:
            over = self._settle(pod, launch, claim)
        return self._to_observation(pod, launch, over)

    def _to_observation(self, pod: str, launch: records.Record, over: records.Record | None) -> Observation:
        folder = str(self.folder(pod))
        started = self._record(pod, records.STARTED)
        observation = Observation(
            pod,
            launch["workload"],
            "ended" if over else "running" if started else "starting",
            pid=started["pid"] if started else None,
            started=_moment(started["at"]) if started else None,
            exit=_to_exit(over) if over else None,
            limits=_to_enforcement(started) if started else None,
            is_ending=records.exists(folder, records.END),
        )
        if over:
            self._over[pod] = observation
        return observation

    def _settle(self, pod: str, launch: records.Record, claim: records.Record) -> records.Record | None:
        """The supervisor is gone and left no exit record: end what is left of the pod, then say that nobody knows."""
        folder = str(self.folder(pod))
        groups = launch["limits"]["groups"]
        with self._lock:
            if claim["boot"] != self._boot:
                over = {"kind": "lost", "message": "the machine was started anew", "at": time.time()}
            # Twice nothing: one look into /proc can miss a process that is just being born.
            elif self._kill_leftovers(folder, launch) or self._kill_leftovers(folder, launch):
                self._watcher.look_at(pod)
                return None
            else:
                over = {"kind": "unknown", "message": "its supervisor vanished", "at": time.time()}
            limits.remove(groups)
            try:
                records.write_exit(folder, over)
            except OSError:
                self._watcher.look_at(pod)  # no room even for this: it stays as it is until there is
                return None
        return records.read(folder, records.EXIT)

    def _kill_leftovers(self, folder: str, launch: records.Record) -> bool:
        """Kill what can still be found of a pod without supervisor; says whether there was anything."""
        rows = processes.everyone()
        started = records.read(folder, records.STARTED) or {"pid": -1, "start": 0}
        tree = records.read(folder, records.TREE) or {"processes": []}
        known = {tuple(pair) for pair in tree["processes"]} | {(started["pid"], started["start"])}
        found = {process.pid for process in processes.marked(launch["token"])}
        found.update(limits.members(launch["limits"]["groups"]))
        for process in rows.values():
            is_of_session = process.session == started["pid"] and process.start >= started["start"]
            if is_of_session or (process.pid, process.start) in known:
                found.add(process.pid)
        found.discard(os.getpid())
        now = [rows.get(pid) or processes.find(pid) for pid in sorted(found)]
        left = [process for process in now if process is not None and process.is_alive]
        limits.kill(launch["limits"]["groups"])
        processes.kill(left)
        return bool(left)

    def _look_after(self, pod: str) -> bool:
        """Called by the watcher when a supervisor ended, and then now and then until this says that it is settled."""
        with self._lock:
            child = self._children.get(pod)
            if child is not None and child.poll() is not None:
                del self._children[pod]
        observation = self._observe(pod)
        return observation is None or observation.state != "running"


def _check(launch: Launch) -> None:
    if not _NAME.fullmatch(launch.pod):
        raise errors.InvalidInput(f"{launch.pod!r} cannot be the id of a pod", field="pod")
    if not launch.argv or not launch.argv[0]:
        raise errors.InvalidInput("there is no command to run", field="command")
    texts = [*launch.argv, str(launch.folder), *launch.environment.values(), *launch.environment]
    if any("\0" in text for text in texts):
        raise errors.InvalidInput("a command, folder or environment cannot hold the character NUL", field="command")
    for name in launch.environment:
        if not name or "=" in name:
            raise errors.InvalidInput(f"{name!r} cannot be the name of a variable", field="environment")


def _disk_full(root: Path) -> errors.Unavailable:
    return errors.Unavailable(
        f"the disk that holds {root} is full: nothing new is started until there is room",
        retry_after_seconds=30,
        code="disk-full",
    )


def _to_exit(record: records.Record) -> Exit:
    return Exit(
        ExitKind(record["kind"]), record.get("code"), record.get("signal"), _moment(record["at"]), record["message"]
    )


def _to_enforcement(record: records.Record) -> Enforcement:
    cpu, memory = record["cpu"], record["memory"]
    return Enforcement(Limit(Guarantee(cpu[0]), cpu[1]), Limit(Guarantee(memory[0]), memory[1]))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
