"""Processes of this machine by `/proc`: who lives, who belongs to whom, and signals that never hit a stranger.

A process is named by pid and start time (in ticks since boot), because pids are used again; across reboots the boot id
is compared first. Zombies count as gone: they hold nothing.

Imported by the supervisor, which must start fast: nothing here may import `typing`, `dataclasses` or `pathlib`.
"""

from __future__ import annotations

import contextlib
import os
import signal

MARKER = "ALIQUOT_RUN"
"""The environment variable that every process of a pod inherits; its value is unique to one start of one pod."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_PAGE = os.sysconf("SC_PAGESIZE")


class Process:
    """One row of `/proc`, at the time when it was read."""

    __slots__ = ("group", "parent", "pid", "resident_bytes", "session", "start", "state")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.start = int(fields[19])
        self.resident_bytes = int(fields[21]) * _PAGE

    @property
    def is_alive(self) -> bool:
        """Whether it still holds anything: not a zombie, not dead."""
        return self.state not in "ZXx"


def boot_id() -> str:
    """What names this boot of the machine."""
    with open(_BOOT_ID, encoding="ascii") as file:
        return file.read().strip()


def find(pid: int) -> Process | None:
    """The process with this pid, zombies included; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(pid, data[data.rindex(b")") + 2 :].split())


def is_same_alive(pid: int, start: int) -> bool:
    """Whether the very process of that pid and start time lives."""
    process = find(pid)
    return process is not None and process.start == start and process.is_alive


def everyone() -> dict[int, Process]:
    """All processes that can be seen, by pid."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            process = find(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def descendants(root: int, everyone_now: dict[int, Process] | None = None) -> list[Process]:
    """The living children of `root`, their children, and so on; `root` itself is not among them."""
    rows = everyone() if everyone_now is None else everyone_now
    children: dict[int, list[Process]] = {}
    for process in rows.values():
        children.setdefault(process.parent, []).append(process)
    found, ahead = [], [root]
    while ahead:
        for child in children.get(ahead.pop(), ()):
            ahead.append(child.pid)
            if child.is_alive:
                found.append(child)
    return found


def marked(token: str) -> list[Process]:
    """The living processes that inherited the marker with this value."""
    mark = f"{MARKER}={token}".encode()
    rows = everyone().values()
    return [process for process in rows if process.is_alive and mark in environment_of(process.pid)]


def environment_of(pid: int) -> list[bytes]:
    """The environment with which the process was started; empty where it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def send(process: Process, number: int) -> bool:
    """Signal exactly this process, or nobody; says whether it was there."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        now = find(process.pid)
        if now is None or now.start != process.start:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill(targets: list[Process]) -> None:
    """Kill these processes, and all others of their process groups.

    A program that forks faster than `/proc` is read is gone before it can be hit; the kernel hits a whole group at
    once, also whoever is just being born. So this is only for processes whose group is known to hold no stranger.
    """
    own = os.getpgid(0)
    for group in sorted({process.group for process in targets} - {own, 0}):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for process in targets:
        with contextlib.suppress(PermissionError):  # it became another user, as `sudo` does
            send(process, signal.SIGKILL)


def has_children() -> bool:
    """Whether this process has any children, zombies included. For a reaper that means any descendants: unlike a look
    into `/proc`, the answer cannot miss one that is just being born."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def proportional_bytes(pid: int) -> int | None:
    """The memory of the process where pages it shares count in parts; None where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            sizes = [int(line.split()[1]) for line in file if line.startswith(b"Pss:")]
    except OSError:
        return None
    return sizes[0] * 1024 if sizes else None
