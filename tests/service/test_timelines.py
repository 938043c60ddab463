"""The life of a workload as spans without gaps."""

from datetime import timedelta
from itertools import pairwise

import pytest

from aliquot.wire import timelines as shapes
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
ANN = worlds.ANN
MINUTE = timedelta(minutes=1)


async def spans_of(world: worlds.World, name: str) -> list[shapes.Span]:
    """All, after looking that they follow each other."""
    found = (await world.timelines.get(ANN, name)).spans
    row = (await world.rows(name=name))[0]
    assert found[0].start == row.created
    assert all(one.end == other.start for one, other in pairwise(found))
    assert found[-1].end == row.finished
    return found


async def test_it_waits_for_a_reason_runs_and_ends(world: worlds.World) -> None:
    holder = await world.submit("holder", gpu="8")
    await world.cycle()
    await world.submit("job", gpu="1")
    await world.cycle()
    world.clock.advance(MINUTE)
    world.cluster.finish(f"{holder.id}-1-0")
    await world.cycle()
    world.clock.advance(MINUTE)
    job = (await world.rows(name="job"))[0]
    world.cluster.finish(f"{job.id}-1-0", code=3)
    await world.cycle()

    waits, runs = await spans_of(world, "job")

    assert (waits.kind, waits.reason and waits.reason.code) == ("waiting", "no-free-device")
    assert (runs.kind, runs.attempt, runs.exit) == ("running", 1, "exited, exit code 3")
    assert [place.startswith("node-1/") for place in runs.places] == [True]


async def test_who_is_suspended_and_resumed_did_so_in_between(world: worlds.World) -> None:
    job = await world.submit("job", gpu="1")
    await world.cycle()
    world.clock.advance(MINUTE)
    await world.workloads.suspend(ANN, "job")
    await world.cycle()
    world.clock.advance(MINUTE)
    world.cluster.let_go(f"{job.id}-1-0")
    await world.cycle()
    world.clock.advance(MINUTE)
    await world.workloads.resume(ANN, "job")
    world.clock.advance(MINUTE)
    await world.cycle()

    kinds = [one.kind for one in await spans_of(world, "job") if one.end != one.start]

    assert [kind for kind in kinds if kind != "ending"] == ["running", "suspended", "waiting", "running"]


async def test_an_eviction_has_its_receipt(world: worlds.World) -> None:
    low = await world.submit("low", gpu="8", priority=10)
    await world.cycle()
    world.clock.advance(MINUTE)
    await world.submit("high", gpu="8", priority=40)
    await world.cycle()
    world.clock.advance(MINUTE)
    world.cluster.let_go(f"{low.id}-1-0")
    await world.cycle(2)

    found = await spans_of(world, "low")

    receipts = (await world.receipts.list(ANN, worlds.everything(workload="low"))).items
    assert {one.receipt for one in found if one.kind == "running"} == {receipts[0].id}
    assert found[-1].kind == "waiting"
