"""Many clients at once: nothing is lost and nothing is done twice, and those who cannot be served now come again."""

import collections
import pathlib
import threading
from concurrent import futures
from dataclasses import dataclass, field

import pytest

from aliquot import client
from aliquot.wire import workloads
from tests.api import machine

CLIENTS = 50
SUBMISSIONS = 1000


@dataclass
class Patience:
    """Waits a tenth as long as it is asked to, and remembers how long that was."""

    waits: list[float] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        """Wait."""
        self.waits.append(seconds)
        threading.Event().wait(seconds / 10)


def submit(here: machine.Here, numbers: range, *, start: threading.Barrier, patience: Patience) -> list[str]:
    """One client that submits a workload for each number; the ids it was told."""
    with client.Client(here.live.url, here.live.token, sleep=patience.wait) as asked:
        start.wait()
        return [
            asked.submit_workload(workloads.Definition(name=f"job-{number}", command=["true"])).id for number in numbers
        ]


def submit_at_once(here: machine.Here, *, clients: int, each: int, patience: Patience | None = None) -> list[str]:
    """So many clients at the same time, each with so many workloads; all ids that they were told."""
    patience = patience or Patience()
    start = threading.Barrier(clients)
    with futures.ThreadPoolExecutor(clients) as pool:
        parts = [range(first * each, (first + 1) * each) for first in range(clients)]
        told = [pool.submit(submit, here, numbers, start=start, patience=patience) for numbers in parts]
        return [id for part in told for id in part.result()]


def kept(here: machine.Here) -> list[tuple[str, str]]:
    """Id and name of all workloads in the database."""

    async def work(world: machine.World) -> list[tuple[str, str]]:
        return await world.store.read(lambda tx: [(row.id, row.name) for row in tx.workloads.find()])

    return here.do(work)


@pytest.mark.slow  # A thousand submissions, each a transaction of its own.
def test_a_thousand_submissions_of_fifty_clients_make_exactly_a_thousand_workloads(tmp_path: pathlib.Path) -> None:
    with machine.here(tmp_path) as here:
        told = submit_at_once(here, clients=CLIENTS, each=SUBMISSIONS // CLIENTS)
        rows = kept(here)

    assert len(told) == SUBMISSIONS
    assert sorted(told) == sorted(id for id, _ in rows)
    assert collections.Counter(name for _, name in rows) == {f"job-{number}": 1 for number in range(SUBMISSIONS)}


@pytest.mark.slow  # Those who are refused wait for the second that the server names.
def test_clients_that_are_told_to_come_again_come_again(tmp_path: pathlib.Path) -> None:
    patience = Patience()

    with machine.here(tmp_path, most_waiting=2) as here:
        told = submit_at_once(here, clients=12, each=3, patience=patience)
        rows = kept(here)

    assert patience.waits, "nobody was refused"
    assert min(patience.waits) >= 0.75, "a client did not wait as long as the server asked"
    assert sorted(told) == sorted(id for id, _ in rows)
    assert len(rows) == 36
