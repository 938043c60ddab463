"""A real Chromium before a real server: what the tests of the page are made with.

Promises: every test has a browser context of its own, signed in by the one-time link; an error in the browser's console
or a violation of the page's policy fails the test that caused it.
"""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from tests.machine.server import served
from tests.machine.server.served import Served
from tests.page import browser as driving
from tests.page.browser import Browser, Tab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these need the browser, the built page and a server."""
    for item in items:
        if item.path.is_relative_to(pathlib.Path(__file__).parent):
            item.add_marker(pytest.mark.machine)
            item.add_marker(pytest.mark.must_have)
            if driving.MISSING:
                item.add_marker(pytest.mark.skip(reason=driving.MISSING))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a worker."""
    with driving.launched() as found:
        yield found


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[Served]:
    """A fresh server with eight simulated devices."""
    with served.serving(tmp_path / "data", "--devices", "8xH100") as running:
        yield running


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens the page of a server in a new, signed-in tab. `path` as in the URL; `scheme` light or dark."""
    opened: list[Tab] = []

    def open_one(at: Served, path: str = "/", *, scheme: str = "light") -> Tab:
        tab = driving.open_tab(browser, at, path, scheme=scheme)
        opened.append(tab)
        return tab

    yield open_one
    faults = [fault for tab in opened for fault in tab.faults]
    for tab in opened:
        tab.close()
    assert faults == [], faults


@pytest.fixture
def tab(open_tab: Callable[..., Tab], server: Served) -> Tab:
    """The overview of the fresh server."""
    return open_tab(server)
