"""Starts one process of a pod: bound to the supervisor's life, in its own session, with nothing of ours left in it.

Imported by the supervisor, which must start fast: nothing here may import `typing`, `dataclasses` or `pathlib`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import termios

TYPE_CHECKING = False  # see aliquot.local.records
if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_FOUND_CODE = 127
NOT_EXECUTABLE_CODE = 126
"""As shells have them."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """The command could not be started: an exit code as shells give it, and why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Command:
    """What to start, and inside what."""

    __slots__ = ("argv", "cpus", "environment", "folder", "has_terminal", "join")

    def __init__(
        self,
        argv: Sequence[str],
        environment: dict[str, str],
        *,
        folder: str,
        join: Sequence[str] = (),
        cpus: Sequence[int] | None = None,
        has_terminal: bool = False,
    ) -> None:
        self.argv = list(argv)
        self.environment = environment
        self.folder = folder
        self.join = join
        self.cpus = cpus
        self.has_terminal = has_terminal


def become_reaper() -> None:
    """From now on, orphans among our descendants become our children, however they detached themselves."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def start(command: Command, descriptors: tuple[int, int, int]) -> int:
    """Start it with these as standard input, output and error; returns its pid once it runs. Raises Failure."""
    told, tells = os.pipe2(os.O_CLOEXEC)
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        stage = "prepare"
        try:
            stage = "prepare"
            _prepare(command, descriptors, supervisor)
            stage = "folder"
            os.chdir(command.folder)
            stage = "command"
            os.execvpe(command.argv[0], command.argv, command.environment)
        except (OSError, ValueError) as error:
            os.write(tells, f"{stage} {getattr(error, 'errno', None) or 0}".encode())
        finally:
            os._exit(NOT_FOUND_CODE)
    os.close(tells)
    with os.fdopen(told, "rb") as file:
        answer = file.read().decode()
    if answer:
        os.waitpid(pid, 0)
        stage, number = answer.split()
        raise _explain(command, stage, int(number))
    return pid


def _prepare(command: Command, descriptors: tuple[int, int, int], supervisor: int) -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(NOT_FOUND_CODE)
    os.setsid()
    for path in command.join:
        with open(path, "w", encoding="ascii") as file:
            file.write("0")
    if command.cpus:
        os.sched_setaffinity(0, command.cpus)
    # Copies above all targets first, so that no target overwrites a source.
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10) for descriptor in descriptors]
    for target, copy in enumerate(copies):
        os.dup2(copy, target, inheritable=True)
    if command.has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in signal.valid_signals():
        if number not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _explain(command: Command, stage: str, number: int) -> Failure:
    why = os.strerror(number) if number else "it did not start"
    name = command.argv[0]
    if stage == "prepare":
        return Failure(NOT_EXECUTABLE_CODE, f"the process could not be set up: {why}")
    if stage == "folder":
        return Failure(NOT_EXECUTABLE_CODE, f"cannot work in the folder {command.folder!r}: {why}")
    if number == errno.ENOENT:
        if "/" in name and os.path.exists(os.path.join(command.folder, name)):
            return Failure(NOT_EXECUTABLE_CODE, f"cannot run {name!r}: the interpreter that it names is not there")
        return Failure(NOT_FOUND_CODE, f"command not found: {name!r}")
    if number == errno.ENOEXEC:
        why = "it is no program, and a script needs a first line such as #!/bin/sh"
    return Failure(NOT_EXECUTABLE_CODE, f"cannot run {name!r}: {why}")
