"""Who gives first, time slices, promises, ends for no one, counts, reasons, and the budget of a cycle."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from aliquot.core import (
    eligibility,
    endings,
    eviction,
    explain,
    grants,
    order,
    promises,
    quota,
    reservations,
    schedule,
    shortages,
    victims,
)
from aliquot.core.asks import Ask, Unit
from aliquot.core.cycle import Cycle, Kept
from aliquot.core.eviction import Search
from aliquot.core.ladders import NOTHING
from aliquot.core.model import Policy, Workload
from aliquot.core.order import Turns
from aliquot.core.placement import Placer
from aliquot.core.plan import Code, Evict, Reason, Rule
from aliquot.core.reasons import Reasons
from aliquot.core.rooms import Holding
from aliquot.core.trials import Trials
from aliquot.core.victims import Choice, Giver
from tests.scenarios.rule import Without, around, rule, together, without

Keys = Callable[[Cycle, Sequence[Unit]], dict[int, tuple[object, ...]]]


def _nearest_first(found: Sequence[Giver]) -> Giver | None:
    open_givers = [giver for giver in found if giver.next < len(giver.units)]
    return min(open_givers, key=lambda giver: order.last_served_key(giver.accounts), default=None)


def _without_part(*parts: int) -> Without:
    def wrap(known: Keys) -> Keys:
        def keys(cycle: Cycle, units: Sequence[Unit]) -> dict[int, tuple[object, ...]]:
            found = known(cycle, units)
            return {id: tuple(0 if at in parts else one for at, one in enumerate(key)) for id, key in found.items()}

        return keys

    return around(victims, "_keys", wrap)


Lost = tuple[timedelta, timedelta]


def _since_it_started(cycle: Cycle, workload: Workload, milli_gpus: int) -> Lost:
    span = cycle.now - (workload.started or cycle.now)
    return (span * milli_gpus, span)


def _of_one_device(known: Callable[[Cycle, Workload, int], Lost]) -> Callable[[Cycle, Workload, int], Lost]:
    return lambda cycle, workload, milli_gpus: known(cycle, workload, 1000)


def _none_is_spared(search: Search, chosen: list[Choice], holdings: Sequence[Holding]) -> list[Choice]:
    return chosen


def _classes(number: Callable[[int, Policy], int]) -> Without:
    return without(order, "service_class", lambda workload, policy: number(workload.attained_milli_seconds, policy))


def _no_action(name: str) -> Without:
    left = tuple((one, action) for one, action in schedule.ACTIONS if action.__name__ != name)
    return without(schedule, "ACTIONS", left)


def _whoever_runs(known: Callable[..., bool]) -> Callable[..., bool]:
    def is_later_class(cycle: Cycle, ask: Ask, unit: Unit) -> bool:
        return not unit.is_promise and victims._has_had_its_turn(cycle, unit.workload)

    return is_later_class


def _by_another_rule(workload: str, pod: str, beneficiary: str, rule: Rule, *more: Any) -> Evict:
    return Evict(workload, pod, beneficiary, Rule.PREEMPT, *more)


Backfill = Callable[[Cycle, Ask], list[Holding] | None]


def _nobody_could_evict(known: Callable[[Cycle], None]) -> Callable[[Cycle], None]:
    def honour(cycle: Cycle) -> None:
        known(cycle)
        cycle.standing.clear()

    return honour


def _all_is_lent(known: Backfill) -> Backfill:
    def backfill(cycle: Cycle, ask: Ask) -> list[Holding] | None:
        span = ask.workload.max_run_time and timedelta()
        return known(cycle, replace(ask, workload=replace(ask.workload, max_run_time=span)))

    return backfill


def _lent_to_the_endless(known: Backfill) -> Backfill:
    def backfill(cycle: Cycle, ask: Ask) -> list[Holding] | None:
        return known(cycle, replace(ask, workload=replace(ask.workload, max_run_time=timedelta())))

    return backfill


def _for_ever(known: Callable[[Cycle], None]) -> Callable[[Cycle], None]:
    def honour(cycle: Cycle) -> None:
        stored = cycle.world.snapshot
        later = tuple(replace(one, expires=cycle.now + timedelta(days=1)) for one in stored.promises)
        cycle.world.snapshot = replace(stored, promises=later)
        known(cycle)
        cycle.world.snapshot = stored

    return honour


def _not_calm(known: Callable[[Cycle], None]) -> Callable[[Cycle], None]:
    def honour(cycle: Cycle) -> None:
        known(cycle)
        cycle.calmed.clear()

    return honour


def _expires_at_once(kept: Kept) -> Any:
    return replace(_NOMINATE(kept), expires=kept.due)


_NOMINATE = promises.nominate


def _for_everybody(known: Callable[[Turns], Ask | None]) -> Without:
    def hold(cycle: Cycle) -> None:
        for pool in cycle.pools:
            turns = cycle.turns(pool)
            while (ask := turns.next()) is not None:
                if ask.id not in cycle.promises and reservations.is_head_due(cycle, ask):
                    reservations.hold(cycle, ask)

    left = tuple((name, hold if action is schedule.hold else action) for name, action in schedule.ACTIONS)
    return without(schedule, "ACTIONS", left)


def _nobody_is_protected(known: Callable[..., Reason]) -> Callable[..., Reason]:
    def short(reasons: Reasons, ask: Ask, pool: Any) -> Reason:
        reasons.cycle.protected.clear()
        return known(reasons, ask, pool)

    return short


def _for_no_one(known: Callable[..., None]) -> Callable[..., None]:
    def end(cycle: Cycle, entry: Any, holdings: list[Holding], rule: Rule, text: str) -> None:
        known(cycle, entry, holdings, Rule.RECLAIM, text)

    return end


def _the_last(found: explain._Search, ladder: Any, evicting: Any) -> Any:
    return next(
        (ladder.at(at) for at in reversed(range(ladder.length)) if found.trials.starts(ladder.at(at).change)), None
    )


GIVES = (
    rule(
        "The project that would be served last, which is the one farthest over its share.",
        "the-farthest-over-gives-first",
        without(victims, "_next_giver", _nearest_first),
    ),
    rule(
        "In it: the lowest priority; then the least work lost (time since the last checkpoint times GPUs); then the "
        "fewest pods; then who was submitted last; of one workload the last pod.",
        "the-lowest-priority-gives-first the-least-work-is-lost the-work-of-all-devices-counts the-fewest-pods "
        "submitted-last the-last-pod-first",
        _without_part(0),
        _without_part(1, 2),
        without(victims, "work_lost", _since_it_started),
        around(victims, "work_lost", _of_one_device),
        _without_part(3),
        _without_part(4),
        around(
            victims,
            "_last_key",
            lambda known: lambda unit: (known(unit)[0], known(unit)[1], -known(unit)[2], known(unit)[3]),
        ),
    ),
    rule(
        "The search goes in this order, then it is made smaller: a victim that the result does not need is spared.",
        "spared",
        together(without(Search, "_shrunk", _none_is_spared), without(eviction, "MOST_PODS", 0)),
    ),
    rule(
        "A victim may get a new place in the same plan.",
        "a-new-place-for-a-victim",
        without(eviction, "replace_victims", lambda cycle, units, taken: None),
    ),
    rule(
        "Every eviction leaves a [receipt](evictions.md#the-receipt).",
        "a-receipt",
        without(eviction, "_explain", lambda cycle, ask, choice: ""),
    ),
)

SLICES = (
    rule(
        "In a project with the order `least-attained-service`, work has a class by the GPU time that it has had: the "
        "first up to one hour of one GPU, each next one up to twice as much, twelve in all.",
        "one-hour-is-the-first-class classes-double twelve-classes",
        _classes(lambda attained, policy: attained),
        _classes(lambda attained, policy: attained // policy.service_threshold),
        _classes(lambda attained, policy: (attained // policy.service_threshold).bit_length()),
        _classes(lambda attained, policy: (attained // policy.service_threshold // 2).bit_length()),
    ),
    rule(
        "Work of an earlier class is served first, and may take the place of work of a later class that has run for at "
        "least ten minutes.",
        "a-turn-after-ten-minutes least-service-first",
        _no_action("slice_time"),
        without(victims, "_has_had_its_turn", lambda cycle, workload: True),
        _classes(lambda attained, policy: 0),
    ),
    rule(
        "Equal classes never take from each other.",
        "equal-classes-do-not-take",
        around(victims, "_is_later_class", _whoever_runs),
    ),
    rule(
        "Short work passes quickly, without anyone saying how long it will take; long work goes on in turns.",
        "short-work-passes",
        _no_action("slice_time"),
    ),
    rule(
        "These exchanges are told apart from other evictions and have receipts.",
        "a-turn-after-ten-minutes",
        without(eviction, "Evict", _by_another_rule),
    ),
)

PROMISES = (
    rule(
        "Room that is being freed is promised to the workload for which it is freed: nodes, devices, and until when.",
        "room-is-promised",
        without(promises, "make", lambda cycle, ask, holdings, *, evicted: None),
    ),
    rule(
        "A promise stays over cycles and restarts.",
        "a-promise-stays",
        without(promises, "honour", lambda cycle: None),
    ),
    rule(
        "Others respect it, but for two: who could evict its holder, and **backfill**: work whose stated run time ends "
        "before the promise falls due.",
        "a-promise-stays who-could-evict-the-holder backfill",
        without(promises, "honour", lambda cycle: None),
        around(promises, "honour", _nobody_could_evict),
        without(reservations, "backfill", lambda cycle, ask: None),
        around(reservations, "backfill", _all_is_lent),
        around(reservations, "backfill", _lent_to_the_endless),
    ),
    rule(
        "It is due when the last of those it waits for is gone.",
        "due-when-the-last-is-gone",
        without(promises, "_gone_by", lambda cycle, pod: cycle.now + cycle.policy.release_grace),
        without(promises, "max", min),
    ),
    rule(
        "It expires when twice the time from its making to that has passed; then the workload is planned anew, once "
        "without new evictions.",
        "due-when-the-last-is-gone an-expired-promise",
        without(promises, "nominate", _expires_at_once),
        around(promises, "honour", _for_ever),
        around(promises, "honour", _not_calm),
    ),
    rule(
        "A queue may say `holdAfter`: its first workload, once it has waited so long, is promised the room that is "
        "free next, and nobody is evicted for it.",
        "the-head-is-held-room",
        without(reservations, "is_head_due", lambda cycle, ask: False),
        without(reservations, "is_head_due", lambda cycle, ask: True),
    ),
    rule("So a large gang is not starved by small work.", "not-starved", _no_action("hold")),
)

ENDS = (
    rule(
        "Evictions that serve nobody have a rule of their own: a stale gang, a drained queue, a drained node.",
        "stale-after-a-minute queue-drained node-drained",
        around(endings, "_end", _for_no_one),
    ),
    rule(
        "A workload that backs off after a failure is not tried before its time.",
        "backs-off",
        without(eligibility, "_backing_off", lambda workload, now: None),
    ),
)

COUNTS = (
    rule(
        "Before any search the engine counts: how many of a pod would fit if everything that may be evicted were gone; "
        "what quotas and limits allow; what the largest domain holds.",
        "counted-first a-limit-refuses no-domain-is-large-enough",
        together(
            without(Placer, "could_ever_fit", lambda placer, ask: True),
            without(Search, "_could_help", lambda search, givers: True),
        ),
        without(quota, "over_limit", lambda accounts, amounts, *, counting: None),
        without(Reasons, "_too_far_apart", lambda reasons, ask: None),
    ),
    rule(
        "What this refuses cannot be placed, and the count is the reason that is given.",
        "counted-first a-limit-refuses",
        without(Reasons, "_too_large", lambda reasons, ask, pool: None),
        without(Reasons, "_over_terms", lambda reasons, ask: None),
    ),
    rule(
        "Every workload that waits has a [reason](../reference/reasons.md): a code, the numbers, what is in the way, "
        "its place in line.",
        "why-it-waits",
        around(Reasons, "_short", lambda known: lambda found, ask, pool: replace(known(found, ask, pool), numbers={})),
        around(Reasons, "_short", lambda known: lambda found, ask, pool: replace(known(found, ask, pool), blockers=())),
        around(schedule, "queue_of", lambda known: lambda cycle, pool: known(cycle, pool)[::-1]),
    ),
    rule(
        "The code names what stands in its way, and what does not change by waiting before what does.",
        "too-large used-by-others in-pieces some-of-a-gang waits-for-an-end nobody-in-the-pool protected-for-now",
        without(Reasons, "_too_large", lambda reasons, ask, pool: None),
        without(Reasons, "_unavailable", lambda reasons, ask, pool: None),
        without(shortages, "shortage", lambda placer, ask, pool: Reason(Code.NO_FREE_DEVICE, "none is free")),
        without(Reasons, "_promised", lambda reasons, ask: reasons._found(ask, reasons.cycle.world.pools[ask.pool])),
        without(Reasons, "why", lambda reasons, ask: reasons._found(ask, reasons.cycle.world.pools[ask.pool])),
        around(Reasons, "_short", _nobody_is_protected),
    ),
    rule(
        "Asked for, the smallest change that would start it is worked out by trying changes in the engine itself.",
        "the-smallest-change the-only-change",
        without(explain._Search, "_first", _the_last),
        without(Trials, "starts", lambda trials, *changes, evicting="others": True),
    ),
    rule(
        "Changes by which nobody is evicted come first.",
        "without-evictions-first",
        around(explain._Search, "_least", lambda known: lambda search, kind, evicting: known(search, kind, "others")),
    ),
    rule(
        "Where no change of its owner's helps (a held queue, an empty pool, a device in use by others) it is said who "
        "can.",
        "nobody-in-the-pool who-can-help released-by-an-administrator",
        without(explain, "_why_none", lambda snapshot, workload, reason: ""),
        without(grants, "release", lambda about: NOTHING),
    ),
)

BUDGET = (
    rule(
        "A cycle may take so many steps: a place looked for, a victim considered.",
        "steps-end",
        without(Cycle, "is_spent", property(lambda cycle: False)),
    ),
    rule(
        "Where they end before all was tried, the plan says so, and who was not looked at waits with the reason "
        "`budget`.",
        "steps-end",
        without(Reasons, "_cut_off", lambda reasons, ask: None),
    ),
)

RULES = (*GIVES, *SLICES, *PROMISES, *ENDS, *COUNTS, *BUDGET)
