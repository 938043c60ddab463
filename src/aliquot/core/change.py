"""What-if: a snapshot with something changed, as if it had been so from the start.

`overlay` is pure and cheap (it shares all that did not change), so that "what if I submit this", "what if the quota
were 8" and the search for the smallest change that starts a workload all plan with the same `schedule`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aliquot.core.errors import NotFound
from aliquot.core.model import (
    Device,
    GpuRequest,
    Group,
    Near,
    Node,
    Pod,
    PodState,
    PoolTerms,
    Queue,
    Snapshot,
    Toleration,
    Workload,
)


@dataclass(frozen=True, slots=True)
class AddWorkload:
    """Submit this too. A workload with the same id is replaced."""

    workload: Workload


@dataclass(frozen=True, slots=True)
class RemoveWorkload:
    """It ends, and what it holds is free at once. Its promise goes with it."""

    workload: str


@dataclass(frozen=True, slots=True)
class SetGpu:
    """Its pending pods ask for another share, or for none."""

    workload: str
    gpu: GpuRequest | None


@dataclass(frozen=True, slots=True)
class SetCpu:
    """Its pending pods ask for this much CPU."""

    workload: str
    milli_cpus: int


@dataclass(frozen=True, slots=True)
class SetMemory:
    """Its pending pods ask for this much memory."""

    workload: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """It has so many pods: pending ones are taken away from the end, or added like the last one."""

    workload: str
    pods: int


@dataclass(frozen=True, slots=True)
class SetPriority:
    """Its priority is another."""

    workload: str
    priority: int


@dataclass(frozen=True, slots=True)
class SetPreemptible:
    """It may, or may not, be evicted for others."""

    workload: str
    is_preemptible: bool


@dataclass(frozen=True, slots=True)
class SetPool:
    """It runs in another pool."""

    workload: str
    pool: str


@dataclass(frozen=True, slots=True)
class LoosenNear:
    """What it requires to be near each other it only prefers."""

    workload: str


@dataclass(frozen=True, slots=True)
class OpenNodes:
    """Its pending pods may go to any node of their pool: no selector, and every taint tolerated."""

    workload: str


@dataclass(frozen=True, slots=True)
class ReleaseQueue:
    """A queue takes new work again."""

    queue: str


@dataclass(frozen=True, slots=True)
class SetTerms:
    """A queue's terms in one pool are others."""

    queue: str
    pool: str
    terms: PoolTerms


@dataclass(frozen=True, slots=True)
class AddQueue:
    """There is one more queue. A queue with the same id is replaced."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class UncordonNode:
    """A node takes new work again. Devices of it that are withheld stay so."""

    node: str


@dataclass(frozen=True, slots=True)
class OfferDevice:
    """A device that is withheld (cordoned, in use by others, lost) is offered again."""

    device: str


Change = (
    AddWorkload
    | RemoveWorkload
    | SetGpu
    | SetCpu
    | SetMemory
    | SetReplicas
    | SetPriority
    | SetPreemptible
    | SetPool
    | LoosenNear
    | OpenNodes
    | ReleaseQueue
    | SetTerms
    | AddQueue
    | UncordonNode
    | OfferDevice
)


def overlay(snapshot: Snapshot, changes: Sequence[Change]) -> Snapshot:
    """The snapshot with these changes, applied in order. Raises NotFound for a name that is not in it."""
    for change in changes:
        snapshot = _apply(snapshot, change)
    return snapshot


def _apply(snapshot: Snapshot, change: Change) -> Snapshot:
    match change:
        case AddWorkload(workload):
            others = tuple(one for one in snapshot.workloads if one.id != workload.id)
            return replace(snapshot, workloads=(*others, workload))
        case RemoveWorkload(id):
            _found("workload", id, [one.id for one in snapshot.workloads])
            return replace(
                snapshot,
                workloads=tuple(one for one in snapshot.workloads if one.id != id),
                promises=tuple(one for one in snapshot.promises if one.workload != id),
            )
        case ReleaseQueue(id):
            _found("project", id, [one.id for one in snapshot.queues])
            queues = (replace(one, is_held=False, is_drained=False) if one.id == id else one for one in snapshot.queues)
            return replace(snapshot, queues=tuple(queues))
        case AddQueue(queue):
            return replace(snapshot, queues=(*(one for one in snapshot.queues if one.id != queue.id), queue))
        case SetTerms(id, pool, terms):
            _found("project", id, [one.id for one in snapshot.queues])
            queues = (_with_terms(one, pool, terms) if one.id == id else one for one in snapshot.queues)
            return replace(snapshot, queues=tuple(queues))
        case UncordonNode(id):
            _found("node", id, [one.id for one in snapshot.nodes])
            nodes = (replace(one, is_cordoned=False) if one.id == id else one for one in snapshot.nodes)
            return replace(snapshot, nodes=tuple(nodes))
        case OfferDevice(id):
            _found("device", id, [one.id for node in snapshot.nodes for one in node.devices])
            return replace(snapshot, nodes=tuple(_offering(node, id) for node in snapshot.nodes))
        case _:
            _found("workload", change.workload, [one.id for one in snapshot.workloads])
            changed = (_change(one, change) if one.id == change.workload else one for one in snapshot.workloads)
            return replace(snapshot, workloads=tuple(changed))


def _change(
    workload: Workload,
    change: SetGpu | SetCpu | SetMemory | SetReplicas | SetPriority | SetPreemptible | SetPool | LoosenNear | OpenNodes,
) -> Workload:
    match change:
        case SetGpu(gpu=gpu):
            pods = (_asking(pod, replace(pod, request=replace(pod.request, gpu=gpu))) for pod in workload.pods)
            return replace(workload, pods=tuple(pods))
        case SetCpu(milli_cpus=amount):
            pods = (
                _asking(pod, replace(pod, request=replace(pod.request, milli_cpus=amount))) for pod in workload.pods
            )
            return replace(workload, pods=tuple(pods))
        case SetMemory(memory_bytes=amount):
            pods = (
                _asking(pod, replace(pod, request=replace(pod.request, memory_bytes=amount))) for pod in workload.pods
            )
            return replace(workload, pods=tuple(pods))
        case SetReplicas(pods=count):
            return _resized(workload, count)
        case SetPriority(priority=priority):
            return replace(workload, priority=priority)
        case SetPreemptible(is_preemptible=is_preemptible):
            return replace(workload, is_preemptible=is_preemptible)
        case SetPool(pool=pool):
            return replace(workload, pool=pool)
        case LoosenNear():
            near = None if workload.near is None else _loose(workload.near)
            return replace(workload, near=near, gang=None if workload.gang is None else _loosened(workload.gang))
        case OpenNodes():
            return replace(workload, pods=tuple(_asking(pod, _anywhere(pod)) for pod in workload.pods))


def _anywhere(pod: Pod) -> Pod:
    return replace(pod, request=replace(pod.request, nodes=None, node_labels=(), tolerations=(Toleration(),)))


def _loose(near: Near) -> Near:
    return near if near.required is None else Near(near.topology, preferred=near.preferred or near.required)


def _loosened(group: Group) -> Group:
    near = None if group.near is None else _loose(group.near)
    return replace(group, near=near, groups=tuple(_loosened(child) for child in group.groups))


def _asking(before: Pod, after: Pod) -> Pod:
    return after if before.state is PodState.PENDING else before


def _resized(workload: Workload, count: int) -> Workload:
    pods = sorted(workload.pods, key=lambda pod: (pod.index, pod.id))
    while len(pods) > count and pods[-1].state is PodState.PENDING:
        pods.pop()
    while pods and len(pods) < count:
        index = pods[-1].index + 1
        pods.append(Pod(id=f"{workload.id}-{index}", index=index, request=pods[-1].request))
    is_whole = workload.min_pods == len(workload.pods)
    return replace(workload, pods=tuple(pods), min_pods=len(pods) if is_whole else min(workload.min_pods, len(pods)))


def _with_terms(queue: Queue, pool: str, terms: PoolTerms) -> Queue:
    return replace(queue, terms={**queue.terms, pool: terms})


def _offering(node: Node, id: str) -> Node:
    if all(device.id != id for device in node.devices):
        return node
    return replace(node, devices=tuple(_offered(device) if device.id == id else device for device in node.devices))


def _offered(device: Device) -> Device:
    return replace(device, withheld=None)


def _found(noun: str, id: str, known: Sequence[str]) -> None:
    if id not in known:
        raise NotFound(f"there is no {noun} {id!r} here", field=noun, valid=sorted(known))
