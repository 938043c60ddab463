"""Every page on a cluster with work: it shows what it is for, in both themes, with nothing that axe finds wrong."""

from collections.abc import Callable, Iterator

import pytest

from tests.machine.server.served import Served
from tests.page import shots
from tests.page.browser import Tab


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A cluster where some run, some wait and some are over."""
    with shots.small(tmp_path_factory.mktemp("small") / "data") as server:
        yield server


SHOWN = {
    "overview": "Allocated, by department",
    "workloads": "vision-0",
    "workload": "step 4000",
    "waiting": "It waits:",
    "submit": "definition.yaml",
    "queue": "Expected start",
    "projects": "Fair share, GPU",
    "devices": "8 devices on 1 node",
    "nodes": "all ready",
    "node": "Lost by draining",
    "usage": "GPU hours that were allocated",
    "settings": "It balances",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", sorted(shots.PAGES))
def test_a_page_shows_what_it_is_for_and_axe_finds_nothing(
    small: Served, open_tab: Callable[..., Tab], name: str, scheme: str
) -> None:
    tab = open_tab(small, shots.PAGES[name].format(**shots.names(small)), scheme=scheme)

    tab.page.get_by_text(SHOWN[name]).first.wait_for()
    tab.page.wait_for_load_state("networkidle") if name in {"submit"} else tab.page.wait_for_timeout(300)

    assert tab.axe() == []


def test_the_first_view_is_small(small: Served, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(small)
    sizes: list[int] = []
    tab.page.on("response", lambda one: sizes.append(int(one.headers.get("content-length", 0))))

    tab.go("/workloads")
    tab.page.get_by_text("vision-0").first.wait_for()

    # What was loaded before comes from the browser's memory, so a new context loads it all.
    assert 0 < sum(sizes) < 400_000
