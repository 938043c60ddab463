"""What-if: a snapshot with something changed, as if it had been so from the start.

`overlay` is pure and cheap (it shares all that did not change), so that "what if I submit this", "what if the quota
were 8" and the search for the smallest change that starts a workload all plan with the same `schedule`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from aliquot.core.errors import NotFound
from aliquot.core.model import (
    Device,
    GpuRequest,
    Group,
    Near,
    Node,
    Pod,
    PodRequest,
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
    """Its pending pods (`of`: those that ask for this) ask for another share, or for none."""

    workload: str
    gpu: GpuRequest | None
    of: PodRequest | None = None


@dataclass(frozen=True, slots=True)
class SetCpu:
    """Its pending pods (`of`: those that ask for this) ask for this much CPU."""

    workload: str
    milli_cpus: int
    of: PodRequest | None = None


@dataclass(frozen=True, slots=True)
class SetMemory:
    """Its pending pods (`of`: those that ask for this) ask for this much memory."""

    workload: str
    memory_bytes: int
    of: PodRequest | None = None


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """It has so many pods: pending ones are taken away from the end, or added like the last one."""

    workload: str
    pods: int


@dataclass(frozen=True, slots=True)
class SetMinPods:
    """It starts with so many pods; `group`: so many of this group of its gang."""

    workload: str
    pods: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class SetMaxRunTime:
    """It states that it runs no longer than this."""

    workload: str
    span: timedelta


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
class LoosenSharing:
    """The way of sharing a device that it requires it only prefers."""

    workload: str


@dataclass(frozen=True, slots=True)
class Tolerate:
    """Its pending pods tolerate this taint too."""

    workload: str
    toleration: Toleration


@dataclass(frozen=True, slots=True)
class DropSelector:
    """Its pending pods ask for no particular nodes any more."""

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
    """A node that was cordoned or drained takes new work again. Devices of it that are withheld stay so."""

    node: str


@dataclass(frozen=True, slots=True)
class OfferDevice:
    """A device that is withheld (cordoned, in use by others, lost) is offered again."""

    device: str


OfWorkload = (
    SetGpu
    | SetCpu
    | SetMemory
    | SetReplicas
    | SetMinPods
    | SetMaxRunTime
    | SetPriority
    | SetPreemptible
    | SetPool
    | LoosenNear
    | LoosenSharing
    | Tolerate
    | DropSelector
    | OpenNodes
)
"""What may be changed of one workload."""

Change = AddWorkload | RemoveWorkload | OfWorkload | ReleaseQueue | SetTerms | AddQueue | UncordonNode | OfferDevice


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
            nodes = (
                replace(one, is_cordoned=False, is_drained=False) if one.id == id else one for one in snapshot.nodes
            )
            return replace(snapshot, nodes=tuple(nodes))
        case OfferDevice(id):
            _found("device", id, [one.id for node in snapshot.nodes for one in node.devices])
            return replace(snapshot, nodes=tuple(_offering(node, id) for node in snapshot.nodes))
        case _:
            _found("workload", change.workload, [one.id for one in snapshot.workloads])
            changed = (_change(one, change) if one.id == change.workload else one for one in snapshot.workloads)
            return replace(snapshot, workloads=tuple(changed))


def _change(workload: Workload, change: OfWorkload) -> Workload:
    match change:
        case SetReplicas(pods=count):
            return _resized(workload, count)
        case SetMinPods(pods=count, group=""):
            gang = None if workload.gang is None else replace(workload.gang, minimum=count)
            return replace(workload, min_pods=count, gang=gang)
        case SetMinPods(pods=count, group=name):
            return workload if workload.gang is None else replace(workload, gang=_least(workload.gang, name, count))
        case SetMaxRunTime(span=span):
            return replace(workload, max_run_time=span)
        case SetPriority(priority=priority):
            return replace(workload, priority=priority)
        case SetPreemptible(is_preemptible=is_preemptible):
            is_semi = workload.is_semi_preemptible and not is_preemptible
            return replace(workload, is_preemptible=is_preemptible, is_semi_preemptible=is_semi)
        case SetPool(pool=pool):
            others = tuple(one for one in workload.fallback_pools if one != pool)
            return replace(workload, pool=pool, fallback_pools=others)
        case LoosenNear():
            near = None if workload.near is None else _loose(workload.near)
            return replace(workload, near=near, gang=None if workload.gang is None else _loosened(workload.gang))
        case _:
            return _asking(workload, change)


def _asking(
    workload: Workload, change: SetGpu | SetCpu | SetMemory | LoosenSharing | Tolerate | DropSelector | OpenNodes
) -> Workload:
    """Its pods that wait ask for something else."""
    match change:
        case SetGpu(gpu=gpu, of=of):
            return _with_requests(workload, lambda request: replace(request, gpu=gpu), of)
        case SetCpu(milli_cpus=amount, of=of):
            return _with_requests(workload, lambda request: replace(request, milli_cpus=amount), of)
        case SetMemory(memory_bytes=amount, of=of):
            return _with_requests(workload, lambda request: replace(request, memory_bytes=amount), of)
        case LoosenSharing():
            return _with_requests(workload, _sharing_anyhow)
        case Tolerate(toleration=toleration):
            return _with_requests(workload, lambda one: replace(one, tolerations=(*one.tolerations, toleration)))
        case DropSelector():
            return _with_requests(workload, lambda request: replace(request, nodes=None, node_labels=()))
        case OpenNodes():  # pragma: no branch - the last of its kind: there is no other
            return _with_requests(workload, _anywhere)


def _with_requests(
    workload: Workload, changed: Callable[[PodRequest], PodRequest], of: PodRequest | None = None
) -> Workload:
    pods = (
        replace(pod, request=changed(pod.request))
        if pod.state is PodState.PENDING and (of is None or pod.request == of)
        else pod
        for pod in workload.pods
    )
    return replace(workload, pods=tuple(pods))


def _sharing_anyhow(request: PodRequest) -> PodRequest:
    return request if request.gpu is None else replace(request, gpu=replace(request.gpu, is_sharing_required=False))


def _anywhere(request: PodRequest) -> PodRequest:
    return replace(request, nodes=None, node_labels=(), tolerations=(Toleration(),))


def _least(group: Group, name: str, count: int) -> Group:
    """The tree in which the group of this name has another minimum."""
    if group.name == name:
        return replace(group, minimum=count)
    return replace(group, groups=tuple(_least(child, name, count) for child in group.groups))


def _loose(near: Near) -> Near:
    return near if near.required is None else Near(near.topology, preferred=near.preferred or near.required)


def _loosened(group: Group) -> Group:
    near = None if group.near is None else _loose(group.near)
    return replace(group, near=near, groups=tuple(_loosened(child) for child in group.groups))


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
