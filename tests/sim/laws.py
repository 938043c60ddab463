"""Judges every cycle of a simulated cluster by the laws of `tests.laws`, and by what only several cycles together show.

`Watch` raises `LawBroken` at the first cycle that breaks a law; it counts what it judged, so that a test can tell that
there was something to judge.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from aliquot.core import schedule
from aliquot.core.model import PodState, Policy, Promise, Workload
from aliquot.core.plan import Code
from aliquot.sim.cluster import Cycle
from aliquot.sim.world import World
from tests.laws import judge, rest, worlds
from tests.laws.case import Case, LawBroken
from tests.laws.judge import Law

LAWS: tuple[Law, ...] = judge.PLAIN
KEPT = "promises-are-kept"
KEPT_WORLD = "a-kept-world-plans-like-a-new-one"
BARRED = frozenset({Code.NO_SUCH_QUEUE, Code.BACKING_OFF, Code.POOL_EMPTY, Code.QUEUE_LIMIT, Code.LARGER_THAN_POOL})
"""Who waits for one of these can have no promise."""


@dataclass
class Watch:
    """Judges every cycle of a cluster; circles and promises always."""

    policy: Policy = field(default_factory=Policy)
    laws: Iterable[Law] = LAWS
    judged: Counter[str] = field(default_factory=Counter)
    _outside: int = -1
    _takes: rest.Takes = field(default_factory=rest.Takes)

    def __call__(self, cycle: Cycle) -> None:
        """Judge one cycle."""
        world = worlds.World(0, frozenset(), cycle.before, self.policy, cycle.now)
        case = Case(world, cycle.plan)
        self.judged.update(judge.judge_plan(case, self.laws).judged)
        self.judged[KEPT] += promises_are_kept(case)
        self.judged[KEPT_WORLD] += a_kept_world_plans_like_a_new_one(case)
        if cycle.outside_changes != self._outside:
            self._outside = cycle.outside_changes
            self._takes = rest.Takes()
        self._takes.watch(cycle.plan)


def promises_are_kept(case: Case) -> int:
    """A promise stands until its workload starts, it expires, or its place is no longer there; or until somebody takes
    its room who gets places in this very cycle."""
    standing = {one.workload: one for one in case.plan.nominates}
    starts = {one.workload for one in case.plan.binds}
    waits = {one.workload: one.reason.code for one in case.plan.waits}
    old = {one.workload: one.places for one in case.before.promises}
    gained = starts | {one.workload for one in case.plan.nominates if old.get(one.workload) != one.places}
    judged = 0
    for promise in case.before.promises:
        holder = case.workloads.get(promise.workload)
        if holder is None or not _is_sound(case, promise, holder) or waits.get(holder.id) in BARRED:
            continue
        judged += 1
        if holder.id not in starts and holder.id not in standing and not gained - {holder.id}:
            raise LawBroken(KEPT, f"the promise to {holder.id} is gone, and nobody took its place")
    return judged


def a_kept_world_plans_like_a_new_one(case: Case) -> int:
    """The loop keeps its world from cycle to cycle: the plan is that of a world built anew."""
    if schedule.schedule(case.before, case.policy, case.now) != case.plan:
        raise LawBroken(KEPT_WORLD, "built anew it plans something else")
    return 1


def _is_sound(case: Case, promise: Promise, holder: Workload) -> bool:
    """Not over, for pods that wait, and where something may start."""
    waiting = {pod.id for pod in holder.pods if pod.state is PodState.PENDING}
    if promise.expires <= case.now or {place.pod for place in promise.places} != waiting:
        return False
    usable = {node.id for node in case.before.nodes if node.is_ready and not node.is_cordoned}
    offered = {one.id for node in case.before.nodes if node.id in usable for one in node.devices if not one.withheld}
    return all(
        place.node in usable and all(share.device in offered for share in place.shares) for place in promise.places
    )


def ledger_is_even(world: World) -> None:
    """What the ledger adds up to is what is held."""
    sums: Counter[str] = Counter()
    for entry in world.ledger:
        sums[entry.device] += entry.milli
    held = dict(world.held_by_device())
    if {id: amount for id, amount in sums.items() if amount} != held:
        raise LawBroken("the-ledger-is-even", f"the ledger says {dict(sums)}, held are {held}")
