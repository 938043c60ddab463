"""Amounts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from aliquot.core import constraints, fitting, rooms, snapshot
from aliquot.core.model import Amounts, Device, GpuRequest, Node, PodRequest, Share
from aliquot.core.rooms import Holding, NodeRoom, View
from aliquot.core.snapshot import Pool, World
from tests.scenarios.rule import around, rule, without

ShareOf = Callable[[GpuRequest, Device], Share | None]


def _to_hundredths(known: ShareOf) -> ShareOf:
    def share_of(gpu: GpuRequest, device: Device) -> Share | None:
        share = known(gpu, device)
        return None if share is None else replace(share, milli=-(-share.milli // 10) * 10)

    return share_of


def _in_cores_and_kilobytes(node: NodeRoom, request: PodRequest, view: View) -> bool:
    return -(-request.milli_cpus // 1000) * 1000 <= node.free(0, view) and (
        -(-request.memory_bytes // 1000) * 1000 <= node.free(1, view)
    )


def _ports_alone(request: PodRequest) -> tuple[tuple[str, int], ...]:
    return tuple((f"{rooms.PORT}{port}", 1) for port in request.host_ports)


def _though_too_large(gpu: GpuRequest, device: Device) -> Share:
    return Share(device.id, 1000, min(gpu.mib or device.memory_mib, device.memory_mib))


def _rounded_up(known: ShareOf) -> ShareOf:
    def share_of(gpu: GpuRequest, device: Device) -> Share | None:
        share = known(gpu, device)
        if share is None or gpu.milli is None:
            return share
        return replace(share, mib=-(-device.memory_mib * gpu.milli // 1000))

    return share_of


def _charged_less(known: ShareOf) -> ShareOf:
    def share_of(gpu: GpuRequest, device: Device) -> Share | None:
        share = known(gpu, device)
        return share if share is None or gpu.mib is None else replace(share, milli=1000 * gpu.mib // device.memory_mib)

    return share_of


def _in_whole_thousandths(known: ShareOf) -> ShareOf:
    def share_of(gpu: GpuRequest, device: Device) -> Share | None:
        share = known(gpu, device)
        return None if share is None else replace(share, mib=-(-share.milli * device.memory_mib // 1000))

    return share_of


def _by_the_largest(world: World, gpu: GpuRequest, pools: Sequence[str]) -> int:
    rooms_of = [room for pool in pools for node in world.pools[pool].nodes for room in node.devices]
    able = [room.device for room in rooms_of if constraints.suits(room.device, gpu)]
    return min(share.milli for device in able if (share := fitting.share_of(gpu, device)) is not None)


def _gone_at_once(
    known: Callable[[World, Holding, tuple[int, int, int, int]], None],
) -> Callable[[World, Holding, tuple[int, int, int, int]], None]:
    def shift(world: World, holding: Holding, signs: tuple[int, int, int, int]) -> None:
        known(world, holding, signs if signs != rooms.Effect.RELEASE.value else (0, 0, 0, 0))

    return shift


def _alone_here(known: Callable[..., NodeRoom]) -> Callable[..., NodeRoom]:
    def node_room(node: Node, *, row: int, touched: list[int]) -> NodeRoom:
        return known(replace(node, foreign=Amounts(), foreign_pods=0), row=row, touched=touched)

    return node_room


def _all_devices(pool: Pool) -> Amounts:
    return Amounts(1000 * sum(len(node.devices) for node in pool.nodes), 10**9, 10**15)


RULES = (
    rule(
        "Everything is counted in whole numbers: GPU in thousandths of a device, CPU in thousandths of a core, memory "
        "in bytes, memory of a device in MiB.",
        "thousandths-of-a-device thousandths-of-a-core-and-bytes",
        around(fitting, "share_of", _to_hundredths),
        without(fitting, "has_node_room", _in_cores_and_kilobytes),
    ),
    rule(
        "Any other resource that can be counted has a name and a whole number.",
        "any-other-resource",
        without(rooms, "others_of", _ports_alone),
    ),
    rule(
        "A device offers its memory less what the driver keeps.",
        "less-than-the-card-has",
        without(fitting, "share_of", _though_too_large),
    ),
    rule(
        "A portion of `0.5` is 500 thousandths for the quota and half of the offered MiB, rounded down.",
        "half-is-rounded-down",
        around(fitting, "share_of", _rounded_up),
    ),
    rule("So two halves fit on every card.", "two-halves", around(fitting, "share_of", _rounded_up)),
    rule(
        "A request by memory (`20Gi`) takes just these MiB and is charged its part of the device, rounded up.",
        "by-memory",
        around(fitting, "share_of", _charged_less),
        around(fitting, "share_of", _in_whole_thousandths),
    ),
    rule(
        "While it waits on a pool with unlike cards it counts by the smallest card that can hold it.",
        "counted-by-the-smallest-card",
        without(World, "milli_for", _by_the_largest),
    ),
    rule(
        "Pods that end still hold their place until they are gone.",
        "ending-pods-hold-their-place",
        around(World, "_shift", _gone_at_once),
    ),
    rule(
        "What processes or schedulers outside Aliquot hold is neither free nor anyone's to divide.",
        "others-hold-room others-use-a-device",
        around(rooms, "node_room", _alone_here),
        without(snapshot, "_capacity", _all_devices),
    ),
)
