"""The laws of a cycle, judged from outside: written from the scheduling rules, never from the engine.

`Watch` follows a simulated cluster and raises `LawBroken` at the first cycle that breaks one; it counts what it judged,
so that a test can tell that there was something to judge.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from aliquot.core.model import PodState, Promise, Snapshot, Workload
from aliquot.core.plan import Code, Evict, Plan
from aliquot.sim.cluster import Cycle
from aliquot.sim.world import World
from tests.sim import rooms
from tests.sim.reasons import Facts, judge_reason
from tests.sim.rooms import RESOURCES, Hold, Room, Vector

ROUNDING = 3
"""What is due is rounded down to whole units at each of three levels of the tree; the laws know only fractions."""
BARRED = frozenset(
    {
        Code.NO_SUCH_QUEUE,
        Code.BACKING_OFF,
        Code.POOL_EMPTY,
        Code.QUEUE_LIMIT,
        Code.NON_PREEMPTIBLE_OVER_QUOTA,
        Code.LARGER_THAN_ANY_NODE,
        Code.LARGER_THAN_POOL,
    }
)


Law = Callable[["Case"], int]
"""Raises LawBroken, or says how many things it judged."""


class LawBroken(AssertionError):
    """A cycle did what the rules forbid."""


@dataclass
class Watch:
    """Judges every cycle of a cluster, and what only several cycles together can show."""

    laws: "tuple[Law, ...] | None" = None
    """Which are judged, all if none are named; circles always are."""
    judged: dict[str, int] = field(default_factory=dict)
    _outside: int = -1
    _takes: dict[str, set[str]] = field(default_factory=dict)

    def __call__(self, cycle: Cycle) -> None:
        """Judge one cycle."""
        case = Case(cycle)
        for law in LAWS if self.laws is None else self.laws:
            name = law.__name__
            self.judged[name] = self.judged.get(name, 0) + law(case)
        self._no_circle(cycle)

    def _no_circle(self, cycle: Cycle) -> None:
        """Since the last change from outside nobody has taken from somebody who, over others or not, took from it."""
        if cycle.outside_changes != self._outside:
            self._outside = cycle.outside_changes
            self._takes = {}
        for taker, victim in {(one.beneficiary, one.workload) for one in cycle.plan.evicts}:
            if taker in self._reach(victim):
                raise LawBroken(f"{cycle.now}: {taker} evicts {victim}, which had evicted for itself from {taker}")
            self._takes.setdefault(taker, set()).add(victim)

    def _reach(self, start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for victim in self._takes.get(todo.pop(), set()) - seen:
                seen.add(victim)
                todo.append(victim)
        return seen


class Case:
    """One cycle with what all laws need."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.before: Snapshot = cycle.before
        self.plan: Plan = cycle.plan
        self.now: datetime = cycle.now
        self.workloads = {one.id: one for one in cycle.before.workloads}
        self.running = rooms.held(cycle.before, PodState.RUNNING)
        self.releasing = rooms.held(cycle.before, PodState.RELEASING)
        self.evicted = {one.pod for one in cycle.plan.evicts}
        self.bound = [
            hold for one in cycle.plan.binds for hold in rooms.at_places(self.workloads[one.workload], [one.place])
        ]
        self.promised = [
            hold for one in cycle.plan.nominates for hold in rooms.at_places(self.workloads[one.workload], one.places)
        ]
        self._due: rooms.Due | None = None

    @property
    def due(self) -> rooms.Due:
        """What each queue is due; only where it is asked for, as it takes a while."""
        if self._due is None:
            self._due = rooms.due(self.before)
        return self._due

    def broken(self, what: str) -> LawBroken:
        """The error to raise."""
        return LawBroken(f"{self.now}: {what}")

    def groups(self) -> list[tuple[Workload, list[Evict]]]:
        """Who had pods evicted for it, in the order of the plan, with these pods."""
        order = list(dict.fromkeys(one.beneficiary for one in self.plan.evicts))
        return [(self.workloads[id], [one for one in self.plan.evicts if one.beneficiary == id]) for id in order]

    def of(self, workload: str) -> list[Hold]:
        """Where a workload is bound or promised in this plan."""
        return [hold for hold in (*self.bound, *self.promised) if hold.workload.id == workload]

    def stages(self) -> Iterator[list[tuple[Workload, list[Evict], list[Hold]]]]:
        """For each group what counts as held just before it; the plan does not say the whole order of a cycle, so there
        are several readings, and a law is kept if one of them keeps it."""
        takers = {workload.id for workload, _ in self.groups()}
        old = {one.workload: one.places for one in self.before.promises}
        kept = {one.workload for one in self.plan.nominates if old.get(one.workload) == one.places} - takers
        fresh = {one.workload for one in self.plan.nominates} - kept - takers
        dropped = {id for id in old if id in self.workloads} - {one.workload for one in self.plan.nominates}
        dropped -= {one.workload for one in self.plan.binds}
        lost = [
            hold
            for one in self.before.promises
            if one.workload in dropped and _is_sound(self.before, one, self.now)
            for hold in rooms.at_places(self.workloads[one.workload], one.places)
        ]
        base = [*self.running, *(hold for hold in self.bound if hold.workload.id not in takers)]
        base += [hold for hold in self.promised if hold.workload.id in kept]
        new = [hold for hold in self.promised if hold.workload.id in fresh]
        for extra in dict.fromkeys(itertools.product((False, True), (False, True))):
            start = base + (lost if extra[0] and lost else []) + (new if extra[1] and new else [])
            yield self._walk(start)
            if not lost and not new:
                return

    def _walk(self, start: list[Hold]) -> list[tuple[Workload, list[Evict], list[Hold]]]:
        stages = []
        holds = list(start)
        for taker, evicts in self.groups():
            stages.append((taker, evicts, holds))
            gone = {one.pod for one in evicts}
            holds = [hold for hold in holds if hold.pod.id not in gone] + self.of(taker.id)
        return stages


# Amounts.


def nothing_is_overused(case: Case) -> int:
    """No device and no node ever holds more than it has, and what is promised fits once what ends has ended."""
    after = case.cycle.after
    held = rooms.held(after, PodState.RUNNING, PodState.RELEASING)
    if wrong := Room(after, held).overused():
        raise case.broken(f"more is held than there is of {wrong}")
    later = [hold for hold in case.running if hold.pod.id not in case.evicted] + case.bound + case.promised
    if wrong := Room(case.before, later).overused():
        raise case.broken(f"more is promised than there will be of {wrong}")
    for hold in (*case.bound, *case.promised):
        node = next(one for one in case.before.nodes if one.id == hold.node)
        devices = {one.id: one for one in node.devices}
        used = [devices[share.device] for share in hold.shares]
        if node.is_cordoned or not node.is_ready or any(one.withheld for one in used):
            raise case.broken(f"{hold.pod.id} goes where nothing new may start")
        if len({one.id for one in used}) < len(used):
            raise case.broken(f"{hold.pod.id} gets two shares of one device")
    return len(held)


def limits_hold(case: Case) -> int:
    """No queue holds more than its limit; where the limit was lowered below, it holds no more than before."""
    before = rooms.levels(case.before, rooms.held(case.before, PodState.RUNNING, PodState.RELEASING))
    after = rooms.levels(case.before, rooms.held(case.cycle.after, PodState.RUNNING, PodState.RELEASING))
    _refuse_over(case, before, after, bound=rooms.limit, what="limit")
    return sum(rooms.limit(queue, "gpu") is not None for queue in case.before.queues)


def non_preemptible_work_stays_within_quota(case: Case) -> int:
    """And it is never evicted."""
    for one in case.plan.evicts:
        if not case.workloads[one.workload].is_preemptible:
            raise case.broken(f"{one.workload} is not preemptible and is evicted for {one.beneficiary}")

    def fixed(snapshot: Snapshot) -> list[Hold]:
        holds = rooms.held(snapshot, PodState.RUNNING, PodState.RELEASING)
        return [hold for hold in holds if not hold.workload.is_preemptible]

    before, after = rooms.levels(case.before, fixed(case.before)), rooms.levels(case.before, fixed(case.cycle.after))
    _refuse_over(case, before, after, bound=rooms.quota, what="quota by work that may not be evicted")
    return len(fixed(case.cycle.after))


def _refuse_over(case: Case, before: dict[str, Vector], after: dict[str, Vector], *, bound: object, what: str) -> None:
    assert callable(bound)
    for queue in case.before.queues:
        for resource in RESOURCES:
            most = bound(queue, resource)
            held = after[queue.id][resource]
            if most is not None and held > max(most, before[queue.id][resource]):
                raise case.broken(f"{queue.id} holds {held} {resource}, over its {what} of {most}")


def gangs_are_whole(case: Case) -> int:
    """All that waits of a workload starts, or none; what runs is never left below its minimum."""
    for workload in case.workloads.values():
        pending = {pod.id for pod in workload.pods if pod.state is PodState.PENDING}
        starts = [hold.pod.id for hold in case.bound if hold.workload.id == workload.id]
        promised = [hold.pod.id for hold in case.promised if hold.workload.id == workload.id]
        for pods in (starts, promised):
            if pods and (set(pods) != pending or len(pods) != len(pending)):
                raise case.broken(f"of {workload.id} only {pods} of {sorted(pending)} get places")
    for workload in case.cycle.after.workloads:
        running = sum(pod.state is PodState.RUNNING for pod in workload.pods)
        if 0 < running < workload.min_pods:
            raise case.broken(f"{workload.id} is left with {running} of at least {workload.min_pods} pods")
    return len({one.workload for one in case.plan.binds})


# Evictions.


def evictions_are_legal(case: Case) -> int:
    """Each step, before and after, by priority within a queue and by what queues are due between them."""
    if not case.plan.evicts:
        return 0
    faults = [_illegal(case, stages) for stages in case.stages()]
    if all(faults):
        raise case.broken(str(faults[0]))
    return len(case.plan.evicts)


def _illegal(case: Case, stages: list[tuple[Workload, list[Evict], list[Hold]]]) -> str | None:
    for taker, evicts, holds in stages:
        left = list(holds)
        for evict in evicts:
            victim = next((hold for hold in left if hold.pod.id == evict.pod), None)
            if victim is None:
                return f"{evict.pod} is evicted for {taker.id} though it does not run"
            left.remove(victim)
            if not _may_take(case, taker, victim, left=left):
                return f"{taker.id} may not take {evict.pod} of {evict.workload} ({evict.rule}: {evict.explanation})"
    return None


def _may_take(case: Case, taker: Workload, victim: Hold, *, left: list[Hold]) -> bool:
    """`left`: what is held when the victim is gone. The taker's own levels do not depend on it."""
    if not victim.workload.is_preemptible:
        return False
    if taker.queue == victim.workload.queue:
        return taker.priority > victim.workload.priority
    asked = rooms.ask(case.before, taker)
    levels = rooms.levels(case.before, left)
    own = rooms.chain(case.before, taker.queue)
    theirs = rooms.chain(case.before, victim.workload.queue)
    common = {queue.id for queue in own} & {queue.id for queue in theirs}
    for due in (case.due.quota, case.due.share):
        for ground in RESOURCES:
            if not asked[ground] or not victim.charge()[ground]:
                continue
            stays = [
                levels[queue.id][name] + asked[name] <= due[queue.id][name]
                for queue in own
                if queue.id not in common
                for name in RESOURCES
                if asked[name] and (name == ground or _counts(queue, name, due is case.due.share))
            ]
            keeps = [
                levels[queue.id][name] >= due[queue.id][name] - ROUNDING
                for queue in theirs
                if queue.id not in common
                for name in RESOURCES
                if victim.charge()[name]
                and (name == ground or (_is_short(case, name) and _counts(queue, name, due is case.due.share)))
            ]
            if all(stays) and all(keeps):
                return True
    return False


def _counts(queue: object, resource: str, is_share: object) -> bool:
    """A quota of null is no bound; a fair share always is."""
    return bool(is_share) or rooms.quota(queue, resource) is not None  # type: ignore[arg-type]  # a Queue


def _is_short(case: Case, resource: str) -> bool:
    """Whether the queues want more of it than they are due."""
    return any(case.due.wanted[id][resource] - share[resource] > ROUNDING for id, share in case.due.share.items())


def evictions_are_needed(case: Case) -> int:
    """Put one victim back, and the one for whom it was evicted does not fit."""
    if not case.plan.evicts:
        return 0
    faults = [_needless(case, stages) for stages in case.stages()]
    if all(faults):
        raise case.broken(str(faults[0]))
    return len(case.groups())


def _needless(case: Case, stages: list[tuple[Workload, list[Evict], list[Hold]]]) -> str | None:
    for taker, evicts, holds in stages:
        gone = {one.pod for one in evicts}
        left = [hold for hold in holds if hold.pod.id not in gone]
        places = case.of(taker.id)
        if not places:
            return f"pods are evicted for {taker.id}, which gets no place"
        if not _would_fit(case, taker, places, left):
            return f"{taker.id} does not fit although {sorted(gone)} are evicted for it"
        for back in _to_put_back(case, [hold for hold in holds if hold.pod.id in gone]):
            if _would_fit(case, taker, places, left + back):
                return f"{[hold.pod.id for hold in back]} need not be evicted for {taker.id}"
    return None


def _to_put_back(case: Case, victims: list[Hold]) -> Iterator[list[Hold]]:
    """One pod above the minimum of a gang that goes on, or the core of one that does not."""
    for id in sorted({hold.workload.id for hold in victims}):
        own = sorted((hold for hold in victims if hold.workload.id == id), key=lambda hold: hold.pod.index)
        running = [hold for hold in case.running if hold.workload.id == id]
        if len(own) < len(running):
            yield from ([hold] for hold in own)
        else:
            yield own[: own[0].workload.min_pods]


def _would_fit(case: Case, taker: Workload, places: list[Hold], holds: list[Hold]) -> bool:
    requests = [pod.request for pod in taker.pods if pod.state is PodState.PENDING]
    levels = rooms.levels(case.before, holds)
    charge = rooms.add(hold.charge() for hold in places)
    for queue in rooms.chain(case.before, taker.queue):
        for name in RESOURCES:
            most = rooms.limit(queue, name)
            if most is not None and charge[name] and levels[queue.id][name] + charge[name] > most:
                return False
    return Room(case.before, holds).fits(requests)


def nothing_settled_is_taken(case: Case) -> int:
    """What a cycle starts or promises it does not evict, and nothing is evicted twice."""
    settled = {one.workload for one in case.plan.binds} | {one.workload for one in case.plan.nominates}
    takers = {one.beneficiary for one in case.plan.evicts}
    for one in case.plan.evicts:
        if one.workload in takers or (one.workload in settled and one.pod not in _surplus(case)):
            raise case.broken(f"{one.workload} gets a place and loses {one.pod} in the same cycle")
    if len(case.evicted) < len(case.plan.evicts):
        raise case.broken("a pod is evicted twice")
    return len(case.plan.evicts)


def _surplus(case: Case) -> set[str]:
    """Pods of workloads that wait with others of their pods: an old promise of these may stand."""
    old = {one.workload for one in case.before.promises}
    return {pod.id for id in old if id in case.workloads for pod in case.workloads[id].pods}


# Promises.


def promises_are_kept(case: Case) -> int:
    """A promise stands until its workload starts, it expires, or its place is no longer there; or somebody takes it who
    could evict the holder."""
    standing = {one.workload: one for one in case.plan.nominates}
    starts = {one.workload for one in case.plan.binds}
    waits = {one.workload: one.reason.code for one in case.plan.waits}
    judged = 0
    for promise in case.before.promises:
        holder = case.workloads[promise.workload]
        if not _is_sound(case.before, promise, case.now) or waits.get(holder.id) in BARRED:
            continue
        judged += 1
        if holder.id in starts:
            continue
        now = standing.get(holder.id)
        if now is not None and (now.places, now.due, now.expires) == (promise.places, promise.due, promise.expires):
            continue
        if not _was_taken(case, promise, holder):
            raise case.broken(f"the promise to {holder.id} is gone, and nobody who could evict it took its place")
    return judged


def _was_taken(case: Case, promise: Promise, holder: Workload) -> bool:
    old = {one.workload: one.places for one in case.before.promises}
    gained = {hold.workload.id for hold in case.bound}
    gained |= {one.workload for one in case.plan.nominates if old.get(one.workload) != one.places}
    gained.discard(holder.id)
    kept = [hold for hold in case.promised if hold.workload.id not in gained]
    held = rooms.at_places(holder, promise.places)
    readings = (case.running + kept, [one for one in case.running if one.pod.id not in case.evicted] + kept)
    return any(
        _may_take(case, case.workloads[id], replace(hold), left=left)
        for id in sorted(gained)
        for hold in held
        for left in readings
    )


def _is_sound(snapshot: Snapshot, promise: Promise, now: datetime) -> bool:
    """Not over, for just the pods that wait, and where something may start."""
    workload = next((one for one in snapshot.workloads if one.id == promise.workload), None)
    if workload is None or promise.expires <= now:
        return False
    if {place.pod for place in promise.places} != {pod.id for pod in workload.pods if pod.state is PodState.PENDING}:
        return False
    usable = {node.id for node in snapshot.nodes if node.is_ready and not node.is_cordoned}
    offered = {one.id for node in snapshot.nodes if node.id in usable for one in node.devices if one.withheld is None}
    return all(
        place.node in usable and all(share.device in offered for share in place.shares) for place in promise.places
    )


# Reasons.


def every_reason_is_true(case: Case) -> int:
    """Who neither starts nor runs has one reason, which the numbers prove; and what could start has started."""
    starts = {one.workload for one in case.plan.binds}
    pending = {one.id for one in case.workloads.values() if any(pod.state is PodState.PENDING for pod in one.pods)}
    told = [one.workload for one in case.plan.waits]
    if sorted(told) != sorted(pending - starts):
        raise case.broken(f"reasons are given for {sorted(told)}, but {sorted(pending - starts)} wait")
    if sorted(one.position for one in case.plan.waits) != list(range(1, len(told) + 1)):
        raise case.broken("the positions are not 1, 2, 3, ...")
    facts = Facts(
        before=case.before,
        held=case.running + case.releasing + case.bound,
        later=[hold for hold in case.running if hold.pod.id not in case.evicted] + case.bound + case.promised,
        promised={one.workload for one in case.plan.nominates},
        is_moved=_has_moved_promises(case),
        shares=lambda: case.due.share,
    )
    for wait in case.plan.waits:
        fault = judge_reason(facts, case.workloads[wait.workload], wait.reason, case.now)
        if fault is not None:
            raise case.broken(f"{wait.workload} waits: {wait.reason.code}: {wait.reason.message!r}, but {fault}")
    return len(told)


def _has_moved_promises(case: Case) -> bool:
    """Whether promised room became free in this cycle, after others had been looked at."""
    standing = {one.workload: one.places for one in case.plan.nominates}
    starts: dict[str, set[object]] = {}
    for one in case.plan.binds:
        starts.setdefault(one.workload, set()).add(one.place)
    return any(
        standing.get(one.workload) != one.places and starts.get(one.workload) != set(one.places)
        for one in case.before.promises
    )


LAWS = (
    nothing_is_overused,
    limits_hold,
    non_preemptible_work_stays_within_quota,
    gangs_are_whole,
    evictions_are_legal,
    evictions_are_needed,
    nothing_settled_is_taken,
    promises_are_kept,
    every_reason_is_true,
)


def ledger_is_even(world: World) -> None:
    """What the ledger adds up to is what is held."""
    sums: Counter[str] = Counter()
    for entry in world.ledger:
        sums[entry.device] += entry.milli
    held = dict(world.held_by_device())
    if {id: amount for id, amount in sums.items() if amount} != held:
        raise LawBroken(f"the ledger says {dict(sums)}, held are {held}")
