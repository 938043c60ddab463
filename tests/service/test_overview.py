"""The overview: figures of everything, each as it is."""

import dataclasses
from datetime import timedelta

import pytest

from aliquot.core.model import Node
from aliquot.service import watch
from aliquot.wire import overview as shapes
from aliquot.wire import projects as project_shapes
from aliquot.wire.nodes import DeviceUse
from tests import builders
from tests.service.world import ANN, World

pytestmark = pytest.mark.anyio


async def test_an_empty_machine_is_all_free_and_measures_nothing(world: World) -> None:
    seen = await world.overview.get(ANN)

    assert (seen.devices.count, seen.devices.free, seen.devices.held_milli_gpus) == (8, 8, 0)
    assert (seen.devices.used_milli_gpus, seen.devices.measured) == (None, 0)
    assert (seen.waiting, seen.idle, seen.phases) == ([], [], {})
    assert seen.last_cycle is None


async def test_what_is_held_and_what_waits_is_counted_as_it_changes(world: World) -> None:
    first = await world.submit("first", gpu="2x0.5")
    await world.cycle()
    await world.overview.get(ANN)
    await world.submit("second", gpu="8", preemptible=False)
    await world.cycle()

    seen = await world.overview.get(ANN)

    assert (seen.devices.held_milli_gpus, seen.devices.free) == (1000, 6)
    assert seen.phases == {"pending": 1, "running": 1}
    world.cluster.finish(f"{first.id}-1-0")
    await world.cycle(2)
    seen = await world.overview.get(ANN)
    assert (seen.devices.held_milli_gpus, seen.devices.free, seen.phases) == (8000, 0, {"running": 1})


async def test_what_waits_is_grouped_by_why_the_most_wanted_first(world: World) -> None:
    await world.submit("held", gpu="8", preemptible=False)
    await world.cycle()
    world.clock.advance(timedelta(minutes=1))
    oldest = await world.submit("small", gpu="1", replicas=2)
    world.clock.advance(timedelta(minutes=1))
    await world.submit("other", gpu="1", priority=1)
    await world.submit("none", gpu=None, cpu="1")
    await world.cycle()

    (group,) = (await world.overview.get(ANN)).waiting

    assert (group.workloads, group.milli_gpus, group.oldest) == (2, 3000, oldest.waiting_since)
    assert (group.example.name, group.example.project) == ("small", "default")
    assert group.example.message


async def test_departments_say_what_they_have_and_what_is_theirs(world: World) -> None:
    await world.departments.create(ANN, project_shapes.DepartmentNew(name="arts"))
    await world.submit("job", gpu="3")
    await world.cycle()

    arts, default = (await world.overview.get(ANN)).departments

    assert (arts.name, arts.quota_milli_gpus, arts.held_milli_gpus, arts.running) == ("arts", 0, 0, 0)
    assert (default.quota_milli_gpus, default.held_milli_gpus, default.running, default.waiting) == (8000, 3000, 1, 0)


@pytest.mark.parametrize(
    ("machine", "device_status", "node_status", "withheld"),
    [
        (builders.node(), "good", "good", 0),
        (builders.node(devices=[builders.device(withheld="cordoned")]), "warning", "good", 1),
        (builders.node(devices=[builders.device(withheld="lost")]), "bad", "good", 1),
        (builders.node(is_ready=False), "good", "bad", 8),
    ],
)
async def test_health_names_what_takes_no_work(
    world: World, machine: Node, device_status: str, node_status: str, withheld: int
) -> None:
    world.cluster.machines[:] = [machine]

    seen = await world.overview.get(ANN)

    found = {one.name: one.status for one in seen.health}
    assert (found["devices"], found["nodes"], seen.devices.withheld) == (device_status, node_status, withheld)
    assert set(found) == {"ledger", "disk", "scheduler", "devices", "nodes"}


async def test_devices_of_a_cordoned_node_take_nothing(world: World) -> None:
    await world.nodes.cordon(ANN, "node-1")

    seen = await world.overview.get(ANN)

    assert (seen.nodes.cordoned, seen.devices.withheld, seen.devices.free) == (1, 8, 0)
    assert [one.status for one in seen.health if one.name == "nodes"] == ["warning"]


async def test_a_cycle_that_failed_or_is_long_ago_is_bad(world: World) -> None:
    def status(seen: shapes.Overview) -> str:
        return next(one.status for one in seen.health if one.name == "scheduler")

    world.pulse.listeners(print).on_cycle(world.clock.now(), timedelta(seconds=1))
    good = await world.overview.get(ANN)
    world.clock.advance(timedelta(minutes=1))
    late = await world.overview.get(ANN)
    world.pulse.listeners(lambda fault: None).on_fault(ValueError("no"))
    failed = await world.overview.get(ANN)

    assert (status(good), status(late), status(failed)) == ("good", "bad", "bad")
    assert good.last_cycle is not None
    assert good.last_cycle.seconds == 1


async def test_a_share_that_is_held_and_not_used_is_idle_after_ten_minutes_until_it_is_used(world: World) -> None:
    await world.submit("lazy", gpu="0.5")
    await world.submit("busy", gpu="1")
    await world.cycle()
    use = {"node-1-gpu-0": DeviceUse(utilisation_percent=4), "node-1-gpu-1": DeviceUse(utilisation_percent=90)}
    world.cluster.use = use
    since = world.clock.now()
    await world.watch.look()
    world.clock.advance(watch.IDLE_AFTER)
    await world.watch.look()
    assert (await world.overview.get(ANN)).idle == []
    world.clock.advance(timedelta(seconds=10))
    await world.watch.look()

    seen = await world.overview.get(ANN)

    ((workload, project, device, milli, start),) = [
        (one.workload_name, one.project, one.device, one.milli_gpus, one.since) for one in seen.idle
    ]
    assert (workload, project, device, milli, start) == ("lazy", "default", "node-1/0", 500, since)
    assert (seen.devices.used_milli_gpus, seen.devices.measured) == (940, 2)
    world.cluster.use = {**use, "node-1-gpu-0": DeviceUse(utilisation_percent=50)}
    await world.watch.look()
    assert (await world.overview.get(ANN)).idle == []


async def test_a_ledger_that_does_not_add_up_is_bad(world: World) -> None:
    await world.submit("job", gpu="1")
    await world.cycle()
    await world.watch.look()
    good = await world.overview.get(ANN)
    (entry,) = await world.store.read(lambda tx: tx.ledger.find())
    await world.store.write(lambda tx: tx.ledger.put(dataclasses.replace(entry, milli=1)))
    world.clock.advance(watch.LEDGER_EVERY)
    await world.watch.look()

    bad = await world.overview.get(ANN)

    found = [next(one for one in seen.health if one.name == "ledger") for seen in (good, bad)]
    assert [one.status for one in found] == ["good", "bad"]
    assert "1" in found[1].message
