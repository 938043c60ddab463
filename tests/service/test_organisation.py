"""Departments, projects, nodes and cordons."""

from datetime import timedelta

import pytest

from aliquot.core import errors
from aliquot.service import access, queues
from aliquot.wire import projects as shapes
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
ANN = worlds.ANN


async def test_the_first_start_makes_a_default_that_follows_the_machine() -> None:
    with worlds.opened() as world:
        await queues.ensure_default(world.store, clock=world.clock, ids=world.ids)
        await queues.ensure_default(world.store, clock=world.clock, ids=world.ids)

        departments = await world.departments.list(ANN, worlds.everything())
        projects = await world.projects.list(ANN, worlds.everything())

    assert [(one.name, one.projects, one.follows_machine) for one in departments.items] == [("default", 1, True)]
    assert [(one.name, one.department, one.follows_machine) for one in projects.items] == [("default", "default", True)]


async def test_a_default_that_was_deleted_does_not_come_back(world: worlds.World) -> None:
    await world.projects.delete(ANN, "default")

    await queues.ensure_default(world.store, clock=world.clock, ids=world.ids)

    assert (await world.projects.list(ANN, worlds.everything())).total == 0


async def test_a_new_project_has_gpu_quota_0_and_no_bound_on_the_rest(world: worlds.World) -> None:
    view = await world.projects.create(ANN, shapes.ProjectNew(name="team-b"))

    terms = view.pools["default"].terms
    assert (terms.gpu.quota, terms.cpu.quota, terms.memory.limit, view.department) == ("0", None, None, "default")


async def test_setting_the_gpu_quota_ends_following_the_machine(world: worlds.World) -> None:
    view = await world.projects.get(ANN, "default")

    assert (view.follows_machine, view.pools["default"].terms.gpu.quota) == (False, "8")


async def test_a_change_keeps_what_it_leaves_out(world: worlds.World) -> None:
    memory = shapes.PoolTermsUpdate(memory=shapes.Claim(quota="100Gi", weight=3, limit="1500Mi"))
    with pytest.raises(errors.InvalidInput) as caught:
        await world.projects.update(ANN, "default", shapes.QueueUpdate(pools={"default": memory}))
    good = shapes.PoolTermsUpdate(memory=shapes.Claim(quota="1500Mi", weight=3), priority=7)

    view = await world.projects.update(ANN, "default", shapes.QueueUpdate(pools={"default": good}))

    terms = view.pools["default"].terms
    assert caught.value.field == "pools.default.memory.limit"
    assert (terms.gpu.quota, terms.memory.quota, terms.memory.weight, terms.priority) == ("8", "1500Mi", 3, 7)


@pytest.mark.parametrize("quota", ["nan", "-1", "1.2345", "many", ""])
async def test_a_bad_quota_names_its_field(world: worlds.World, quota: str) -> None:
    terms = {"default": shapes.PoolTerms(gpu=shapes.Claim(quota=quota))}

    with pytest.raises(errors.InvalidInput) as caught:
        await world.projects.create(ANN, shapes.ProjectNew(name="team-b", pools=terms))

    assert caught.value.field == "pools.default.gpu.quota"
    assert (await world.projects.list(ANN, worlds.everything())).total == 1


async def test_a_taken_name_is_a_conflict(world: worlds.World) -> None:
    with pytest.raises(errors.Conflict) as caught:
        await world.projects.create(ANN, shapes.ProjectNew(name="default"))
    with pytest.raises(errors.Conflict):
        await world.departments.create(ANN, shapes.DepartmentNew(name="default"))

    assert (caught.value.stable_code, caught.value.field) == ("name-taken", "name")


async def test_a_project_needs_a_department_that_exists(world: worlds.World) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        await world.projects.create(ANN, shapes.ProjectNew(name="team-b", department="research"))

    assert (caught.value.field, caught.value.valid) == ("department", ("default",))


async def test_a_project_with_unfinished_workloads_cannot_be_deleted(world: worlds.World) -> None:
    await world.submit("job")

    with pytest.raises(errors.Conflict, match="1 unfinished"):
        await world.projects.delete(ANN, "default")
    with pytest.raises(errors.Conflict, match="1 projects"):
        await world.departments.delete(ANN, "default")
    await world.workloads.stop(ANN, "job")
    await world.projects.delete(ANN, "default")
    await world.departments.delete(ANN, "default")

    assert (await world.departments.list(ANN, worlds.everything())).total == 0
    # What is left of its work still says where it belonged.
    assert (await world.workloads.get(ANN, "job")).project == (await world.rows())[0].project
    events = await world.events.list(ANN, worlds.everything(name="job"))
    assert {event.project for event in events.items} == {"default"}


async def test_where_a_project_stands_is_what_the_last_cycle_counted(world: worlds.World) -> None:
    await world.submit("runs", gpu="3")
    await world.cycle()
    await world.submit("waits", gpu="6")
    await world.cycle()

    view = await world.projects.get(ANN, "default")

    pool = view.pools["default"]
    assert (pool.held["gpu"], pool.asked["gpu"], pool.fair_share["gpu"]) == ("3", "9", "8")
    assert (view.running, view.waiting) == (1, 1)


async def test_a_wrong_project_is_answered_with_near_names(world: worlds.World) -> None:
    with pytest.raises(errors.NotFound) as caught:
        await world.projects.get(ANN, "defaul")

    assert caught.value.valid == ("default",)


async def test_devices_show_who_holds_them(world: worlds.World) -> None:
    first = await world.submit("first", gpu="0.5")
    await world.submit("second", gpu="20Gi")
    await world.cycle()

    devices = (await world.nodes.devices(ANN, worlds.everything())).items
    nodes = (await world.nodes.list(ANN, worlds.everything())).items

    assert [(holder.workload_name, holder.milli_gpus) for holder in devices[0].holders] == [
        ("first", 500),
        ("second", 250),
    ]
    assert (devices[0].held_milli_gpus, devices[0].holders[0].workload) == (750, first.id)
    assert [(node.pods, node.devices, node.free_devices) for node in nodes] == [(2, 8, 7)]


@pytest.mark.parametrize("target", ["3", "node-1/3", "node-1-gpu-3"])
async def test_a_device_is_cordoned_by_any_of_its_names(world: worlds.World, target: str) -> None:
    cordon = await world.nodes.cordon(ANN, target)

    devices = (await world.nodes.devices(ANN, worlds.everything())).items
    assert (cordon.target, cordon.actor) == ("node-1-gpu-3", "ann")
    assert [device.index for device in devices if device.withheld == "cordoned"] == [3]
    await world.nodes.uncordon(ANN, target)
    devices = (await world.nodes.devices(ANN, worlds.everything())).items
    assert [device.index for device in devices if device.withheld is not None] == []


async def test_cordoning_twice_keeps_the_first(world: worlds.World) -> None:
    first = await world.nodes.cordon(ANN, "node-1")
    world.clock.advance(timedelta(minutes=1))

    assert await world.nodes.cordon(access.Actor("bob"), "node-1") == first


async def test_what_is_not_there_or_not_cordoned_is_said(world: worlds.World) -> None:
    with pytest.raises(errors.NotFound) as caught:
        await world.nodes.cordon(ANN, "node-2")
    with pytest.raises(errors.NotFound, match="not cordoned"):
        await world.nodes.uncordon(ANN, "node-1")
    with pytest.raises(errors.NotFound):
        await world.nodes.get(ANN, "node-2")

    assert "node-1" in caught.value.valid


async def test_nobody_who_is_not_authenticated_may_do_anything(world: worlds.World) -> None:
    with pytest.raises(errors.Forbidden):
        await world.projects.list(access.Actor("nobody", is_authenticated=False), worlds.everything())
