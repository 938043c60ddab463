"""Makes a world that breaks a law smaller while it still breaks it, and writes it down as Python."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from aliquot.core import model
from aliquot.core.model import Node, Pod, PodState, Policy, Queue, Snapshot, Workload
from tests.laws.case import LawBroken
from tests.laws.worlds import World

Fails = Callable[[World], str | None]
"""Which law a world breaks, if any."""

MOST_TRIES = 3000


def breaks(judge: Callable[[World], object]) -> Fails:
    """The law that a judge finds broken; an error of the engine counts as one."""

    def fails(world: World) -> str | None:
        try:
            judge(world)
        except LawBroken as broken:
            return broken.law
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is what we look for
            return f"error {type(error).__name__}"
        return None

    return fails


def shrink(world: World, fails: Fails, *, tries: int = MOST_TRIES) -> World:
    """The smallest world found that breaks the same law."""
    law = fails(world)
    assert law is not None, "it breaks no law"
    is_smaller = True
    while is_smaller and tries > 0:
        is_smaller = False
        for other in smaller(world):
            tries -= 1
            if tries <= 0:
                break
            if other != world and fails(other) == law:
                world, is_smaller = other, True
                break
    return world


def smaller(world: World) -> Iterator[World]:
    """Worlds with a little less in them, the greatest steps first."""
    for snapshot in _smaller_snapshots(world.snapshot):
        yield replace(world, snapshot=snapshot)
    for policy in _plainer(world.policy, Policy()):
        yield replace(world, policy=policy)


def _smaller_snapshots(snapshot: Snapshot) -> Iterator[Snapshot]:
    half = len(snapshot.workloads) // 2
    if half > 1:
        yield _keeping(snapshot, snapshot.workloads[:half])
        yield _keeping(snapshot, snapshot.workloads[half:])
    for one in snapshot.workloads:
        yield _keeping(snapshot, tuple(other for other in snapshot.workloads if other is not one))
    for node in snapshot.nodes:
        used = {pod.node for one in snapshot.workloads for pod in one.pods}
        used |= {place.node for one in snapshot.promises for place in one.places}
        if node.id not in used:
            yield replace(snapshot, nodes=tuple(other for other in snapshot.nodes if other is not node))
    needed = {one.queue for one in snapshot.workloads} | {one.parent for one in snapshot.queues}
    for queue in snapshot.queues:
        if queue.id not in needed:
            yield replace(snapshot, queues=tuple(other for other in snapshot.queues if other is not queue))
    for name in ("promises", "budgets", "topologies", "recent"):
        values = getattr(snapshot, name)
        for index in range(len(values)):
            yield replace(snapshot, **{name: values[:index] + values[index + 1 :]})
    yield from _inside(snapshot, "workloads", _smaller_workloads)
    yield from _inside(snapshot, "nodes", _smaller_nodes)
    yield from _inside(snapshot, "queues", _smaller_queues)


def _keeping(snapshot: Snapshot, workloads: tuple[Workload, ...]) -> Snapshot:
    ids = {one.id for one in workloads}
    return replace(
        snapshot, workloads=workloads, promises=tuple(one for one in snapshot.promises if one.workload in ids)
    )


def _inside(snapshot: Snapshot, name: str, less: Callable[[Any], Iterator[Any]]) -> Iterator[Snapshot]:  # Any: parts
    values = getattr(snapshot, name)
    for index, value in enumerate(values):
        for other in less(value):
            yield replace(snapshot, **{name: (*values[:index], other, *values[index + 1 :])})


def _smaller_workloads(workload: Workload) -> Iterator[Workload]:
    if len(workload.pods) > 1:
        for pod in workload.pods:
            rest = tuple(one for one in workload.pods if one is not pod)
            yield replace(workload, pods=rest, min_pods=min(workload.min_pods, len(rest)))
    plain = Workload(workload.id, workload.id, workload.queue, workload.created, workload.pods, len(workload.pods))
    yield from _plainer(workload, plain, keep={"id", "name", "queue", "pods", "min_pods", "started"})
    for index, pod in enumerate(workload.pods):
        bare = Pod(pod.id, pod.index, replace(pod.request, namespace="default"))
        for other in (*_plainer(pod, bare, keep={"id", "request", "state", "node", "shares"}), *_plainer_requests(pod)):
            yield replace(workload, pods=(*workload.pods[:index], other, *workload.pods[index + 1 :]))
    states = {pod.state for pod in workload.pods}
    if states != {PodState.PENDING}:
        waiting = tuple(replace(pod, state=PodState.PENDING, node=None, shares=()) for pod in workload.pods)
        yield replace(workload, pods=waiting, started=None, stale_for=None, saved=None)


def _plainer_requests(pod: Pod) -> Iterator[Pod]:
    if pod.node is None:
        for request in _plainer(pod.request, type(pod.request)(), keep={"gpu"}):
            yield replace(pod, request=request)
        if pod.request.gpu is not None:
            for gpu in _plainer(pod.request.gpu, type(pod.request.gpu)(), keep={"milli", "mib", "profile"}):
                yield replace(pod, request=replace(pod.request, gpu=gpu))
            yield replace(pod, request=replace(pod.request, gpu=type(pod.request.gpu)()))
    else:
        plain = type(pod.request)()
        keep = {"gpu", "milli_cpus", "memory_bytes", "resources", "host_ports"}
        for request in _plainer(pod.request, plain, keep=keep):
            yield replace(pod, request=request)


def _smaller_nodes(node: Node) -> Iterator[Node]:
    for device in node.devices:
        yield replace(node, devices=tuple(one for one in node.devices if one is not device))
    yield from _plainer(node, Node(node.id, 64_000, 512 * 2**30), keep={"id", "devices"})


def _smaller_queues(queue: Queue) -> Iterator[Queue]:
    yield from _plainer(queue, Queue(queue.id, queue.id, queue.created), keep={"id", "name", "created", "terms"})
    for pool, terms in queue.terms.items():
        for plain in _plainer(terms, type(terms)(), keep=set()):
            yield replace(queue, terms={**queue.terms, pool: plain})
        if len(queue.terms) > 1:
            yield replace(queue, terms={name: one for name, one in queue.terms.items() if name != pool})


def _plainer(value: Any, plain: Any, *, keep: set[str] = frozenset()) -> Iterator[Any]:  # type: ignore[assignment]  # Any: any part
    for one in fields(value):
        if one.name in keep:
            continue
        wanted = getattr(plain, one.name)
        if getattr(value, one.name) != wanted:
            yield replace(value, **{one.name: wanted})


# Written down.


def names_to_read() -> dict[str, Any]:  # Any: classes
    """What Python needs to know to read what is written."""
    return vars(model) | {"datetime": datetime, "timedelta": timedelta, "UTC": UTC}


def written(value: Any, indent: int = 0) -> str:  # Any: any part of a world
    """A value as Python, with what differs from the defaults only."""
    pad = "    " * (indent + 1)
    if is_dataclass(value) and not isinstance(value, type):
        parts = [f"{name}={written(part, indent + 1)}" for name, part in _told(value)]
        return _joined(f"{type(value).__name__}(", parts, ")", pad)
    if isinstance(value, tuple):
        parts = [written(one, indent + 1) for one in value]
        return _joined("(", parts, ",)" if len(parts) == 1 else ")", pad)
    if isinstance(value, frozenset):
        return f"frozenset({sorted(value)!r})"
    if isinstance(value, dict):
        parts = [f"{key!r}: {written(one, indent + 1)}" for key, one in value.items()]
        return _joined("{", parts, "}", pad)
    return _simple(value)


def _simple(value: Any) -> str:  # Any: any part of a world
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, datetime):
        parts = (value.year, value.month, value.day, value.hour, value.minute, value.second)
        return f"datetime({', '.join(map(str, parts))}, tzinfo=UTC)"
    if isinstance(value, timedelta):
        return f"timedelta(seconds={value.total_seconds():g})"
    return repr(value)


def _told(value: Any) -> Iterator[tuple[str, Any]]:  # Any: any part of a world
    for one in fields(value):
        part = getattr(value, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if default is MISSING or part != default:
            yield one.name, part


def _joined(start: str, parts: list[str], end: str, pad: str) -> str:
    line = start + ", ".join(parts) + end
    if len(line) + len(pad) <= 116 and "\n" not in line:
        return line
    inner = "".join(f"{pad}{part},\n" for part in parts)
    return f"{start}\n{inner}{pad[4:]}{end.lstrip(',')}"
