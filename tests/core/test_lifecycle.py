"""The phases of a workload: every way through the table ends, and what is not in it is refused with what is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import lifecycle
from aliquot.core.errors import Conflict
from aliquot.core.lifecycle import ACTIVE, ENDING, FINISHED, Phase, Signal


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        pytest.param([Signal.BOUND, Signal.STARTED, Signal.SUCCEEDED], Phase.SUCCEEDED, id="it runs and ends well"),
        pytest.param([Signal.BOUND, Signal.SUCCEEDED], Phase.SUCCEEDED, id="it ends before all was seen to run"),
        pytest.param([Signal.BOUND, Signal.STARTED, Signal.EVICT, Signal.GONE], Phase.PENDING, id="evicted, it waits"),
        pytest.param([Signal.BOUND, Signal.STARTED, Signal.LOST, Signal.GONE], Phase.PENDING, id="lost, it waits"),
        pytest.param(
            [Signal.BOUND, Signal.STARTED, Signal.POD_FAILED_RETRY, Signal.GONE], Phase.PENDING, id="it tries again"
        ),
        pytest.param(
            [Signal.BOUND, Signal.STARTED, Signal.POD_FAILED_FINAL, Signal.GONE], Phase.FAILED, id="it fails for good"
        ),
        pytest.param([Signal.BOUND, Signal.TIME_LIMIT, Signal.GONE], Phase.FAILED, id="its time is over"),
        pytest.param([Signal.TIME_LIMIT], Phase.FAILED, id="its time was over before it got a place again"),
        pytest.param([Signal.SUSPEND, Signal.RESUME], Phase.PENDING, id="suspended while it waits"),
        pytest.param(
            [Signal.BOUND, Signal.SUSPEND, Signal.GONE, Signal.RESUME], Phase.PENDING, id="suspended while it starts"
        ),
        pytest.param([Signal.BOUND, Signal.SUSPEND, Signal.RESUME, Signal.GONE], Phase.PENDING, id="resumed too early"),
        pytest.param([Signal.BOUND, Signal.STOP, Signal.GONE], Phase.STOPPED, id="stopped"),
        pytest.param([Signal.BOUND, Signal.EVICT, Signal.STOP, Signal.GONE], Phase.STOPPED, id="stopped while evicted"),
        pytest.param(
            [Signal.BOUND, Signal.POD_FAILED_FINAL, Signal.STOP, Signal.GONE], Phase.FAILED, id="failed stays failed"
        ),
        pytest.param(
            [Signal.BOUND, Signal.STOP, Signal.SUCCEEDED], Phase.SUCCEEDED, id="it had ended well just before"
        ),
        pytest.param([Signal.STOP, Signal.STOP], Phase.STOPPED, id="stopping twice is no error"),
    ],
)
def test_a_life_ends_in_its_phase(signals: list[Signal], expected: Phase) -> None:
    phase = Phase.PENDING

    for signal in signals:
        phase = lifecycle.follow(phase, signal)

    assert phase is expected


def test_a_refused_signal_names_those_that_are_possible() -> None:
    with pytest.raises(Conflict) as refused:
        lifecycle.follow(Phase.SUCCEEDED, Signal.RESUME)

    assert refused.value.stable_code == "cannot-resume"
    assert refused.value.message == "a workload that is succeeded cannot be resumed"
    assert refused.value.valid == ()


def test_every_phase_but_the_finished_can_be_stopped() -> None:
    stoppable = {phase for phase in Phase if lifecycle.is_possible(phase, Signal.STOP)}

    assert stoppable == set(Phase) - {Phase.SUCCEEDED, Phase.FAILED}


def test_follow_and_is_possible_agree_on_every_pair() -> None:
    for phase, signal in itertools.product(Phase, Signal):
        if lifecycle.is_possible(phase, signal):
            assert isinstance(lifecycle.follow(phase, signal), Phase)
        else:
            with pytest.raises(Conflict):
                lifecycle.follow(phase, signal)


def test_what_is_ending_leaves_when_the_last_process_is_gone() -> None:
    for phase in ENDING:
        assert lifecycle.follow(phase, Signal.GONE) not in ENDING | ACTIVE


@given(st.lists(st.sampled_from(Signal), max_size=40))
def test_a_finished_workload_never_comes_back(signals: list[Signal]) -> None:
    phase = Phase.PENDING
    for signal in signals:
        was_finished = phase in FINISHED
        if lifecycle.is_possible(phase, signal):
            after = lifecycle.follow(phase, signal)
            assert not was_finished or after is phase
            phase = after


def test_from_every_phase_some_finished_phase_is_in_reach() -> None:
    reached = set(FINISHED)
    while True:
        more = {before for (before, _), after in lifecycle.TABLE.items() if after in reached}
        if more <= reached:
            break
        reached |= more

    assert reached == set(Phase)
