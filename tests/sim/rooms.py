"""Room and amounts, counted in the plainest way: what is held, what fits, what queues hold and are due.

Written from the scheduling rules alone, and on purpose without anything of the engine: the laws are judged by it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from aliquot.core.model import Device, Node, Place, Pod, PodRequest, PodState, Queue, Share, Snapshot, Workload

RESOURCES = ("gpu", "cpu", "memory")
Vector = dict[str, int]


@dataclass(frozen=True)
class Hold:
    """One pod at one place."""

    workload: Workload
    pod: Pod
    node: str
    shares: tuple[Share, ...]

    def charge(self) -> Vector:
        """What the quota is charged."""
        return {
            "gpu": sum(share.milli for share in self.shares),
            "cpu": self.pod.request.milli_cpus,
            "memory": self.pod.request.memory_bytes,
        }


def held(snapshot: Snapshot, *states: PodState) -> list[Hold]:
    """All pods in these states, at their places."""
    return [
        Hold(workload, pod, pod.node or "", pod.shares)
        for workload in snapshot.workloads
        for pod in workload.pods
        if pod.state in states
    ]


def at_places(workload: Workload, places: Iterable[Place]) -> list[Hold]:
    """Pods of a workload at places that a plan or a promise names."""
    pods = {pod.id: pod for pod in workload.pods}
    return [Hold(workload, pods[place.pod], place.node, place.shares) for place in places]


def add(vectors: Iterable[Vector]) -> Vector:
    """The sum."""
    total = dict.fromkeys(RESOURCES, 0)
    for vector in vectors:
        for name in RESOURCES:
            total[name] += vector[name]
    return total


# Queues.


def chain(snapshot: Snapshot, queue: str) -> list[Queue]:
    """A queue and those above it."""
    by_id = {one.id: one for one in snapshot.queues}
    found = []
    at: str | None = queue
    while at is not None and at in by_id:
        found.append(by_id[at])
        at = by_id[at].parent
    return found


def levels(snapshot: Snapshot, holds: Iterable[Hold]) -> dict[str, Vector]:
    """What each queue holds by these pods, with all below it."""
    totals = {queue.id: dict.fromkeys(RESOURCES, 0) for queue in snapshot.queues}
    for hold in holds:
        for queue in chain(snapshot, hold.workload.queue):
            totals[queue.id] = add((totals[queue.id], hold.charge()))
    return totals


# Room.


@dataclass
class Room:
    """What is left of the nodes of a pool when these pods hold their places."""

    snapshot: Snapshot
    holds: list[Hold]
    free_mib: dict[str, int] = field(default_factory=dict)
    free_milli: dict[str, int] = field(default_factory=dict)
    free_node: dict[str, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.snapshot.nodes:
            self.free_node[node.id] = {"cpu": node.milli_cpus, "memory": node.memory_bytes, "pods": node.max_pods}
            for device in node.devices:
                self.free_mib[device.id] = device.memory_mib
                self.free_milli[device.id] = 1000
        for hold in self.holds:
            node_room = self.free_node[hold.node]
            node_room["cpu"] -= hold.pod.request.milli_cpus
            node_room["memory"] -= hold.pod.request.memory_bytes
            node_room["pods"] -= 1
            for share in hold.shares:
                self.free_mib[share.device] -= share.mib
                if hold.pod.request.gpu is not None and hold.pod.request.gpu.mib is None:
                    self.free_milli[share.device] -= share.milli

    def overused(self) -> list[str]:
        """Devices and nodes of which more is held than there is."""
        wrong = [id for id, left in self.free_mib.items() if left < 0]
        wrong += [id for id, left in self.free_milli.items() if left < 0]
        return wrong + [id for id, left in self.free_node.items() if min(left.values()) < 0]

    def fits(self, requests: list[PodRequest], *, pool: str = "default") -> bool:
        """Whether pods, all with the same request, fit together on the nodes that take new work."""
        assert len(set(requests)) == 1, "these days have gangs of equal pods only"
        nodes = [node for node in self.snapshot.nodes if node.pool == pool and node.is_ready and not node.is_cordoned]
        return sum(self.copies(node, requests[0]) for node in nodes) >= len(requests)

    def copies(self, node: Node, request: PodRequest) -> int:
        """How many such pods this node takes."""
        left = self.free_node[node.id]
        most = left["pods"]
        if request.milli_cpus:
            most = min(most, left["cpu"] // request.milli_cpus)
        if request.memory_bytes:
            most = min(most, left["memory"] // request.memory_bytes)
        if request.gpu is None:
            return max(0, most)
        slots = [self.slots(device, request) for device in node.devices]
        # So many pods with k shares each, on k different devices, fit if the devices give k for each pod, where no
        # device gives more than one to a pod.
        count = 0
        while count < most and sum(min(one, count + 1) for one in slots) >= (count + 1) * request.gpu.devices:
            count += 1
        return count

    def slots(self, device: Device, request: PodRequest) -> int:
        """How many such shares this device takes."""
        gpu = request.gpu
        assert gpu is not None
        if device.withheld is not None or device.memory_mib <= 0:
            return 0
        if gpu.mib is not None:
            return max(0, self.free_mib[device.id] // gpu.mib)
        assert gpu.milli
        mib = device.memory_mib * gpu.milli // 1000
        by_memory = self.free_mib[device.id] // mib if mib else 1000
        return max(0, min(self.free_milli[device.id] // gpu.milli, by_memory))


# What queues are due.


@dataclass
class Due:
    """What each queue is due of each resource: its quota as far as it is asked for and there, and its fair share."""

    quota: dict[str, dict[str, Fraction]]
    share: dict[str, dict[str, Fraction]]
    wanted: dict[str, Vector]


def due(snapshot: Snapshot) -> Due:
    """By the rules of `Fair share`, in fractions and without any rounding."""
    wanted = _wanted(snapshot)
    result = Due({}, {}, wanted)
    for queue in snapshot.queues:
        result.quota[queue.id], result.share[queue.id] = {}, {}
    for resource in RESOURCES:
        _divide(snapshot, resource, parent=None, total=Fraction(capacity(snapshot)[resource]), result=result)
    return result


def capacity(snapshot: Snapshot) -> Vector:
    """What usable nodes offer, and what is held on the others."""
    holds = held(snapshot, PodState.RUNNING, PodState.RELEASING)
    in_use = {share.device for hold in holds for share in hold.shares}
    total = dict.fromkeys(RESOURCES, 0)
    for node in snapshot.nodes:
        is_usable = node.is_ready and not node.is_cordoned
        for device in node.devices:
            if (is_usable and device.withheld is None) or device.id in in_use:
                total["gpu"] += 1000
        for resource, amount in (("cpu", node.milli_cpus), ("memory", node.memory_bytes)):
            here = sum(hold.charge()[resource] for hold in holds if hold.node == node.id)
            total[resource] += amount if is_usable else here
    return total


def ask(snapshot: Snapshot, workload: Workload) -> Vector:
    """What its pending pods count while they wait."""
    pending = [pod.request for pod in workload.pods if pod.state is PodState.PENDING]
    return add({"gpu": _milli(snapshot, one), "cpu": one.milli_cpus, "memory": one.memory_bytes} for one in pending)


def _milli(snapshot: Snapshot, request: PodRequest) -> int:
    gpu = request.gpu
    if gpu is None:
        return 0
    if gpu.mib is None:
        return gpu.devices * (gpu.milli or 0)
    offers = [device.memory_mib for node in snapshot.nodes for device in node.devices if device.memory_mib >= gpu.mib]
    return gpu.devices * (-(-1000 * gpu.mib // min(offers)) if offers else 1000)


def _wanted(snapshot: Snapshot) -> dict[str, Vector]:
    """What each queue holds and waits for, and above it what those below may have of that."""
    own = {queue.id: dict.fromkeys(RESOURCES, 0) for queue in snapshot.queues}
    for workload in snapshot.workloads:
        if workload.queue in own:
            holds = [pod for pod in workload.pods if pod.state in {PodState.RUNNING, PodState.RELEASING}]
            charges = [Hold(workload, pod, pod.node or "", pod.shares).charge() for pod in holds]
            own[workload.queue] = add((own[workload.queue], ask(snapshot, workload), *charges))

    def total(queue: Queue, resource: str) -> int:
        below = [one for one in snapshot.queues if one.parent == queue.id]
        amount = own[queue.id][resource] + sum(total(one, resource) for one in below)
        own_limit = limit(queue, resource)
        return amount if own_limit is None else min(amount, own_limit)

    return {queue.id: {name: total(queue, name) for name in RESOURCES} for queue in snapshot.queues}


def limit(queue: Queue, resource: str) -> int | None:
    """The ceiling of a queue."""
    return getattr(queue.terms_in("default"), resource).limit  # type: ignore[no-any-return]  # by name: one of three


def quota(queue: Queue, resource: str) -> int | None:
    """The quota of a queue as it is set."""
    return getattr(queue.terms_in("default"), resource).quota  # type: ignore[no-any-return]  # by name: one of three


def _divide(snapshot: Snapshot, resource: str, *, parent: str | None, total: Fraction, result: Due) -> None:
    siblings = [queue for queue in snapshot.queues if queue.parent == parent]
    wants = {queue.id: Fraction(result.wanted[queue.id][resource]) for queue in siblings}
    quotas = {one.id: quota(one, resource) for one in siblings}
    base = {id: want if quotas[id] is None else min(Fraction(quotas[id] or 0), want) for id, want in wants.items()}
    priorities = sorted({queue.terms_in("default").priority for queue in siblings}, reverse=True)
    left = total
    granted = dict.fromkeys(wants, Fraction(0))
    for priority in priorities:
        members = [queue.id for queue in siblings if queue.terms_in("default").priority == priority]
        asked = sum((base[id] for id in members), Fraction(0))
        for id in members:
            granted[id] = base[id] if asked <= left else base[id] * left / asked
        left = max(Fraction(0), left - asked)
    share = dict(granted)
    left = total - sum(granted.values(), Fraction(0))
    for priority in priorities:
        members = [queue.id for queue in siblings if queue.terms_in("default").priority == priority]
        weights = {queue.id: getattr(queue.terms_in("default"), resource).weight for queue in siblings}
        left = _pour(left, members, share=share, wants=wants, weights=weights)
    for queue in siblings:
        result.quota[queue.id][resource] = granted[queue.id]
        result.share[queue.id][resource] = share[queue.id]
        _divide(snapshot, resource, parent=queue.id, total=share[queue.id], result=result)


def _pour(
    left: Fraction,
    members: list[str],
    *,
    share: dict[str, Fraction],
    wants: Mapping[str, Fraction],
    weights: Mapping[str, int],
) -> Fraction:
    """Raise all levels together, in proportion to weight, until nothing is left or all are satisfied."""
    thirsty = [id for id in members if share[id] < wants[id] and weights[id] > 0]
    while thirsty and left > 0:
        step = min((wants[id] - share[id]) / weights[id] for id in thirsty)
        step = min(step, left / sum(weights[id] for id in thirsty))
        for id in thirsty:
            share[id] += step * weights[id]
            left -= step * weights[id]
        thirsty = [id for id in thirsty if share[id] < wants[id]]
    return left
