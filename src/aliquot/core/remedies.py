"""The changes that may start a workload that waits, by kind, and of each kind from the smallest to the largest.

What is here is only worth a trial; whether it helps says `aliquot.core.trials`. The kinds stand in the order in which
they are preferred. Where many wait, the sizes that are tried are those at which something changes: what is free
somewhere, or is left of a limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from aliquot.core import change, grants, ladders, looser, smaller
from aliquot.core.ladders import Ladder
from aliquot.core.model import GpuRequest, PodState, QueueOrder, Toleration
from aliquot.core.trials import Question


@dataclass(frozen=True, slots=True)
class Kind:
    """Ladders of which the smallest candidate that works is taken. `together` changes at least as much as any of them:
    where it does not help, none does."""

    ladders: tuple[Ladder, ...]
    together: tuple[change.Change, ...] = ()


def kinds(about: Question) -> Iterator[Kind]:
    """All kinds of change but the end of another workload, in the order in which they are preferred."""
    eased = _eased(about)
    yield Kind(tuple(smaller.fewer(about)), eased)
    yield Kind(tuple(smaller.shares(about)), eased)
    yield Kind(tuple(smaller.cpu(about)), eased)
    yield Kind(tuple(smaller.memory(about)), eased)
    yield Kind(tuple(smaller.any_model(about)), eased)
    yield Kind((looser.other_pool(about),))
    yield Kind((looser.near(about), looser.sharing(about)), eased)
    yield Kind((looser.drop_selector(about), looser.tolerate(about), looser.open_nodes(about)), eased)
    yield Kind((grants.uncordon(about),))
    yield Kind((grants.release(about),))
    yield Kind((looser.higher_priority(about),))
    yield Kind((looser.preemptible(about),))
    yield Kind((looser.shorter(about),), eased)
    yield Kind(tuple(grants.terms(about, "limit")), grants.without(about, "limit"))
    yield Kind(tuple(grants.terms(about, "quota")), grants.without(about, "quota"))


def _eased(about: Question) -> tuple[change.Change, ...]:
    """As if it asked for as little as can be in every way that its owner can choose. Nothing is known by that where who
    asks for less is served later."""
    workload, queue = about.workload, about.world.queues.get(about.workload.queue)
    if queue is not None and queue.order is QueueOrder.LARGEST_FIRST:
        return ()
    pending = ladders.pending(workload)
    gpu = next((pod.request.gpu for pod in pending if pod.request.gpu is not None), None)
    if gpu is not None and gpu.profile is not None:
        return ()
    if gpu is not None and all(pod.request.gpu is not None for pod in pending):
        gpu = GpuRequest(1, milli=None, mib=1) if gpu.mib is not None else GpuRequest(1, 1)
    else:
        gpu = None
    first = pending[0]
    request = replace(
        first.request,
        gpu=gpu,
        milli_cpus=min(1, first.request.milli_cpus),
        memory_bytes=min(1, first.request.memory_bytes),
        nodes=None,
        node_labels=(),
        tolerations=(Toleration(),),
    )
    others = [pod for pod in workload.pods if pod.state is not PodState.PENDING]
    eased = replace(
        workload,
        pods=(*others, replace(first, request=request)),
        min_pods=1,
        gang=None,
        near=None,
        max_run_time=timedelta(seconds=1),
    )
    return (change.AddWorkload(eased),)
