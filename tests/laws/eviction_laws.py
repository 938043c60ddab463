"""Laws of evictions: each is for one who then has the room, is needed, and is legal before and after."""

from collections.abc import Iterator
from datetime import timedelta

from aliquot.core.model import RESOURCES, PodState, Queue, QueueOrder, ResourceName, Snapshot, Workload
from aliquot.core.plan import Evict, Rule
from tests.laws import amounts, gangs, state
from tests.laws.amounts_laws import ROUNDING
from tests.laws.case import Case, Stage
from tests.laws.gangs import TooHard
from tests.laws.room import Hold, Room

LEGAL = "evictions-are-legal"
NEEDED = "evictions-are-needed"
ACTION_OF = {
    Rule.RECLAIM: "reclaim",
    Rule.PREEMPT: "preempt",
    Rule.CONSOLIDATE: "consolidate",
    Rule.TIME_SLICE: "preempt",
    Rule.STALE_GANG: "stale-gang",
}


def nothing_settled_is_taken(case: Case) -> int:
    """What a cycle starts, moves or promises it does not evict afterwards, and nothing is evicted twice."""
    if len(case.evicted) < len(case.plan.evicts):
        raise case.broken("nothing-settled-is-taken", "a pod is evicted twice")
    running = {hold.pod.id for hold in case.running}
    starters = {one.workload for one in case.plan.binds}
    served = {one.beneficiary for one in case.plan.evicts if one.rule not in state.FOR_NO_ONE}
    for one in case.plan.evicts:
        if one.pod not in running:
            raise case.broken("nothing-settled-is-taken", f"{one.pod} is evicted and does not run")
        if one.workload in starters or one.workload in served:
            raise case.broken("nothing-settled-is-taken", f"{one.workload} gets a place and loses {one.pod}")
    return len(case.plan.evicts)


def evictions_for_no_one_have_their_rule(case: Case) -> int:
    """A stale gang whose grace is over goes whole, and so does what runs where it is drained; nothing else."""
    judged = 0
    for workload in case.workloads.values():
        rules = {one.rule for one in case.plan.evicts if one.workload == workload.id}
        if Rule.STALE_GANG in rules and not _is_stale(case, workload):
            raise case.broken("evictions-for-no-one", f"{workload.id} is released though it is not stale")
        pods = {one.pod for one in case.plan.evicts if one.workload == workload.id and one.rule is Rule.STALE_GANG}
        holds = [hold for hold in case.running if hold.workload.id == workload.id]
        drained = {hold.pod.id for hold in holds if _is_drained(case, hold)}
        told = {one.pod for one in case.plan.evicts if one.workload == workload.id and one.rule is Rule.DRAIN}
        judged += bool(pods) + bool(told)
        if pods and gangs.broken_groups(workload, gangs.standing(workload, without=case.evicted)):
            raise case.broken("evictions-for-no-one", f"{workload.id} is released in part: {sorted(pods)}")
        if told and not drained:
            raise case.broken("evictions-for-no-one", f"{workload.id} is drained and runs where nothing is drained")
        if drained - case.evicted and "allocate" in case.policy.actions and not case.plan.is_cut_off:
            raise case.broken("evictions-for-no-one", f"{sorted(drained - case.evicted)} run on where it is drained")
        is_due = _is_stale(case, workload) and "stale-gang" in case.policy.actions and not case.plan.is_cut_off
        if (
            is_due
            and not pods
            and not _is_mended(case, workload)
            and not {hold.pod.id for hold in holds} <= case.evicted
        ):
            raise case.broken("evictions-for-no-one", f"{workload.id} is stale for {workload.stale_for} and runs on")
    return judged


def _is_stale(case: Case, workload: Workload) -> bool:
    grace = case.policy.stale_grace if workload.stale_grace is None else workload.stale_grace
    if workload.stale_for is None or grace < timedelta(0) or workload.stale_for < grace:
        return False
    return not gangs.is_up(workload, workload.root, gangs.standing(workload))


def _is_mended(case: Case, workload: Workload) -> bool:
    """Whether the pods that it lacks start in this cycle, or are promised places."""
    more = {hold.pod.id for hold in case.of(workload.id)}
    return gangs.is_up(workload, workload.root, gangs.standing(workload, without=case.evicted) | more)


def _is_drained(case: Case, hold: Hold) -> bool:
    node = next((one for one in case.before.nodes if one.id == hold.node), None)
    chain = amounts.chain(case.before, hold.workload.queue)
    return (node is not None and node.is_drained) or any(queue.is_drained for queue in chain)


# Legal.


def evictions_are_legal(case: Case) -> int:
    """Each step, before and after, by priority within a queue and by what queues are due between them."""
    takers = case.takers()
    if not takers:
        return 0
    gone = {one.pod for one in case.plan.evicts if one.rule in state.FOR_NO_ONE}
    for taker, evicts in takers:
        gone |= {one.pod for one in evicts}
        fault = _fault_of_taker(case, taker, evicts) or _fault_of_victims(case, taker, evicts, gone=gone)
        if fault:
            raise case.broken(LEGAL, fault)
    _refuse_too_many(case)
    faults = [_illegal(case, stages) for stages in case.stages()]
    if all(faults):
        raise case.broken(LEGAL, str(faults[0]))
    return len(case.plan.evicts)


def _fault_of_taker(case: Case, taker: Workload, evicts: list[Evict]) -> str | None:
    if taker.never_preempts:
        return f"{taker.id} never preempts, and {evicts[0].pod} is evicted for it"
    if taker.created + taker.preemption_delay > case.now:
        return f"{taker.id} has to wait before it may evict {evicts[0].pod}"
    if not case.of(taker.id):
        return f"{[one.pod for one in evicts]} are evicted for {taker.id}, which gets no place"
    old = next((one for one in case.before.promises if one.workload == taker.id), None)
    if old is not None and old.may_evict and old.expires <= case.now:
        return f"the promise to {taker.id} has expired: it is planned anew without evicting {evicts[0].pod}"
    if any(queue.is_held or queue.is_drained for queue in amounts.chain(case.before, taker.queue)):
        return f"{taker.id} is in a held queue"
    wrong = [one.rule for one in evicts if ACTION_OF[one.rule] not in case.policy.actions]
    return f"{wrong} are no actions of the policy" if wrong else None


def _fault_of_victims(case: Case, taker: Workload, evicts: list[Evict], *, gone: set[str]) -> str | None:
    """`gone`: all that has been evicted so far."""
    placed = {hold.pod.id for hold in case.promised}
    moves = [one for one in evicts if one.rule is Rule.CONSOLIDATE]
    most = case.policy.max_consolidation_victims
    if most is not None and len(moves) > most:
        return f"{len(moves)} pods are moved for {taker.id}, at most {most} may be"
    for one in evicts:
        victim = case.workloads[one.workload]
        if one.rule is Rule.CONSOLIDATE and one.pod not in placed:
            return f"{one.pod} is moved for {taker.id} and gets no new place"
        moved = [hold for hold in case.promised if hold.pod.id in case.evicted and hold.workload.id == one.workload]
        if moved and all(_is_same_place(hold, case) for hold in moved):
            return f"{one.pod} is moved for {taker.id} to where it was"
        if not victim.is_preemptible and not victim.is_semi_preemptible:
            return f"{one.pod} is not preemptible and is evicted for {taker.id}"
        if not victim.is_preemptible and gangs.broken_groups(victim, gangs.standing(victim, without=case.evicted)):
            return f"the minimum of {victim.id} is not preemptible and {one.pod} is evicted for {taker.id}"
        core_goes = not gangs.standing(victim, without=gone)
        if not victim.is_preemptible and core_goes:
            return f"all of semi-preemptible {victim.id} is evicted for {taker.id}"
        if one.rule is not Rule.CONSOLIDATE and core_goes and _is_protected(case, victim, one.rule):
            return f"{victim.id} is protected by its minimum run time, and {one.pod} is evicted for {taker.id}"
    return None


def _is_same_place(hold: Hold, case: Case) -> bool:
    old = next(one for one in case.running if one.pod.id == hold.pod.id)
    return (old.node, old.shares) == (hold.node, hold.shares)


def _is_protected(case: Case, victim: Workload, rule: Rule) -> bool:
    """The nearest value that is set on its side holds."""
    if victim.started is None:
        return False
    for queue in amounts.chain(case.before, victim.queue):
        span = queue.reclaim_min_runtime if rule is Rule.RECLAIM else queue.preempt_min_runtime
        if span is not None:
            return case.now < victim.started + span
    return False


def _refuse_too_many(case: Case) -> None:
    told = [one for one in case.plan.evicts if one.rule not in state.FOR_NO_ONE]
    for budget in case.before.budgets:
        lost = [one.pod for one in told if one.pod in budget.pods]
        if len(lost) > budget.allowed:
            raise case.broken(LEGAL, f"{lost} are evicted, {budget.name} allows {budget.allowed}")
    for id, left in state.evictions_left(case.before, tuple(told)).items():
        before = case.queues[id].evictions_left or 0
        if left < 0 and left < before:
            raise case.broken(LEGAL, f"{before - left} pods of {id} are evicted, it may lose {before}")


def _illegal(case: Case, stages: list[Stage]) -> str | None:
    for stage in stages:
        faults = [_illegal_for(case, stage, part) for part in case.parts_for(stage[0].id)]
        if all(faults):
            return faults[0]
    return None


def _illegal_for(case: Case, stage: Stage, places: list[Hold]) -> str | None:
    taker, evicts, holds = stage
    served = {hold.pod.id for hold in places}
    left = [hold for hold in holds if hold.pod.id not in served]
    for evict, unit in _units(case, evicts, holds):
        if not unit:
            return f"{evict.pod} is evicted for {taker.id} though it is gone"
        left = [hold for hold in left if hold not in unit]
        if evict.rule is not Rule.CONSOLIDATE and not _may_take(case, (taker, places), unit, evict=evict, left=left):
            pods = [hold.pod.id for hold in unit]
            return f"{taker.id} may not take {pods} of {evict.workload} ({evict.rule}: {evict.explanation})"
    return None


def _units(case: Case, evicts: list[Evict], holds: list[Hold]) -> Iterator[tuple[Evict, list[Hold]]]:
    """What is evicted at once: a pod without which the rest of its workload can go on; or all that goes of a workload
    that cannot, or of a tree."""
    there = {hold.pod.id for hold in holds}
    done: set[str] = set()
    for evict in evicts:
        if evict.pod in done:
            continue
        workload = case.workloads[evict.workload]
        pods = {one.pod for one in evicts if one.workload == evict.workload} - done
        gone = {pod.id for pod in workload.pods} - (there - done)
        staying = gangs.standing(workload, without=gone | {evict.pod})
        if workload.gang is None and staying and not gangs.broken_groups(workload, staying):
            pods = {evict.pod}
        done |= pods
        yield evict, [hold for hold in holds if hold.pod.id in pods]


Taker = tuple[Workload, list[Hold]]
"""For whom, and the places that it gets by it."""


def _may_take(case: Case, taker: Taker, unit: list[Hold], *, evict: Evict, left: list[Hold]) -> bool:
    """`left`: what is held when the unit is gone. The taker's own levels do not depend on it."""
    workload, victim = taker[0], unit[0].workload
    is_same = workload.queue == victim.queue
    if evict.rule is Rule.PREEMPT:
        return is_same and workload.priority > victim.priority
    if evict.rule is Rule.TIME_SLICE:
        return is_same and _has_had_its_turn(case, workload, victim)
    return not is_same and any(_has_claim(case, taker, unit, left, by_share=by_share) for by_share in (False, True))


def _has_had_its_turn(case: Case, taker: Workload, victim: Workload) -> bool:
    if case.queues[taker.queue].order is not QueueOrder.LEAST_ATTAINED_SERVICE or victim.started is None:
        return False
    has_run = case.now - victim.started >= case.policy.service_quantum
    return has_run and service_class(case, taker) < service_class(case, victim)


def service_class(case: Case, workload: Workload) -> int:
    """Few classes with doubling thresholds."""
    found, bound = 0, case.policy.service_threshold
    while found < case.policy.service_classes - 1 and workload.attained_milli_seconds >= bound:
        found, bound = found + 1, 2 * bound
    return found


def _has_claim(case: Case, taker: Taker, unit: list[Hold], left: list[Hold], *, by_share: bool) -> bool:
    """A queue that is over what it is due may be left below it by what cannot be split."""
    pool = case.pool_of[unit[0].node]
    due = case.dues[pool].share if by_share else case.dues[pool].quota
    asked = amounts.add(amounts.zero(), *(amounts.charge(hold) for hold in taker[1]))
    least = amounts.asked(case.before, taker[0], pool, [hold.pod for hold in taker[1]])
    asked = {name: min(asked[name], least[name]) for name in RESOURCES}
    levels = amounts.levels(case.before, left, pool)
    charge = amounts.add(amounts.zero(), *(amounts.charge(hold) for hold in unit))
    own = amounts.chain(case.before, taker[0].queue)
    theirs = amounts.chain(case.before, unit[0].workload.queue)
    common = {queue.id for queue in own} & {queue.id for queue in theirs}
    own = [queue for queue in own if queue.id not in common]
    theirs = [queue for queue in theirs if queue.id not in common]

    def counts(queue: Queue, name: ResourceName) -> bool:
        """A quota of null is no bound; a fair share always is."""
        return by_share or amounts.claim(queue, pool, name).quota is not None

    for ground in RESOURCES:
        if not asked[ground] or not charge[ground]:
            continue
        stays = all(
            levels[queue.id][name] + asked[name] <= due[queue.id][name]
            for queue in own
            for name in RESOURCES
            if asked[name] and (name == ground or counts(queue, name))
        )
        keeps = all(
            levels[queue.id][name] >= due[queue.id][name] - ROUNDING
            or levels[queue.id][name] + charge[name] > due[queue.id][name]
            for queue in theirs
            for name in RESOURCES
            if charge[name] and (name == ground or (_is_short(case, pool, name) and counts(queue, name)))
        )
        if stays and keeps:
            return True
    return False


def _is_short(case: Case, pool: str, name: ResourceName) -> bool:
    """Whether the queues want more of it than they are due."""
    due = case.dues[pool]
    return any(due.wanted[id][name] - share[name] > ROUNDING for id, share in due.share.items())


# Needed.


def evictions_are_needed(case: Case) -> int:
    """Put one victim back, and the one for whom it was evicted does not fit."""
    if not case.takers():
        return 0
    try:
        faults = [_needless(case, stages) for stages in case.stages()]
    except TooHard:
        return 0
    if all(faults):
        raise case.broken(NEEDED, str(faults[0]))
    return len(case.takers())


def _needless(case: Case, stages: list[Stage]) -> str | None:
    for stage in stages:
        faults = [_needless_for(case, stage, part) for part in case.parts_for(stage[0].id)]
        if all(faults):
            return faults[0]
    return None


def _needless_for(case: Case, stage: Stage, places: list[Hold]) -> str | None:
    taker, evicts, holds = stage
    moved = {hold.pod.id: hold for hold in case.promised if hold.pod.id in case.evicted}
    gone = {one.pod for one in evicts}
    served = {hold.pod.id for hold in places}
    left = [hold for hold in holds if hold.pod.id not in gone | served]
    if not _would_fit(case, taker, places, left + [moved[id] for id in sorted(gone) if id in moved]):
        return f"{taker.id} does not fit although {sorted(gone)} are evicted for it"
    for back in _to_put_back(case, [hold for hold in holds if hold.pod.id in gone]):
        ids = {hold.pod.id for hold in back}
        movers = [moved[id] for id in sorted(gone - ids) if id in moved]
        if movers and Room(case.before, left + movers + back).overused():
            continue  # What moves takes its place.
        if _would_fit(case, taker, places, left + movers + back):
            return f"{sorted(ids)} need not be evicted for {taker.id}"
    return None


def _to_put_back(case: Case, victims: list[Hold]) -> Iterator[list[Hold]]:
    """One pod, or group, above the minimum of a gang that goes on; the whole of one that does not."""
    for id in sorted({hold.workload.id for hold in victims}):
        own = sorted((hold for hold in victims if hold.workload.id == id), key=lambda hold: hold.pod.index)
        workload = own[0].workload
        staying = gangs.standing(workload, without=case.evicted)
        is_gone = not any(pod.id in staying for pod in workload.pods if pod.state is PodState.RUNNING)
        if is_gone:
            yield own
            continue
        for hold in own:
            if not gangs.broken_groups(workload, staying | {hold.pod.id}):
                yield [hold]
        if len(own) > 1:
            yield own


def _would_fit(case: Case, taker: Workload, places: list[Hold], holds: list[Hold]) -> bool:
    """Whether the pods for which room was made find places beside these, in the pool where they found them."""
    pods = sorted((hold.pod for hold in places), key=lambda pod: (-pod.priority, pod.index, pod.id))
    pool = case.pool_of[places[0].node]
    levels = amounts.levels(case.before, holds, pool)
    charge = amounts.add(amounts.zero(), *(amounts.charge(hold) for hold in places))
    for queue in amounts.chain(case.before, taker.queue):
        limits = {name: amounts.claim(queue, pool, name).limit for name in RESOURCES if charge[name]}
        if any(most is not None and levels[queue.id][name] + charge[name] > most for name, most in limits.items()):
            return False
    here = [hold for hold in holds if case.pool_of.get(hold.node) == pool]
    return gangs.place(Room(_only(case, pool), here), taker, pods) is not None


def _only(case: Case, pool: str) -> Snapshot:
    nodes = tuple(node for node in case.before.nodes if node.pool == pool)
    return Snapshot(nodes=nodes, topologies=case.before.topologies)


def devices_in_use(case: Case) -> tuple[int, int]:
    """How many devices are in use before the evictions, and when all that was told to end has ended and what is
    promised has begun: evictions should not leave more of them idle."""

    def used(holds: list[Hold]) -> int:
        return len({share.device for hold in holds for share in hold.shares})

    return used([*case.running, *case.stuck, *case.bound]), used(case.later_held)


LAWS = (
    nothing_settled_is_taken,
    evictions_for_no_one_have_their_rule,
    evictions_are_legal,
    evictions_are_needed,
)
