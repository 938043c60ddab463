"""Whether a pod fits a node, and on which of its devices: the tightest fit, several shares of a pod on different ones.

Nothing is chosen between nodes here, and nothing is changed.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from aliquot.core import constraints, mig, rooms
from aliquot.core.model import WHOLE_DEVICE_MILLI, Device, GpuRequest, PodRequest, Share, Sharing
from aliquot.core.rooms import DeviceRoom, Holding, NodeRoom, Slot, View

Order = Literal["tight", "wide", "cheap", "open"]
"""How devices of a node are chosen: the tightest fit; the emptiest first, which places the most pods with several
shares each; the largest first, where a request by memory is charged least; or the one with the fewest sharers."""


def orders_of(requests: Sequence[PodRequest], *, is_spread: bool = False) -> tuple[Order, ...]:
    """The ways worth trying: nearly always one."""
    if len(requests) == 1 and (requests[0].gpu is None or not requests[0].gpu.mib):
        return ("open",) if is_spread else ("tight",)
    orders: list[Order] = ["open" if is_spread else "tight"]
    if len(requests) > 1 and any(one.gpu and one.gpu.devices > 1 and not one.gpu.is_whole for one in requests):
        orders.append("wide")
    if any(one.gpu and one.gpu.mib for one in requests):
        orders.append("cheap")
    return tuple(orders)


def fit(node: NodeRoom, request: PodRequest, view: View, *, order: Order = "tight") -> list[Slot] | None:
    """The slots that a pod would get on this node, empty if it asks for no GPU; None if there is no room."""
    if not node.is_usable or not has_node_room(node, request, view):
        return None
    if request.gpu is None:
        return []
    return fit_devices(node, request.gpu, view, order=order)


def has_room(node: NodeRoom, request: PodRequest, view: View) -> bool:
    """Whether `fit` finds room, in any order, without looking for the best devices."""
    if not node.is_usable or not has_node_room(node, request, view):
        return False
    gpu = request.gpu
    if gpu is None:
        return True
    if gpu.devices == 1 and not gpu.is_whole:
        return any(slot_on(room, gpu, view) is not None for room in node.devices)
    if node.has_plain_devices and is_plain_whole(gpu) and view != "held":
        return tally(node)[2 if view == "later" else 1] >= gpu.devices
    return fit_devices(node, gpu, view) is not None


def has_node_room(node: NodeRoom, request: PodRequest, view: View) -> bool:
    """Whether CPU, memory, the number of pods, and every other resource suffice."""
    # A bind must fit into both ledgers. This runs for each node that changed: it is written for speed.
    for ledger in (node.idle, node.future) if view == "now" else ((node.future,) if view == "later" else (node.idle,)):
        cpus, memory, pods = ledger
        if request.milli_cpus > cpus and request.milli_cpus:
            return False
        if (request.memory_bytes > memory and request.memory_bytes) or pods < 1:
            return False
    if not request.resources and not request.host_ports:
        return True
    return all(amount <= node.free_other(name, view) for name, amount in rooms.others_of(request))


def fit_devices(node: NodeRoom, gpu: GpuRequest, view: View, *, order: Order = "tight") -> list[Slot] | None:
    """One slot on each of so many different devices, or None."""
    if len(node.devices) < gpu.devices:
        return None
    if gpu.is_whole and node.has_plain_devices and gpu.compute == WHOLE_DEVICE_MILLI:
        return _whole_slots(node, gpu, view)
    found: list[tuple[tuple[int, ...], Slot]] = []
    for room in node.devices:
        slot = slot_on(room, gpu, view)
        if slot is not None:
            is_other_mode = gpu.sharing is not None and slot.mode is not gpu.sharing
            found.append(((is_other_mode, *_ORDERS[order](room, slot)), slot))
    if len(found) < gpu.devices:
        return None
    found.sort(key=lambda one: (one[0], one[1].room.device.index, one[1].room.device.id))
    return [slot for _, slot in found[: gpu.devices]]


def is_plain_whole(gpu: GpuRequest) -> bool:
    """Whether it asks for whole devices, whichever."""
    return gpu.milli == WHOLE_DEVICE_MILLI and gpu.compute_milli is None and not gpu.models and not gpu.min_device_mib


def tally(node: NodeRoom) -> tuple[int, int, int]:
    """Of a node's devices: thousandths that will be free, and how many are wholly free now and later."""
    free = now = later = 0
    for room in node.devices:
        if not room.is_usable:
            continue
        memory = room.device.memory_mib
        if room.future_milli == WHOLE_DEVICE_MILLI and room.future_mib == memory:
            free += WHOLE_DEVICE_MILLI
            later += 1
            if room.idle_milli == WHOLE_DEVICE_MILLI and room.idle_mib == memory:
                now += 1
        elif room.future_milli > 0 and room.future_mib > 0:
            free += min(WHOLE_DEVICE_MILLI * room.future_mib // memory, room.future_milli)
    return free, now, later


def slot_on(room: DeviceRoom, gpu: GpuRequest, view: View) -> Slot | None:
    """One share on this device, or None if it does not fit."""
    if not room.is_usable or not constraints.suits(room.device, gpu):
        return None
    if gpu.profile is not None:
        return _instance_on(room, gpu, view)
    compute, (mib, milli) = gpu.compute, room.free(view)
    if compute > milli:
        return None
    share = share_of(gpu, room.device)
    if share is None or share.mib > mib:
        return None
    if gpu.is_whole:
        return Slot(room, share.milli, share.mib, compute) if room.is_whole(view) else None
    mode = mode_on(room, gpu)
    if not room.allows(mode, view):
        return None
    return Slot(room, share.milli, share.mib, compute, mode)


def mode_on(room: DeviceRoom, gpu: GpuRequest) -> Sharing:
    """The mode in which a share would be there: as it requires, else as the device is, else as it prefers."""
    if gpu.sharing is not None and gpu.is_sharing_required:
        return gpu.sharing
    return room.mode() or gpu.sharing or Sharing.TIME_SLICING


def share_of(gpu: GpuRequest, device: Device) -> Share | None:
    """What one share of this request is on this device; None if the device is too small even when empty."""
    if device.memory_mib <= 0 or gpu.compute > WHOLE_DEVICE_MILLI:
        return None
    if gpu.profile is not None:
        profiles = device.profiles if device.instance is None else (device.instance,)
        profile = next((one for one in profiles if one.name == gpu.profile), None)
        if profile is None:
            return None
        return Share(device.id, mig.charge(profile, device.slices), min(profile.memory_mib, device.memory_mib))
    if gpu.mib is None:
        milli = gpu.milli or 0
        return Share(device.id, max(milli, gpu.compute), device.memory_mib * milli // WHOLE_DEVICE_MILLI)
    if gpu.mib > device.memory_mib:
        return None
    return Share(device.id, max(-(-WHOLE_DEVICE_MILLI * gpu.mib // device.memory_mib), gpu.compute), gpu.mib)


def can_hold(holding: Holding, view: View) -> bool:
    """Whether there is room for a holding at its very place."""
    node = holding.node
    if node is None or holding.lost or not node.is_usable or not has_node_room(node, holding.pod.request, view):
        return False
    gpu = holding.pod.request.gpu
    for slot in holding.slots:
        mib, milli = slot.room.free(view)
        if not slot.room.is_usable or slot.mib > mib or slot.compute > milli:
            return False
        if slot.slices & slot.room.taken_slices(view):
            return False
        if slot.mode is not None and not slot.room.allows(slot.mode, view):
            return False
        if gpu is not None and not constraints.suits(slot.room.device, gpu):
            return False
    return constraints.refusal(node.node, holding.pod.request) is None


def count(node: NodeRoom, request: PodRequest, view: View) -> int:
    """How many pods with this request fit on the node, one after the other: exact for equal pods."""
    if not node.is_usable:
        return 0
    bounds = [node.free(2, view)]
    if request.milli_cpus:
        bounds.append(node.free(0, view) // request.milli_cpus)
    if request.memory_bytes:
        bounds.append(node.free(1, view) // request.memory_bytes)
    bounds += [node.free_other(name, view) // amount for name, amount in rooms.others_of(request) if amount]
    most = min(bounds)
    if most <= 0 or request.gpu is None:
        return max(0, most)
    return _count_on_devices(node, request.gpu, view, most)


def _count_on_devices(node: NodeRoom, gpu: GpuRequest, view: View, most: int) -> int:
    if node.has_plain_devices and is_plain_whole(gpu):
        _, now, later = tally(node)
        if view != "held":
            return min(most, (later if view == "later" else now) // gpu.devices)
    if gpu.is_whole and node.has_plain_devices:
        wholes = sum(
            room.is_usable and constraints.suits(room.device, gpu) and room.is_whole(view) for room in node.devices
        )
        return min(most, wholes // gpu.devices)
    each = [_count_on(room, gpu, view) for room in node.devices]
    if gpu.devices == 1:
        return min(most, sum(each))
    # So many pods fit as the devices, each used at most once by a pod, have room for.
    low, high = 0, min(most, sum(each) // gpu.devices)
    while low < high:
        middle = (low + high + 1) // 2
        is_enough = sum(min(one, middle) for one in each) >= gpu.devices * middle
        low, high = (middle, high) if is_enough else (low, middle - 1)
    return low


def _count_on(room: DeviceRoom, gpu: GpuRequest, view: View) -> int:
    slot = slot_on(room, gpu, view)
    if slot is None:
        return 0
    if gpu.is_whole or (gpu.profile is not None and slot.start is None):
        return 1
    if slot.start is not None:
        return _count_instances(room, gpu, view)
    mib, milli = room.free(view)
    bounds = [mib // slot.mib] if slot.mib else []
    bounds += [milli // slot.compute] if slot.compute else []
    return min(bounds) if bounds else 1


def _count_instances(room: DeviceRoom, gpu: GpuRequest, view: View) -> int:
    taken, found = room.taken_slices(view), 0
    profile = next(one for one in room.device.profiles if one.name == gpu.profile)
    while (start := mig.start_for(profile, taken, room.device.profiles)) is not None:
        taken |= ((1 << profile.memory_slices) - 1) << start
        found += 1
    return found


def _instance_on(room: DeviceRoom, gpu: GpuRequest, view: View) -> Slot | None:
    share = share_of(gpu, room.device)
    assert share is not None, "a device that is offered has memory, and suits makes sure that it has such an instance"
    if room.device.instance is not None:
        return Slot(room, share.milli, share.mib, WHOLE_DEVICE_MILLI) if room.is_whole(view) else None
    profile = next(one for one in room.device.profiles if one.name == gpu.profile)
    start = mig.start_for(profile, room.taken_slices(view), room.device.profiles)
    if start is None:
        return None
    slices = ((1 << profile.memory_slices) - 1) << start
    return Slot(room, share.milli, share.mib, 0, None, start, slices)


def _whole_slots(node: NodeRoom, gpu: GpuRequest, view: View) -> list[Slot] | None:
    """Whole devices, lowest index first: the common case, kept quick."""
    wanted, found = gpu.devices, []
    is_choosy = bool(gpu.models or gpu.min_device_mib)
    for room in node.devices:
        if not room.is_usable or not room.is_whole(view):
            continue
        if is_choosy and not constraints.suits(room.device, gpu):
            continue
        found.append(room)
        if len(found) == wanted:
            return [Slot(one, WHOLE_DEVICE_MILLI, one.device.memory_mib, WHOLE_DEVICE_MILLI) for one in found]
    return None


def _tight(room: DeviceRoom, slot: Slot) -> tuple[int, ...]:
    return (0 if room.sharers else 1, room.future_mib - slot.mib, room.future_milli - slot.compute)


def _wide(room: DeviceRoom, slot: Slot) -> tuple[int, ...]:
    more = room.future_mib // slot.mib if slot.mib else 0
    return (-min(more, room.future_milli // slot.compute) if slot.compute else -more,)


def _cheap(room: DeviceRoom, slot: Slot) -> tuple[int, ...]:
    return (slot.milli, *_tight(room, slot))


def _open(room: DeviceRoom, slot: Slot) -> tuple[int, ...]:
    return (room.sharers, -room.future_mib, -room.future_milli)


_ORDERS: dict[Order, Callable[[DeviceRoom, Slot], tuple[int, ...]]] = {
    "tight": _tight,
    "wide": _wide,
    "cheap": _cheap,
    "open": _open,
}


def worth(device: Device) -> int:
    """What a device counts in milli-GPU: a fixed MIG instance its part of the whole."""
    return WHOLE_DEVICE_MILLI if device.instance is None else mig.charge(device.instance, device.slices)
