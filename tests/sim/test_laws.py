"""The laws of scheduling over random days: a few dozen in every run of the tests, a thousand in `make days`."""

import os

import pytest

from tests.sim import judge, laws

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "prop"
SHARDS, DAYS = (20, 50) if IS_LONG else (4, 10)
LEAST_EVICTING = 0.20 if IS_LONG else 0.15
"""A fifth of all cycles evicts over fifty days and more; ten days vary."""
ELSEWHERE = {"neighbours_bear_each_other", "evictions_for_no_one_have_their_rule"}
"""Nothing on these days is what they judge; the worlds of `tests.laws` have it."""


@pytest.mark.slow  # Each shard lives through ten days (fifty in `make days`), some 35 cycles each.
@pytest.mark.days
@pytest.mark.parametrize("shard", range(SHARDS))
def test_on_random_days_every_law_holds_and_no_job_is_evicted_in_a_circle(shard: int) -> None:
    verdict = judge.Verdict()

    for seed in range(shard * DAYS, (shard + 1) * DAYS):
        verdict.add(judge.judge_day(seed))

    assert all(verdict.judged[law.__name__] for law in laws.LAWS if law.__name__ not in ELSEWHERE), verdict
    assert verdict.restarts > DAYS // 2, verdict
    assert verdict.longest_rest > 1, verdict
    assert verdict.evicting_cycles >= LEAST_EVICTING * verdict.cycles, verdict


@pytest.mark.slow  # It lives through the same day twice.
def test_a_day_is_the_same_each_time() -> None:
    assert judge.judge_day(7) == judge.judge_day(7)
