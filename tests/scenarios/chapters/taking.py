"""Taking from others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from aliquot.core import asks, gang, schedule, victims
from aliquot.core.asks import Ask, Unit
from aliquot.core.consolidation import Consolidation
from aliquot.core.cycle import Cycle
from aliquot.core.eviction import Search
from aliquot.core.model import Pod, Workload
from aliquot.core.plan import Evict, Rule
from aliquot.core.rooms import Account, Vector
from aliquot.core.victims import Giver
from tests.scenarios.rule import Without, around, rule, together, without

Stays = Callable[..., bool]


def _actions(*names: str) -> Without:
    """Only these, in this order."""
    by_name = {action.__name__: (name, action) for name, action in schedule.ACTIONS}
    rest = [name for name in by_name if name not in {*names, "consolidate", "reclaim", "preempt", "allocate"}]
    return without(schedule, "ACTIONS", tuple(by_name[name] for name in (*names, *rest)))


def _as_if_preemptible(known: Callable[[Cycle], None]) -> Callable[[Cycle], None]:
    def consolidate(cycle: Cycle) -> None:
        turns = cycle.turns
        asked: Any = lambda pool, rank=0, admits=None: turns(pool, rank=rank)  # noqa: E731 - it stands in for a method
        with_all: Any = _Other(cycle, turns=asked)
        known(with_all)

    return consolidate


class _Other:
    """A thing with another attribute."""

    def __init__(self, thing: object, **others: Any) -> None:
        self.__dict__.update(_thing=thing, _others=others)

    def __getattr__(self, name: str) -> Any:
        return self._others[name] if name in self._others else getattr(self._thing, name)


def _for_fixed_work() -> Without:
    actions = tuple(
        (name, _as_if_preemptible(action) if action is schedule.consolidate else action)
        for name, action in schedule.ACTIONS
    )
    return without(schedule, "ACTIONS", actions)


def _whatever_runs(cycle: Cycle, workload: Workload) -> list[Unit]:
    return asks.units_of(workload, cycle.world.entries[workload.id].running)


def _pod_by_pod(workload: Workload, placed: Sequence[Pod]) -> list[gang.Unit]:
    return [gang.Unit((pod,), is_core=False) for pod in reversed(placed)]


def _most_first(known: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    return lambda search, units: (-known(search, units)[0], *known(search, units)[1:])


def _within_its_share(known: Callable[..., bool]) -> Callable[..., bool]:
    def may_lose(search: Consolidation, unit: Unit) -> bool:
        account = search.cycle.world.accounts_of(search.ask.pool, unit.workload.queue)[0]
        return known(search, unit) and account.level[0] > account.share[0]

    return may_lose


def _of_the_leaf(known: Stays) -> Stays:
    def stays(cycle: Cycle, giver: Giver, unit: Unit, **how: Any) -> bool:
        return known(cycle, replace(giver, below=giver.below[:1]), unit, **how)

    return stays


def _takes_for_the_leaf(known: Callable[..., tuple[int, ...]]) -> Callable[..., tuple[int, ...]]:
    def grounds(taker: Sequence[Account], asked: Vector, basis: str) -> tuple[int, ...]:
        return known(taker[:1], asked, basis)

    return grounds


def _never_across(known: Stays) -> Stays:
    def stays(cycle: Cycle, giver: Giver, unit: Unit, **how: Any) -> bool:
        return known(cycle, giver, unit, **{**how, "may_cross": False})

    return stays


def _equals_too(known: Callable[..., list[Giver]]) -> Callable[..., list[Giver]]:
    def preemptible(cycle: Cycle, ask: Ask, rule: Rule) -> list[Giver]:
        if rule is not Rule.PREEMPT:
            return known(cycle, ask, rule)
        accounts = cycle.world.accounts_of(ask.pool, ask.workload.queue)
        units = victims.units_of(cycle, ask.pool, ask.workload.queue)
        able = [unit for unit in units if unit.workload.priority <= ask.workload.priority]
        return [Giver(accounts, (), able)] if able else []

    return preemptible


def _nothing_is_settled(cycle: Cycle, id: str) -> None:
    return None


def _whether_it_helps_or_not(search: Search) -> bool:
    cycle = search.cycle
    for giver, unit in victims.in_order(cycle, victims.givers(cycle, search.ask, search.rule)):
        if victims.choose(cycle, giver, unit, search.rule) is None:
            continue
        for holding in unit.holdings:
            cycle.world.evict(holding)
            cycle.evict(Evict(unit.workload.id, holding.pod.id, search.ask.id, search.rule, ""), holding)
        return True
    return False


def _the_other_rule(known: Callable[..., timedelta]) -> Callable[..., timedelta]:
    return lambda accounts, rule: known(accounts, "preempt" if rule == "reclaim" else "reclaim")


def _the_farthest(known: Callable[..., timedelta]) -> Callable[..., timedelta]:
    return lambda accounts, rule: known(accounts[::-1], rule)


def _whatever_its_priority_says(known: Callable[[Cycle, Ask], bool]) -> Callable[[Cycle, Ask], bool]:
    return lambda cycle, ask: known(cycle, replace(ask, workload=replace(ask.workload, never_preempts=False)))


_LOOKED_AT = (
    without(victims, "_is_over", lambda giver, asked, basis: True),
    without(Search, "_could_help", lambda search, givers: True),
)
"""A search is not given up before the rule is asked about each victim."""

RULES = (
    rule(
        "Placing what fits comes first, and is never held up by a search for victims.",
        "what-fits-comes-first",
        _actions("consolidate", "reclaim", "preempt", "allocate"),
    ),
    rule(
        "Then, in this order:",
        "a-move-before-a-reclaim a-reclaim-before-a-preemption",
        _actions("allocate", "reclaim", "consolidate", "preempt"),
        _actions("allocate", "consolidate", "preempt", "reclaim"),
    ),
    rule(
        "**Consolidation** moves pods that may be preempted, to make room for others that may be.",
        "moves-make-room nothing-fixed-moves no-moves-for-fixed-work",
        _actions("allocate", "reclaim", "preempt"),
        without(victims, "running_units", _whatever_runs),
        _for_fixed_work(),
    ),
    rule(
        "Every pod that moves has a new place in the same plan.",
        "who-moves-has-a-new-place",
        without(Consolidation, "_place_all", lambda search, units: []),
    ),
    rule(
        "A gang moves whole if it would fall below its minimum.",
        "a-gang-moves-whole",
        without(gang, "units", _pod_by_pod),
    ),
    rule(
        "As few pods as can be are moved, at most 16 for one workload unless the policy says otherwise.",
        "as-few-as-can-be no-more-moves-than-allowed",
        around(Consolidation, "_cost", _most_first),
        without(Consolidation, "_is_over", lambda search, chosen, moved: False),
    ),
    rule(
        "Nobody's share changes by it.",
        "a-move-changes-no-share",
        around(Consolidation, "_may_lose", _within_its_share),
    ),
    rule(
        "**Reclaim** takes from other projects.",
        "takes-from-others",
        _actions("allocate", "consolidate", "preempt"),
    ),
    rule(
        "A workload that stays within the quota of its project may take from projects that are over theirs; one that "
        "stays within its fair share may take from those over their fair share.",
        "by-quota by-fair-share not-over-the-quota not-from-who-is-within",
        without(victims, "BASES", ("quota",)),
        without(victims, "BASES", ("fair share",)),
        together(
            without(victims, "_is_within", lambda account, asked, basis: True),
            without(victims, "_grounds", lambda taker, asked, basis: (0,)),
        ),
        together(
            *_LOOKED_AT,
            without(victims, "_stays", lambda cycle, giver, unit, *, basis, ground, may_cross: True),
        ),
    ),
    rule(
        "Compared are the two queues just below the place where their paths in the tree meet, and all below these: on "
        "the giving side each still holds what it is due after each step, on the taking side each stays within it.",
        "the-department-is-within-its-due the-taking-side-stays-within",
        together(*_LOOKED_AT, around(victims, "_stays", _of_the_leaf)),
        around(victims, "_grounds", _takes_for_the_leaf),
    ),
    rule(
        "What a quota took, a fair share never takes back.",
        "a-quota-goes-before-a-share",
        without(victims, "_has_claim", lambda giver, unit, basis: False),
    ),
    rule(
        "A gang that cannot be split may be taken as a last resort though its project falls below what it is due, if "
        "nothing that waits could then take it back",
        "a-gang-as-a-last-resort no-circle",
        around(victims, "_stays", _never_across),
        without(victims, "_could_take_back", lambda cycle, giver, unit: False),
    ),
    rule(
        "**Preemption** takes inside a project: a higher priority from a lower one.",
        "inside-a-project",
        _actions("allocate", "consolidate", "reclaim"),
        around(victims, "_preemptible", _equals_too),
    ),
    rule(
        "What is never taken: work that is not preemptible; of semi-preemptible work what is at its minimum; and what "
        "the same cycle started, moved or promised.",
        "fixed-work-is-never-taken the-minimum-is-never-taken what-the-cycle-started",
        without(victims, "running_units", _whatever_runs),
        without(Cycle, "settle", _nothing_is_settled),
    ),
    rule(
        "Disruption budgets, and the number of evictions that a queue allows for a day, are kept.",
        "a-disruption-budget evictions-of-a-day",
        without(victims, "_is_within_budgets", lambda cycle, unit: True),
        without(victims, "_is_within_limits", lambda cycle, accounts, unit: True),
    ),
    rule(
        "Nothing is evicted unless the one for whom it is then fits, in the same plan.",
        "nothing-in-vain",
        without(Search, "take", _whether_it_helps_or_not),
    ),
    rule(
        "A queue may protect what runs for a time after its start, from preemption and from reclaim apart.",
        "safe-from-reclaim safe-from-preemption",
        without(victims, "_protection", lambda accounts, rule: timedelta()),
        around(victims, "_protection", _the_other_rule),
    ),
    rule(
        "The nearest value on the way up the tree holds.",
        "the-nearest-minimum",
        around(victims, "_protection", _the_farthest),
    ),
    rule(
        "**Preemption delay**: a workload may have to wait for a time before it evicts.",
        "waits-before-it-evicts",
        without(schedule, "_is_delayed", lambda cycle, ask: False),
    ),
    rule(
        "A priority that *never preempts* never evicts.",
        "never-preempts",
        around(schedule, "_may_evict", _whatever_its_priority_says),
    ),
)
