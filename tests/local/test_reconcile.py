"""What follows for a workload from what its pods did."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from aliquot.core.lifecycle import Phase
from aliquot.core.model import PodRequest
from aliquot.local import reconcile
from aliquot.local.launch import Exit, ExitKind, Observation
from aliquot.service.records import PodRow, WorkloadRow
from aliquot.wire.workloads import Definition, PodPhase

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
START = NOW - timedelta(minutes=10)


def workload(phase: Phase = Phase.RUNNING, *, retries: int = 0, replicas: int = 1, **fields: object) -> WorkloadRow:
    row = WorkloadRow(
        id="w",
        name="train",
        project="p",
        definition=Definition(command=["true"], retries=retries, replicas=replicas),
        request=PodRequest(),
        priority=25,
        is_preemptible=True,
        grace=timedelta(seconds=30),
        back_off=timedelta(seconds=10),
        actor="admin",
        created=START,
        waiting_since=START,
        phase=phase,
        attempt=1,
        running_since=START,
    )
    return replace(row, **fields)  # type: ignore[arg-type]  # fields by name, as the tests name them


def pod(index: int = 0, phase: PodPhase = PodPhase.RUNNING, **fields: object) -> PodRow:
    row = PodRow(id=f"w-1-{index}", workload="w", index=index, attempt=1, node="n", bound=START, phase=phase)
    if phase is not PodPhase.BOUND:
        row = replace(row, started=START, pid=100 + index)
    return replace(row, **fields)  # type: ignore[arg-type]  # fields by name, as the tests name them


def ended(index: int = 0, kind: ExitKind = ExitKind.EXITED, code: int | None = 0, *, ago: int = 0) -> Observation:
    over = Exit(kind, code, 9 if kind is ExitKind.SIGNALLED else None, NOW - timedelta(seconds=ago))
    return Observation(f"w-1-{index}", "w", "ended", 100 + index, START, over)


def running(index: int = 0) -> Observation:
    return Observation(f"w-1-{index}", "w", "running", 100 + index, START)


def look(row: WorkloadRow, pods: Sequence[PodRow], *seen: Observation) -> reconcile.Turn:
    return reconcile.look_over(row, pods, {sight.pod: sight for sight in seen}, NOW)


def test_a_workload_whose_processes_all_started_is_running() -> None:
    turn = look(
        workload(Phase.STARTING, replicas=2), [pod(0, PodPhase.BOUND), pod(1, PodPhase.BOUND)], running(0), running(1)
    )

    assert turn.row.phase is Phase.RUNNING
    assert turn.row.running_since == START
    assert [event.code for event in turn.events] == ["running"]


def test_an_intent_that_nobody_took_up_is_started() -> None:
    turn = look(workload(Phase.STARTING, running_since=None), [pod(0, PodPhase.BOUND)])

    assert [each.id for each in turn.starts] == ["w-1-0"]
    assert turn.row.phase is Phase.STARTING


def test_a_pod_that_ends_well_completes_its_workload_at_the_time_it_ended() -> None:
    turn = look(workload(), [pod()], ended(ago=60))

    assert (turn.row.phase, turn.row.outcome, turn.row.exit_code) == (Phase.SUCCEEDED, "completed", 0)
    assert turn.row.finished == NOW - timedelta(seconds=60)
    assert turn.row.ran == timedelta(minutes=9)


@pytest.mark.parametrize(
    ("kind", "code", "outcome"),
    [
        (ExitKind.EXITED, 3, "failed"),
        (ExitKind.SIGNALLED, None, "failed"),
        (ExitKind.OUT_OF_MEMORY, None, "out-of-memory"),
        (ExitKind.UNKNOWN, None, "exit-unknown"),
        (ExitKind.NOT_STARTED, 127, "not-started"),
    ],
)
def test_a_pod_that_ends_badly_fails_its_workload_and_says_how(kind: ExitKind, code: int | None, outcome: str) -> None:
    turn = look(workload(), [pod()], ended(0, kind, code))

    assert (turn.row.phase, turn.row.outcome, turn.row.exit_code) == (Phase.FAILED, outcome, code)


def test_an_unknown_exit_is_never_a_success_even_with_code_0() -> None:
    turn = look(workload(), [pod()], ended(0, ExitKind.UNKNOWN, 0))

    assert turn.row.phase is Phase.FAILED


def test_one_failed_replica_ends_the_others_and_the_gang_waits_again_with_back_off() -> None:
    first = look(workload(retries=2, replicas=2), [pod(0), pod(1)], ended(0, ExitKind.EXITED, 1), running(1))

    assert first.row.phase is Phase.RESTARTING
    assert [each.id for each in first.ends] == ["w-1-1"]
    second = look(first.row, first.pods, ended(0, ExitKind.EXITED, 1), ended(1, ExitKind.SIGNALLED, None))
    assert second.row.phase is Phase.PENDING
    assert (second.row.failures, second.row.not_before) == (1, NOW + timedelta(seconds=10))


def test_back_off_doubles_and_stops_at_an_hour() -> None:
    spans = [reconcile.back_off(workload(failures=count)) for count in (0, 1, 2, 8, 9, 100)]

    assert [span.total_seconds() for span in spans] == [10, 20, 40, 2560, 3600, 3600]


def test_the_last_retry_spent_means_failed() -> None:
    turn = look(workload(retries=1, failures=1), [pod()], ended(0, ExitKind.EXITED, 1))

    assert turn.row.phase is Phase.FAILED


def test_a_command_that_cannot_start_is_not_retried() -> None:
    turn = look(workload(retries=5), [pod()], ended(0, ExitKind.NOT_STARTED, 127))

    assert (turn.row.phase, turn.row.failures) == (Phase.FAILED, 0)


def test_a_reboot_requeues_without_spending_a_retry_and_leaves_a_receipt() -> None:
    turn = look(workload(retries=1), [pod()], ended(0, ExitKind.LOST, None))

    assert (turn.row.phase, turn.row.failures, turn.row.evictions) == (Phase.PENDING, 0, 1)
    assert [receipt.rule for receipt in turn.receipts] == ["machine-restarted"]


def test_run_time_is_summed_over_attempts_for_the_limit() -> None:
    row = workload(ran=timedelta(minutes=55), max_run_time=timedelta(hours=1))

    turn = look(row, [pod()], running())

    assert (turn.row.phase, turn.row.outcome) == (Phase.FAILING, "time-limit")
    assert [each.id for each in turn.ends] == ["w-1-0"]


def test_a_workload_under_its_time_limit_runs_on() -> None:
    turn = look(workload(max_run_time=timedelta(hours=1)), [pod()], running())

    assert (turn.row.phase, turn.events, turn.ends) == (Phase.RUNNING, (), ())


def test_an_evicted_workload_waits_again_when_its_last_process_is_gone() -> None:
    pods = [pod(0, PodPhase.ENDING, ending_since=NOW)]

    still = look(workload(Phase.EVICTING), pods, replace(running(), is_ending=True))
    gone = look(workload(Phase.EVICTING), pods, ended(0, ExitKind.SIGNALLED, None))

    assert (still.row.phase, still.ends) == (Phase.EVICTING, ())
    assert (gone.row.phase, gone.row.failures, gone.row.running_since) == (Phase.PENDING, 0, None)


def test_what_finished_by_itself_just_before_it_was_to_end_is_completed() -> None:
    told = pod(0, PodPhase.ENDING, ending_since=NOW - timedelta(seconds=5))

    turn = look(workload(Phase.EVICTING), [told], ended(0, ago=6))

    assert turn.row.phase is Phase.SUCCEEDED


def test_what_exits_with_0_because_it_was_told_to_end_is_not_completed() -> None:
    told = pod(0, PodPhase.ENDING, ending_since=NOW - timedelta(seconds=5))

    evicted = look(workload(Phase.EVICTING), [told], ended(0, ago=4))
    stopped = look(workload(Phase.STOPPING), [told], ended(0, ago=4))

    assert evicted.row.phase is Phase.PENDING
    assert (stopped.row.phase, stopped.row.outcome) == (Phase.STOPPED, "stopped")


def test_a_stopped_workload_says_how_its_process_ended() -> None:
    turn = look(workload(Phase.STOPPING), [pod(0, PodPhase.ENDING)], ended(0, ExitKind.SIGNALLED, None))

    assert (turn.row.phase, turn.row.outcome, turn.row.exit_signal) == (Phase.STOPPED, "stopped", 9)


def test_a_bound_pod_that_is_to_end_and_never_started_is_gone_at_once() -> None:
    first = look(workload(Phase.SUSPENDING, running_since=None), [pod(0, PodPhase.BOUND)])
    second = look(first.row, first.pods)

    assert [each.id for each in first.ends] == ["w-1-0"]
    assert second.row.phase is Phase.SUSPENDED
    assert second.pods[0].exit_kind == ExitKind.NOT_STARTED


def test_a_replica_that_is_done_does_not_end_the_others() -> None:
    turn = look(workload(replicas=2), [pod(0), pod(1)], ended(0), running(1))

    assert (turn.row.phase, turn.ends) == (Phase.RUNNING, ())
    assert turn.pods[0].phase is PodPhase.ENDED


def test_records_that_vanished_mean_an_unknown_exit() -> None:
    turn = look(workload(), [pod()])

    assert (turn.row.phase, turn.row.outcome) == (Phase.FAILED, "exit-unknown")


def test_a_finished_workload_is_erased_when_its_time_to_live_is_over() -> None:
    row = workload(Phase.SUCCEEDED, ttl=timedelta(hours=1), running_since=None)

    early = look(replace(row, finished=NOW - timedelta(minutes=59)), [])
    due = look(replace(row, finished=NOW - timedelta(hours=1)), [])

    assert (early.erases, due.erases) == (False, True)


def test_a_workload_to_be_deleted_is_erased_only_once_it_has_ended() -> None:
    stopping = look(
        workload(Phase.STOPPING, is_deleting=True), [pod(0, PodPhase.ENDING)], replace(running(), is_ending=True)
    )
    stopped = look(stopping.row, stopping.pods, ended(0, ExitKind.SIGNALLED, None))

    assert (stopping.erases, stopped.erases) == (False, True)


def test_looking_again_changes_nothing() -> None:
    seen = ended(0, ExitKind.EXITED, 1)
    first = look(workload(retries=1), [pod()], seen)

    second = look(first.row, [], seen)

    assert second.row == first.row
    assert second.events == ()
