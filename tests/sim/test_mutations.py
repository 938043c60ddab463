"""A rule that is broken on purpose is caught by its law: a judge that lets a mistake through judges nothing."""

from typing import Any

import pytest

from aliquot.core import cycle, eviction, order, placement, promises, quota, reasons, schedule, snapshot
from aliquot.core.model import Workload
from aliquot.core.plan import Code, Reason
from aliquot.sim.runner import NeverAtRest
from tests.sim import judge, laws

MOST_DAYS = 20


def _all_that_is_chosen(search: eviction.Search, chosen: list[eviction.Choice]) -> list[eviction.Choice]:
    eviction._evict(search.cycle.world, chosen)
    return chosen


def _whoever_holds(state: cycle.Cycle, pool: str) -> dict[str, list[Workload]]:
    found: dict[str, list[Workload]] = {}
    for group in state.world.running.values():
        workload = group[0].workload
        if workload.pool == pool and workload.id not in state.settled:
            found.setdefault(workload.queue, []).append(workload)
    return found


def _equals_too(state: cycle.Cycle, ask: order.Ask) -> list[eviction.Giver]:
    own = eviction._by_queue(state, ask.workload.pool).get(ask.workload.queue, [])
    units = eviction._units(state, [one for one in own if one.priority <= ask.workload.priority])
    accounts = state.world.accounts_of(ask.workload.pool, ask.workload.queue)
    return [eviction.Giver(accounts, (), units)] if units else []


def _though_promised(room: snapshot.DeviceRoom, view: placement.View) -> tuple[int, int]:
    is_later = view == "later"
    return (room.future_mib, room.future_milli) if is_later else (room.idle_mib, room.idle_milli)


# The rule that is broken, how, what the judge must say, and a day on which it matters.
MUTATIONS: list[tuple[str, object, str, Any, str, int]] = [  # Any: what stands there, a function or a value
    ("a victim's queue may fall below its due", eviction, "_stays", lambda *_, **__: True, "may not take", 0),
    ("the taker may pass its due", eviction, "_grounds", lambda *_: (0, 1, 2), "may not take", 1),
    ("the same priority is reason enough", eviction, "_preemptible", _equals_too, "may not take", 0),
    ("what may not be evicted is", eviction, "_by_queue", _whoever_holds, "is not preemptible", 0),
    ("more victims than are needed", eviction.Search, "_shrunk", _all_that_is_chosen, "need not be evicted", 0),
    ("promises are forgotten", promises, "honour", lambda _: None, "the promise to .* is gone", 0),
    ("promised room is given away", placement, "free_of", _though_promised, "more is promised than there will be", 0),
    ("limits are not looked at", quota, "over_limit", lambda *_, **__: None, "over its limit", 3),
    ("fixed work may pass the quota", quota, "over_quota", lambda *_, **__: None, "by work that may not be evicted", 7),
    ("what is free is not given out", schedule, "ACTIONS", schedule.ACTIONS[1:], "it could start now", 0),
    ("a reason is made up", reasons.Reasons, "_short", lambda *_: Reason(Code.NO_FREE_CPU, "none"), "has that much", 0),
]


def judge_days(first: int) -> None:
    """Judge some days, from this seed on."""
    for seed in range(first, first + MOST_DAYS):
        judge.judge_day(seed)


@pytest.mark.parametrize(
    ("target", "attribute", "broken", "said", "first"),
    [one[1:] for one in MUTATIONS],
    ids=[one[0] for one in MUTATIONS],
)
def test_a_broken_rule_is_caught(
    target: object, attribute: str, broken: object, said: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Patching is the point here: the real engine with one rule broken is what the laws have to tell from the real one.
    monkeypatch.setattr(target, attribute, broken)

    with pytest.raises(laws.LawBroken, match=said):
        judge_days(first)


def test_two_workloads_that_evict_each_other_are_caught_by_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # As above; no other law is asked, so that this one is seen to work.
    monkeypatch.setattr(eviction, "_preemptible", _equals_too)

    with pytest.raises((laws.LawBroken, NeverAtRest), match=r"which had evicted|a state came back|went on changing"):
        judge.judge_day(0, ())
