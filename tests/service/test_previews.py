"""Previews say what then happens, and change nothing."""

import pytest

from aliquot.core import errors
from aliquot.wire import projects as shapes
from aliquot.wire import workloads as workload_shapes
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
ANN = worlds.ANN


def quota(gpu: str | None, *, limit: str | None = None) -> shapes.QueueUpdate:
    claim = shapes.Claim(quota=gpu, limit=limit)
    return shapes.QueueUpdate(pools={"default": shapes.PoolTermsUpdate(gpu=claim)})


async def two_projects(world: worlds.World) -> None:
    """The default project holds all eight devices; another, to which nothing is due, waits for two."""
    await world.quota("default", "0")
    nothing = shapes.PoolTerms(gpu=shapes.Claim(quota="0", weight=0))
    await world.projects.create(ANN, shapes.ProjectNew(name="other", pools={"default": nothing}))
    for number in range(8):
        await world.submit(f"old-{number}", gpu="1")
    await world.cycle()
    for number in range(2):
        await world.submit(f"new-{number}", gpu="1", project="other")
    await world.cycle()


async def test_a_preview_of_a_quota_says_who_then_starts_and_is_evicted(world: worlds.World) -> None:
    await two_projects(world)
    found = await world.previews.queue(ANN, "other", quota("8"), noun="project")
    before = (await world.projects.get(ANN, "other")).pools["default"].terms.gpu.quota

    await world.projects.update(ANN, "other", quota("8"))
    plan = await world.cycle()

    assert before == "0"
    assert sorted(one.name for one in found.starts) == ["new-0", "new-1"]
    assert {one.workload for one in found.evicts} == {one.workload for one in plan.evicts}
    assert {one.for_name for one in found.evicts} == {"new-0", "new-1"}
    assert (found.waits_before, found.waits_after, found.is_complete) == (2, 2, True)
    shares = {one.queue: (one.before_milli_gpus, one.after_milli_gpus) for one in found.fair_shares}
    assert shares["other"][1] > shares["other"][0]


async def test_a_preview_shows_only_what_the_change_does(world: worlds.World) -> None:
    await world.submit("starts-anyway", gpu="1")

    found = await world.previews.queue(ANN, "default", quota("4"), noun="project")

    assert (found.starts, found.evicts, found.waits_after) == ([], [], 0)


async def test_a_preview_refuses_what_the_change_would(world: worlds.World) -> None:
    with pytest.raises(errors.InvalidInput, match="limit"):
        await world.previews.queue(ANN, "default", quota("4", limit="2"), noun="project")
    with pytest.raises(errors.NotFound, match="did you mean default"):
        await world.previews.queue(ANN, "defualt", quota("4"), noun="project")


async def test_a_smaller_workload_is_tried_without_changing_it(world: worlds.World) -> None:
    await world.submit("holder", gpu="1", replicas=7)
    await world.cycle()
    await world.submit("waits", gpu="1", replicas=2)
    await world.cycle()

    found = await world.previews.workload(ANN, "waits", workload_shapes.WorkloadUpdate(replicas=1))

    assert found.outcome == "starts"
    assert (await world.workloads.get(ANN, "waits")).replicas == 2
    with pytest.raises(errors.Conflict, match="does not wait"):
        await world.previews.workload(ANN, "holder", workload_shapes.WorkloadUpdate(replicas=1))
