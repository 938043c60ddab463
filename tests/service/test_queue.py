"""The line of those who wait, and when their turn comes."""

from datetime import timedelta

import pytest

from aliquot.core import errors
from aliquot.service import paging
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
ANN = worlds.ANN


async def test_who_waits_stands_in_order_with_what_it_waits_for(world: worlds.World) -> None:
    await world.submit("holder", gpu="8")
    await world.cycle()
    await world.submit("low", gpu="8", priority=10)
    await world.submit("high", gpu="2", replicas=2)
    await world.cycle()

    page = await world.queue.list(ANN, worlds.everything())

    assert [(one.position, one.name, one.milli_gpus) for one in page.items] == [(1, "high", 4000), (2, "low", 8000)]
    assert [other.name for one in page.items for other in one.waits_for] == ["holder", "holder"]
    assert page.items[0].expected_start is None
    assert page.items[0].expected_unknown_because == "holder runs and states no run time"


async def test_stated_run_times_give_the_latest_start(world: worlds.World) -> None:
    began = world.clock.now()
    await world.submit("holder", gpu="8", max_run_time="2h")
    await world.cycle()
    await world.submit("next", gpu="8", max_run_time="1h")
    await world.submit("last", gpu="8")
    await world.cycle()
    world.clock.advance(timedelta(minutes=30))

    page = await world.queue.list(ANN, worlds.everything())

    latest = {one.name: one.expected_start.latest - began for one in page.items if one.expected_start is not None}
    assert latest == {"next": timedelta(hours=2), "last": timedelta(hours=3)}


async def test_the_line_is_filtered_and_comes_in_pages(world: worlds.World) -> None:
    await world.submit("holder", gpu="8")
    await world.cycle()
    for number in range(3):
        await world.submit(f"job-{number}", gpu="8")
    await world.cycle()

    first = await world.queue.list(ANN, paging.ListRequest({"project": "default"}, limit=2))
    rest = await world.queue.list(ANN, paging.ListRequest({"department": "default"}, limit=2, cursor=first.next))
    other = await world.queue.list(ANN, worlds.everything(pool="other"))

    assert [one.name for one in (*first.items, *rest.items)] == ["job-0", "job-1", "job-2"]
    assert (first.total, rest.next, other.total) == (3, None, 0)
    with pytest.raises(errors.InvalidInput, match="no project 'x'"):
        await world.queue.list(ANN, worlds.everything(project="x"))
