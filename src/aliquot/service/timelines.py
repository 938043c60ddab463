"""The life of a workload as spans that follow each other, from what was stored of it.

Promises: the spans begin with its submission, leave no gap, and end now or when it finished; a wait is split where its
reason became another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from aliquot.core.plan import Code
from aliquot.service import access, find, ports, records, views
from aliquot.wire import timelines as shapes

_SUSPENDS = frozenset({"suspended", "suspending"})


class Timelines:
    """The use case of timelines."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock

    async def get(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.Timeline:
        """From its submission to now."""
        access.check(actor, "get", "workload")
        nodes = await self._cluster.nodes()

        def work(tx: ports.Transaction) -> shapes.Timeline:
            row = find.workload(tx, ref, project=project)
            pods = tx.pods.find(workload=row.id)
            names = {id: place.name for id, place in views.places(tx, nodes, pods).items()}
            receipts = {one.pod: one.id for one in tx.receipts.find(workload=row.id)}
            attempts = [_attempt(group, names, receipts) for group in _by_attempt(pods)]
            return shapes.Timeline(spans=list(_spans(row, attempts, _idle_marks(tx, row.id))))

        return await self._store.read(work)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One run: bound, perhaps told to end, gone."""

    number: int
    bound: datetime
    ending: datetime | None
    ended: datetime | None
    places: list[str]
    exit: str | None
    receipt: str | None


@dataclass(frozen=True, slots=True)
class _Mark:
    """What a workload that does not run does from then on."""

    time: datetime
    is_suspended: bool = False
    reason: shapes.SpanReason | None = None


def _by_attempt(pods: Sequence[records.PodRow]) -> list[list[records.PodRow]]:
    groups: dict[int, list[records.PodRow]] = {}
    for pod in pods:
        groups.setdefault(pod.attempt, []).append(pod)
    return [groups[number] for number in sorted(groups)]


def _attempt(pods: Sequence[records.PodRow], names: dict[str, str], receipts: dict[str, str]) -> _Attempt:
    ends = [pod.ended for pod in pods]
    ended = None if None in ends else max(end for end in ends if end is not None)
    ending = min((pod.ending_since for pod in pods if pod.ending_since is not None), default=None)
    devices = dict.fromkeys(share.device for pod in pods for share in pod.shares)
    return _Attempt(
        number=pods[0].attempt,
        bound=min(pod.bound for pod in pods),
        ending=ending,
        ended=ended,
        places=[names[device] for device in devices if device in names] or sorted({pod.node for pod in pods}),
        exit=next((_exit(pod) for pod in pods if pod.exit_kind not in {None, "exited"} or pod.exit_code), None)
        or ("exit code 0" if ended is not None else None),
        receipt=next((receipts[pod.id] for pod in pods if pod.id in receipts), None),
    )


def _exit(pod: records.PodRow) -> str:
    kind = (pod.exit_kind or "unknown").replace("-", " ")
    if pod.exit_signal is not None:
        return f"{kind}, signal {pod.exit_signal}"
    return kind if pod.exit_code is None else f"{kind}, exit code {pod.exit_code}"


def _idle_marks(tx: ports.Transaction, id: str) -> list[_Mark]:
    """When it was suspended or resumed, and when it began to wait for another reason."""
    events = tx.events.find(subject=id)
    marks = [
        _Mark(one.time, is_suspended=one.code in _SUSPENDS)
        for one in events
        if one.code in _SUSPENDS or one.code == "resumed"
    ]
    marks += [
        _Mark(one.since, reason=shapes.SpanReason(code=Code(one.code), message=one.message))
        for one in tx.past_reasons.find(workload=id)
    ]
    return sorted(marks, key=lambda mark: mark.time)


def _spans(row: records.WorkloadRow, attempts: Sequence[_Attempt], marks: Sequence[_Mark]) -> Iterator[shapes.Span]:
    at = row.created
    for attempt in attempts:
        yield from _idle(at, attempt.bound, marks)
        yield from _active(attempt)
        if attempt.ended is None:
            return
        at = attempt.ended
    if row.finished is None or row.finished > at:
        yield from _idle(at, row.finished, marks)


def _active(attempt: _Attempt) -> Iterator[shapes.Span]:
    runs = shapes.Span(
        kind="running",
        start=attempt.bound,
        end=attempt.ending or attempt.ended,
        attempt=attempt.number,
        places=attempt.places,
        exit=attempt.exit,
        receipt=attempt.receipt,
    )
    if attempt.ending is None:
        yield runs
        return
    yield runs.model_copy(update={"exit": None})
    yield runs.model_copy(update={"kind": "ending", "start": attempt.ending, "end": attempt.ended})


def _idle(start: datetime, end: datetime | None, marks: Sequence[_Mark]) -> Iterator[shapes.Span]:
    """What it did while it did not run."""
    state = _Mark(start)
    for mark in marks:
        if mark.time > start:
            break
        state = replace(mark, time=start, reason=None)  # A reason of the wait before is none of this one.
    for mark in marks:
        is_before = mark.time < start or (mark.time == start and mark.reason is None)
        if is_before or (end is not None and mark.time >= end):
            continue
        if state.is_suspended and mark.reason is not None:
            continue  # The last cycle that saw it wait.
        if state.reason is None and mark.reason is not None:
            state = replace(mark, time=state.time)  # The first cycle that saw it wait said why it did from the start.
        elif (mark.is_suspended, mark.reason) != (state.is_suspended, state.reason):
            yield _idle_span(state, mark.time)
            state = mark
    if end is None or end > state.time:
        yield _idle_span(state, end)


def _idle_span(state: _Mark, end: datetime | None) -> shapes.Span:
    if state.is_suspended:
        return shapes.Span(kind="suspended", start=state.time, end=end)
    is_backing_off = state.reason is not None and state.reason.code is Code.BACKING_OFF
    kind = "back-off" if is_backing_off else "waiting"
    return shapes.Span.model_validate({"kind": kind, "from": state.time, "to": end, "reason": state.reason})
