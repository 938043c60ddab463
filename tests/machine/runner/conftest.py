"""Workbenches: one without cgroups, and one with those that this machine lets us have."""

import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

from aliquot.local import limits
from tests.machine.runner.workbench import Workbench


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Iterator[Workbench]:
    """A runner that has nothing but affinity and watching, as an ordinary user has without delegation."""
    bench = Workbench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def kernel_bench(tmp_path: pathlib.Path) -> Iterator[Workbench]:
    """A runner whose limits the kernel enforces. Skips where no cgroup can be written."""
    found = limits.probe(f"aliquot-test-{os.getpid()}-{tmp_path.name}")
    if not {"cpu", "memory"} <= found.parents.keys() and found.version != 2:
        pytest.skip("no cgroup with CPU and memory can be written here: it takes root (v1) or delegation (v2)")
    bench = Workbench(tmp_path, found)
    yield bench
    bench.close()


@pytest.fixture
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A disk of one megabyte. Skips where it cannot be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    # Lazily: a supervisor has written its exit record a moment before it lets go of its files.
    subprocess.run(["umount", "--lazy", disk], check=True)
