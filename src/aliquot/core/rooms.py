"""What is left of devices and nodes, and what one pod takes of them: the ledger at its smallest.

Two ledgers are kept for all room. `idle` is what is physically free now. `future` is what is free when every pod that
was told to end is gone, less what is promised. A bind must fit into both, so that it takes neither what is still held
nor what is promised; a promise must fit into `future`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Literal

from aliquot.core.model import (
    RESOURCES,
    WHOLE_DEVICE_MILLI,
    Amounts,
    Device,
    GpuRequest,
    Node,
    Place,
    Pod,
    PodRequest,
    PoolTerms,
    Queue,
    Share,
    Sharing,
    Workload,
)

Vector = tuple[int, int, int]
"""Amounts in the order of RESOURCES, for the inner loops."""

View = Literal["now", "later", "held"]
"""`now`: what is neither held nor promised. `later`: what is when all that was told to end is gone. `held`: what no one
holds, promised or not; nothing is decided by it, it tells why something waits."""

_MOST_SLICES = 16

PORT = "port/"
"""A host port is a resource of its own, of which every node has one."""


def vector(amounts: Amounts) -> Vector:
    """Amounts as a tuple."""
    return (amounts.milli_gpus, amounts.milli_cpus, amounts.memory_bytes)


def plus(one: Vector, other: Vector) -> Vector:
    """The sum of two vectors."""
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])


@dataclass(slots=True)
class Tally:
    """How many shares of a device use each sharing mode, and which memory slices MIG instances take of it."""

    time_slicing: int = 0
    sm_sharing: int = 0
    slices: int = 0
    """Memory slices that something takes, as a bit mask."""
    counts: list[int] = field(default_factory=list)
    """What takes each of them: more than one where room is promised that something still holds."""

    def take(self, slices: int, sign: int) -> None:
        """Enter (or remove) an instance that takes these slices."""
        if not self.counts:
            self.counts = [0] * _MOST_SLICES
        for place in range(_MOST_SLICES):
            self.counts[place] += sign * (slices >> place & 1)
        self.slices = sum(1 << place for place, count in enumerate(self.counts) if count > 0)

    def allows(self, mode: Sharing) -> bool:
        """Whether a share of this mode may join."""
        return not (self.sm_sharing if mode is Sharing.TIME_SLICING else self.time_slicing)


@dataclass(slots=True)
class DeviceRoom:
    """What is left of one device."""

    device: Device
    is_usable: bool
    idle_mib: int
    idle_milli: int
    future_mib: int
    future_milli: int
    sharers: int = 0
    """Shares on it that will still be there."""
    idle_tally: Tally = field(default_factory=Tally)
    future_tally: Tally = field(default_factory=Tally)

    def is_whole(self, view: View) -> bool:
        """Whether nobody has, or will have, a part of it."""
        memory = self.device.memory_mib
        if view != "later" and (self.idle_milli != WHOLE_DEVICE_MILLI or self.idle_mib != memory):
            return False
        return view == "held" or (self.future_milli == WHOLE_DEVICE_MILLI and self.future_mib == memory)

    def free(self, view: View) -> tuple[int, int]:
        """Memory and compute that can be taken."""
        if view == "later":
            return self.future_mib, self.future_milli
        if view == "held":
            return self.idle_mib, self.idle_milli
        return min(self.idle_mib, self.future_mib), min(self.idle_milli, self.future_milli)

    def taken_slices(self, view: View) -> int:
        """The memory slices, as a bit mask, that MIG instances take."""
        if view == "later":
            return self.future_tally.slices
        if view == "held":
            return self.idle_tally.slices
        return self.idle_tally.slices | self.future_tally.slices

    def allows(self, mode: Sharing, view: View) -> bool:
        """Whether a share of this mode may join those that are there."""
        if self.device.sharing is not None and self.device.sharing is not mode:
            return False
        is_free_now = view == "later" or self.idle_tally.allows(mode)
        return is_free_now and (view == "held" or self.future_tally.allows(mode))

    def mode(self) -> Sharing | None:
        """The sharing mode that it is in, or None."""
        if self.future_tally.sm_sharing:
            return Sharing.SM_SHARING
        return Sharing.TIME_SLICING if self.future_tally.time_slicing else self.device.sharing

    def part(self, view: View) -> int:
        """The thousandths of it that can be taken, by what is shorter."""
        if not self.is_usable:
            return 0
        mib, milli = (self.future_mib, self.future_milli) if view == "later" else self.free(view)
        if mib <= 0 or milli <= 0:
            return 0
        memory = self.device.memory_mib
        if milli == WHOLE_DEVICE_MILLI and mib == memory:
            return WHOLE_DEVICE_MILLI
        return min(WHOLE_DEVICE_MILLI * mib // memory, milli)


@dataclass(slots=True)
class NodeRoom:
    """What is left of one node: [milli-CPU, bytes, pods] of each ledger, other resources by name, and its devices by
    index. `row` is its place among the nodes of its pool, by id."""

    node: Node
    is_usable: bool
    row: int
    idle: list[int]
    future: list[int]
    devices: list[DeviceRoom]
    has_plain_devices: bool
    """All devices are whole ones, open to every mode: the quick way of counting them holds."""
    touched: list[int]
    """The log of its pool: rows whose room has changed."""
    kind: int = 0
    """Nodes of a pool with equal kinds are equal when nothing runs on them."""
    worth: int | None = None
    """What its devices count in milli-GPU, where that is known once and for all."""
    used: int = 0
    """How many entries in either ledger it has: 0 if nothing runs on it or is promised there."""
    idle_other: dict[str, int] = field(default_factory=dict)
    future_other: dict[str, int] = field(default_factory=dict)

    def free(self, index: int, view: View) -> int:
        """What can be taken of milli-CPU (0), bytes (1), pods (2)."""
        if view == "later":
            return self.future[index]
        return self.idle[index] if view == "held" else min(self.idle[index], self.future[index])

    def free_other(self, name: str, view: View) -> int:
        """The same for any other resource."""
        start = 1 if name.startswith(PORT) else 0
        idle, future = self.idle_other.get(name, start), self.future_other.get(name, start)
        if view == "later":
            return future
        return idle if view == "held" else min(idle, future)


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
    limits: tuple[tuple[int, int], ...] = ()
    quotas: tuple[tuple[int, int], ...] = ()
    """The limits and quotas that are set, by the number of the resource."""
    version: int = 0
    """Goes up with every change of what it holds."""
    key: tuple[int, tuple[bool, bool, int, int, int, datetime, str, str]] | None = None
    """Its place among its siblings, with the version for which that was worked out."""


def account_of(queue: Queue, pool: str, *, depth: int, is_leaf: bool) -> Account:
    """An empty account."""
    terms = queue.terms_in(pool)
    claims = [terms.of(resource) for resource in RESOURCES]
    limits = tuple((index, one.limit) for index, one in enumerate(claims) if one.limit is not None)
    quotas = tuple((index, one.quota) for index, one in enumerate(claims) if one.quota is not None)
    return Account(queue, terms, depth, is_leaf, limits=limits, quotas=quotas)


def retitle(account: Account, queue: Queue, pool: str) -> None:
    """The queue of an account is another now, with other terms. What it holds stays."""
    fresh = account_of(queue, pool, depth=account.depth, is_leaf=account.is_leaf)
    account.queue, account.terms = queue, fresh.terms
    account.limits, account.quotas = fresh.limits, fresh.quotas
    account.version += 1


@dataclass(slots=True, eq=False)  # Not frozen: it is made in every look for a place, and made in half the time.
class Slot:
    """A share of a device with the compute it takes, its sharing mode, and the memory slices of a MIG instance."""

    room: DeviceRoom
    milli: int
    mib: int
    compute: int
    mode: Sharing | None = None
    start: int | None = None
    slices: int = 0

    @property
    def share(self) -> Share:
        """The share, as the plan names it."""
        mode = self.mode if self.mode is Sharing.SM_SHARING else None
        return Share(self.room.device.id, self.milli, self.mib, self.start, mode)


@dataclass(slots=True, eq=False)  # Not frozen, for the same reason.
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
    other: tuple[tuple[str, int], ...] = ()
    is_fixed: bool = False
    """Whether it counts as not preemptible."""

    @property
    def place(self) -> Place:
        """The place, as the plan names it."""
        shares = tuple(slot.share for slot in self.slots)
        return Place(self.pod.id, self.node.node.id if self.node else (self.pod.node or ""), shares)

    def ends_by(self, due: datetime) -> bool:
        """Whether its stated run time ends until then."""
        span: timedelta | None = self.workload.max_run_time
        started = self.workload.started
        return span is not None and started is not None and started + span <= due


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


INVERSE = {effect: (-effect.value[0], -effect.value[1], -effect.value[2], -effect.value[3]) for effect in Effect}


def shift(holding: Holding, signs: tuple[int, int, int, int]) -> None:
    """Enter what happens to a holding in the ledgers of its node, its devices and its queues. This runs for every pod
    that is tried anywhere: it is written for speed."""
    idle, future, level, releasing = signs
    node = holding.node
    if node is not None:
        cpus, memory, pods = holding.room
        if idle:
            ledger = node.idle
            ledger[0] += idle * cpus
            ledger[1] += idle * memory
            ledger[2] += idle * pods
        if future:
            ledger = node.future
            ledger[0] += future * cpus
            ledger[1] += future * memory
            ledger[2] += future * pods
        if holding.other:
            _shift_other(node, holding.other, idle, future)
        node.used -= idle + future
        node.touched.append(node.row)
    for slot in holding.slots:
        room, mib, compute = slot.room, slot.mib, slot.compute
        if idle:
            room.idle_mib += idle * mib
            room.idle_milli += idle * compute
        if future:
            room.future_mib += future * mib
            room.future_milli += future * compute
            room.sharers -= future
        if slot.slices or slot.mode is not None:
            _shift_tally(slot, idle, future)
    gpus, cpus, memory = holding.charge
    for account in holding.accounts:
        account.version += 1
        if level:
            held = account.level
            held[0] += level * gpus
            held[1] += level * cpus
            held[2] += level * memory
    if releasing or holding.is_fixed:
        _charge_rest(holding, level, releasing)


def _charge_rest(holding: Holding, level: int, releasing: int) -> None:
    gpus, cpus, memory = holding.charge
    for account in holding.accounts:
        held = account.releasing
        held[0] += releasing * gpus
        held[1] += releasing * cpus
        held[2] += releasing * memory
        for index, amount in enumerate(holding.charge if holding.is_fixed else ()):
            account.fixed[index] += level * amount
            account.fixed_releasing[index] += releasing * amount


def _shift_other(node: NodeRoom, amounts: Sequence[tuple[str, int]], idle: int, future: int) -> None:
    for name, amount in amounts:
        start = 1 if name.startswith(PORT) else 0
        node.idle_other[name] = node.idle_other.get(name, start) + idle * amount
        node.future_other[name] = node.future_other.get(name, start) + future * amount


def _shift_tally(slot: Slot, idle: int, future: int) -> None:
    for sign, tally in ((idle, slot.room.idle_tally), (future, slot.room.future_tally)):
        if slot.slices and sign:
            tally.take(slot.slices, -sign)
        if slot.mode is Sharing.TIME_SLICING:
            tally.time_slicing -= sign
        elif slot.mode is Sharing.SM_SHARING:
            tally.sm_sharing -= sign


def others_of(request: PodRequest) -> tuple[tuple[str, int], ...]:
    """Amounts of resources other than CPU and memory, host ports among them."""
    if not request.resources and not request.host_ports:
        return ()
    return (*request.resources, *((f"{PORT}{port}", 1) for port in request.host_ports))


def node_room(node: Node, *, row: int, touched: list[int]) -> NodeRoom:
    """An empty node."""
    is_usable = node.is_ready and not node.is_cordoned and not node.is_drained
    devices = [
        _device_room(device, is_usable=is_usable)
        for device in sorted(node.devices, key=lambda device: (device.index, device.id))
    ]
    room = [
        node.milli_cpus - node.foreign.milli_cpus,
        node.memory_bytes - node.foreign.memory_bytes,
        node.max_pods - node.foreign_pods,
    ]
    is_plain = all(one.device.instance is None and not one.device.profiles for one in devices)
    other = dict(node.resources)
    return NodeRoom(
        node=node,
        is_usable=is_usable,
        row=row,
        idle=list(room),
        future=list(room),
        devices=devices,
        has_plain_devices=is_plain,
        touched=touched,
        idle_other=other,
        future_other=dict(other),
    )


def reopen(room: NodeRoom, node: Node) -> None:
    """A node, or devices of it, take work now or no longer do. What is held there stays."""
    fresh = node_room(node, row=room.row, touched=[])
    room.node, room.is_usable, room.worth = node, fresh.is_usable, None
    for known, now in zip(room.devices, fresh.devices, strict=True):
        known.device, known.is_usable = now.device, now.is_usable
    room.touched.append(room.row)


def number_kinds(nodes: Iterable[NodeRoom]) -> None:
    """Give nodes that are equal when nothing runs on them equal numbers."""
    kinds: dict[tuple[object, ...], int] = {}
    for node in nodes:
        node.kind = kinds.setdefault(kind_key(node.node), len(kinds))


def kind_key(node: Node) -> tuple[object, ...]:
    """What makes empty nodes equal, labels and taints apart."""
    return (
        node.milli_cpus,
        node.memory_bytes,
        node.max_pods,
        node.foreign,
        node.foreign_pods,
        node.is_ready and not node.is_cordoned and not node.is_drained,
        tuple(sorted(node.resources.items())),
        tuple(
            (one.index, one.memory_mib, one.model, one.withheld, one.sharing, one.instance, one.profiles, one.slices)
            for one in node.devices
        ),
    )


def _device_room(device: Device, *, is_usable: bool) -> DeviceRoom:
    is_open = is_usable and device.withheld is None and device.memory_mib > 0
    memory = device.memory_mib
    return DeviceRoom(device, is_open, memory, WHOLE_DEVICE_MILLI, memory, WHOLE_DEVICE_MILLI)


def charge_of(holdings: Sequence[Holding]) -> Vector:
    """What places cost their queue, all in all."""
    gpu = cpu = memory = 0
    for one in holdings:
        gpu += one.charge[0]
        cpu += one.charge[1]
        memory += one.charge[2]
    return (gpu, cpu, memory)


def slot_for(gpu: GpuRequest | None, room: DeviceRoom, share: Share) -> Slot:
    """A share that a pod has, or is promised, on a device."""
    if gpu is None:
        return Slot(room, share.milli, share.mib, 0)
    slices = 0
    if share.start is not None:
        profile = next((one for one in room.device.profiles if one.name == gpu.profile), None)
        slices = 0 if profile is None else ((1 << profile.memory_slices) - 1) << share.start
    mode = None if gpu.is_whole or gpu.profile is not None else share.sharing or Sharing.TIME_SLICING
    compute = gpu.compute
    if gpu.profile is not None:
        compute = 0 if share.start is not None else WHOLE_DEVICE_MILLI
    return Slot(room, share.milli, share.mib, compute, mode, share.start, slices)
