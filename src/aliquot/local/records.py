"""The durable records of a pod: small JSON files in its folder, which outlive server and supervisor.

A record that was written is complete and on the disk (`fsync` of file and folder), or it is not there at all. The
order in which they appear is the protocol between runner and supervisor: `launch` (what to run), `claim` (a supervisor
took it and may start it: never a second one), `started` (the process runs), `end` (somebody asked to end it), `exit`
(it is over). The room for `exit` is set aside before the start, so that a full disk cannot swallow it.

Imported by the supervisor, which must start fast: nothing here may import `typing`, `dataclasses` or `pathlib`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import struct

TYPE_CHECKING = False  # type checkers know the name; `typing` itself would cost the supervisor a third of its start
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]  # Any: whatever JSON holds; each reader knows its own fields
else:
    Record = dict

LAUNCH, CLAIM, STARTED, END, EXIT = "launch.json", "claim.json", "started.json", "end.json", "exit.json"
LOCK, CONTROL, TREE, LOG_FOLDER, SUPERVISOR_LOG = "lock", "control", "tree.json", "log", "supervisor.log"
NOTIFY = "notify"
"""The datagram socket in the runner's root, on which supervisors say that something changed."""

_RESERVED = "exit.reserved"
RESERVED_BYTES = 4096
MESSAGE_CHARACTERS = 1000
_FLOCK = "hhqqi4x"
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})

_numbers = itertools.count()


def create(folder: str, name: str, content: Record) -> bool:
    """Write the record unless there is one already; says whether this call wrote it."""
    draft = _write_draft(folder, name, content)
    try:
        os.link(draft, f"{folder}/{name}")
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    sync_folder(folder)
    return True


def replace(folder: str, name: str, content: Record) -> None:
    """Write the record in place of the one that may be there."""
    os.rename(_write_draft(folder, name, content), f"{folder}/{name}")
    sync_folder(folder)


def read(folder: str, name: str) -> Record | None:
    """The record, or None where there is none."""
    try:
        with open(f"{folder}/{name}", "rb") as file:
            content: Record = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return content


def exists(folder: str, name: str) -> bool:
    """Whether the record was written."""
    return os.path.exists(f"{folder}/{name}")


def reserve_exit(folder: str) -> None:
    """Set room aside for the exit record."""
    descriptor = os.open(f"{folder}/{_RESERVED}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, b" " * RESERVED_BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_exit(folder: str, content: Record) -> bool:
    """Write the exit record into the room set aside for it, unless there is one; says whether this call wrote it."""
    reserved, final = f"{folder}/{_RESERVED}", f"{folder}/{EXIT}"
    if os.path.exists(final):
        return False
    content["message"] = str(content.get("message", ""))[:MESSAGE_CHARACTERS]
    descriptor = os.open(reserved, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, json.dumps(content).encode().ljust(RESERVED_BYTES), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        os.link(reserved, final)
    except FileExistsError:
        return False
    sync_folder(folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(reserved)
    return True


def take_lock(folder: str) -> int | None:
    """Become the pod's only supervisor until this process ends: a descriptor to keep, or None if there is one already.

    A POSIX record lock: a forked child does not share it, and `lock_holder` can ask for it without touching it.
    """
    descriptor = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return None
        raise
    return descriptor


def lock_holder(folder: str) -> int | None:
    """The pid of the pod's supervisor, from before its claim until its end; None if there is none."""
    try:
        descriptor = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    finally:
        os.close(descriptor)
    return int(pid) if kind != fcntl.F_UNLCK else None


def sync_folder(folder: str) -> None:
    """Make the names in the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_draft(folder: str, name: str, content: Record) -> str:
    draft = f"{folder}/.{name}.{os.getpid()}.{next(_numbers)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        data = memoryview(json.dumps(content).encode())
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except OSError:
        os.unlink(draft)
        raise
    finally:
        os.close(descriptor)
    return draft
