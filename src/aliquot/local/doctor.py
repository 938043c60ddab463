"""Looks over this machine and says what is well, what is weaker than it could be, and what does not work.

Promises: it changes nothing and needs no server; each check ends in a sentence, and each that is not well says what to
do about it.
"""

import os
import pathlib
import platform
import stat
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from aliquot.core import guarantees
from aliquot.core.model import Device
from aliquot.local import devices, host, limits, nvml, processes

State = Literal["ok", "warning", "problem"]

OLDEST_PYTHON = (3, 11)
GIB = 2**30
FULL_BYTES = GIB
"""Below this, logs and checkpoints of a few jobs fill the disk within minutes."""
LOW_BYTES = 10 * GIB
_FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The inode of the machine's own PID namespace: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `advice` says what to do, where there is something to do."""

    name: str
    state: State
    sentence: str
    advice: str | None = None


def examine(data: pathlib.Path, *, means: limits.Limits, root: pathlib.Path = host.ROOT) -> tuple[Check, ...]:
    """All checks. `means`: how limits on CPU and memory can be enforced here."""
    return (
        check_python(sys.version_info[:2]),
        *check_devices(),
        check_limits(means),
        check_file_system(data, root=root),
        check_disk(host.free_bytes(data)),
        check_permissions(data),
    )


def check_python(version: tuple[int, ...]) -> Check:
    """Whether the interpreter is new enough."""
    wanted = ".".join(map(str, OLDEST_PYTHON))
    sentence = f"Python {'.'.join(map(str, version))} at {sys.executable} ({platform.machine()})"
    if version >= OLDEST_PYTHON:
        return Check("python", "ok", sentence)
    return Check("python", "problem", f"{sentence} is too old", f"Use Python {wanted} or newer.")


def check_devices() -> tuple[Check, ...]:
    """The driver, what it reports, and what of that cannot be used."""
    found = nvml.connect()
    if isinstance(found, nvml.Absent):
        return (_no_driver(found),)
    real = devices.RealDevices(found)
    try:
        reading = real.read(owned=_ours())
        version = found.version
    finally:
        real.close()
    checks = [Check("driver", "ok", f"NVIDIA driver {version}")]
    checks += [Check("devices", "problem", problem, "Restart the machine.") for problem in reading.problems]
    if not reading.devices:
        return (*checks, Check("devices", "warning", "the driver reports no GPU", _SIMULATE))
    checks += [_device(device, reading.notes) for device in reading.devices]
    counts = Counter(device.guarantee for device in reading.devices if device.withheld not in {"lost", "xid"})
    checks += [
        Check("shares", "ok", f"{count} GPUs with guarantee {guarantee}: {guarantees.describe(guarantee)}")
        for guarantee, count in sorted(counts.items())
    ]
    if pathlib.Path("/proc/self/ns/pid").stat().st_ino != _FIRST_PID_NAMESPACE:
        checks.append(
            Check(
                "processes",
                "warning",
                "this is a container with its own PID namespace: GPU use by programs outside it cannot be seen",
                "Start the container with the machine's PID namespace, or let nothing else use these GPUs.",
            )
        )
    return tuple(checks)


def check_limits(means: limits.Limits) -> Check:
    """How limits on CPU and memory are enforced."""
    if means.version:
        return Check("limits", "ok", means.describe())
    return Check(
        "limits",
        "warning",
        means.describe(),
        "Start Aliquot where a cgroup is delegated to you, for example with "
        "`systemd-run --user --scope -p Delegate=yes`.",
    )


def check_file_system(data: pathlib.Path, *, root: pathlib.Path = host.ROOT) -> Check:
    """Whether the data folder lies where a database and its lock are safe."""
    mount = host.file_system(data, root=root)
    if mount is None:
        return Check("file system", "warning", f"the file system of {data} cannot be told", "Mount /proc.")
    sentence = f"{data} lies on {mount.kind}, mounted at {mount.point}"
    if host.is_network(mount):
        return Check(
            "file system", "problem", f"{sentence}, a network file system", "Choose a local folder with `--data`."
        )
    if mount.kind in {"tmpfs", "ramfs"}:
        return Check(
            "file system", "warning", f"{sentence}: it is lost at a restart", "Choose a folder on a disk with `--data`."
        )
    return Check("file system", "ok", sentence)


def check_disk(free_bytes: int) -> Check:
    """Whether there is room for logs and checkpoints."""
    sentence = f"{free_bytes / GIB:.1f} GiB are free for the data folder"
    if free_bytes >= LOW_BYTES:
        return Check("disk", "ok", sentence)
    state: State = "problem" if free_bytes < FULL_BYTES else "warning"
    return Check("disk", state, sentence, "Free some space, or choose a folder on another disk with `--data`.")


def check_permissions(data: pathlib.Path) -> Check:
    """Whether the data folder is ours, and ours alone."""
    if not data.exists():
        parent = next(each for each in data.absolute().parents if each.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            return Check("permissions", "ok", f"{data} is not there yet; `aliquot up` makes it")
        return Check(
            "permissions", "problem", f"{data} cannot be made in {parent}", "Choose another folder with `--data`."
        )
    if not data.is_dir():
        return Check("permissions", "problem", f"{data} is not a folder", "Choose another folder with `--data`.")
    facts = data.stat()
    if facts.st_uid != os.geteuid():
        return Check("permissions", "problem", f"{data} belongs to another user", "Choose a folder of your own.")
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o077:
        return Check("permissions", "warning", f"others may look into {data} (mode {mode:03o})", f"chmod 700 {data}")
    return Check("permissions", "ok", f"{data} is yours alone")


_SIMULATE = "Work that asks for no GPU runs. To try the rest, `aliquot up --devices 8xH100` simulates some."


def _no_driver(absent: nvml.Absent) -> Check:
    if absent.is_broken:
        return Check(
            "driver", "problem", absent.reason, "`nvidia-smi` says more; often a restart after an update helps."
        )
    return Check("driver", "warning", absent.reason, _SIMULATE)


def _device(device: Device, notes: Mapping[str, str]) -> Check:
    sentence = f"GPU {device.index} ({device.model}, {device.id})"
    note = notes.get(device.id)
    if device.withheld is None:
        return Check("devices", "ok", f"{sentence}: {device.memory_mib} MiB" + (f"; {note}" if note else ""))
    if device.withheld in {"lost", "xid"}:
        return Check("devices", "problem", f"{sentence}: {note}", "`nvidia-smi` and the kernel's log say more.")
    if device.withheld == "device-in-use":
        return Check(
            "devices",
            "warning",
            f"{sentence}: {note}",
            "End those processes, or offer what they leave with `--foreign shrink`.",
        )
    return Check("devices", "warning", f"{sentence}: {note}", "Turn MIG mode off with `nvidia-smi -mig 0`.")


def _ours() -> dict[int, str]:
    """The processes that carry the mark of a pod: whichever server started them, they are not foreign."""
    mark = f"{processes.MARKER}=".encode()
    found = {}
    for pid in processes.everyone():
        for setting in processes.environment_of(pid):
            if setting.startswith(mark):
                found[pid] = setting[len(mark) :].decode(errors="replace")
    return found
