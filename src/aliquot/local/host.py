"""What this machine is, besides its GPUs: processors, memory, names, and the file system under the data folder.

Promises: what is reported is what this process may really use: its affinity and the limits of all cgroups above it are
honoured, so that a server inside a container or a batch job does not offer the whole machine.
"""

import os
import pathlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from aliquot.core import errors
from aliquot.local import processes

ROOT = pathlib.Path("/")

# Where two machines may write the same file, or where locks and memory maps are not what SQLite needs.
# fmt: off
NETWORK_FILE_SYSTEMS = frozenset(
    (
        "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "wekafs",
    )
)
NETWORK_FUSE = frozenset(
    (
        "beegfs", "ceph", "curlftpfs", "davfs2", "gcsf", "gcsfuse", "glusterfs", "goofys", "google-drive-ocamlfuse",
        "juicefs", "mfs", "mount-s3", "rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse",
    )
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Host:
    """A machine as far as this process may use it. `boot` changes with every boot; `machine` stays."""

    hostname: str
    machine: str
    boot: str
    milli_cpus: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system. `root` is which folder of it is mounted; `options` are those of the file system itself."""

    point: pathlib.Path
    kind: str
    source: str
    root: str = "/"
    options: tuple[str, ...] = ()


def read() -> Host:
    """This machine."""
    hostname = socket.gethostname()
    return Host(
        hostname=hostname,
        machine=machine_id(ROOT) or hostname,
        boot=processes.boot_id(),
        milli_cpus=milli_cpus(ROOT, affinity=len(os.sched_getaffinity(0))),
        memory_bytes=memory_bytes(ROOT, installed=psutil.virtual_memory().total),
    )


def machine_id(root: pathlib.Path) -> str | None:
    """What names this installation of the operating system; None if it has no name."""
    for place in ("etc/machine-id", "var/lib/dbus/machine-id"):
        text = _text(root / place)
        if text:
            return text
    return None


def milli_cpus(root: pathlib.Path, *, affinity: int) -> int:
    """How much processor time this process may use: `affinity` processors, less where a cgroup above it bounds time."""
    bounds = [affinity * 1000]
    for folder in _cgroups(root, "cpu"):
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        words = (_text(folder / "cpu.max") or f"{quota} {period}").split()
        if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]) > 0:
            bounds.append(max(1, int(words[0]) * 1000 // int(words[1])))
    return min(bounds)


def memory_bytes(root: pathlib.Path, *, installed: int) -> int:
    """How much memory this process may use: what is installed, less where a cgroup above it bounds it."""
    bounds = [installed]
    for folder in _cgroups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _text(folder / name) or ""
            if text.isdecimal() and int(text) > 0:
                bounds.append(int(text))
    return min(bounds)


def mounts(root: pathlib.Path = ROOT) -> tuple[Mount, ...]:
    """All mounts, in the order in which they were made (a later one hides an earlier one at the same place)."""
    found = []
    for line in (_text(root / "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = [_unescaped(part) for part in before.split()], [_unescaped(part) for part in after.split()]
        if len(fields) >= 5 and len(rest) >= 3:
            options = tuple(rest[2].split(","))
            found.append(Mount(pathlib.Path(fields[4]), rest[0], rest[1], root=fields[3], options=options))
    return tuple(found)


def file_system(path: pathlib.Path, *, root: pathlib.Path = ROOT) -> Mount | None:
    """The mount on which a path lies or would lie; None if that cannot be told."""
    place = path.resolve()
    best: Mount | None = None
    for mount in mounts(root):
        is_above = mount.point == place or mount.point in place.parents
        if is_above and (best is None or len(mount.point.parts) >= len(best.point.parts)):
            best = mount
    return best


def is_network(mount: Mount) -> bool:
    """Whether a file system may be written by more machines than this one."""
    kind, _, program = mount.kind.partition(".")
    if kind in {"fuse", "fuseblk"}:
        # Some name themselves in the type (fuse.sshfs), some only in the source (sshfs#me@host:).
        return program in NETWORK_FUSE or mount.source.partition("#")[0] in NETWORK_FUSE
    return mount.kind in NETWORK_FILE_SYSTEMS


def refuse_network_file_system(path: pathlib.Path, *, root: pathlib.Path = ROOT) -> None:
    """Raises InvalidInput, naming the type, if the folder lies on a network file system: the lock that keeps a second
    server away, and SQLite's write-ahead log, hold on one machine only."""
    mount = file_system(path, root=root)
    if mount is not None and is_network(mount):
        raise errors.InvalidInput(
            f"data: {path} lies on a network file system ({mount.kind}, mounted at {mount.point}); the database and "
            "the lock of the data folder need a local one",
            field="data",
            valid=("a folder on a local file system",),
            details={"fileSystem": mount.kind, "mountPoint": str(mount.point)},
        )


def free_bytes(path: pathlib.Path) -> int:
    """How much this user may still write below a path (or its nearest parent that is there)."""
    place = path.resolve()
    while not place.exists():
        place = place.parent
    stat = os.statvfs(place)
    return stat.f_bavail * stat.f_frsize


def _cgroups(root: pathlib.Path, controller: str) -> Iterator[pathlib.Path]:
    """The folders of this process's cgroup for a controller and of all above it, in version 2 and in version 1."""
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        number, names, path = line.split(":", 2)
        if number != "0" and controller not in names.split(","):
            continue
        for mount in mounts(root):
            is_unified = mount.kind == "cgroup2"
            is_own = mount.kind == "cgroup" and controller in mount.options
            if not (is_unified if number == "0" else is_own):
                continue
            # In a container only a part of the tree may be mounted: then the path is seen from its own top.
            inside = path.removeprefix(mount.root) if mount.root != "/" else path
            top = root / str(mount.point).lstrip("/")
            place = top / inside.strip("/")
            yield from (place, *(parent for parent in place.parents if parent == top or top in parent.parents))
            break


def _text(path: pathlib.Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _unescaped(text: str) -> str:
    """The kernel writes blanks in paths as octal numbers."""
    for number, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(number, character)
    return text
