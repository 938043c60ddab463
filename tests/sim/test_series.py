"""A series holds exact means over time in a bounded number of steps."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.sim import series
from aliquot.sim.series import Series

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    """An instant."""
    return BEGIN + timedelta(seconds=seconds)


def test_a_value_counts_for_as_long_as_it_stays() -> None:
    one = Series(BEGIN)

    one.set(after(0), 1)
    one.set(after(1.5), 3)
    one.close(after(4))

    assert one.means() == [1, 2, 3, 3]
    assert one.mean() == pytest.approx((1.5 * 1 + 2.5 * 3) / 4)


def test_time_without_a_value_counts_for_nothing() -> None:
    one = Series(BEGIN)

    one.set(after(1), 4)
    one.set(after(2), None)
    one.close(after(4))

    assert one.means() == [None, 4, None, None]
    assert one.mean() == 4


def test_a_series_without_time_has_no_mean() -> None:
    one = Series(BEGIN)

    one.set(after(0), 1)

    assert one.mean() is None


@given(st.lists(st.tuples(st.floats(0.001, 1e6), st.floats(0, 1e3)), min_size=1, max_size=30))
def test_steps_stay_few_and_their_means_stay_exact_however_long_it_lasts(parts: list[tuple[float, float]]) -> None:
    one = Series(BEGIN)
    now, total = BEGIN, 0.0

    for seconds, value in parts:
        one.set(now, value)
        span = timedelta(seconds=seconds)
        now += span
        total += value * span.total_seconds()
    one.close(now)

    assert len(one.means()) <= series.MOST_STEPS + 1
    assert one.mean() == pytest.approx(total / (now - BEGIN).total_seconds(), rel=1e-6, abs=1e-9)
