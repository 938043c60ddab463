"""What follows from a snapshot, cycle after cycle, by the engine itself: for previews and for expected starts.

Promises: what is told to end has ended by the next cycle; nothing comes that is not there; nothing is changed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from aliquot.core.model import Amounts, Place, Pod, PodState, Policy, Promise, Snapshot, Workload
from aliquot.core.plan import Plan
from aliquot.service.loop import Planner

MOST_STEPS = 100_000
"""Steps of search in one cycle that is only looked ahead: people wait for the answer."""
MOST_CYCLES = 6
"""Until rest; what follows then is said to follow."""
MOST_ENDS = 50
"""So many ends of stated run times are looked ahead."""


@dataclass(slots=True)
class Course:
    """What happens until nothing moves any more. `is_complete`: it came to that."""

    starts: dict[str, list[Place]] = field(default_factory=dict)
    evicts: dict[str, str] = field(default_factory=dict)
    """By workload, for whom."""
    shares: Mapping[tuple[str, str], Amounts] = field(default_factory=dict)
    waits: int = 0
    is_complete: bool = False
    is_cut_off: bool = False
    """A cycle searched so long that it was cut off: what it did not find may be there."""


def planner(policy: Policy) -> Planner:
    """One for all that is looked ahead from one snapshot: what stays the same is looked at once."""
    return Planner(replace(policy, step_budget=min(policy.step_budget, MOST_STEPS)))


def follow(snapshot: Snapshot, plans: Planner, *, now: datetime) -> Course:
    """Cycle after cycle, until nothing starts or ends. Who starts and is evicted again has done neither."""
    course = Course()
    for turn in range(MOST_CYCLES):
        plan = plans.plan(snapshot, now)
        course.is_cut_off = course.is_cut_off or plan.is_cut_off
        if turn == 0:
            course.shares = plan.fair_share
        course.waits = len(plan.waits)
        if not plan.binds and not plan.evicts:
            course.is_complete = not course.is_cut_off
            return course
        for evict in plan.evicts:
            if course.starts.pop(evict.workload, None) is None:
                course.evicts[evict.workload] = evict.beneficiary
        for bind in plan.binds:
            if course.evicts.pop(bind.workload, None) is None:
                course.starts.setdefault(bind.workload, []).append(bind.place)
        snapshot = after(snapshot, plan, now)
    return course


def after(snapshot: Snapshot, plan: Plan, now: datetime) -> Snapshot:
    """The snapshot when the plan is done and what it told to end has ended."""
    places = {bind.place.pod: bind.place for bind in plan.binds}
    ended = {evict.pod for evict in plan.evicts}
    made = {one.workload: one for one in snapshot.promises}
    promises = tuple(
        Promise(
            workload=one.workload,
            places=one.places,
            made=made[one.workload].made if one.workload in made else now,
            due=one.due,
            expires=one.expires,
            waits_for=one.waits_for,
            may_evict=one.may_evict,
        )
        for one in plan.nominates
    )
    touched = {bind.workload for bind in plan.binds} | {evict.workload for evict in plan.evicts}
    workloads = tuple(
        _moved(one, places, ended, now=now) if one.id in touched else one
        for one in snapshot.workloads
        if not any(pod.state is PodState.RELEASING for pod in one.pods)
    )
    return replace(snapshot, workloads=workloads, promises=promises)


def _moved(workload: Workload, places: Mapping[str, Place], ended: Collection[str], *, now: datetime) -> Workload:
    def pod_after(pod: Pod) -> Pod:
        if pod.id in places:
            place = places[pod.id]
            return replace(pod, state=PodState.RUNNING, node=place.node, shares=place.shares)
        if pod.id in ended:
            return replace(pod, state=PodState.PENDING, node=None, shares=(), release_due=None)
        return pod

    pods = tuple(map(pod_after, workload.pods))
    runs = any(pod.state is PodState.RUNNING for pod in pods)
    return replace(workload, pods=pods, started=(workload.started or now) if runs else None)


def starts(snapshot: Snapshot, plans: Planner, *, now: datetime) -> dict[str, datetime]:
    """When those who wait start at the latest, by workload, if what runs ends when its stated run time is over and what
    then starts does the same. Who is not in it waits for something that states no end, or for too many ends.
    """
    found: dict[str, datetime] = {}
    at = now
    for _ in range(MOST_ENDS):
        plan = plans.plan(snapshot, at)
        for bind in plan.binds:
            found.setdefault(bind.workload, at)
        snapshot = after(snapshot, plan, at)
        ends = {one.id: end for one in snapshot.workloads if (end := _end_of(one)) is not None}
        if not plan.binds and not plan.evicts and not ends:
            break
        if plan.evicts:
            continue
        if not ends:
            break
        at = max(at, min(ends.values()))
        over = {id for id, end in ends.items() if end <= at}
        snapshot = replace(snapshot, workloads=tuple(one for one in snapshot.workloads if one.id not in over))
    return found


def _end_of(workload: Workload) -> datetime | None:
    """When its stated run time is over, of one that runs."""
    if workload.started is None or workload.max_run_time is None:
        return None
    return workload.started + workload.max_run_time
