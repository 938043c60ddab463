"""The log of a pod: whatever a program writes is read back, offsets never go back, and what was dropped is said."""

import pathlib
import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.local import journal, logs, records

Pieces = list[tuple[str, bytes]]
TEXT = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=40).map(str.encode)
STREAMS = st.sampled_from(["stdout", "stderr"])


def open_journal(
    pod: pathlib.Path, *, segment_bytes: int = 1 << 20, keep_bytes: int = 1 << 30, rotate_seconds: float = 3600
) -> journal.Journal:
    folder = pod / records.LOG_FOLDER
    folder.mkdir(parents=True)
    return journal.Journal(
        str(folder),
        segment_bytes=segment_bytes,
        keep_bytes=keep_bytes,
        rotate_seconds=rotate_seconds,
        keep_seconds=3600,
    )


def read_all(pod: pathlib.Path, *, offset: int = 0, lines: int = 1000, max_bytes: int = 1 << 20) -> list[logs.LogLine]:
    found: list[logs.LogLine] = []
    while (chunk := logs.read(pod, offset=offset, lines=lines, max_bytes=max_bytes)).lines:
        assert len(chunk.lines) <= lines
        assert chunk.next_offset > offset
        found += chunk.lines
        offset = chunk.next_offset
    return found


def joined(lines: list[logs.LogLine], stream: str) -> str:
    return "".join(line.text + "\n" * (not line.is_partial) for line in lines if line.stream == stream)


@pytest.fixture
def pod(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "p1"


@given(
    pieces=st.lists(st.tuples(STREAMS, TEXT), max_size=30),
    segment_bytes=st.integers(50, 500),
    flush_after=st.sets(st.integers(0, 30)),
)
def test_text_comes_back_as_it_was_written_however_it_was_cut(
    pieces: Pieces, segment_bytes: int, flush_after: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pod = pathlib.Path(folder)
        writer = open_journal(pod, segment_bytes=segment_bytes)
        for index, (stream, data) in enumerate(pieces):
            # Bytes arrive cut anywhere, also inside of a character.
            writer.feed(stream, data[: len(data) // 2])
            writer.feed(stream, data[len(data) // 2 :])
            if index in flush_after:
                writer.flush()
        writer.close()

        lines = read_all(pod)

        for stream in ("stdout", "stderr"):
            written = b"".join(data for name, data in pieces if name == stream).decode()
            assert joined(lines, stream) == written


@given(
    pieces=st.lists(st.tuples(STREAMS, st.binary(max_size=60)), max_size=20),
    segment_bytes=st.integers(50, 500),
    limits=st.tuples(st.integers(1, 5), st.integers(1, 300)),
)
def test_any_bytes_are_taken_and_reading_may_start_at_every_line(
    pieces: Pieces, segment_bytes: int, limits: tuple[int, int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pod = pathlib.Path(folder)
        writer = open_journal(pod, segment_bytes=segment_bytes)
        for stream, data in pieces:
            writer.feed(stream, data)
        writer.close()

        lines = read_all(pod)

        assert read_all(pod, lines=limits[0], max_bytes=limits[1]) == lines
        assert [line.offset for line in lines] == sorted({line.offset for line in lines})
        assert sum(not line.is_partial for line in lines) == sum(data.count(b"\n") for _, data in pieces)
        for index, line in enumerate(lines):
            assert read_all(pod, offset=line.offset) == lines[index:]
            assert read_all(pod, offset=line.offset + 1) == lines[index + 1 :]
        for count in range(1, len(lines) + 2):
            assert read_all(pod, offset=logs.tail(pod, count)) == lines[-count:]


def test_a_line_of_a_million_bytes_comes_in_parts(pod: pathlib.Path) -> None:
    writer = open_journal(pod)
    text = "äöü€𝄞" * 80_000
    data = text.encode() + b"\nnext\n"
    for start in range(0, len(data), 65_536):
        writer.feed("stdout", data[start : start + 65_536])
    writer.close()

    lines = read_all(pod)

    assert joined(lines, "stdout") == text + "\nnext\n"
    assert max(len(line.text.encode()) for line in lines) <= journal.PART_BYTES


def test_a_prompt_is_seen_once_it_is_flushed_and_its_answer_follows_it(pod: pathlib.Path) -> None:
    writer = open_journal(pod)
    writer.feed("stdout", b"name? ")
    assert writer.flush_due is not None
    assert read_all(pod) == []

    writer.flush()
    prompt = read_all(pod)
    writer.feed("stdout", b"\n")
    writer.close()

    assert [(line.text, line.is_partial) for line in prompt] == [("name? ", True)]
    assert joined(read_all(pod), "stdout") == "name? \n"


def test_a_progress_bar_keeps_its_carriage_returns_and_a_windows_line_loses_its_own(pod: pathlib.Path) -> None:
    writer = open_journal(pod)
    writer.feed("stdout", b"10%\r20%\rdone\nline\r\n")
    writer.close()

    assert [line.text for line in read_all(pod)] == ["10%\r20%\rdone", "line"]


def test_each_line_has_the_time_at_which_it_came(pod: pathlib.Path) -> None:
    writer = open_journal(pod)
    before = datetime.now(UTC)
    writer.feed("stdout", b"x\n")
    writer.close()

    (line,) = read_all(pod)

    assert before - timedelta(milliseconds=1) <= line.time <= datetime.now(UTC)


def test_what_was_dropped_leaves_a_remark_and_offsets_go_on(pod: pathlib.Path) -> None:
    writer = open_journal(pod, segment_bytes=1000, keep_bytes=3000)
    offsets = []
    for number in range(500):
        offsets.append(writer.position)
        writer.feed("stdout", b"line %d\n" % number)
    writer.close()

    lines = read_all(pod)

    size = sum(file.stat().st_size for file in (pod / records.LOG_FOLDER).iterdir())
    assert 2000 <= size <= 4000
    assert (lines[0].stream, lines[0].offset) == ("aliquot", 0)
    assert lines[0].text == f"{lines[1].offset} bytes of older output were dropped"
    kept = [int(line.text.split()[1]) for line in lines[1:]]
    assert kept == list(range(kept[0], 500))
    assert [line.offset for line in lines[1:]] == offsets[kept[0] :]
    assert logs.tail(pod, 10_000) == 0


def test_a_segment_that_is_old_enough_is_closed(pod: pathlib.Path) -> None:
    writer = open_journal(pod, rotate_seconds=-1)
    for _ in range(3):
        writer.feed("stdout", b"x\n")
    writer.close()

    assert len(list((pod / records.LOG_FOLDER).iterdir())) == 3
    assert len(read_all(pod)) == 3


def test_a_reader_that_follows_sees_each_line_once_and_then_the_end(pod: pathlib.Path) -> None:
    writer = open_journal(pod, segment_bytes=300)
    seen: list[str] = []
    offset = 0
    for number in range(100):
        writer.feed("stdout", b"%d\n" % number)
        chunk = logs.read(pod, offset=offset)
        assert not chunk.is_complete
        seen += [line.text for line in chunk.lines]
        offset = chunk.next_offset
    writer.close()
    records.write_exit(str(pod), {"kind": "exited"})

    chunk = logs.read(pod, offset=offset)

    assert seen == [str(number) for number in range(100)]
    assert chunk == logs.LogChunk((), offset, is_complete=True)


def test_a_pod_that_wrote_nothing_has_an_empty_log(pod: pathlib.Path) -> None:
    assert logs.read(pod) == logs.LogChunk((), 0, is_complete=False)
    assert logs.read(pod, offset=100).lines == ()
    assert logs.tail(pod, 5) == 0


def test_an_offset_beyond_the_end_gives_nothing_and_comes_back_to_the_end(pod: pathlib.Path) -> None:
    writer = open_journal(pod)
    writer.feed("stdout", b"x\n")
    writer.close()

    chunk = logs.read(pod, offset=10_000)

    assert chunk.lines == ()
    assert chunk.next_offset == logs.end_of(pod)
