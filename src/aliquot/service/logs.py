"""Logs: a part of one pod's output, or all output of a workload as it comes, from attempt to attempt.

Promises: a follower that comes back with the cursor it was given misses no line and sees none twice.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from aliquot.core import errors, lifecycle
from aliquot.service import access, find, ports, records
from aliquot.wire import workloads as shapes

LINES_AT_ONCE = 1000
# How soon a new line is seen. Pods write to files of their own, so there is nobody who would tell.
LOOK_AGAIN = timedelta(milliseconds=100)
_CURSOR = re.compile(r"(\d{1,9}):((?:\d{1,6}=\d{1,19}(?:,|$))*)")


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A part of one pod's lines. `offset`: bytes, negative: lines from the end. `attempt` None: the latest."""

    index: int = 0
    offset: int = 0
    limit: int = 1000
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class TextRequest:
    """The output of one pod as text. `attempt` None: the latest. `has_times`: each line begins with its time."""

    index: int = 0
    attempt: int | None = None
    has_times: bool = False


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """What to follow. `index` None: all replicas. `after`: a cursor of an earlier line. `tail`: lines of each pod to
    begin with, None: all of the latest attempt."""

    index: int | None = None
    after: str | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class FollowedLine:
    """A line and the cursor (opaque text, the id of a server-sent event) that goes on after it."""

    line: shapes.LogLine
    cursor: str


class Logs:
    """The use cases of logs."""

    def __init__(self, store: ports.Store, pods: ports.Pods, *, clock: ports.Clock) -> None:
        self._store = store
        self._pods = pods
        self._clock = clock

    async def read(
        self, actor: access.Actor, ref: str, *, request: ReadRequest, project: str | None = None
    ) -> shapes.LogChunk:
        """Some lines of one pod. Nothing yet, while it never had a place."""
        access.check(actor, "get", "log")
        row, pod = await self._store.read(lambda tx: _pod_of(tx, ref, project, which=request))
        if pod is None:
            return shapes.LogChunk(lines=[], next_offset=0, is_complete=row.phase in lifecycle.FINISHED)
        return await self._chunk(pod, offset=request.offset, limit=request.limit)

    async def text(
        self, actor: access.Actor, ref: str, *, request: TextRequest, project: str | None = None
    ) -> tuple[str, AsyncIterator[bytes]]:
        """All output of one pod so far as text: a name for the file, and the text piece by piece."""
        access.check(actor, "get", "log")
        row, pod = await self._store.read(lambda tx: _pod_of(tx, ref, project, which=request))
        attempt = "" if pod is None else f"-{pod.attempt}"
        return f"{row.name}-{request.index}{attempt}.log", self._pieces(pod, has_times=request.has_times)

    async def _pieces(self, pod: records.PodRow | None, *, has_times: bool) -> AsyncIterator[bytes]:
        offset = 0
        while pod is not None:
            chunk = await self._chunk(pod, offset=offset, limit=LINES_AT_ONCE)
            if not chunk.lines:
                return
            yield "".join(_as_text(line, has_time=has_times) for line in chunk.lines).encode()
            offset = chunk.next_offset

    async def follow(
        self, actor: access.Actor, ref: str, *, request: FollowRequest, project: str | None = None
    ) -> AsyncIterator[FollowedLine]:
        """Lines as they come, over all attempts, until the workload is finished and read to the end."""
        access.check(actor, "get", "log")
        row = await self._store.read(lambda tx: find.workload(tx, ref, project=project))
        if request.index is not None:
            check_index(row, request.index)
        state = NOT_BEGUN if request.after is None else read_cursor(request.after)
        while True:
            # First what is, then the lines: what is over now has written all that it ever will.
            is_over, pods = await self._store.read(lambda tx: _look(tx, row.id, request.index))
            state = await self._begin(pods, request.tail) if state is NOT_BEGUN else state
            has_read, is_complete = False, True
            for pod in [pod for pod in pods if pod.attempt == state.attempt]:
                chunk = await self._chunk(pod, offset=state.at(pod.index), limit=LINES_AT_ONCE)
                has_read, is_complete = has_read or bool(chunk.lines), is_complete and chunk.is_complete
                for line, end in _with_ends(chunk):
                    state = state.moved(pod.index, end)
                    yield FollowedLine(line, state.cursor)
            later = _later(pods, state.attempt)
            if has_read:
                continue
            if is_complete and later is not None:
                state = Position(later)
            elif is_complete and is_over:
                return
            else:
                await self._clock.sleep(LOOK_AGAIN)

    async def _begin(self, pods: Sequence[records.PodRow], tail: int | None) -> "Position":
        """Where to begin in the latest attempt, once there is one."""
        if not pods:
            return NOT_BEGUN
        state = Position(max(pod.attempt for pod in pods))
        if tail is None:
            return state
        for pod in pods:
            if pod.attempt == state.attempt:
                chunk = await self._chunk(pod, offset=-max(tail, 1), limit=max(tail, 1))
                start = chunk.lines[0].offset if chunk.lines and tail else chunk.next_offset
                state = state.moved(pod.index, start)
        return state

    async def _chunk(self, pod: records.PodRow, *, offset: int, limit: int) -> shapes.LogChunk:
        """Lines of a pod. One that has not begun, or whose log is gone, has none."""
        try:
            return await self._pods.logs(pod.id, offset=offset, limit=limit)
        except errors.NotFound:
            is_over = pod.phase is shapes.PodPhase.ENDED
            return shapes.LogChunk(lines=[], next_offset=max(offset, 0), is_complete=is_over)


def _pod_of(
    tx: ports.Transaction, ref: str, project: str | None, *, which: ReadRequest | TextRequest
) -> tuple[records.WorkloadRow, records.PodRow | None]:
    """The workload, and its pod of that replica and attempt (None: the latest); no pod while it never had a place."""
    row = find.workload(tx, ref, project=project)
    check_index(row, which.index)
    pods = tx.pods.find(workload=row.id, index=which.index)
    wanted = [pod for pod in pods if which.attempt is None or pod.attempt == which.attempt]
    if not wanted and which.attempt is not None:
        valid = [str(pod.attempt) for pod in pods]
        raise errors.NotFound(f"{row.name} had no attempt {which.attempt}", field="attempt", valid=valid)
    return row, max(wanted, key=lambda pod: pod.attempt, default=None)


def _as_text(line: shapes.LogLine, *, has_time: bool) -> str:
    time = f"{line.time.isoformat(timespec='milliseconds')} " if has_time else ""
    return f"{time}{line.text}" + ("" if line.is_partial else "\n")


@dataclass(frozen=True, slots=True)
class Position:
    """How far an attempt was read: the next byte of each replica; one that is not named is at its start."""

    attempt: int
    offsets: Mapping[int, int] = field(default_factory=dict)

    def at(self, index: int) -> int:
        """The next byte of a replica."""
        return self.offsets.get(index, 0)

    def moved(self, index: int, offset: int) -> "Position":
        """The same, with one replica read further."""
        return replace(self, offsets={**self.offsets, index: offset})

    @property
    def cursor(self) -> str:
        """As text: `2:0=512,1=80`."""
        return f"{self.attempt}:" + ",".join(f"{index}={offset}" for index, offset in sorted(self.offsets.items()))


NOT_BEGUN = Position(0)


def read_cursor(text: str) -> Position:
    """The position that a cursor stands for. Raises InvalidInput."""
    match = _CURSOR.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise errors.InvalidInput("after: this is not a cursor of a log", field="after")
    parts = (part.partition("=") for part in match[2].split(",") if part)
    return Position(int(match[1]), {int(index): int(offset) for index, _, offset in parts})


def check_index(row: records.WorkloadRow, index: int) -> None:
    """Raises NotFound for a replica that the workload has not got."""
    replicas = row.definition.replicas
    if not 0 <= index < replicas:
        valid = ["0"] if replicas == 1 else [f"0 to {replicas - 1}"]
        raise errors.NotFound(f"{row.name} has no replica {index}", field="index", valid=valid)


def _look(tx: ports.Transaction, id: str, index: int | None) -> tuple[bool, Sequence[records.PodRow]]:
    """Whether the workload is over, and its pods in order."""
    row = tx.workloads.get(id)
    pods = tx.pods.find(workload=id) if index is None else tx.pods.find(workload=id, index=index)
    is_over = row is None or row.phase in lifecycle.FINISHED
    return is_over, sorted(pods, key=lambda pod: (pod.attempt, pod.index))


def _later(pods: Sequence[records.PodRow], attempt: int) -> int | None:
    return min((pod.attempt for pod in pods if pod.attempt > attempt), default=None)


def _with_ends(chunk: shapes.LogChunk) -> list[tuple[shapes.LogLine, int]]:
    """Each line with the offset at which the next one begins."""
    ends = [*(line.offset for line in chunk.lines[1:]), chunk.next_offset]
    return list(zip(chunk.lines, ends, strict=False))
