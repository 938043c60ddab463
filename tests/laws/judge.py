"""Judges one cycle of a world by all laws. Everything is counted, so that a test can tell that there was something."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aliquot.core.plan import Plan
from tests.laws import amounts_laws, eviction_laws, reason_laws, sameness, suggestion_laws
from tests.laws.case import Case
from tests.laws.worlds import World

Law = Callable[[Case], int]
"""Raises LawBroken, or says how many things it judged."""

PLAIN: tuple[Law, ...] = (*amounts_laws.LAWS, *eviction_laws.LAWS, *reason_laws.LAWS)
"""Laws that look at one plan only."""
LAWS: tuple[Law, ...] = (*PLAIN, *sameness.LAWS, *suggestion_laws.LAWS)
"""All laws of a single cycle."""


@dataclass
class Verdict:
    """What was judged, and how often."""

    judged: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Verdict") -> None:
        """Add what was judged elsewhere."""
        self.judged.update(other.judged)


def judge(world: World, laws: Iterable[Law] = LAWS) -> Verdict:
    """Plan a world and judge the plan. Raises LawBroken."""
    case = case_of(world)
    verdict = judge_plan(case, laws)
    cut = sameness.cut_off(case)
    if cut is not None:
        judged = judge_plan(cut, PLAIN).judged
        verdict.add(Verdict(Counter({f"cut off: {name}": count for name, count in judged.items()})))
    return verdict


def case_of(world: World) -> Case:
    """A world with what the engine plans for it."""
    return Case(world, sameness.plan_of(world))


def judge_plan(case: Case, laws: Iterable[Law] = PLAIN) -> Verdict:
    """Judge one plan by these laws."""
    verdict = Verdict()
    for law in laws:
        verdict.judged[law.__name__] += law(case)
    verdict.judged.update(outcome(case))
    return verdict


def outcome(case: Case) -> Counter[str]:
    """What the plan does, for the statistics."""
    found: Counter[str] = Counter(cycles=1)
    plan: Plan = case.plan
    found.update({"binds": len(plan.binds), "promises": len(plan.nominates), "waits": len(plan.waits)})
    for rule, count in Counter(one.rule.value for one in plan.evicts).items():
        found[f"evicted by {rule}"] += count
    if case.takers():
        before, after = eviction_laws.devices_in_use(case)
        found["evicting cycles"] += 1
        found["evicting cycles that leave fewer devices in use"] += after < before
    return found
