"""The one small process beside each pod: starts it at most once, writes its output down, ends it, tells how it ended.

It outlives the server and owes it nothing: all that it knows is in the pod's folder (`aliquot.local.records`). Its
promises: the claim is on the disk before the command runs, so no second supervisor ever runs it; every descendant,
however detached, is gone and all output written down before the exit record appears; if it is itself killed, the kernel
kills the pod's first process with it, and the missing exit record means "unknown".

Started by the runner as `python -I -S`. It must start fast: nothing here may import `typing`, `dataclasses` or
`pathlib`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import termios
import time

from aliquot.local import control, journal, limits, processes, records, spawn

TYPE_CHECKING = False  # see aliquot.local.records
if TYPE_CHECKING:
    from aliquot.local.records import Record

READ_BYTES = 65_536
READS_PER_TURN = 16
"""How often one stream is read before the others have their turn."""
ENDING_PAUSE = 0.02
"""How often the supervisor looks whether the last process is gone, once the command has ended or KILL is due."""
ORPHAN_GRACE = 1.0
"""What processes get between TERM and KILL that are left when the pod's own command has ended by itself."""
WATCH_PAUSE = 0.25
TREE_PAUSE = 1.0
RETRY_PAUSE = 1.0
FOLDER_PAUSE = 5.0
"""How often the supervisor looks whether its folder is still there."""
NOTICE_PAUSE = 0.1
EARLY_SIZE = (24, 80)
"""Rows and columns of a terminal until whoever attaches tells theirs: programs take 0 by 0 badly."""
_ENDED_BEFORE_START = "it was told to end before it started"


class Supervisor:
    """One pod's life, from claim to exit record."""

    def __init__(self, folder: str, launch: Record) -> None:
        self.folder = folder
        self.launch = launch
        log = launch["log"]
        os.makedirs(f"{folder}/{records.LOG_FOLDER}", mode=0o700, exist_ok=True)
        self.journal = journal.Journal(
            f"{folder}/{records.LOG_FOLDER}",
            segment_bytes=log["segment_bytes"],
            keep_bytes=log["keep_bytes"],
            rotate_seconds=log["rotate_seconds"],
            keep_seconds=log["keep_seconds"],
        )
        self.poller = select.poll()
        self.streams: dict[int, str] = {}
        self.stdin: int | None = None
        self.limits: Record = {"groups": {}, "version": 0, "cpus": None, "is_watched": False}
        self.child = 0
        self.status: int | None = None
        self.started_at = 0.0
        self.ended_at = 0.0
        self.end_due: float | None = None
        """When KILL follows; set from the moment on when TERM was sent."""
        self.is_over_memory = False
        self.wake = _catch_signals()
        self.control: control.Control | None = None
        self._spares: list[int] = []
        self._next_watch = 0.0
        self._next_tree = 0.0
        self._next_notice = 0.0
        self._next_folder = time.monotonic() + FOLDER_PAUSE
        self._has_news = False
        self._note_due: float | None = None
        """When to try again to write the started record."""
        self._tree: list[list[int]] = []

    def run(self) -> None:
        """Claim, start, serve until all is over, and write the exit record."""
        me = processes.find(os.getpid())
        assert me is not None
        claim = {"pid": me.pid, "start": me.start, "boot": processes.boot_id(), "at": time.time()}
        records.reserve_exit(self.folder)
        if not records.create(self.folder, records.CLAIM, claim):
            return
        if records.exists(self.folder, records.END):
            self.finish({"kind": "not-started", "message": _ENDED_BEFORE_START})
            return
        spawn.become_reaper()
        self.limits = limits.create(self.launch["limits"])
        try:
            self.start()
        except spawn.Failure as failure:
            self.finish({"kind": "not-started", "code": failure.code, "message": failure.message})
            return
        self.started_at = time.time()
        self.poller.register(self.wake, select.POLLIN)
        self.note_started()
        while self.status is None or processes.has_children():
            self.turn()
        self.drain()
        self.finish(self.verdict())

    def start(self) -> None:
        """Start the pod's command."""
        descriptors = self.open_streams()
        try:
            self.child = spawn.start(
                self.command(self.launch["argv"], has_terminal=self.launch["stdin"] == "pty"), descriptors
            )
        except OSError as error:
            raise spawn.Failure(spawn.NOT_EXECUTABLE_CODE, f"cannot start a process: {error.strerror}") from error
        finally:
            for descriptor in set(descriptors) - set(self._spares):
                os.close(descriptor)

    def command(self, argv: list[str], *, has_terminal: bool) -> spawn.Command:
        """A command inside the pod's environment, folder and limits."""
        return spawn.Command(
            argv,
            {**self.launch["environment"], processes.MARKER: self.launch["token"]},
            folder=self.launch["folder"],
            join=limits.join_files(self.limits["groups"]),
            cpus=self.limits["cpus"],
            has_terminal=has_terminal,
        )

    def open_streams(self) -> tuple[int, int, int]:
        """Make the pod's standard input, output and error; keep and watch our ends."""
        if self.launch["stdin"] == "pty":
            terminal, theirs = os.openpty()
            termios.tcsetwinsize(terminal, EARLY_SIZE)
            self.watch(terminal, "stdout")
            self.stdin = terminal
            # Kept open, so that the terminal lives on while no process has it open.
            self._spares = [theirs]
            return theirs, theirs, theirs
        if self.launch["stdin"] == "pipe":
            source, self.stdin = os.pipe2(os.O_CLOEXEC)
        else:
            source = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        ours_out, out = os.pipe2(os.O_CLOEXEC)
        ours_err, err = os.pipe2(os.O_CLOEXEC)
        self.watch(ours_out, "stdout")
        self.watch(ours_err, "stderr")
        return source, out, err

    def watch(self, descriptor: int, stream: str) -> None:
        """Read from this descriptor from now on, as output of the pod."""
        os.set_blocking(descriptor, False)
        self.streams[descriptor] = stream
        self.poller.register(descriptor, select.POLLIN)

    def note_started(self) -> None:
        """Listen to the runner, and say that the command runs. While the disk is full, try again now and then."""
        if self.control is None:
            with contextlib.suppress(OSError):
                self.control = control.Control(self)
        process = processes.find(self.child)
        record = {"pid": self.child, "start": process.start if process else 0, "at": self.started_at, **self.limits}
        try:
            records.replace(self.folder, records.STARTED, record)
        except OSError:
            self._note_due = time.monotonic() + RETRY_PAUSE
            return
        self._note_due = None
        self.notify("state")

    def turn(self) -> None:
        """Wait for something to happen, for as long as nothing is due, and deal with it."""
        for descriptor, _ in self.poller.poll(self.patience() * 1000):
            if descriptor in self.streams:
                self.take_output(descriptor)
            elif descriptor == self.wake:
                self.take_signals()
            elif self.control is not None:
                self.control.take(descriptor)
        now = time.monotonic()
        if self.journal.flush_due is not None and now >= self.journal.flush_due:
            self._has_news |= self.journal.flush()
        if self._has_news and now >= self._next_notice:
            self._has_news = False
            self._next_notice = now + NOTICE_PAUSE
            self.notify("log")
        if self.end_due is not None and now >= self.end_due:
            self.kill_tree()
        if self._note_due is not None and now >= self._note_due:
            self.note_started()
        if self.limits["is_watched"] and now >= self._next_watch:
            self._next_watch = now + WATCH_PAUSE
            self.check_memory()
        if now >= self._next_folder:
            self._next_folder = now + FOLDER_PAUSE
            self.check_folder()
        if not self.limits["groups"] and now >= self._next_tree:
            self._next_tree = now + TREE_PAUSE
            self.note_tree()

    def patience(self) -> float:
        """Seconds until something is due."""
        due = [self._next_folder, self._next_tree if not self.limits["groups"] else None, self.journal.flush_due]
        due.append(self._next_watch if self.limits["is_watched"] else None)
        due.append(self._next_notice if self._has_news else None)
        due.append(self._note_due)
        seconds = max(0.0, min(moment for moment in due if moment is not None) - time.monotonic())
        if self.status is not None:
            return min(seconds, ENDING_PAUSE)
        if self.end_due is not None:
            return min(seconds, max(self.end_due - time.monotonic(), ENDING_PAUSE))
        return seconds

    def take_output(self, descriptor: int) -> None:
        """Read what there is."""
        for _ in range(READS_PER_TURN):
            try:
                data = os.read(descriptor, READ_BYTES)
            except BlockingIOError:
                return
            except OSError:  # EIO: nobody has the terminal open any more
                data = b""
            if not data:
                self.poller.unregister(descriptor)
                del self.streams[descriptor]
                if descriptor != self.stdin:
                    os.close(descriptor)
                return
            stream = self.streams[descriptor]
            if self.control is not None:
                self.control.show(stream, data)
            self._has_news |= self.journal.feed(stream, data)

    def close_stdin(self) -> None:
        """End the pod's standard input. On a terminal that is a key, which whoever is attached sends."""
        if self.stdin is not None and self.launch["stdin"] == "pipe":
            os.close(self.stdin)
            self.stdin = None

    def take_signals(self) -> None:
        """Deal with the signals that came: children ended, or somebody wants the pod to end."""
        with contextlib.suppress(BlockingIOError):
            numbers = set(os.read(self.wake, 4096))
            if signal.SIGTERM in numbers:
                self.end()
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.child:
                self.status = status
                self.ended_at = time.time()
                if self.end_due is None:
                    self.begin_ending(min(ORPHAN_GRACE, self.launch["grace_seconds"]))
            elif self.control is not None:
                self.control.ended(pid, status)

    def end(self) -> None:
        """End the pod: TERM now, KILL when the grace is over. A second wish can only shorten the grace."""
        wish = records.read(self.folder, records.END)
        seconds = float((wish or self.launch)["grace_seconds"])
        if self.end_due is None:
            self.begin_ending(seconds)
        else:
            self.end_due = min(self.end_due, time.monotonic() + seconds)

    def begin_ending(self, seconds: float) -> None:
        """TERM to every process of the pod, once; a stopped one is woken to hear it."""
        self.end_due = time.monotonic() + seconds
        for process in self.tree():
            with contextlib.suppress(PermissionError):  # it became another user, as `sudo` does
                processes.send(process, signal.SIGTERM)
                processes.send(process, signal.SIGCONT)

    def tree(self) -> list[processes.Process]:
        """The pod's living processes: our descendants, and whoever is in its groups."""
        rows = processes.everyone()
        found = {process.pid: process for process in processes.descendants(os.getpid(), rows)}
        for pid in limits.members(self.limits["groups"]):
            process = rows.get(pid) or processes.find(pid)
            if process is not None and process.is_alive:
                found[pid] = process
        return list(found.values())

    def kill_tree(self) -> None:
        """Kill every process of the pod. Each began in a session that we made, so its groups hold no stranger."""
        limits.kill(self.limits["groups"])
        processes.kill(self.tree())

    def check_memory(self) -> None:
        """Kill the pod if its processes together are over the limit, where the kernel does not see to that."""
        limit = self.launch["memory_bytes"]
        tree = self.tree()
        # Resident size counts shared pages again for each process, so it only says when to look closer.
        if sum(process.resident_bytes for process in tree) <= limit:
            return
        exact = [processes.proportional_bytes(process.pid) for process in tree]
        sizes = [size if size is not None else row.resident_bytes for size, row in zip(exact, tree, strict=True)]
        if sum(sizes) > limit:
            self.is_over_memory = True
            self.begin_ending(0.0)

    def check_folder(self) -> None:
        """Kill the pod if its records were deleted: to the server it is over, and what it holds goes to others."""
        if self.end_due is None and self.is_forgotten():
            self.begin_ending(0.0)

    def is_forgotten(self) -> bool:
        """Whether somebody deleted the pod's folder, or all that was in it."""
        return not records.exists(self.folder, records.LAUNCH)

    def note_tree(self) -> None:
        """Write down who belongs to the pod, for the case that we are killed and no group tells."""
        tree = sorted([process.pid, process.start] for process in self.tree())
        if tree != self._tree:
            self._tree = tree
            with contextlib.suppress(OSError):
                records.replace(self.folder, records.TREE, {"processes": tree})

    def drain(self) -> None:
        """Write down what is left in the pipes; nobody can write to them any more."""
        for descriptor in list(self.streams):
            while descriptor in self.streams and select.select([descriptor], [], [], 0)[0]:
                self.take_output(descriptor)
        self.journal.close()

    def verdict(self) -> Record:
        """How the pod's command ended."""
        assert self.status is not None
        code = os.waitstatus_to_exitcode(self.status)
        kills = limits.count_memory_kills(self.limits)
        record: Record = {"kind": "exited", "code": code} if code >= 0 else {"kind": "signalled", "signal": -code}
        was_killed = code == -signal.SIGKILL
        if self.is_over_memory or (kills and (was_killed or (code > 0 and not self.was_told_to_end()))):
            limit = self.launch["memory_bytes"]
            record["kind"] = "out-of-memory"
            record["message"] = f"its processes used more than the limit of {limit} bytes of memory"
        elif self.was_told_to_end():
            record["message"] = "it was told to end"
        return {**record, "at": self.ended_at}

    def was_told_to_end(self) -> bool:
        """Whether somebody asked for the end."""
        return records.exists(self.folder, records.END)

    def finish(self, record: Record) -> None:
        """Leave nothing behind, write the exit record (a full disk is waited for), and say so."""
        limits.remove(self.limits["groups"])
        record.setdefault("at", time.time())
        while True:
            try:
                records.write_exit(self.folder, record)
                break
            except OSError as error:
                if self.is_forgotten():
                    break
                print(f"cannot write the exit record, trying again: {error}", file=sys.stderr, flush=True)
                time.sleep(RETRY_PAUSE)
        if self.control is not None:
            self.control.close()
        self.notify("state")

    def notify(self, kind: str) -> None:
        """Wake the runner, if there is one. It looks at the records in any case, so nothing depends on this."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            root = os.open(os.path.dirname(self.folder), os.O_PATH | os.O_CLOEXEC)
            try:
                # By way of /proc, because a socket's path may have no more than 107 bytes.
                sender.setblocking(False)
                sender.sendto(f"{kind} {self.launch['pod']}".encode(), f"/proc/self/fd/{root}/{records.NOTIFY}")
            finally:
                os.close(root)


def main(folder: str) -> None:
    """Supervise the pod of this folder, unless another supervisor does or did."""
    lock = records.take_lock(folder)
    if lock is None or records.exists(folder, records.CLAIM) or records.exists(folder, records.EXIT):
        return
    launch = records.read(folder, records.LAUNCH)
    if launch is None:
        return
    Supervisor(folder, launch).run()


def _catch_signals() -> int:
    """Turn SIGTERM and SIGCHLD into bytes on a descriptor, and be deaf to what a terminal may send."""
    wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    return wake
