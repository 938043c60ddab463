"""The working copy of a snapshot that a cycle changes: free room of nodes and devices, and what each queue holds.

Two ledgers are kept for all room. `idle` is what is physically free now. `future` is what is free when every pod that
was told to end is gone, less what is promised. A bind must fit into both, so that it takes neither what is still held
nor what is promised; a promise must fit into `future`. Every change is journalled: `mark` and `rollback` undo a
simulation at the cost of what it changed, so that no copy of the world is ever made.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from aliquot.core import fairshare
from aliquot.core.model import (
    WHOLE_DEVICE_MILLI,
    Amounts,
    Device,
    GpuRequest,
    Node,
    Place,
    Pod,
    PodRequest,
    PodState,
    PoolTerms,
    Queue,
    Share,
    Snapshot,
    Workload,
)

Vector = tuple[int, int, int]
"""Amounts in the order of RESOURCES, for the inner loops."""


def vector(amounts: Amounts) -> Vector:
    """Amounts as a tuple."""
    return (amounts.milli_gpus, amounts.milli_cpus, amounts.memory_bytes)


@dataclass(slots=True)
class DeviceRoom:
    """What is left of one device. Compute is taken by portions only: a request by memory asks for none."""

    device: Device
    is_usable: bool
    idle_mib: int
    idle_milli: int
    future_mib: int
    future_milli: int
    sharers: int = 0

    @property
    def free_mib(self) -> int:
        """Memory that can be taken now: neither held nor promised."""
        return min(self.idle_mib, self.future_mib)

    @property
    def free_milli(self) -> int:
        """Compute that can be taken now."""
        return min(self.idle_milli, self.future_milli)


@dataclass(slots=True)
class NodeRoom:
    """What is left of one node: [milli-CPU, bytes, pods] of each ledger, and its devices by index."""

    node: Node
    is_usable: bool
    idle: list[int]
    future: list[int]
    devices: list[DeviceRoom]


@dataclass(slots=True)
class Account:
    """What a queue holds in one pool. `level` counts running, bound and promised pods; `releasing` those that end.

    `fixed` and `fixed_releasing` are the parts of these that are not preemptible.
    """

    queue: Queue
    terms: PoolTerms
    depth: int
    is_leaf: bool
    share: Vector = (0, 0, 0)
    guaranteed: Vector = (0, 0, 0)
    level: list[int] = field(default_factory=lambda: [0, 0, 0])
    releasing: list[int] = field(default_factory=lambda: [0, 0, 0])
    fixed: list[int] = field(default_factory=lambda: [0, 0, 0])
    fixed_releasing: list[int] = field(default_factory=lambda: [0, 0, 0])


@dataclass(frozen=True, slots=True)
class Slot:
    """A share of a device with the compute it takes (none if it was asked by memory)."""

    room: DeviceRoom
    milli: int
    mib: int
    compute: int


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """What one pod takes at a place: room of a node and of devices, and amounts of its queue and all above it."""

    workload: Workload
    pod: Pod
    node: NodeRoom | None
    slots: tuple[Slot, ...]
    room: Vector
    charge: Vector
    accounts: tuple[Account, ...]
    lost: tuple[Share, ...] = ()
    """Shares of devices that are not in the snapshot any more."""

    @property
    def place(self) -> Place:
        """The place, as the plan names it."""
        shares = tuple(Share(slot.room.device.id, slot.milli, slot.mib) for slot in self.slots)
        return Place(self.pod.id, self.node.node.id if self.node else (self.pod.node or ""), shares)


class Effect(Enum):
    """What happens to a holding, as signs on (idle, future, level, releasing)."""

    HOLD = (-1, -1, 1, 0)
    """It runs, or is bound."""
    RELEASE = (-1, 0, 0, 1)
    """It was told to end before this cycle and still holds its place."""
    PROMISE = (0, -1, 1, 0)
    EVICT = (0, 1, -1, 1)
    """It is told to end in this cycle."""
    RESTORE = (0, -1, 1, -1)
    """It is not told to end after all."""
    UNPROMISE = (0, 1, -1, 0)


_INVERSE = {effect: (-effect.value[0], -effect.value[1], -effect.value[2], -effect.value[3]) for effect in Effect}


@dataclass(slots=True)
class Pool:
    """One scheduling domain: its usable nodes by id, the accounts of all queues in it, and what it has to divide."""

    name: str
    nodes: list[NodeRoom]
    usable: list[NodeRoom]
    accounts: dict[str, Account]
    capacity: Amounts = field(default_factory=Amounts)
    asked: dict[str, Amounts] = field(default_factory=dict)
    is_contended: tuple[bool, bool, bool] = (False, False, False)


class World:
    """All pools, what runs where, and the journal. Built from a snapshot; promises are added by the cycle."""

    def __init__(self, snapshot: Snapshot, *, more_pools: Sequence[str] = ()) -> None:
        """`more_pools` are there too, even if no node or workload is in them."""
        self.snapshot = snapshot
        self.queues = {queue.id: queue for queue in snapshot.queues}
        self.parents = {queue.parent for queue in snapshot.queues}
        self.nodes = {node.id: _node_room(node) for node in sorted(snapshot.nodes, key=lambda node: node.id)}
        self.devices = {room.device.id: room for node in self.nodes.values() for room in node.devices}
        self.pools: dict[str, Pool] = {}
        self.running: dict[str, list[Holding]] = {}
        self.releasing: dict[str, list[Holding]] = {}
        self.growth = 0
        """Goes up whenever room grew: a "does not fit" from before need not hold any more."""
        self.steps = 0
        self._journal: list[tuple[Holding, Effect]] = []
        self._paths: dict[tuple[str, str], tuple[Account, ...]] = {}
        pools = {node.pool for node in snapshot.nodes} | {one.pool for one in snapshot.workloads} | set(more_pools)
        for name in sorted(pools):
            self._add_pool(name)
        for workload in sorted(snapshot.workloads, key=lambda one: one.id):
            self._add_holdings(workload)
        for pool in self.pools.values():
            self._divide(pool)

    def is_leaf(self, queue: str) -> bool:
        """Whether a queue is there and may hold workloads."""
        return queue in self.queues and queue not in self.parents

    def accounts_of(self, pool: str, queue: str) -> tuple[Account, ...]:
        """A queue's account in a pool and those above it, up to the root; empty if there is no such queue."""
        return self._paths.get((pool, queue), ())

    def hold(self, holding: Holding) -> None:
        """Bind it."""
        self._do(holding, Effect.HOLD)

    def promise(self, holding: Holding) -> None:
        """Keep its place for it."""
        self._do(holding, Effect.PROMISE)

    def unpromise(self, holding: Holding) -> None:
        """Give its promised place up."""
        self._do(holding, Effect.UNPROMISE)
        self.growth += 1

    def evict(self, holding: Holding) -> None:
        """Tell it to end."""
        self._do(holding, Effect.EVICT)
        self.growth += 1

    def restore(self, holding: Holding) -> None:
        """Take an eviction of this cycle back."""
        self._do(holding, Effect.RESTORE)

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        """Undo everything since the mark."""
        while len(self._journal) > mark:
            holding, effect = self._journal.pop()
            _shift(holding, _INVERSE[effect])

    def holding(self, workload: Workload, pod: Pod, place: Place) -> Holding:
        """What a pod takes at a place."""
        node = self.nodes.get(place.node)
        known = [(self.devices[share.device], share) for share in place.shares if share.device in self.devices]
        return Holding(
            workload=workload,
            pod=pod,
            node=node,
            slots=tuple(
                Slot(room, share.milli, share.mib, compute_of(pod.request.gpu, share)) for room, share in known
            ),
            room=(pod.request.milli_cpus, pod.request.memory_bytes, 1),
            charge=(
                sum(share.milli for share in place.shares),
                pod.request.milli_cpus,
                pod.request.memory_bytes,
            ),
            accounts=self.accounts_of(workload.pool, workload.queue),
            lost=tuple(share for share in place.shares if share.device not in self.devices),
        )

    def ask_of(self, workload: Workload, pods: Iterable[Pod]) -> Amounts:
        """What pods ask for, all in all; a request by memory counts by the smallest device that can hold it."""
        pool = self.pools[workload.pool]
        total = Amounts()
        for pod in pods:
            total += Amounts(milli_for(pod.request.gpu, pool), pod.request.milli_cpus, pod.request.memory_bytes)
        return total

    def _do(self, holding: Holding, effect: Effect) -> None:
        _shift(holding, effect.value)
        self._journal.append((holding, effect))

    def _add_pool(self, name: str) -> None:
        accounts: dict[str, Account] = {}
        for queue in sorted(self.snapshot.queues, key=lambda queue: queue.id):
            depth = len(fairshare.path_of(queue.id, self.queues))
            accounts[queue.id] = Account(queue, queue.terms_in(name), depth, queue.id not in self.parents)
        for queue in self.snapshot.queues:
            path = fairshare.path_of(queue.id, self.queues)
            self._paths[name, queue.id] = tuple(accounts[one.id] for one in path)
        nodes = [room for room in self.nodes.values() if room.node.pool == name]
        self.pools[name] = Pool(name, nodes, [room for room in nodes if room.is_usable], accounts)

    def _add_holdings(self, workload: Workload) -> None:
        for pod in sorted(workload.pods, key=lambda pod: (pod.index, pod.id)):
            if pod.state not in {PodState.RUNNING, PodState.RELEASING}:
                continue
            holding = self.holding(workload, pod, Place(pod.id, pod.node or "", pod.shares))
            if pod.state is PodState.RUNNING:
                _shift(holding, Effect.HOLD.value)
                self.running.setdefault(workload.id, []).append(holding)
            else:
                _shift(holding, Effect.RELEASE.value)
                self.releasing.setdefault(workload.id, []).append(holding)

    def _divide(self, pool: Pool) -> None:
        """Capacity, requests, and the fair share of every queue."""
        pool.capacity = _capacity(pool)
        requests: dict[str, Amounts] = {}
        for workload in self.snapshot.workloads:
            if workload.pool != pool.name or workload.queue not in self.queues:
                continue
            pending = [pod for pod in workload.pods if pod.state is PodState.PENDING]
            total = self.ask_of(workload, pending)
            for holding in (*self.running.get(workload.id, ()), *self.releasing.get(workload.id, ())):
                total += Amounts(*holding.charge)
            requests[workload.queue] = requests.get(workload.queue, Amounts()) + total
        shares = fairshare.divide_tree(pool.capacity, self.snapshot.queues, pool=pool.name, requests=requests)
        for id, account in pool.accounts.items():
            account.share = vector(shares.share[id])
            account.guaranteed = vector(shares.guaranteed[id])
            pool.asked[id] = Amounts()
        for leaf, asked in requests.items():
            for account in self.accounts_of(pool.name, leaf):
                pool.asked[account.queue.id] += asked
        pool.is_contended = _contended(pool)


def compute_of(gpu: GpuRequest | None, share: Share) -> int:
    """The compute that a share takes of its device: none if memory was asked for."""
    return 0 if gpu is None or gpu.mib is not None else share.milli


def share_of(gpu: GpuRequest, device: Device) -> Share | None:
    """What one share of this request is on this device; None if the device is too small even when empty."""
    if device.memory_mib <= 0:
        return None
    if gpu.mib is None:
        milli = gpu.milli or 0
        return Share(device.id, milli, device.memory_mib * milli // WHOLE_DEVICE_MILLI)
    if gpu.mib > device.memory_mib:
        return None
    return Share(device.id, -(-WHOLE_DEVICE_MILLI * gpu.mib // device.memory_mib), gpu.mib)


def milli_for(gpu: GpuRequest | None, pool: Pool) -> int:
    """What a request counts in milli-GPU while it waits: by the smallest device of the pool that can hold it."""
    if gpu is None:
        return 0
    if gpu.mib is None:
        return gpu.devices * (gpu.milli or 0)
    sizes = [
        room.device.memory_mib for node in pool.nodes for room in node.devices if room.device.memory_mib >= gpu.mib
    ]
    each = -(-WHOLE_DEVICE_MILLI * gpu.mib // min(sizes)) if sizes else WHOLE_DEVICE_MILLI
    return gpu.devices * each


def emptied(snapshot: Snapshot, *, pool: str, whole: Sequence[str] = ("node", "device-in-use", "withheld")) -> Snapshot:
    """The pool with nothing in it. `whole` says what counts as there although nothing may start on it now: nodes that
    are cordoned or not ready, devices in use by others (and what others hold of them), devices withheld otherwise."""
    nodes = tuple(_whole_node(node, whole) for node in snapshot.nodes if node.pool == pool)
    return replace(snapshot, nodes=nodes, workloads=(), promises=())


def _whole_node(node: Node, whole: Sequence[str]) -> Node:
    devices = tuple(_whole_device(device, whole) for device in node.devices)
    if "node" in whole:
        return replace(node, devices=devices, is_ready=True, is_cordoned=False)
    return replace(node, devices=devices)


def _whole_device(device: Device, whole: Sequence[str]) -> Device:
    withheld, memory = device.withheld, device.memory_mib
    if "device-in-use" in whole:
        is_reduced = withheld is None
        memory += sum(use.mib for use in device.foreign) if is_reduced else 0
        withheld = None if withheld == "device-in-use" else withheld
    if "withheld" in whole and withheld != "device-in-use":
        withheld = None
    return replace(device, withheld=withheld, memory_mib=memory)


def _node_room(node: Node) -> NodeRoom:
    is_usable = node.is_ready and not node.is_cordoned
    devices = [
        DeviceRoom(
            device,
            is_usable and device.withheld is None and device.memory_mib > 0,
            device.memory_mib,
            WHOLE_DEVICE_MILLI,
            device.memory_mib,
            WHOLE_DEVICE_MILLI,
        )
        for device in sorted(node.devices, key=lambda device: (device.index, device.id))
    ]
    room = [node.milli_cpus, node.memory_bytes, node.max_pods]
    return NodeRoom(node, is_usable, list(room), list(room), devices)


def _shift(holding: Holding, signs: tuple[int, int, int, int]) -> None:
    idle, future, level, releasing = signs
    if holding.node is not None:
        for index, amount in enumerate(holding.room):
            holding.node.idle[index] += idle * amount
            holding.node.future[index] += future * amount
    for slot in holding.slots:
        room = slot.room
        room.idle_mib += idle * slot.mib
        room.idle_milli += idle * slot.compute
        room.future_mib += future * slot.mib
        room.future_milli += future * slot.compute
        room.sharers -= future
    is_fixed = not holding.workload.is_preemptible
    for account in holding.accounts:
        for index, amount in enumerate(holding.charge):
            account.level[index] += level * amount
            account.releasing[index] += releasing * amount
            if is_fixed:
                account.fixed[index] += level * amount
                account.fixed_releasing[index] += releasing * amount


def _capacity(pool: Pool) -> Amounts:
    """What usable nodes and devices offer, and what pods hold on the others: nothing that runs becomes illegal."""
    total = Amounts()
    for room in pool.nodes:
        held = [room.node.milli_cpus - room.idle[0], room.node.memory_bytes - room.idle[1]]
        total += Amounts(0, *([room.node.milli_cpus, room.node.memory_bytes] if room.is_usable else held))
        for device in room.devices:
            is_held = device.idle_mib < device.device.memory_mib
            total += Amounts(WHOLE_DEVICE_MILLI if device.is_usable or is_held else 0)
    return total


def _contended(pool: Pool) -> tuple[bool, bool, bool]:
    """Of which resources the queues together ask for more than there is."""
    short = [False, False, False]
    for account in pool.accounts.values():
        for index, (asked, share) in enumerate(zip(vector(pool.asked[account.queue.id]), account.share, strict=True)):
            limit = (account.terms.gpu, account.terms.cpu, account.terms.memory)[index].limit
            short[index] |= share < (asked if limit is None else min(asked, limit))
    return (short[0], short[1], short[2])


def pending_of(workload: Workload) -> tuple[Pod, ...]:
    """The pods that wait, in their order."""
    return tuple(
        sorted((pod for pod in workload.pods if pod.state is PodState.PENDING), key=lambda pod: (pod.index, pod.id))
    )


def requests_of(pods: Sequence[Pod]) -> tuple[PodRequest, ...]:
    """What pods ask for, as a key: equal keys have equal answers."""
    return tuple(pod.request for pod in pods)
