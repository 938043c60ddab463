"""The device map: each device's columns are that device's, and its version changes with what it shows."""

from dataclasses import replace

import pytest

from aliquot.wire import nodes as shapes
from aliquot.wire.nodes import DeviceUse
from tests import builders
from tests.service.world import ANN, World

pytestmark = pytest.mark.anyio

FREE, HELD, WITHHELD, LOST = range(4)


def holders(seen: shapes.DeviceMap) -> list[tuple[int, str, int]]:
    """Who holds what, with names."""
    flat = seen.holders
    return [(flat[at], seen.projects[flat[at + 1]], flat[at + 2]) for at in range(0, len(flat), 3)]


async def test_every_device_is_where_its_node_says_it_is(world: World) -> None:
    small = builders.node("node-2", devices=[builders.device("node-2-gpu-0", model="A100")], pool="other")
    world.cluster.machines.append(replace(small, labels={"rack": "r7"}))

    seen = await world.device_map.get(ANN)

    first, second = seen.nodes
    assert (first.id, first.pool, first.rack, first.first, first.count) == ("node-1", "default", None, 0, 8)
    assert (second.id, second.pool, second.rack, second.first, second.count) == ("node-2", "other", "r7", 8, 1)
    assert [seen.models[one] for one in seen.model] == ["H100"] * 8 + ["A100"]
    assert seen.held == [0] * 9
    assert seen.use == [-1] * 9
    assert seen.state == [FREE] * 9


async def test_what_is_held_is_in_the_columns_by_project(world: World) -> None:
    await world.submit("half", gpu="0.5")
    await world.submit("whole", gpu="1")
    await world.cycle()
    world.cluster.use = {"node-1-gpu-0": DeviceUse(utilisation_percent=63)}

    seen = await world.device_map.get(ANN)

    assert sorted(holders(seen)) == [(0, "default", 500), (1, "default", 1000)]
    assert seen.held[:3] == [500, 1000, 0]
    assert seen.state[:3] == [HELD, HELD, FREE]
    assert seen.use[:2] == [63, -1]


async def test_a_device_that_takes_nothing_says_so_also_while_it_is_held(world: World) -> None:
    await world.submit("job", gpu="1")
    await world.cycle()
    await world.nodes.cordon(ANN, "node-1/0")
    lost = [replace(device, withheld="lost") if device.index == 7 else device for device in world.machines[0].devices]
    world.cluster.machines[:] = [replace(world.machines[0], devices=tuple(lost))]

    seen = await world.device_map.get(ANN)

    assert (seen.state[0], seen.held[0], seen.state[7]) == (WITHHELD, 1000, LOST)


async def test_the_version_changes_with_what_is_shown_and_with_nothing_else(world: World) -> None:
    first = await world.device_map.get(ANN)
    same = await world.device_map.get(ANN)
    await world.submit("job", gpu="1")
    await world.cycle()
    held = await world.device_map.get(ANN)
    world.cluster.use = {"node-1-gpu-0": DeviceUse(utilisation_percent=1)}
    used = await world.device_map.get(ANN)
    await world.nodes.cordon(ANN, "node-1")
    cordoned = await world.device_map.get(ANN)

    assert first.version == same.version
    assert len({one.version for one in (first, held, used, cordoned)}) == 4
