"""What follows for a workload from what its pods did: the pure half of the workload controller of one machine.

`look_over` takes the stored rows and what the runner saw, and answers with the rows as they should be, the events and
receipts to keep, and what is left to do. It is safe to ask again after a crash at any point: what was stored is taken
as it is, and what was not is found again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from aliquot.core import lifecycle, quantities
from aliquot.core.lifecycle import Phase, Signal
from aliquot.local.launch import ExitKind, Observation
from aliquot.service.records import EventRow, PodRow, ReceiptRow, WorkloadRow
from aliquot.wire.workloads import PodPhase

LONGEST_BACK_OFF = timedelta(hours=1)
_OUTCOMES = {
    ExitKind.EXITED: "failed",
    ExitKind.SIGNALLED: "failed",
    ExitKind.OUT_OF_MEMORY: "out-of-memory",
    ExitKind.UNKNOWN: "exit-unknown",
    ExitKind.NOT_STARTED: "not-started",
}


@dataclass(frozen=True, slots=True)
class Turn:
    """The answer of one look: rows as they are now, what to keep, what to do."""

    row: WorkloadRow
    pods: tuple[PodRow, ...]
    was: WorkloadRow
    """The row before this look."""
    pods_were: tuple[PodRow, ...]
    events: tuple[EventRow, ...] = ()
    receipts: tuple[ReceiptRow, ...] = ()
    starts: tuple[PodRow, ...] = ()
    """Intents that nobody has taken up: start them (again)."""
    ends: tuple[PodRow, ...] = ()
    """Pods that are to end and have not been told."""
    erases: bool = False
    """The workload is over and to be deleted: its folders can go."""


def look_over(row: WorkloadRow, pods: Sequence[PodRow], seen: Mapping[str, Observation], now: datetime) -> Turn:
    """Take in what happened to one workload. `pods` are those of its current attempt."""
    current = tuple(_observed(pod, seen.get(pod.id), now) for pod in sorted(pods, key=lambda pod: pod.index))
    turn = Turn(_counted(row, current), current, row, tuple(pods), receipts=_losses(row, pods, current))
    while (signal := _signal(turn.row, turn.pods, now)) is not None:
        turn = _followed(turn, signal, now)
    turn = _with_wishes(turn, seen, now)
    return _with_end_of_life(turn, now) if turn.row.phase in lifecycle.FINISHED else turn


def has_succeeded(pod: PodRow) -> bool:
    """Whether it ended by itself, well."""
    return pod.phase is PodPhase.ENDED and pod.exit_kind == ExitKind.EXITED and pod.exit_code == 0


def back_off(row: WorkloadRow) -> timedelta:
    """How long a workload that failed waits: doubles with each failure, at most LONGEST_BACK_OFF."""
    doublings = min(row.failures, 30)
    return min(LONGEST_BACK_OFF, row.back_off * (1 << doublings))


def _with_end_of_life(turn: Turn, now: datetime) -> Turn:
    """A finished workload goes when it is to be deleted, or when its time to live is over."""
    row = turn.row
    is_due = row.ttl is not None and row.finished is not None and row.finished + row.ttl <= now
    row = replace(row, is_deleting=row.is_deleting or is_due)
    return replace(turn, row=row, erases=row.is_deleting and row.deleted is None)


def _observed(pod: PodRow, sight: Observation | None, now: datetime) -> PodRow:
    if pod.phase is PodPhase.ENDED:
        return pod
    if sight is None:
        return _unseen(pod, now)
    limits = (
        f"cpu: {sight.limits.cpu.mechanism}; memory: {sight.limits.memory.mechanism}" if sight.limits else pod.limits
    )
    if sight.state == "running" and pod.phase is PodPhase.BOUND:
        return replace(pod, phase=PodPhase.RUNNING, pid=sight.pid, started=sight.started, limits=limits)
    if sight.state != "ended" or sight.exit is None:
        return replace(pod, pid=sight.pid, started=sight.started, limits=limits)
    return replace(
        pod,
        phase=PodPhase.ENDED,
        pid=sight.pid,
        started=sight.started,
        limits=limits,
        ended=max(sight.exit.at, pod.bound),
        exit_kind=sight.exit.kind,
        exit_code=sight.exit.code,
        exit_signal=sight.exit.signal,
        exit_message=sight.exit.message or None,
    )


def _unseen(pod: PodRow, now: datetime) -> PodRow:
    """Nothing is known of it. An intent is still to be taken up; one that was to end never started."""
    if pod.phase is PodPhase.BOUND:
        return pod
    if pod.started is None:
        kind, message = ExitKind.NOT_STARTED, "it was ended before it started"
    else:
        kind, message = ExitKind.UNKNOWN, "its records are gone, so nobody knows how it ended"
    return replace(pod, phase=PodPhase.ENDED, ended=now, exit_kind=kind, exit_message=message)


def _counted(row: WorkloadRow, pods: Sequence[PodRow]) -> WorkloadRow:
    """Run time: from the first start of an attempt to its last end."""
    starts = [pod.started for pod in pods if pod.started is not None]
    if starts and row.running_since is None and row.phase not in {Phase.PENDING, Phase.SUSPENDED} | lifecycle.FINISHED:
        row = replace(row, running_since=min(starts), first_started=row.first_started or min(starts))
    return row


def _losses(row: WorkloadRow, before: Sequence[PodRow], after: Sequence[PodRow]) -> tuple[ReceiptRow, ...]:
    known = {pod.id for pod in before if pod.phase is PodPhase.ENDED}
    return tuple(
        ReceiptRow(
            id=f"{pod.id}-lost",
            workload=row.id,
            workload_name=row.name,
            project=row.project,
            pod=pod.id,
            rule="machine-restarted",
            explanation="the machine was started anew while it ran; it waits again, and no retry is spent",
            evicted=pod.ended or pod.bound,
            ran=(pod.ended - pod.started) if pod.started and pod.ended else timedelta(0),
            milli_gpus=sum(share.milli for share in pod.shares),
        )
        for pod in after
        if pod.exit_kind == ExitKind.LOST and pod.id not in known
    )


def _signal(row: WorkloadRow, pods: Sequence[PodRow], now: datetime) -> Signal | None:
    """What has happened to it, if its phase does not say so yet."""
    over = [pod for pod in pods if pod.phase is PodPhase.ENDED]
    if row.phase in lifecycle.ENDING:
        if len(over) < len(pods):
            return None
        has_finished = bool(pods) and all(has_succeeded(pod) and not _was_told_before(pod) for pod in pods)
        return Signal.SUCCEEDED if has_finished and lifecycle.is_possible(row.phase, Signal.SUCCEEDED) else Signal.GONE
    if row.phase is Phase.PENDING:
        return Signal.TIME_LIMIT if row.max_run_time is not None and row.ran >= row.max_run_time else None
    if row.phase not in lifecycle.ACTIVE:
        return None
    failed = [pod for pod in over if not has_succeeded(pod)]
    if failed:
        return _failure(row, failed)
    if len(over) == len(pods):
        return Signal.SUCCEEDED
    if _elapsed(row, now) >= (row.max_run_time or timedelta.max):
        return Signal.TIME_LIMIT
    if row.phase is Phase.STARTING and all(pod.phase in {PodPhase.RUNNING, PodPhase.ENDED} for pod in pods):
        return Signal.STARTED
    return None


def _was_told_before(pod: PodRow) -> bool:
    """Whether it was told to end before it ended. Many programs save and exit with 0 then: that is no success."""
    return pod.ending_since is not None and pod.ended is not None and pod.ended > pod.ending_since


def _failure(row: WorkloadRow, failed: Sequence[PodRow]) -> Signal:
    if any(pod.exit_kind == ExitKind.LOST for pod in failed):
        return Signal.LOST
    can_help = first_failure(failed).exit_kind != ExitKind.NOT_STARTED
    return Signal.POD_FAILED_RETRY if can_help and row.failures < row.definition.retries else Signal.POD_FAILED_FINAL


def first_failure(failed: Sequence[PodRow]) -> PodRow:
    """The pod that failed first: those that were ended because of it say nothing."""
    return min(failed, key=lambda pod: (pod.ended or pod.bound, pod.index))


def _elapsed(row: WorkloadRow, now: datetime) -> timedelta:
    return row.ran + (now - row.running_since if row.running_since is not None else timedelta(0))


def _followed(turn: Turn, signal: Signal, now: datetime) -> Turn:
    phase = lifecycle.follow(turn.row.phase, signal)
    row = replace(turn.row, phase=phase)
    failed = [pod for pod in turn.pods if pod.phase is PodPhase.ENDED and not has_succeeded(pod)]
    if signal is Signal.POD_FAILED_RETRY:
        row = replace(row, not_before=now + back_off(row), failures=row.failures + 1)
    if signal is Signal.POD_FAILED_FINAL:
        first = first_failure(failed)
        kind = ExitKind(first.exit_kind or ExitKind.UNKNOWN)
        row = replace(row, outcome=_OUTCOMES[kind], exit_code=first.exit_code, exit_signal=first.exit_signal)
    if signal is Signal.TIME_LIMIT:
        row = replace(row, outcome="time-limit")
    if signal is Signal.LOST:
        row = replace(row, evictions=row.evictions + 1)
    if phase not in lifecycle.ACTIVE | lifecycle.ENDING:
        row = _attempt_over(row, turn.pods)
    if phase in lifecycle.FINISHED:
        row = _finished(row, turn.pods, now)
    event = EventRow(
        now, "workload", row.id, row.name, _event_code(phase, signal), _sentence(row, signal, failed), row.project
    )
    return replace(turn, row=row, events=(*turn.events, event))


def _attempt_over(row: WorkloadRow, pods: Sequence[PodRow]) -> WorkloadRow:
    if row.running_since is None:
        return row
    last = max((pod.ended for pod in pods if pod.ended is not None), default=row.running_since)
    return replace(row, ran=row.ran + max(timedelta(0), last - row.running_since), running_since=None)


def _finished(row: WorkloadRow, pods: Sequence[PodRow], now: datetime) -> WorkloadRow:
    ends = [pod.ended for pod in pods if pod.ended is not None]
    row = replace(row, finished=max(ends, default=now), not_before=None)
    if row.phase is Phase.SUCCEEDED:
        return replace(row, outcome="completed", exit_code=0, exit_signal=None)
    if row.outcome is None or row.outcome == "time-limit":
        ended = [pod for pod in pods if not has_succeeded(pod)]
        if ended:
            first = first_failure(ended)
            row = replace(row, exit_code=first.exit_code, exit_signal=first.exit_signal)
    return replace(row, outcome=row.outcome or "stopped")


def _with_wishes(turn: Turn, seen: Mapping[str, Observation], now: datetime) -> Turn:
    """Pods of a workload that is being ended are to end; intents of one that is active are to start."""
    if not turn.pods:
        return turn
    pods = turn.pods
    if turn.row.phase in lifecycle.ENDING:
        pods = tuple(
            replace(pod, phase=PodPhase.ENDING, ending_since=now)
            if pod.phase in {PodPhase.BOUND, PodPhase.RUNNING}
            else pod
            for pod in pods
        )
    ends = tuple(pod for pod in pods if pod.phase is PodPhase.ENDING and not _was_told(seen.get(pod.id)))
    waiting = tuple(pod for pod in pods if pod.phase is PodPhase.BOUND) if turn.row.phase in lifecycle.ACTIVE else ()
    return replace(turn, pods=pods, ends=ends, starts=waiting)


def _was_told(sight: Observation | None) -> bool:
    return sight is not None and sight.is_ending


def _event_code(phase: Phase, signal: Signal) -> str:
    if signal is Signal.GONE:
        return {Phase.PENDING: "requeued", Phase.SUSPENDED: "suspended", Phase.STOPPED: "stopped"}.get(phase, "failed")
    return {
        Signal.STARTED: "running",
        Signal.SUCCEEDED: "succeeded",
        Signal.POD_FAILED_RETRY: "restarting",
        Signal.POD_FAILED_FINAL: "failing",
        Signal.TIME_LIMIT: "time-limit",
        Signal.LOST: "lost",
    }[signal]


def _sentence(row: WorkloadRow, signal: Signal, failed: Sequence[PodRow]) -> str:
    if signal is Signal.STARTED:
        return f"runs, attempt {row.attempt}"
    if signal is Signal.SUCCEEDED:
        return f"completed after {quantities.format_duration(row.ran)} of run time"
    if signal is Signal.TIME_LIMIT:
        limit = quantities.format_duration(row.max_run_time or timedelta(0))
        return f"is ended: it ran for its limit of {limit} in all"
    if signal is Signal.LOST:
        return "the machine was started anew while it ran; it waits again"
    if signal is Signal.GONE:
        return _gone(row)
    first = first_failure(failed)
    what = f"replica {first.index} {describe_exit(first)}"
    if signal is Signal.POD_FAILED_RETRY:
        return f"{what}; retry {row.failures} of {row.definition.retries} not before {row.not_before:%H:%M:%S}"
    return f"{what}; no retry is left" if row.definition.retries else what


def _gone(row: WorkloadRow) -> str:
    if row.phase is Phase.PENDING:
        return "has ended and waits again"
    if row.phase is Phase.FAILED:
        return "has failed" if row.outcome in {None, "failed"} else f"has failed: {row.outcome}"
    return f"is {row.phase}"


def describe_exit(pod: PodRow) -> str:
    """How a pod ended, as the end of a sentence."""
    if pod.exit_kind == ExitKind.EXITED:
        return f"exited with code {pod.exit_code}"
    if pod.exit_kind == ExitKind.SIGNALLED:
        return f"was killed by signal {pod.exit_signal}"
    if pod.exit_kind == ExitKind.OUT_OF_MEMORY:
        return "went over its memory limit and was killed"
    if pod.exit_kind == ExitKind.NOT_STARTED:
        return f"did not start: {pod.exit_message or 'unknown why'}"
    return f"ended, nobody knows how: {pod.exit_message or 'its supervisor vanished'}"
