"""Holds a pod to its CPU and memory limits, and says honestly by what: the kernel, or something weaker.

Where a cgroup tree may be written (v2 that was delegated to us, or v1), the kernel enforces both. Where not, the CPU
limit becomes a choice of CPUs (advisory: a program can choose others, and a part of a CPU counts as a whole one), and
the supervisor watches the memory of the process tree (detected: it is killed after it went over). Root is never needed.
A limit that the kernel refuses falls back in the same way, and what `create` returns says so.

The runner plans (`probe`, `Limits.plan`), the supervisor acts on the plan (`create`, `join_files`, `remove`).
Imported by the supervisor, which must start fast: nothing here may import `typing`, `dataclasses` or `pathlib`.
"""

from __future__ import annotations

import contextlib
import os
import time

TYPE_CHECKING = False  # see aliquot.local.records
if TYPE_CHECKING:
    from aliquot.local.records import Record

PERIOD_MICROSECONDS = 100_000
"""The kernel's own default period for CPU quotas."""
SMALLEST_QUOTA_MICROSECONDS = 1_000
"""The kernel refuses quotas below one millisecond."""
_UNIFIED = "unified"
_CONTROLLERS = ("cpu", "memory")
_PATIENCE_SECONDS = 2.0
_PAUSE_SECONDS = 0.01


class Limits:
    """What this machine offers: the cgroup version (0: none) and, by controller, the folder that holds pods' groups."""

    __slots__ = ("parents", "version")

    def __init__(self, version: int = 0, parents: dict[str, str] | None = None) -> None:
        self.version = version
        self.parents = dict(parents or {})

    def plan(self, pod: str, *, milli_cpus: int | None, memory_bytes: int | None, cpus: list[int]) -> Record:
        """What the supervisor shall set up. `cpus` are those to use where no kernel quota is to be had."""
        groups = {controller: f"{parent}/{pod}" for controller, parent in self.parents.items()}
        return {
            "version": self.version,
            "groups": groups,
            "milli_cpus": milli_cpus,
            "memory_bytes": memory_bytes,
            "cpus": cpus,
        }

    def describe(self) -> str:
        """One sentence for people: how limits are enforced here."""
        if self.version == 0:
            return "no writable cgroup: CPU limits by affinity (advisory), memory limits by watching (detected)"
        here = sorted(self.parents) if self.version == 1 else sorted(_offered(self.parents[_UNIFIED]))
        missing = [controller for controller in _CONTROLLERS if controller not in here]
        weaker = f"; {' and '.join(missing)} without it" if missing else ""
        return f"cgroup v{self.version} (kernel){weaker}"


def probe(name: str, *, cgroup: str | None = None, process: str = "/proc/self") -> Limits:
    """Find the strongest means that this process may use, by trying it.

    `cgroup` is a v2 folder that was delegated to us, where the caller knows of one; else the process's own is tried.
    Pods' groups go into a folder called `name` there. `process` is where the kernel describes the asking process.
    """
    mounts = _mounts(process)
    candidates = [cgroup] if cgroup else [place for kind, place in mounts.items() if kind == _UNIFIED]
    for candidate in candidates:
        if _try_unified(candidate, name):
            return Limits(2, {_UNIFIED: f"{candidate}/{name}"})
    parents = {}
    for controller in _CONTROLLERS:
        if controller in mounts and _try_folder(f"{mounts[controller]}/{name}"):
            parents[controller] = f"{mounts[controller]}/{name}"
    return Limits(1, parents) if parents else Limits()


def create(plan: Record) -> Record:
    """Set up what was planned; returns how each limit is enforced and what is left for the supervisor to do.

    `cpu` and `memory` are pairs of guarantee and mechanism; `cpus`: the CPUs to be bound to, or None; `is_watched`:
    whether the supervisor must watch the memory; `groups`: the groups that exist.
    """
    made = {kind: path for kind, path in plan["groups"].items() if _make_folder(path, plan["version"])}
    state: Record = {"groups": made, "version": plan["version"], "cpus": None, "is_watched": False}
    state["cpu"] = ["none", "no limit asked"]
    state["memory"] = ["none", "no limit asked"]
    if plan["milli_cpus"]:
        path = made.get("cpu") or made.get(_UNIFIED)
        if path and _limit_cpu(path, plan["milli_cpus"], version=plan["version"]):
            state["cpu"] = ["kernel", f"cgroup v{plan['version']} CPU quota"]
        else:
            state["cpus"] = plan["cpus"]
            state["cpu"] = ["advisory", f"bound to {len(plan['cpus'])} CPU(s) by affinity"]
    if plan["memory_bytes"]:
        path = made.get("memory") or made.get(_UNIFIED)
        if path and _limit_memory(path, plan["memory_bytes"], version=plan["version"]):
            state["memory"] = ["kernel", f"cgroup v{plan['version']} memory limit"]
        else:
            state["is_watched"] = True
            state["memory"] = ["detected", "memory of the process tree is watched, and the tree killed when over"]
    return state


def join_files(groups: dict[str, str]) -> list[str]:
    """The files into which a process writes `0` to become a member."""
    return [f"{path}/cgroup.procs" for path in groups.values()]


def members(groups: dict[str, str]) -> list[int]:
    """The pids in any of the groups or below them."""
    found: set[int] = set()
    for path in groups.values():
        for folder, _, _ in os.walk(path):
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as file:
                found.update(int(line) for line in file.read().split())
    found.discard(0)
    return sorted(found)


def kill(groups: dict[str, str]) -> None:
    """Kill all members at once, where the kernel can (v2)."""
    for path in groups.values():
        _write_if_there(f"{path}/cgroup.kill", "1")


def count_memory_kills(state: Record) -> int:
    """How many processes the kernel killed because the pod was over its memory limit."""
    version, groups = state["version"], state["groups"]
    path = groups.get("memory") if version == 1 else groups.get(_UNIFIED)
    if path is None:
        return 0
    try:
        with open(f"{path}/memory.oom_control" if version == 1 else f"{path}/memory.events", encoding="ascii") as file:
            rows = dict(line.split(maxsplit=1) for line in file if " " in line)
    except OSError:
        return 0
    return int(rows.get("oom_kill", 0))


def remove(groups: dict[str, str]) -> bool:
    """Take away the groups, and the folder around them if it is empty; False if a member kept one alive."""
    is_gone = True
    for path in groups.values():
        is_gone = _remove_folder(path) and is_gone
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))
    return is_gone


def _mounts(process: str) -> dict[str, str]:
    """By controller (or `unified`), the folder of this process's own group."""
    try:
        with open(f"{process}/cgroup", encoding="utf-8") as file:
            own = [line.rstrip("\n").split(":", 2) for line in file]
        with open(f"{process}/mountinfo", encoding="utf-8") as file:
            rows = [line.split() for line in file]
    except OSError:
        return {}
    paths = {name or _UNIFIED: path for _, names, path in own for name in names.split(",")}
    found: dict[str, str] = {}
    for row in rows:
        dash = row.index("-")
        kind, options = row[dash + 1], row[dash + 3].split(",")
        names = {_UNIFIED} if kind == "cgroup2" else set(options) & set(_CONTROLLERS) if kind == "cgroup" else set()
        for name in names & paths.keys():
            root, mount, path = row[3].rstrip("/"), row[4], paths[name]
            if path.startswith(root):
                found.setdefault(name, (mount + path[len(root) :]).rstrip("/"))
    return found


def _try_unified(folder: str, name: str) -> bool:
    """Whether pods' groups with limits can be made here. Moves this process aside if it is alone in the folder, because
    a group with processes of its own may not hand controllers down."""
    if not os.access(f"{folder}/cgroup.subtree_control", os.W_OK) or not _offered(folder):
        return False
    try:
        with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
            inside = file.read().split()
        if inside == [str(os.getpid())]:
            aside = f"{folder}/{name}.server"
            os.makedirs(aside, exist_ok=True)
            _write(f"{aside}/cgroup.procs", "0")
        _hand_down(folder)
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        _hand_down(f"{folder}/{name}")
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(f"{folder}/{name}")
    return True


def _offered(folder: str) -> list[str]:
    with contextlib.suppress(OSError), open(f"{folder}/cgroup.controllers", encoding="ascii") as file:
        return [name for name in file.read().split() if name in _CONTROLLERS]
    return []


def _hand_down(folder: str) -> None:
    _write(f"{folder}/cgroup.subtree_control", " ".join(f"+{name}" for name in _offered(folder)))


def _try_folder(path: str) -> bool:
    try:
        os.makedirs(path, exist_ok=True)
        os.rmdir(path)
    except FileExistsError:
        return True
    except OSError as error:
        return os.path.isdir(path) and os.access(path, os.W_OK) and error.errno is not None
    return True


def _make_folder(path: str, version: int) -> bool:
    """Make a pod's group. The end of another pod may remove the folder around it meanwhile, so it tries again."""
    around = os.path.dirname(path)
    for _ in range(20):
        try:
            os.makedirs(around, exist_ok=True)
            if version == 2:
                _hand_down(around)
            os.mkdir(path)
        except FileExistsError:
            return True
        except FileNotFoundError:
            continue
        except OSError:
            return False
        return True
    return False


def _limit_cpu(path: str, milli_cpus: int, *, version: int) -> bool:
    quota = max(milli_cpus * PERIOD_MICROSECONDS // 1000, SMALLEST_QUOTA_MICROSECONDS)
    try:
        if version == 2:
            _write(f"{path}/cpu.max", f"{quota} {PERIOD_MICROSECONDS}")
        else:
            _write(f"{path}/cpu.cfs_period_us", str(PERIOD_MICROSECONDS))
            _write(f"{path}/cpu.cfs_quota_us", str(quota))
    except OSError:
        return False
    return True


def _limit_memory(path: str, memory_bytes: int, *, version: int) -> bool:
    """Memory without swap: a job that swaps is slower than one that is told so. Swap may not be accounted for here."""
    try:
        if version == 2:
            _write(f"{path}/memory.max", str(memory_bytes))
            _write_if_there(f"{path}/memory.swap.max", "0")
            _write_if_there(f"{path}/memory.oom.group", "1")
        else:
            _write(f"{path}/memory.limit_in_bytes", str(memory_bytes))
            _write_if_there(f"{path}/memory.memsw.limit_in_bytes", str(memory_bytes))
    except OSError:
        return False
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _write_if_there(path: str, text: str) -> None:
    if os.path.exists(path):
        with contextlib.suppress(OSError):
            _write(path, text)


def _remove_folder(path: str) -> bool:
    """Remove a group and those below it. The kernel needs a moment after the last member's death."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while os.path.isdir(path):
        for folder, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if not os.path.isdir(path):
            break
        if time.monotonic() > give_up or members({"": path}):
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
