"""A world that is kept from snapshot to snapshot plans like one that is made anew."""

from dataclasses import replace

import pytest

from aliquot.core import schedule
from aliquot.core.model import Policy, Snapshot, Workload
from aliquot.core.snapshot import World
from tests.builders import NOW, job, node, queue, running, snapshot


def only(taken: Snapshot, *workloads: Workload) -> Snapshot:
    return replace(taken, workloads=workloads)


@pytest.mark.parametrize(
    "last",
    [job("last", pool="far"), replace(job("last"), fallback_pools=("far",))],
    ids=["first of its list", "later in its list"],
)
def test_a_pool_without_nodes_is_gone_with_the_last_who_waits_for_it(last: Workload) -> None:
    before = snapshot(node(), queue(), last, running(job("old"), "node-1:0"))
    kept = World(before)
    after = only(before, before.workloads[1])

    kept.sync(after)

    assert sorted(kept.pools) == ["default"]
    assert schedule.schedule(kept, Policy(), NOW) == schedule.schedule(after, Policy(), NOW)


def test_a_pool_without_nodes_stays_while_somebody_waits_for_it_and_may_come_again() -> None:
    one, two = job("one", pool="far"), job("two", pool="far")
    before = snapshot(node(), queue(), one, two)
    kept = World(before)

    for after in (only(before, two), only(before), before):
        kept.sync(after)

        assert schedule.schedule(kept, Policy(), NOW) == schedule.schedule(after, Policy(), NOW)
