"""The law of rest: left alone a cluster comes to rest, and on the way no two workloads ever evict each other.

A run goes on from plan to plan for at most 200 cycles. What was told to end is gone at the next one, promises are kept,
and every cycle is judged like any other. It ends at the first state that was there before, times aside: then nothing
new will ever happen, so nothing may have happened in between.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from aliquot.core.model import PodState, Snapshot
from aliquot.core.plan import Plan, Rule
from tests.laws import judge, sameness, state
from tests.laws.case import Case, LawBroken
from tests.laws.judge import Law, Verdict
from tests.laws.worlds import World

MOST_CYCLES = 200
STEP = timedelta(seconds=10)
LAW = "it-comes-to-rest"
CIRCLE = "no-circle-of-evictions"


@dataclass
class Takes:
    """Who took from whom since the last change from outside. Time slices are apart; so are moves, in which nobody loses
    its turn: that these end is what the law of rest says."""

    taken: dict[str, set[str]] = field(default_factory=dict)

    def watch(self, plan: Plan) -> None:
        """Add the evictions of a cycle. Raises LawBroken where they close a circle."""
        apart = {*state.FOR_NO_ONE, Rule.TIME_SLICE, Rule.CONSOLIDATE}
        for taker, victim in sorted({(one.beneficiary, one.workload) for one in plan.evicts if one.rule not in apart}):
            if taker in self._reach(victim):
                raise LawBroken(CIRCLE, f"{taker} evicts {victim}, for which it was evicted before, over others or not")
            self.taken.setdefault(taker, set()).add(victim)

    def _reach(self, start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            more = self.taken.get(todo.pop(), set()) - seen
            seen |= more
            todo += sorted(more)
        return seen


def judge_run(
    world: World, laws: Iterable[Law] = judge.PLAIN, *, planner: Callable[[World], Plan] = sameness.plan_of
) -> Verdict:
    """Live through the cycles of a world that is left alone. Raises LawBroken."""
    verdict, takes = Verdict(), Takes()
    seen: dict[Hashable, int] = {}
    busy: set[Hashable] = set()
    last_busy, now, taken = -1, world.now, world.snapshot
    for number in range(MOST_CYCLES):
        at = replace(world, snapshot=taken, now=now)
        plan = planner(at)
        case = Case(at, plan)
        try:
            verdict.add(judge.judge_plan(case, laws))
            takes.watch(plan)
        except LawBroken as broken:
            raise LawBroken(broken.law, f"in cycle {number}: {broken}") from broken
        key, is_busy = state_of(taken), bool(plan.binds or plan.evicts)
        before_then = seen.get(key)
        if before_then is not None and last_busy >= before_then and (not is_busy or key in busy):
            raise LawBroken(LAW, f"cycle {number} begins as cycle {before_then} did; {last_busy} started or ended some")
        if before_then is not None and not is_busy:
            verdict.judged["cycles to rest"] += number
            break
        seen[key] = number
        busy |= {key} if is_busy else set()
        if any(one.rule is Rule.TIME_SLICE for one in plan.evicts):
            seen.clear()  # Turns are taken for ever: what was before may come again.
        last_busy = number if is_busy else last_busy
        before, taken = taken, case.after
        taken = state.later(taken, before=before, by=STEP)
        now += STEP
    verdict.judged["runs"] += 1
    return verdict


def state_of(snapshot: Snapshot) -> Hashable:
    """What of a snapshot can make a difference, times and counters of what may be evicted aside."""
    pods = tuple(
        (one.id, pod.id, pod.state, pod.node, pod.shares)
        for one in snapshot.workloads
        for pod in one.pods
        if pod.state is not PodState.PENDING
    )
    promises = tuple(sorted((one.workload, one.places, one.waits_for, one.may_evict) for one in snapshot.promises))
    return pods, promises
