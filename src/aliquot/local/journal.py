"""Writes a pod's output down, line by line, each with its time and stream.

One record is one line of the file: `2026-11-30T22:13:55.123456Z stdout F the text`, with the bytes of the text as they
came. `F` ends a line of the pod; `P` is a part of one: of a line longer than PART_BYTES, or of one that has not ended
after PARTIAL_SECONDS (a prompt, a progress bar). The stream `aliquot` holds remarks of our own.

An offset is a position in all that was ever written for this pod. Each segment is named by the offset of its first
byte, so dropping old segments moves nothing, and an offset never goes back. A full disk costs lines, never the job:
they are counted, and a remark says how many when there is room again.

Imported by the supervisor, which must start fast: nothing here may import `typing`, `dataclasses` or `pathlib`.
"""

from __future__ import annotations

import contextlib
import os
import time

PART_BYTES = 16_384
PARTIAL_SECONDS = 0.2
RETRY_SECONDS = 1.0
"""How long a full disk is left alone before the next try."""
TIDY_SECONDS = 60.0
REMARK = "aliquot"
SEGMENT = "{:020d}.log"
_LONGEST_CHARACTER = 4


class Journal:
    """The writing end. One process writes; any number read the files (`aliquot.local.logs`)."""

    def __init__(
        self, folder: str, *, segment_bytes: int, keep_bytes: int, rotate_seconds: float, keep_seconds: float
    ) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        self.keep_bytes = keep_bytes
        self.rotate_seconds = rotate_seconds
        self.keep_seconds = keep_seconds
        self.position = 0
        self._pending: dict[str, bytes] = {}
        self._flush_due: float | None = None
        self._descriptor: int | None = None
        self._segment_size = 0
        self._segment_born = 0.0
        self._dropped = 0
        self._failure = ""
        self._retry_at = 0.0
        self._tidy_at = 0.0

    @property
    def flush_due(self) -> float | None:
        """When (monotonic) `flush` wants to be called; None if nothing is pending."""
        return self._flush_due

    def feed(self, stream: str, data: bytes) -> bool:
        """Take output as it comes, in any pieces; says whether anything was written down."""
        pending = self._pending.pop(stream, b"") + data
        end = pending.rfind(b"\n") + 1
        whole, rest = pending[:end], pending[end:]
        parts = _split_long(whole[:-1].split(b"\n")) if whole else []
        records = _stamp(stream, parts)
        while len(rest) > PART_BYTES:
            cut = _cut_before(rest, PART_BYTES)
            records += _stamp(stream, [(b"P", rest[:cut])])
            rest = rest[cut:]
        if rest:
            self._pending[stream] = rest
            if self._flush_due is None:
                self._flush_due = time.monotonic() + PARTIAL_SECONDS
        elif not self._pending:
            self._flush_due = None
        self._write(records)
        return bool(records)

    def flush(self, *, is_final: bool = False) -> bool:
        """Write down what has not ended yet; a character cut in two waits for its rest, unless this is final."""
        records = b""
        for stream in sorted(self._pending):
            rest = self._pending.pop(stream)
            cut = len(rest) if is_final else _cut_before(rest, len(rest))
            if cut < len(rest):
                self._pending[stream] = rest[cut:]
            if cut:
                records += _stamp(stream, [(b"P", rest[:cut])])
        self._flush_due = None
        self._write(records)
        return bool(records)

    def remark(self, text: str) -> None:
        """Write down a line of our own."""
        self._write(_stamp(REMARK, [(b"F", text.encode())]))

    def close(self) -> None:
        """Flush, and make all of it durable."""
        self.flush(is_final=True)
        if self._dropped:
            self._retry_at = 0.0
            self._write(b"")
        if self._descriptor is not None:
            with contextlib.suppress(OSError):  # the disk is full or gone: the exit record still tells the end
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, records: bytes) -> None:
        now = time.monotonic()
        if self._dropped and now < self._retry_at:
            self._dropped += records.count(b"\n")
            return
        if self._dropped:
            text = f"{self._dropped} lines of output were dropped: {self._failure}"
            records = _stamp(REMARK, [(b"F", text.encode())]) + records
        if not records:
            return
        try:
            self._rotate_if_due(len(records), now)
            written = self._append(records)
        except OSError as error:
            self._failure = error.strerror or str(error)
            written = 0
        lost = records[written:].count(b"\n")
        if not lost:
            self._dropped = 0
            return
        self._retry_at = now + RETRY_SECONDS
        # The remark itself is no line of output.
        self._dropped = self._dropped + lost - 1 if self._dropped and not written else lost

    def _append(self, records: bytes) -> int:
        """Write as many whole records as there is room for, and return their length."""
        assert self._descriptor is not None
        written, failure = 0, None
        while written < len(records):
            try:
                written += os.write(self._descriptor, memoryview(records)[written:])
            except OSError as error:
                failure = error
                break
        if failure is not None:
            self._failure = failure.strerror or str(failure)
            whole = records.rfind(b"\n", 0, written) + 1
            if whole < written:
                os.ftruncate(self._descriptor, self._segment_size + whole)
            written = whole
        self._segment_size += written
        self.position += written
        return written

    def _rotate_if_due(self, coming: int, now: float) -> None:
        is_full = self._segment_size and self._segment_size + coming > self.segment_bytes
        is_old = self._segment_size and now - self._segment_born > self.rotate_seconds
        if self._descriptor is None or is_full or is_old:
            path = f"{self.folder}/{SEGMENT.format(self.position)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            fresh = os.open(path, flags, 0o600)
            if self._descriptor is not None:
                os.close(self._descriptor)
            self._descriptor, self._segment_size, self._segment_born = fresh, 0, now
            self._tidy_at = 0.0
        if now >= self._tidy_at:
            self._tidy_at = now + TIDY_SECONDS
            self._tidy()

    def _tidy(self) -> None:
        """Drop the oldest segments: those beyond the size that is kept, and those too old."""
        names = sorted(name for name in os.listdir(self.folder) if name.endswith(".log"))
        starts = [int(name[:-4]) for name in names]
        too_old = time.time() - self.keep_seconds
        for index, name in enumerate(names[:-1]):
            path = f"{self.folder}/{name}"
            is_beyond = self.position - starts[index] > self.keep_bytes
            if not is_beyond and os.stat(path).st_mtime > too_old:
                break
            os.unlink(path)


def _split_long(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    if max(map(len, lines)) <= PART_BYTES:
        return [(b"F", line) for line in lines]
    parts = []
    for line in lines:
        while len(line) > PART_BYTES:
            cut = _cut_before(line, PART_BYTES)
            parts.append((b"P", line[:cut]))
            line = line[cut:]
        parts.append((b"F", line))
    return parts


def _cut_before(data: bytes, limit: int) -> int:
    """The largest cut up to `limit` that does not split a UTF-8 character (what is no UTF-8 is cut anywhere)."""
    for back in range(1, min(_LONGEST_CHARACTER, limit) + 1):
        lead = data[limit - back]
        if lead & 0xC0 == 0x80:
            continue
        length = 2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4 if lead >> 3 == 0b11110 else 1
        return limit - back if length > back else limit
    return limit


def _stamp(stream: str, parts: list[tuple[bytes, bytes]]) -> bytes:
    if not parts:
        return b""
    now = time.time()
    fraction = int(now % 1 * 1_000_000)
    prefix = time.strftime(f"%Y-%m-%dT%H:%M:%S.{fraction:06d}Z {stream} ", time.gmtime(now)).encode()
    return b"".join([prefix + tag + b" " + text + b"\n" for tag, text in parts])
