"""What people read and write in the engine's words: priorities, guarantees, how work gives way, and errors."""

from dataclasses import replace

import pytest

from aliquot.core import guarantees, priorities
from aliquot.core.errors import InvalidInput, Unavailable
from aliquot.core.model import Guarantee, Preemptibility
from tests.builders import job


@pytest.mark.parametrize(
    ("written", "number"),
    [("low", 25), (" Very-High ", 100), ("0", 0), (" 1000", 1000), (7, 7), (1000, 1000)],
)
def test_a_priority_is_written_by_name_or_number(written: int | str, number: int) -> None:
    assert priorities.parse(written) == number


@pytest.mark.parametrize("written", ["lowest", "", "-1", "1001", "٣", "1.5", -1, 1001, True, "9" * 5000])
def test_what_is_no_priority_is_refused_with_the_field_and_what_is_valid(written: int | str) -> None:
    with pytest.raises(InvalidInput, match="is not a priority") as refused:
        priorities.parse(written, "rank")

    assert (refused.value.field, refused.value.valid[-1]) == ("rank", "0 to 1000")
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize(("number", "said"), [(25, "low"), (50, "medium"), (51, "51")])
def test_a_priority_is_said_by_name_where_it_has_one(number: int, said: str) -> None:
    assert priorities.describe(number) == said


def test_every_guarantee_is_explained_in_words_of_its_own() -> None:
    assert len({guarantees.describe(one) for one in Guarantee}) == len(Guarantee)


@pytest.mark.parametrize(
    ("is_preemptible", "is_semi_preemptible", "said"),
    [
        (True, False, Preemptibility.PREEMPTIBLE),
        (False, True, Preemptibility.SEMI_PREEMPTIBLE),
        (False, False, Preemptibility.NON_PREEMPTIBLE),
    ],
)
def test_how_work_gives_way_has_a_name(
    *, is_preemptible: bool, is_semi_preemptible: bool, said: Preemptibility
) -> None:
    workload = replace(job(is_preemptible=is_preemptible), is_semi_preemptible=is_semi_preemptible)

    assert workload.preemptibility is said


def test_who_may_try_again_is_told_when() -> None:
    refused = Unavailable("the database is busy", retry_after_seconds=5)

    assert (refused.retry_after_seconds, refused.details) == (5, {"retryAfterSeconds": 5})
