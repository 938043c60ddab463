"""What queues hold, ask for and are due, by pool, in the plainest way: fractions, and nothing of the engine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from aliquot.core.model import (
    RESOURCES,
    Claim,
    Device,
    GpuRequest,
    Node,
    Pod,
    PodRequest,
    PodState,
    Queue,
    ResourceName,
    Snapshot,
    Workload,
)
from tests.laws import room
from tests.laws.room import Hold

Vector = dict[ResourceName, int]


def zero() -> Vector:
    """Nothing of each."""
    return dict.fromkeys(RESOURCES, 0)


def add(*vectors: Vector) -> Vector:
    """The sum."""
    return {name: sum(one[name] for one in vectors) for name in RESOURCES}


def charge(hold: Hold) -> Vector:
    """What a pod at a place is charged."""
    request = hold.pod.request
    return {
        "gpu": sum(share.milli for share in hold.shares),
        "cpu": request.milli_cpus,
        "memory": request.memory_bytes,
    }


def chain(snapshot: Snapshot, queue: str) -> list[Queue]:
    """A queue and those above it."""
    by_id = {one.id: one for one in snapshot.queues}
    found: list[Queue] = []
    at: str | None = queue
    while at is not None and at in by_id:
        found.append(by_id[at])
        at = by_id[at].parent
    return found


def is_project(snapshot: Snapshot, queue: str) -> bool:
    """Whether a queue is there and may hold workloads."""
    return any(one.id == queue for one in snapshot.queues) and all(one.parent != queue for one in snapshot.queues)


def levels(snapshot: Snapshot, holds: Iterable[Hold], pool: str) -> dict[str, Vector]:
    """What each queue holds in a pool by these pods, with all below it."""
    nodes = {node.id for node in snapshot.nodes if node.pool == pool}
    totals = {queue.id: zero() for queue in snapshot.queues}
    for hold in holds:
        for queue in chain(snapshot, hold.workload.queue) if hold.node in nodes else ():
            totals[queue.id] = add(totals[queue.id], charge(hold))
    return totals


def claim(queue: Queue, pool: str, resource: ResourceName) -> Claim:
    """A queue's terms for one resource of a pool."""
    return queue.terms_in(pool).of(resource)


def is_fixed(hold: Hold, standing: Iterable[Hold]) -> bool:
    """Whether a pod counts as not preemptible: of semi-preemptible work, the first pods up to its minimum do."""
    workload = hold.workload
    if workload.is_preemptible or not workload.is_semi_preemptible:
        return not workload.is_preemptible
    own = sorted(
        (one.pod for one in standing if one.workload.id == workload.id),
        key=lambda pod: (-pod.priority, pod.index, pod.id),
    )
    ended_well = sum(pod.state is PodState.SUCCEEDED for pod in workload.pods)
    return hold.pod.id in [pod.id for pod in own[: max(0, workload.min_pods - ended_well)]]


# What a pool has, and what is asked of it.


def capacity(snapshot: Snapshot, pool: str) -> Vector:
    """What nodes that take work offer, less what pods of other schedulers hold; and what is held on the others."""
    holds = room.held(snapshot, PodState.RUNNING, PodState.RELEASING)
    in_use = {share.device for hold in holds for share in hold.shares}
    total = zero()
    for node in snapshot.nodes:
        if node.pool != pool:
            continue
        is_open = node.is_ready and not node.is_cordoned and not node.is_drained
        here = [charge(hold) for hold in holds if hold.node == node.id]
        total["gpu"] += sum(
            device_milli(node, index)
            for index, device in enumerate(node.devices)
            if (is_open and device.withheld is None and device.memory_mib > 0) or device.id in in_use
        )
        total["gpu"] -= node.foreign.milli_gpus if is_open else 0
        total["cpu"] += node.milli_cpus - node.foreign.milli_cpus if is_open else sum(one["cpu"] for one in here)
        total["memory"] += (
            node.memory_bytes - node.foreign.memory_bytes if is_open else sum(one["memory"] for one in here)
        )
    return {name: max(0, amount) for name, amount in total.items()}


def device_milli(node: Node, index: int) -> int:
    """What a device offers to be divided: a fixed instance its part."""
    device = node.devices[index]
    return 1000 if device.instance is None else room.charge_of(device.instance, device)


def asked(snapshot: Snapshot, workload: Workload, pool: str, pods: Iterable[Pod] | None = None) -> Vector:
    """What pods (all that wait, if none are named) count while they wait."""
    if pods is None:
        pods = [pod for pod in workload.pods if pod.state is PodState.PENDING]
    pools = (workload.pool, *workload.fallback_pools)
    return add(zero(), *(_of_request(snapshot, pod.request, pools) for pod in pods))


def _of_request(snapshot: Snapshot, request: PodRequest, pools: tuple[str, ...]) -> Vector:
    gpus = 0 if request.gpu is None else request.gpu.devices * _milli(snapshot, request.gpu, pools)
    return {"gpu": gpus, "cpu": request.milli_cpus, "memory": request.memory_bytes}


def _milli(snapshot: Snapshot, gpu: GpuRequest, pools: tuple[str, ...]) -> int:
    """What a share counts while it waits: by the smallest device of its pools that can hold it."""
    devices = [device for node in snapshot.nodes if node.pool in pools for device in node.devices]
    if gpu.profile is not None:
        cuts = [
            room.charge_of(one, device)
            for device in devices
            for one in (*device.profiles, *((device.instance,) if device.instance else ()))
            if one.name == gpu.profile
        ]
        return min(cuts, default=1000)
    if gpu.mib is None:
        return max(gpu.milli or 0, gpu.compute)
    sizes = [one.memory_mib for one in devices if one.memory_mib >= gpu.mib and _suits(gpu, one)]
    return max(-(-1000 * gpu.mib // min(sizes)) if sizes else 1000, gpu.compute)


def _suits(gpu: GpuRequest, device: Device) -> bool:
    if device.instance is not None or device.profiles:
        return False
    return (not gpu.models or device.model in gpu.models) and device.memory_mib >= gpu.min_device_mib


# What queues are due.


@dataclass
class Claimant:
    """One of the siblings among whom an amount is divided."""

    id: str
    wanted: int
    """What it asks for, as far as its limit allows."""
    quota: int | None = None
    weight: int = 1
    priority: int = 100
    usage: int = 0


@dataclass
class Due:
    """What each queue of a pool is due: its quota as far as it is asked for and there, and its fair share."""

    quota: dict[str, dict[ResourceName, Fraction]] = field(default_factory=dict)
    share: dict[str, dict[ResourceName, Fraction]] = field(default_factory=dict)
    wanted: dict[str, Vector] = field(default_factory=dict)


def due(
    snapshot: Snapshot, pool: str, *, requests: Mapping[str, Vector], usage_weight: tuple[int, int] = (0, 1)
) -> Due:
    """By the rules of `Fair share`. `requests`: what each project holds and waits for in the pool."""
    result = Due(
        {queue.id: {} for queue in snapshot.queues},
        {queue.id: {} for queue in snapshot.queues},
        {queue.id: zero() for queue in snapshot.queues},
    )
    total = capacity(snapshot, pool)
    for resource in RESOURCES:
        _want(snapshot, resource, pool=pool, requests=requests, result=result)
        _divide(
            snapshot,
            resource,
            pool=pool,
            parent=None,
            total=Fraction(total[resource]),
            result=result,
            usage_weight=usage_weight,
        )
    return result


def _want(
    snapshot: Snapshot, resource: ResourceName, *, pool: str, requests: Mapping[str, Vector], result: Due
) -> None:
    def total(queue: Queue) -> int:
        own = requests.get(queue.id, zero())[resource]
        amount = own + sum(total(one) for one in snapshot.queues if one.parent == queue.id)
        limit = claim(queue, pool, resource).limit
        result.wanted[queue.id][resource] = amount if limit is None else min(amount, limit)
        return result.wanted[queue.id][resource]

    known = {queue.id for queue in snapshot.queues}
    for queue in snapshot.queues:
        if queue.parent not in known:
            total(queue)


def _divide(
    snapshot: Snapshot,
    resource: ResourceName,
    *,
    pool: str,
    parent: str | None,
    total: Fraction,
    result: Due,
    usage_weight: tuple[int, int],
) -> None:
    siblings = [queue for queue in snapshot.queues if queue.parent == parent]
    claimants = [
        Claimant(
            queue.id,
            result.wanted[queue.id][resource],
            claim(queue, pool, resource).quota,
            claim(queue, pool, resource).weight,
            queue.terms_in(pool).priority,
            queue.usage[pool].of(resource) if pool in queue.usage else 0,
        )
        for queue in siblings
    ]
    guaranteed, share = divide(total, claimants, usage_weight=usage_weight)
    for queue in siblings:
        result.quota[queue.id][resource] = guaranteed[queue.id]
        result.share[queue.id][resource] = share[queue.id]
        _divide(
            snapshot,
            resource,
            pool=pool,
            parent=queue.id,
            total=share[queue.id],
            result=result,
            usage_weight=usage_weight,
        )


def divide(
    total: Fraction, claimants: Iterable[Claimant], *, usage_weight: tuple[int, int] = (0, 1)
) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    """What each of some siblings is guaranteed, and its share."""
    claimants = list(claimants)
    base = {one.id: Fraction(one.wanted if one.quota is None else min(one.quota, one.wanted)) for one in claimants}
    priorities = sorted({one.priority for one in claimants}, reverse=True)
    left = total
    guaranteed: dict[str, Fraction] = {}
    for priority in priorities:
        members = [one.id for one in claimants if one.priority == priority]
        wanted = sum((base[id] for id in members), Fraction(0))
        for id in members:
            guaranteed[id] = base[id] if wanted <= left else base[id] * left / wanted
        left = max(Fraction(0), left - wanted)
    share = dict(guaranteed)
    left = total - sum(guaranteed.values(), Fraction(0))
    for priority in priorities:
        left = pour(left, [one for one in claimants if one.priority == priority], share, usage_weight)
    return guaranteed, share


def pour(
    left: Fraction, members: list[Claimant], share: dict[str, Fraction], usage_weight: tuple[int, int]
) -> Fraction:
    """Give what is left to those of one priority, in rounds. In each everybody gets its part, but no more than it
    needs; where somebody needed less, what is left then is divided again."""
    while True:
        thirsty = [one for one in members if share[one.id] < one.wanted and one.weight > 0]
        if not thirsty or left <= 0:
            return left
        weights = weights_of(thirsty, usage_weight)
        total = sum(weights.values(), Fraction(0))
        base = left
        part = {one.id: base * weights[one.id] / total for one in thirsty}
        for one in thirsty:
            given = min(part[one.id], one.wanted - share[one.id])
            share[one.id] += given
            left -= given


def weights_of(thirsty: list[Claimant], usage_weight: tuple[int, int]) -> dict[str, Fraction]:
    """Their weights, lower for those who have used more than their part."""
    k = Fraction(*usage_weight)
    weight = Fraction(sum(one.weight for one in thirsty))
    usage = sum(one.usage for one in thirsty)
    found: dict[str, Fraction] = {}
    for one in thirsty:
        w = one.weight / weight
        u = Fraction(one.usage, usage) if usage else Fraction(0)
        found[one.id] = max(Fraction(0), w + k * (w - u))
    return found if any(found.values()) else {one.id: one.weight / weight for one in thirsty}
