"""Reads what a pod wrote, by offsets that never go back, while it is being written and after its end.

The files are those of `aliquot.local.journal`. Where old output was dropped, a remark stands in its place. Bytes that
are no UTF-8 become replacement characters. To follow a log, read again from `next_offset` when something changed.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from aliquot.local import records

Stream = Literal["stdout", "stderr", "aliquot"]
DEFAULT_LINES = 1000
DEFAULT_BYTES = 1 << 20
_TAIL_BYTES = 1 << 16
_STREAMS: dict[bytes, Stream] = {b"stdout": "stdout", b"stderr": "stderr", b"aliquot": "aliquot"}


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, or a part of one (`is_partial`: the next line of the same stream goes on where this one stops).

    The stream `aliquot` holds remarks: output that was dropped, and why.
    """

    offset: int
    time: datetime
    stream: Stream
    text: str
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Some lines, where to go on, and whether that was all there will ever be."""

    lines: tuple[LogLine, ...]
    next_offset: int
    is_complete: bool


def read(folder: Path, *, offset: int = 0, lines: int = DEFAULT_LINES, max_bytes: int = DEFAULT_BYTES) -> LogChunk:
    """The lines from `offset` on: at most `lines`, and about `max_bytes`. `folder` is the pod's.

    An offset inside a line counts as the start of the next one; one beyond the end gives nothing and the end.
    """
    is_over = records.exists(str(folder), records.EXIT)
    found: list[LogLine] = []
    position, budget = max(0, offset), max_bytes
    while len(found) < lines and budget > 0:
        segment = _segment_at(folder, position)
        if segment is None:
            break
        start, path = segment
        if position < start:
            found.append(_gap(position, start, path))
            position = start
            continue
        # Asked for before reading: only then is this segment known to be finished when there is one after it.
        following = _next_segment(folder, start)
        try:
            data = _read_whole_lines(path, position - start, budget)
            skipped = _skip_to_line(path, position - start, data)
        except FileNotFoundError:  # dropped since it was listed
            continue
        position += skipped
        if not data[skipped:]:
            if following is None:
                position = min(position, end_of(folder))
                break
            position = following[0]
            continue
        taken, count = _parse(data[skipped:], position, lines - len(found))
        found += taken
        position += count
        budget -= count
    return LogChunk(tuple(found), position, is_over and position >= end_of(folder))


def tail(folder: Path, lines: int) -> int:
    """The offset from which `read` gives the last `lines` lines."""
    wanted = lines
    for start, path in reversed(_segments(folder)):
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return _next_start(folder, start)
        end, data = size, b""
        while end > 0:
            begin = max(0, end - _TAIL_BYTES)
            with path.open("rb") as file:
                file.seek(begin)
                data = file.read(end - begin) + data
            end = begin
            if data.count(b"\n") > wanted:
                break
        newlines = data.count(b"\n")
        if newlines > wanted:
            cut = len(data)
            for _ in range(wanted + 1):
                cut = data.rindex(b"\n", 0, cut)
            return start + end + cut + 1
        wanted -= newlines
        if wanted == 0:
            return start
    return 0


def end_of(folder: Path) -> int:
    """The offset after the last byte that was written so far."""
    segments = _segments(folder)
    if not segments:
        return 0
    start, path = segments[-1]
    try:
        return start + path.stat().st_size
    except FileNotFoundError:
        return start


def _segments(folder: Path) -> list[tuple[int, Path]]:
    try:
        return sorted((int(path.stem), path) for path in (folder / records.LOG_FOLDER).glob("*.log"))
    except FileNotFoundError:
        return []


def _segment_at(folder: Path, position: int) -> tuple[int, Path] | None:
    """The segment that holds the position, or the first one after it."""
    segments = _segments(folder)
    before = [segment for segment in segments if segment[0] <= position]
    if before:
        return before[-1]
    return segments[0] if segments else None


def _next_segment(folder: Path, start: int) -> tuple[int, Path] | None:
    return next((segment for segment in _segments(folder) if segment[0] > start), None)


def _next_start(folder: Path, start: int) -> int:
    following = _next_segment(folder, start)
    return following[0] if following else start


def _gap(position: int, start: int, path: Path) -> LogLine:
    try:
        moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        moment = datetime.fromtimestamp(0, UTC)
    return LogLine(position, moment, "aliquot", f"{start - position} bytes of older output were dropped")


def _read_whole_lines(path: Path, at: int, budget: int) -> bytes:
    """Complete lines from there on, about as many bytes as the budget; at least one line if there is one."""
    with path.open("rb") as file:
        file.seek(at)
        data = file.read(budget)
        if len(data) == budget and not data.endswith(b"\n"):
            data += file.readline()
    return data[: data.rfind(b"\n") + 1]


def _skip_to_line(path: Path, at: int, data: bytes) -> int:
    """How many bytes of data belong to a line that began before `at`."""
    if at == 0 or not data:
        return 0
    with path.open("rb") as file:
        file.seek(at - 1)
        return 0 if file.read(1) == b"\n" else data.index(b"\n") + 1


def _parse(data: bytes, position: int, limit: int) -> tuple[list[LogLine], int]:
    found: list[LogLine] = []
    count = 0
    for record in data.split(b"\n", limit)[:limit]:
        if count >= len(data):
            break
        moment, stream, tag, text = record.split(b" ", 3)
        is_partial = tag == b"P"
        if not is_partial and text.endswith(b"\r"):
            text = text[:-1]
        found.append(
            LogLine(
                position + count,
                datetime.fromisoformat(moment.decode()),
                _STREAMS[stream],
                text.decode(errors="replace"),
                is_partial,
            )
        )
        count += len(record) + 1
    return found, count
