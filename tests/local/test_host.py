"""What the machine offers, read from a tree of files like the kernel's, and from this machine itself."""

import os
import pathlib

import psutil
import pytest

from aliquot.core import errors
from aliquot.local import host

GIB = 2**30


def tree(root: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    """A root folder with these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def mountinfo(*rows: tuple[str, str, str, str]) -> dict[str, str]:
    """The kernel's list of mounts: where, type, source, options."""
    lines = [
        f"{number} 1 0:{number} / {point} rw,relatime shared:1 - {kind} {source} {options}\n"
        for number, (point, kind, source, options) in enumerate(rows, start=20)
    ]
    return {"proc/self/mountinfo": "".join(lines)}


UNIFIED = ("/sys/fs/cgroup", "cgroup2", "cgroup2", "rw")
CPU = ("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cgroup", "rw,cpu,cpuacct")
MEMORY = ("/sys/fs/cgroup/memory", "cgroup", "cgroup", "rw,memory")


def test_it_reads_this_machine() -> None:
    found = host.read()

    assert 0 < found.milli_cpus <= len(os.sched_getaffinity(0)) * 1000
    assert 0 < found.memory_bytes <= psutil.virtual_memory().total
    assert found.boot == pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found.hostname
    assert found.machine


def test_without_cgroups_affinity_and_installed_memory_count(tmp_path: pathlib.Path) -> None:
    assert host.milli_cpus(tmp_path, affinity=3) == 3000
    assert host.memory_bytes(tmp_path, installed=8 * GIB) == 8 * GIB


def test_the_tightest_cgroup_above_this_process_counts(tmp_path: pathlib.Path) -> None:
    top = "sys/fs/cgroup"
    files = mountinfo(UNIFIED) | {
        "proc/self/cgroup": "0::/user.slice/job.scope\n",
        f"{top}/user.slice/cpu.max": "150000 100000\n",
        f"{top}/user.slice/memory.max": "max\n",
        f"{top}/user.slice/job.scope/cpu.max": "max 100000\n",
        f"{top}/user.slice/job.scope/memory.max": f"{4 * GIB}\n",
    }

    root = tree(tmp_path, files)

    assert host.milli_cpus(root, affinity=8) == 1500
    assert host.milli_cpus(root, affinity=1) == 1000
    assert host.memory_bytes(root, installed=8 * GIB) == 4 * GIB
    assert host.memory_bytes(root, installed=2 * GIB) == 2 * GIB


def test_the_first_version_of_cgroups_counts_too(tmp_path: pathlib.Path) -> None:
    files = mountinfo(CPU, MEMORY) | {
        "proc/self/cgroup": "3:cpu,cpuacct:/job\n2:memory:/\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{3 * GIB}\n",
    }

    root = tree(tmp_path, files)

    assert host.milli_cpus(root, affinity=8) == 500
    assert host.memory_bytes(root, installed=8 * GIB) == 3 * GIB


def test_the_unlimited_number_of_the_first_version_is_no_limit(tmp_path: pathlib.Path) -> None:
    files = mountinfo(MEMORY) | {
        "proc/self/cgroup": "2:memory:/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }

    assert host.memory_bytes(tree(tmp_path, files), installed=8 * GIB) == 8 * GIB


def test_in_a_container_that_sees_a_part_of_the_tree_the_limit_is_found(tmp_path: pathlib.Path) -> None:
    files = {
        "proc/self/mountinfo": "30 1 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
        "proc/self/cgroup": "0::/docker/abc\n",
        "sys/fs/cgroup/memory.max": f"{GIB}\n",
    }

    assert host.memory_bytes(tree(tmp_path, files), installed=8 * GIB) == GIB


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("nfs4", "server:/home"),
        ("nfs", "server:/home"),
        ("cifs", "//server/share"),
        ("lustre", "10.0.0.1@tcp:/scratch"),
        ("ceph", "10.0.0.1:/"),
        ("gpfs", "gpfs0"),
        ("9p", "C:\\134"),
        ("fuse.sshfs", "me@server:/home"),
        ("fuse", "sshfs#me@server:/home"),
        ("fuse.gcsfuse", "bucket"),
    ],
)
def test_a_network_file_system_is_refused_by_name(tmp_path: pathlib.Path, kind: str, source: str) -> None:
    root = tree(tmp_path, mountinfo(("/", "ext4", "/dev/sda", "rw"), ("/net/home", kind, source, "rw")))

    with pytest.raises(errors.InvalidInput) as refused:
        host.refuse_network_file_system(pathlib.Path("/net/home/me/not/there/yet"), root=root)

    assert refused.value.field == "data"
    assert f"({kind}, mounted at /net/home)" in refused.value.message


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuse.fuse-overlayfs", "fuseblk"])
def test_a_local_file_system_is_taken(tmp_path: pathlib.Path, kind: str) -> None:
    root = tree(tmp_path, mountinfo(("/", kind, "/dev/sda", "rw"), ("/net", "nfs4", "server:/", "rw")))

    host.refuse_network_file_system(pathlib.Path("/network/data"), root=root)


def test_the_nearest_mount_and_the_last_one_at_a_place_count(tmp_path: pathlib.Path) -> None:
    rows = [
        ("/net\\040work/local", "xfs", "/dev/sdb", "rw"),
        ("/", "ext4", "/dev/sda", "rw"),
        ("/net\\040work", "ext4", "/dev/sdc", "rw"),
        ("/net\\040work", "nfs4", "server:/", "rw"),
    ]
    root = tree(tmp_path, mountinfo(*rows))

    kinds = [
        mount.kind
        for path in ("/net work/local/a", "/net work/a", "/net work", "/net")
        if (mount := host.file_system(pathlib.Path(path), root=root)) is not None
    ]

    assert kinds == ["xfs", "nfs4", "nfs4", "ext4"]


def test_a_link_is_followed_to_where_the_data_really_lie(tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to("/net/home")
    root = tree(tmp_path / "root", mountinfo(("/", "ext4", "/dev/sda", "rw"), ("/net", "nfs", "server:/", "rw")))

    with pytest.raises(errors.InvalidInput, match=r"network file system \(nfs,"):
        host.refuse_network_file_system(tmp_path / "link" / "data", root=root)


def test_free_space_of_a_folder_that_is_not_there_yet_is_that_of_its_parent(tmp_path: pathlib.Path) -> None:
    assert host.free_bytes(tmp_path / "not" / "there") > 0
