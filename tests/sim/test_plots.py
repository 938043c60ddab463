"""Axes have round numbers, and whole ones for what is counted."""

import itertools

import pytest

from aliquot.sim import plots


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0, ["0", "1", "2", "3", "4"]),
        (1, ["0", "1", "2", "3", "4"]),
        (4, ["0", "1", "2", "3", "4"]),
        (7.5, ["0", "2", "4", "6", "8"]),
        (9, ["0", "3", "6", "9"]),
        (76, ["0", "20", "40", "60", "80"]),
        (4100, ["0", "2,000", "4,000", "6,000"]),
    ],
)
def test_what_is_counted_has_whole_numbers_at_its_axis(most: float, ticks: list[str]) -> None:
    scale = plots.counts(most)

    assert [text for _, text in scale.ticks] == ticks
    assert scale.place(most) <= 1


def test_spans_of_time_stand_apart_on_their_axis() -> None:
    scale = plots.log_times(8_640_000)

    places = [scale.place(value) for value, _ in scale.ticks]
    assert [text for _, text in scale.ticks] == ["1 s", "10 s", "1 min", "10 min", "1 h", "1 d", "10 d", "100 d"]
    assert min(after - before for before, after in itertools.pairwise(places)) > 0.09
