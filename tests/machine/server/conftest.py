"""Servers for tests: one of each file's own, with eight simulated devices."""

import pathlib
from collections.abc import Iterator

import pytest

from tests.machine.server import served


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[served.Served]:
    """A fresh server with eight simulated devices."""
    with served.serving(tmp_path / "data", "--devices", "8xH100") as running:
        yield running


@pytest.fixture
def small_server(tmp_path: pathlib.Path) -> Iterator[served.Served]:
    """A fresh server with one simulated device."""
    with served.serving(tmp_path / "data", "--devices", "1xH100") as running:
        yield running
