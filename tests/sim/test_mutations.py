"""A rule that is broken on purpose is caught by its law: a judge that lets a mistake through judges nothing."""

import os
from typing import Any

import pytest

from aliquot.core import eviction, promises, quota, reasons, rooms, schedule, victims
from aliquot.core.asks import Ask, Unit
from aliquot.core.cycle import Cycle
from aliquot.core.model import Workload
from aliquot.core.plan import Code, Reason, Rule
from aliquot.core.rooms import DeviceRoom, Holding, View
from aliquot.core.snapshot import World
from aliquot.core.victims import Choice, Giver
from aliquot.sim.runner import NeverAtRest
from tests.laws.case import LawBroken
from tests.sim import judge

MOST_DAYS = 20
pytestmark = [
    pytest.mark.slow,  # Each broken rule lives through days until it is caught: two minutes in all.
    pytest.mark.days,
    pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") != "prop", reason="two minutes: `make days` runs it"),
]


def _all_that_is_chosen(search: eviction.Search, chosen: list[Choice], holdings: list[Holding]) -> list[Choice]:
    return chosen


def _whatever_runs(state: Cycle, workload: Workload) -> list[Unit]:
    return state.world.units_of(state.world.entries[workload.id])


def _equals_too(state: Cycle, ask: Ask, rule: Rule) -> list[Giver]:
    units = victims.units_of(state, ask.pool, ask.workload.queue)
    accounts = state.world.accounts_of(ask.pool, ask.workload.queue)
    able = [unit for unit in units if unit.workload.priority <= ask.workload.priority]
    return [Giver(accounts, (), able)] if able else []


def _though_promised(room: DeviceRoom, view: View) -> tuple[int, int]:
    is_later = view == "later"
    return (room.future_mib, room.future_milli) if is_later else (room.idle_mib, room.idle_milli)


# The rule that is broken, how, what the judge must say, and a day on which it matters.
MUTATIONS: list[tuple[str, object, str, Any, str, int]] = [  # Any: what stands there, a function or a value
    ("a victim's queue may fall below its due", victims, "_stays", lambda *_, **__: True, "evictions-are-legal", 0),
    ("the taker may pass its due", victims, "_grounds", lambda *_: (0, 1, 2), "evictions-are-legal", 1),
    ("the same priority is reason enough", victims, "_preemptible", _equals_too, "evictions-are-legal", 0),
    ("what may not be evicted is", victims, "running_units", _whatever_runs, "evictions-are-legal", 0),
    ("more victims than are needed", eviction.Search, "_shrunk", _all_that_is_chosen, "evictions-are-needed", 0),
    ("promises are forgotten", promises, "honour", lambda _: None, "promises-are-kept|a state came back", 0),
    ("promised room is given away", rooms.DeviceRoom, "free", _though_promised, "nothing-is-overused", 0),
    ("limits are not looked at", quota, "over_limit", lambda *_, **__: None, "no-limit-is-passed", 3),
    ("fixed work may pass the quota", quota, "over_quota", lambda *_, **__: None, "fixed-work-stays-within-quota", 7),
    ("what is free is not given out", schedule, "ACTIONS", schedule.ACTIONS[1:], "every-reason-is-true", 0),
    ("a reason is made up", reasons.Reasons, "_short", lambda *_: Reason(Code.NO_FREE_CPU, "none"), "is-true", 0),
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

    with pytest.raises((LawBroken, NeverAtRest), match=said):
        judge_days(first)


def test_two_workloads_that_evict_each_other_are_caught_by_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # As above; no other law is asked, so that this one is seen to work.
    monkeypatch.setattr(victims, "_preemptible", _equals_too)

    with pytest.raises((LawBroken, NeverAtRest), match=r"no-circle-of-evictions|a state came back|went on changing"):
        judge.judge_day(0, ())


def test_a_kept_world_that_misses_what_changed_is_caught_by_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # As above.
    monkeypatch.setattr(World, "sync", lambda world, snapshot: setattr(world, "snapshot", snapshot))

    with pytest.raises(LawBroken, match="a-kept-world-plans-like-a-new-one"):
        judge.judge_day(0, ())
