"""Who came and who went between two snapshots."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import comings
from aliquot.core.model import Workload


def _workload(number: int) -> Workload:
    return Workload(f"w{number}", f"w{number}", "q", datetime(2026, 1, 1, tzinfo=UTC), (), 1)


@given(st.permutations(range(8)), st.integers(0, 8), st.sets(st.integers(0, 7)), st.permutations(range(8)))
def test_all_that_differs_is_found_in_whatever_order_it_stands(
    order: list[int], many: int, changed: set[int], later: list[int]
) -> None:
    there = {number: _workload(number) for number in range(8)}
    before = [there[number] for number in order[:many]]
    after = [_workload(number) if number in changed else there[number] for number in later[: 8 - many // 2]]

    gone, come = comings.differences(before, after, known={one.id for one in before})

    kept = {id(one) for one in before} & {id(one) for one in after}
    assert {id(one) for one in before} - kept <= {id(one) for one in gone} <= {id(one) for one in before}
    assert {id(one) for one in after} - kept <= {id(one) for one in come} <= {id(one) for one in after}
    assert {id(one) for one in gone} & kept == {id(one) for one in come} & kept


def test_only_what_differs_is_found_where_the_order_stays() -> None:
    before = [_workload(number) for number in range(6)]
    changed, new, last = _workload(2), _workload(7), _workload(8)
    after = [before[0], changed, before[3], new, before[4], last]

    gone, come = comings.differences(before, after, known={one.id for one in before})

    assert [one.id for one in gone] == ["w1", "w2", "w5"]
    assert [one.id for one in come] == ["w2", "w7", "w8"]
