"""Screenshots of every page in both themes, on an empty, a small and a large cluster: `make shots`, then look at them.

python -m tests.page.shots [--only small] [--pages overview,submit] [--to shots]
"""

import argparse
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from tests.machine.server import served
from tests.machine.server.served import Served
from tests.page import browser as driving
from tests.page.browser import Browser

ROOT = pathlib.Path(__file__).parents[2]
PAGES = {
    "overview": "/",
    "workloads": "/workloads",
    "workload": "/workloads/{workload}",
    "waiting": "/workloads/{waiting}",
    "submit": "/submit",
    "queue": "/queue",
    "projects": "/projects?queue={project}",
    "devices": "/devices",
    "nodes": "/nodes",
    "node": "/nodes/{node}",
    "usage": "/usage",
    "settings": "/settings",
}
SETTLE_MS = 1500


DEPARTMENTS = {"research": ("vision", "language", "speech"), "product": ("search", "ranking")}
RUNNING = (
    ("vision", "2"),
    ("vision", "0.5"),
    ("language", "1"),
    ("language", "0.5"),
    ("search", "2"),
    ("ranking", "1"),
)
CHATTER = "for n in $(seq 1 4000); do echo step $n loss 0.$((n * 7919 % 900 + 100)); done; sleep 900"


@contextmanager
def small(data: pathlib.Path) -> Iterator[Served]:
    """Two departments, five projects; some run, some wait, some are over."""
    with served.serving(data, "--devices", "8xH100") as server:
        for department, projects in {
            "research": ("vision", "language", "speech"),
            "product": ("search", "ranking"),
        }.items():
            server.run("departments", "create", department, "--gpu-quota", "4")
            for project in projects:
                server.run("projects", "create", project, "--department", department, "--gpu-quota", "2")
        for number, (project, gpu) in enumerate(RUNNING):
            server.submit(f"{project}-{number}", CHATTER, project=project, gpu=gpu)
        server.submit("short", "echo done", project="speech", gpu="0.25")
        server.submit("broken", "echo no such data >&2; exit 3", project="speech", gpu="0.25")
        server.wait_phase("vision-0", "running")
        server.wait_phase("broken", "failed")
        server.submit("large", "sleep 60", project="speech", gpu="6")
        server.submit("gang", "sleep 60", project="ranking", gpu="1", replicas=4)
        yield server


@contextmanager
def _empty(data: pathlib.Path) -> Iterator[Served]:
    with served.serving(data, "--devices", "1xH100") as server:
        yield server


@contextmanager
def _large(data: pathlib.Path) -> Iterator[Served]:
    with served.serving(data, "--simulate", "large") as server:
        yield server


CLUSTERS: dict[str, Callable[[pathlib.Path], AbstractContextManager[Served]]] = {
    "empty": _empty,
    "small": small,
    "large": _large,
}


def names(server: Served) -> dict[str, str]:
    """What the paths of pages are filled with."""
    workloads = server.client.list_workloads(limit=50).items
    waiting = [one.id for one in workloads if one.phase == "pending"]
    running = [one.id for one in workloads if one.phase == "running"]
    any_one = workloads[0].id if workloads else "none"
    return {
        "workload": running[0] if running else any_one,
        "waiting": waiting[0] if waiting else any_one,
        "project": server.client.list_projects(limit=1).items[0].name,
        "node": server.client.list_nodes(limit=1).items[0].id,
    }


def _shoot(browser: Browser, server: Served, name: str, *, pages: Sequence[str], to: pathlib.Path) -> None:
    filled = names(server)
    for scheme in ("light", "dark"):
        tab = driving.open_tab(browser, server, "/", scheme=scheme)
        for page in pages:
            tab.go(PAGES[page].format(**filled))
            tab.page.wait_for_timeout(SETTLE_MS)
            path = to / f"{name}-{page}-{scheme}.png"
            tab.page.screenshot(path=path)
            print(path, flush=True)
        for fault in tab.faults:
            print(f"{name} {scheme}: the console said {fault}", file=sys.stderr)
        tab.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(CLUSTERS), action="append")
    parser.add_argument("--pages", default=",".join(PAGES))
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "shots")
    chosen = parser.parse_args(arguments)
    if driving.MISSING:
        parser.error(driving.MISSING)
    chosen.to.mkdir(exist_ok=True)
    with driving.launched() as browser:
        for name in chosen.only or CLUSTERS:
            with tempfile.TemporaryDirectory() as folder, CLUSTERS[name](pathlib.Path(folder) / "data") as server:
                _shoot(browser, server, name, pages=chosen.pages.split(","), to=chosen.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
