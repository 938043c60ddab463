"""What a perfect machine makes of a plan, and what time does to a snapshot: how the laws go on to the next cycle."""

from dataclasses import replace
from datetime import datetime, timedelta

from aliquot.core.model import Pod, PodState, Promise, Snapshot, Workload
from aliquot.core.plan import Evict, Nominate, Plan, Rule
from tests.laws import gangs

FOR_NO_ONE = frozenset({Rule.STALE_GANG, Rule.DRAIN})
"""Evictions that make room for nobody."""


def carry_out(snapshot: Snapshot, plan: Plan, now: datetime) -> Snapshot:
    """The snapshot once the plan is done: bound pods run, evicted ones are ending, promises are kept."""
    places = {one.place.pod: one.place for one in plan.binds}
    told = {one.pod for one in plan.evicts}

    def after(pod: Pod) -> Pod:
        if pod.id in places:
            return replace(pod, state=PodState.RUNNING, node=places[pod.id].node, shares=places[pod.id].shares)
        return replace(pod, state=PodState.RELEASING) if pod.id in told else pod

    def carried(workload: Workload) -> Workload:
        if not any(pod.id in places or pod.id in told for pod in workload.pods):
            return workload
        is_start = all(pod.state is not PodState.RUNNING for pod in workload.pods)
        pods = tuple(after(pod) for pod in workload.pods)
        started = now if is_start and any(pod.id in places for pod in pods) else workload.started
        return replace(workload, pods=pods, started=started)

    left = dict(evictions_left(snapshot, plan.evicts))
    queues = tuple(replace(one, evictions_left=left[one.id]) if one.id in left else one for one in snapshot.queues)
    budgets = tuple(replace(one, allowed=max(0, one.allowed - len(one.pods & told))) for one in snapshot.budgets)
    return replace(
        snapshot,
        queues=queues,
        budgets=budgets,
        workloads=tuple(carried(one) for one in snapshot.workloads),
        promises=tuple(stored(one, now) for one in plan.nominates),
    )


def stored(nominate: Nominate, now: datetime) -> Promise:
    """A promise as it is kept."""
    return Promise(
        nominate.workload,
        nominate.places,
        made=min(now, nominate.due - (nominate.expires - nominate.due)),
        due=nominate.due,
        expires=nominate.expires,
        waits_for=nominate.waits_for,
        may_evict=nominate.may_evict,
    )


def evictions_left(snapshot: Snapshot, evicts: tuple[Evict, ...]) -> dict[str, int]:
    """How many evictions for others each queue that has a limit may still bear."""
    parents = {one.id: one.parent for one in snapshot.queues}
    home = {one.id: one.queue for one in snapshot.workloads}
    left = {one.id: one.evictions_left for one in snapshot.queues if one.evictions_left is not None}
    for evict in evicts:
        at: str | None = home[evict.workload]
        while at is not None and at in parents and evict.rule not in FOR_NO_ONE:
            if at in left:
                left[at] -= 1
            at = parents[at]
    return left


def later(snapshot: Snapshot, *, before: Snapshot, by: timedelta) -> Snapshot:
    """Some time on: what was ending before is gone and waits again; gangs that lack pods have lacked them longer."""
    ending = {
        pod.id for one in before.workloads for pod in one.pods if pod.state is PodState.RELEASING and not pod.is_stuck
    }
    return replace(snapshot, workloads=tuple(_later(one, ending, by) for one in snapshot.workloads))


def _later(workload: Workload, ending: set[str], by: timedelta) -> Workload:
    pods = tuple(
        replace(pod, state=PodState.PENDING, node=None, shares=(), release_due=None) if pod.id in ending else pod
        for pod in workload.pods
    )
    if pods != workload.pods:
        workload = replace(workload, pods=pods)
    has_run = any(pod.state is PodState.RUNNING for pod in pods)
    holds = has_run or any(pod.state is PodState.RELEASING for pod in pods)
    if not holds and workload.started is not None:
        workload = replace(workload, started=None, saved=None)
    is_stale = has_run and bool(gangs.broken_groups(workload, gangs.standing(workload)))
    stale_for = (workload.stale_for or timedelta(0)) + by if is_stale else None
    return workload if stale_for == workload.stale_for else replace(workload, stale_for=stale_for)
