"""A live server for the tests of the API: one for each file, or, where a test ends or breaks it, its own."""

import pathlib
from collections.abc import Iterator

import pytest

from aliquot import client
from tests import serving
from tests.api import machine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where the server of this file keeps its database."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def here(folder: pathlib.Path) -> Iterator[machine.Here]:
    """The server of this file and the world behind it."""
    with machine.here(folder) as found:
        yield found


@pytest.fixture(scope="module")
def live(here: machine.Here) -> serving.Live:
    """The server of this file."""
    return here.live


@pytest.fixture(scope="module")
def asked(live: serving.Live) -> Iterator[client.Client]:
    """A client of it."""
    with live.client() as found:
        yield found
