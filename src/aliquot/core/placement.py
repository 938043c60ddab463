"""Where pods go: which nodes and devices can take a pod, and which of them is best.

A gang is placed whole or not at all. Nodes are compared by: an already shared device for a share, then packed (or
spread), CPU and memory left balanced, id. On a device the tightest fit wins. Several shares of one pod sit on different
devices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from aliquot.core import quota, snapshot
from aliquot.core.model import GpuRequest, Place, PlacementStrategy, Pod, PodRequest
from aliquot.core.order import Ask
from aliquot.core.snapshot import DeviceRoom, Holding, NodeRoom, Pool, Slot, World

View = Literal["now", "later", "held"]
"""`now`: what is neither held nor promised. `later`: what is when all that was told to end is gone. `held`: what no one
holds, promised or not; nothing is decided by it, it tells why something waits."""

Order = Literal["tight", "wide", "cheap"]
"""How devices of a node are chosen: the tightest fit; the emptiest first, which places the most pods with several
shares each; or the largest first, where a request by memory is charged least."""


@dataclass(slots=True)
class Placer:
    """Places gangs in a world and remembers which shapes found no place since room last grew."""

    world: World
    gpu_placement: PlacementStrategy = "pack"
    _refused: dict[tuple[object, ...], int] = field(default_factory=dict)

    def place(self, ask: Ask, view: View) -> list[Holding] | None:
        """Places for all pods of the ask, within the limits of its queue; the world is left as it was."""
        world = self.world
        pool = world.pools[ask.workload.pool]
        if self.excess(ask, ask.amounts, view) is not None and not any(one.gpu and one.gpu.mib for one in ask.requests):
            return None
        key = (pool.name, ask.requests, view)
        if self._refused.get(key) == world.growth:
            return None
        is_found = False
        for order in _orders(ask):
            mark = world.mark()
            holdings = self._place_all(ask, view, order)
            world.rollback(mark)
            is_found = is_found or holdings is not None
            if holdings is not None and self.excess(ask, charge_of(holdings), view) is None:
                return holdings
        if not is_found:
            self._refused[key] = world.growth
        return None

    def has_room(self, ask: Ask, view: View) -> bool:
        """Whether there is room for all pods of the ask, whatever the terms of its queue."""
        for order in _orders(ask):
            mark = self.world.mark()
            is_found = self._place_all(ask, view, order) is not None
            self.world.rollback(mark)
            if is_found:
                return True
        return False

    def excess(self, ask: Ask, amounts: snapshot.Vector, view: View) -> quota.Excess | None:
        """The term of its queue, or of one above, that these amounts would pass."""
        accounts = self.world.accounts_of(ask.workload.pool, ask.workload.queue)
        over = quota.over_limit(accounts, amounts, counting="later" if view == "later" else "now")
        if over is not None or ask.workload.is_preemptible:
            return over
        return quota.over_quota(accounts, amounts, counting="later" if view == "later" else "now")

    def stay(self, ask: Ask, places: Sequence[Place], view: View) -> list[Holding] | None:
        """These very places, if they are free; the world is left as it was."""
        world = self.world
        pods = {pod.id: pod for pod in ask.pods}
        mark = world.mark()
        holdings: list[Holding] = []
        for place in places:
            world.steps += 1
            holding = world.holding(ask.workload, pods[place.pod], place)
            if not can_hold(holding, view):
                break
            _take(world, holding, view)
            holdings.append(holding)
        world.rollback(mark)
        if len(holdings) < len(places) or self.excess(ask, charge_of(holdings), view) is not None:
            return None
        return holdings

    def _place_all(self, ask: Ask, view: View, order: Order) -> list[Holding] | None:
        """Places for all pods, taken in the world; the caller rolls back."""
        world = self.world
        pool = world.pools[ask.workload.pool]
        holdings: list[Holding] = []
        for pod in sorted(ask.pods, key=lambda pod: (_size(pod.request), pod.index, pod.id)):
            found = self.best(pool, pod.request, view, order=order)
            if found is None:
                return None
            node, slots = found
            holding = self.at(ask, pod, node=node, slots=slots)
            _take(world, holding, view)
            holdings.append(holding)
        return sorted(holdings, key=lambda one: (one.pod.index, one.pod.id))

    def at(self, ask: Ask, pod: Pod, *, node: NodeRoom, slots: Sequence[Slot]) -> Holding:
        """What a pod of the ask takes at a place."""
        return Holding(
            workload=ask.workload,
            pod=pod,
            node=node,
            slots=tuple(slots),
            room=(pod.request.milli_cpus, pod.request.memory_bytes, 1),
            charge=(sum(slot.milli for slot in slots), pod.request.milli_cpus, pod.request.memory_bytes),
            accounts=self.world.accounts_of(ask.workload.pool, ask.workload.queue),
        )

    def best(
        self, pool: Pool, request: PodRequest, view: View, *, order: Order = "tight"
    ) -> tuple[NodeRoom, list[Slot]] | None:
        """The best node for one pod, with its slots there."""
        best: tuple[tuple[int, ...], NodeRoom, list[Slot]] | None = None
        for node in pool.usable:
            self.world.steps += 1
            slots = fit(node, request, view, order=order)
            if slots is None:
                continue
            score = _score(node, request, slots, view=view, is_packed=self.gpu_placement != "spread")
            if best is None or score < best[0]:  # Nodes come by id, so that the first of equals stays.
                best = (score, node, slots)
        return None if best is None else (best[1], best[2])


def fits_empty(placer: Placer, ask: Ask, requests: Sequence[PodRequest]) -> bool:
    """Whether pods with these requests fit a world with nothing in it, whatever the queue's terms."""
    pods = tuple(Pod(id=str(index), index=index, request=request) for index, request in enumerate(requests))
    lone = Ask(ask.workload, pods, tuple(requests), (0, 0, 0))
    return placer.has_room(lone, "now")


def fit(node: NodeRoom, request: PodRequest, view: View, *, order: Order = "tight") -> list[Slot] | None:
    """The slots that a pod would get on this node, empty if it asks for no GPU; None if it does not fit."""
    if not node.is_usable or not has_node_room(node, request, view):
        return None
    if request.gpu is None:
        return []
    return fit_devices(node.devices, request.gpu, view, order=order)


def has_node_room(node: NodeRoom, request: PodRequest, view: View) -> bool:
    """Whether CPU, memory and the number of pods suffice."""
    for index, amount in enumerate((request.milli_cpus, request.memory_bytes, 1)):
        free = _seen(node.idle[index], node.future[index], view)
        if amount and amount > free:
            return False
    return True


def fit_devices(
    devices: Sequence[DeviceRoom], gpu: GpuRequest, view: View, *, order: Order = "tight"
) -> list[Slot] | None:
    """One slot on each of so many different devices, or None."""
    if len(devices) < gpu.devices:
        return None
    found: list[tuple[tuple[int, ...], Slot]] = []
    for room in devices:
        slot = slot_on(room, gpu, view)
        if slot is not None:
            found.append((_ORDERS[order](room, slot), slot))
    if len(found) < gpu.devices:
        return None
    found.sort(key=lambda one: (one[0], one[1].room.device.index, one[1].room.device.id))
    return [slot for _, slot in found[: gpu.devices]]


def slot_on(room: DeviceRoom, gpu: GpuRequest, view: View) -> Slot | None:
    """One share on this device, or None if it does not fit."""
    if not room.is_usable:
        return None
    share = snapshot.share_of(gpu, room.device)
    if share is None:
        return None
    compute = snapshot.compute_of(gpu, share)
    free_mib, free_milli = free_of(room, view)
    if share.mib > free_mib or compute > free_milli:
        return None
    return Slot(room, share.milli, share.mib, compute)


def can_hold(holding: Holding, view: View) -> bool:
    """Whether there is room for a holding at its place."""
    node = holding.node
    if node is None or holding.lost or not node.is_usable or not has_node_room(node, holding.pod.request, view):
        return False
    for slot in holding.slots:
        free_mib, free_milli = free_of(slot.room, view)
        if not slot.room.is_usable or slot.mib > free_mib or slot.compute > free_milli:
            return False
    return True


def free_of(room: DeviceRoom, view: View) -> tuple[int, int]:
    """Memory and compute of a device that can be taken."""
    return _seen(room.idle_mib, room.future_mib, view), _seen(room.idle_milli, room.future_milli, view)


def free_part(room: DeviceRoom, view: View) -> int:
    """The thousandths of a device that can be taken, by what is shorter."""
    if not room.is_usable:
        return 0
    free_mib, free_milli = free_of(room, view)
    return max(0, min(1000 * free_mib // room.device.memory_mib, free_milli))


def charge_of(holdings: Sequence[Holding]) -> snapshot.Vector:
    """What places cost their queue, all in all."""
    gpu, cpu, memory = (sum(one.charge[index] for one in holdings) for index in range(3))
    return (gpu, cpu, memory)


def _orders(ask: Ask) -> tuple[Order, ...]:
    """The ways worth trying: nearly always one."""
    orders: list[Order] = ["tight"]
    if len(ask.pods) > 1 and any(one.gpu and one.gpu.devices > 1 and not one.gpu.is_whole for one in ask.requests):
        orders.append("wide")
    if any(one.gpu and one.gpu.mib for one in ask.requests):
        orders.append("cheap")
    return tuple(orders)


def _tight(room: DeviceRoom, slot: Slot) -> tuple[int, ...]:
    return (0 if room.sharers else 1, room.future_mib - slot.mib, room.future_milli - slot.compute)


def _wide(room: DeviceRoom, slot: Slot) -> tuple[int, ...]:
    more = room.future_mib // slot.mib if slot.mib else 0
    return (-min(more, room.future_milli // slot.compute) if slot.compute else -more,)


def _cheap(room: DeviceRoom, slot: Slot) -> tuple[int, ...]:
    return (slot.milli, *_tight(room, slot))


_ORDERS: dict[Order, Callable[[DeviceRoom, Slot], tuple[int, ...]]] = {"tight": _tight, "wide": _wide, "cheap": _cheap}


def _score(
    node: NodeRoom, request: PodRequest, slots: Sequence[Slot], *, view: View, is_packed: bool
) -> tuple[int, ...]:
    """Smaller is better."""
    is_share = request.gpu is not None and not request.gpu.is_whole
    opens = sum(not slot.room.sharers for slot in slots) if is_share else 0
    if request.gpu is None:
        # Work without a GPU keeps off the nodes that have some.
        left = len(node.devices) * 10**9 + (node.future[0] if is_packed else -node.future[0])
    else:
        free = sum(free_part(room, view) for room in node.devices)
        left = free if is_packed else -free
    return (opens, left, _imbalance(node, request))


def _imbalance(node: NodeRoom, request: PodRequest) -> int:
    """How far apart the free parts of CPU and memory would be, in thousandths."""
    cpus, memory = node.node.milli_cpus, node.node.memory_bytes
    if not cpus or not memory:
        return 0
    free_cpus, free_memory = node.future[0] - request.milli_cpus, node.future[1] - request.memory_bytes
    return abs(1000 * free_cpus // cpus - 1000 * free_memory // memory)


def _seen(idle: int, future: int, view: View) -> int:
    if view == "later":
        return future
    return idle if view == "held" else min(idle, future)


def _take(world: World, holding: Holding, view: View) -> None:
    if view == "later":
        world.promise(holding)
    else:
        world.hold(holding)


def _size(request: PodRequest) -> tuple[int, ...]:
    """Larger pods are placed first."""
    gpu = request.gpu
    shares = (0, 0, 0) if gpu is None else (-gpu.devices, -(gpu.milli or 0), -(gpu.mib or 0))
    return (*shares, -request.milli_cpus, -request.memory_bytes)
