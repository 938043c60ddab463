"""Work that is moved to make room keeps its new place while it ends, and starts there, whatever happens meanwhile."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from aliquot.core.lifecycle import Phase
from aliquot.core.model import Place, Share
from aliquot.core.plan import Evict, Nominate, Plan, Rule
from aliquot.db import store as db
from tests import builders
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
GRACE = timedelta(seconds=30)


@pytest.fixture
def store() -> Iterator[db.SqlStore]:
    opened = db.open_store(":memory:")
    yield opened
    opened.close()


async def fragmented(store: db.SqlStore) -> worlds.World:
    """Two devices, half of each held; what is told to end lingers."""
    world = await worlds.World(store, machines=(builders.node(devices=2),)).prepare()
    for name in ("first", "left", "right"):
        await world.submit(name, gpu="0.5")
        await world.cycle()
    world.cluster.finish((await pods(world, "first"))[0])
    world.cluster.is_lingering = True
    return world


async def pods(world: worlds.World, name: str) -> list[str]:
    """The open pods of a workload."""
    detail = await world.workloads.get(worlds.ANN, name)
    return [pod.id for pod in detail.pods if pod.ended is None]


async def phases(world: worlds.World) -> dict[str, Phase]:
    return {row.name: row.phase for row in await world.rows() if row.name != "first"}


async def test_what_is_moved_has_a_receipt_and_starts_at_its_new_place_as_soon_as_it_has_ended(
    store: db.SqlStore,
) -> None:
    world = await fragmented(store)
    await world.submit("whole", gpu="1")

    await world.cycle()
    moved = next(name for name, phase in (await phases(world)).items() if phase is Phase.EVICTING)
    ending = await pods(world, moved)
    world.clock.advance(timedelta(seconds=1))
    between = await world.cycle(3)
    world.cluster.let_go(ending[0])
    last = await world.cycle()

    receipts = (await world.receipts.list(worlds.ANN, worlds.everything())).items
    assert [(one.workload_name, one.beneficiary_name, one.rule) for one in receipts] == [
        (moved, "whole", Rule.CONSOLIDATE)
    ]
    assert (between.evicts, len(between.nominates)) == ((), 2)
    assert {bind.workload for bind in last.binds} == {one.workload for one in between.nominates}
    assert set((await phases(world)).values()) == {Phase.RUNNING}
    again = await world.workloads.get(worlds.ANN, moved)
    assert (again.attempt, again.evictions, again.failures) == (2, 1, 0)
    events = await world.events.list(worlds.ANN, worlds.everything(subject=again.id))
    assert Counter(one.code for one in events.items) >= Counter(
        {"evicted": 1, "promised": 1, "requeued": 1, "bound": 2}
    )


async def test_the_new_place_of_what_is_moved_is_kept_over_a_restart(store: db.SqlStore) -> None:
    world = await fragmented(store)
    await world.submit("whole", gpu="1")
    before = await world.cycle()

    other = worlds.World(store, clock=world.clock, machines=world.machines)
    other.cluster.seen, other.cluster.is_lingering = world.cluster.seen, True
    world.clock.advance(timedelta(seconds=1))
    after = await other.cycle()

    assert len(before.nominates) == 2
    assert [one.places for one in after.nominates] == [one.places for one in before.nominates]
    assert not after.evicts


async def test_who_is_stopped_while_it_is_moved_gives_its_new_place_back(store: db.SqlStore) -> None:
    world = await fragmented(store)
    await world.submit("whole", gpu="1")
    await world.cycle()
    moved = next(name for name, phase in (await phases(world)).items() if phase is Phase.EVICTING)

    await world.workloads.stop(worlds.ANN, moved)
    plan = await world.cycle()

    whole = next(row.id for row in await world.rows(name="whole"))
    assert [one.workload for one in plan.nominates] == [whole]


async def test_a_gang_that_is_moved_keeps_its_places_until_its_last_replica_has_ended(store: db.SqlStore) -> None:
    world = await worlds.World(store, machines=(builders.node(devices=4),)).prepare()
    gang = await world.submit("gang", gpu="1", replicas=2)
    await world.cycle()
    world.cluster.is_lingering = True
    ending = await pods(world, "gang")
    due = world.clock.now() + GRACE
    places = tuple(
        Place(pod, "node-1", (Share(f"node-1-gpu-{index + 2}", 1000, builders.mib("80Gi")),))
        for index, pod in enumerate(ending)
    )
    evicts = tuple(Evict(gang.id, pod, "", Rule.CONSOLIDATE, "to try it") for pod in ending)
    moving = Nominate(gang.id, places, tuple(ending), due, due + GRACE)

    await world.cluster.apply(Plan(evicts=evicts, nominates=(moving,)))
    told = await world.cycle()
    world.cluster.let_go(ending[0])
    half = await world.cycle()
    world.cluster.let_go(ending[1])
    last = await world.cycle()

    assert [one.places for one in told.nominates] == [places]
    assert [one.places for one in half.nominates] == [places]
    assert half.binds == ()
    assert [bind.place.shares for bind in last.binds] == [place.shares for place in places]
    assert (await phases(world))["gang"] is Phase.RUNNING
