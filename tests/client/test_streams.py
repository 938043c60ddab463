"""How the client follows a stream over connections that break."""

import json
from datetime import UTC, datetime

import pytest

from aliquot.client import streams
from aliquot.core import errors
from aliquot.wire import records
from tests.client import scripts


def event(sequence: int) -> bytes:
    """One event as the server sends it."""
    happened = records.Event(
        sequence=sequence,
        time=datetime(2030, 1, 1, tzinfo=UTC),
        noun="workload",
        subject="1",
        subject_name="a",
        project="default",
        code="created",
        message="m",
    )
    return f"id: {sequence}\ndata: {happened.model_dump_json(by_alias=True)}\n\n".encode()


def stream(*parts: bytes) -> scripts.Answer:
    """A stream that ends after these parts."""
    return 200, b"".join(parts), {"Content-Type": "text/event-stream"}


GONE = scripts.problem(errors.NotFound("gone"))
PING = b": ping\n\n"
END = b"event: end\ndata: null\n\n"


def test_a_stream_that_breaks_goes_on_after_the_last_event_that_came() -> None:
    script_of_four = (stream(event(1), PING, event(2)), None, stream(event(3)), stream(END))

    with scripts.scripted(*script_of_four) as script, script.client() as asked:
        seen = [one.sequence for one in asked.stream_events(after=0)]

    assert seen == [1, 2, 3]
    assert script.last_ids == ["0", "2", "2", "3"]


def test_an_event_that_was_cut_in_the_middle_is_not_half_an_event() -> None:
    cut = event(2)[:40]

    with scripts.scripted(stream(event(1), cut), stream(event(2), END)) as script, script.client() as asked:
        seen = [one.sequence for one in asked.stream_events(after=0)]

    assert seen == [1, 2]


def test_a_stream_that_says_its_end_is_not_asked_for_again() -> None:
    with scripts.scripted(stream(event(1), END)) as script, script.client() as asked:
        assert len(list(asked.stream_events(after=0))) == 1

    assert len(script.seen) == 1


def test_a_stream_that_cannot_begin_raises_what_the_server_said() -> None:
    with scripts.scripted(GONE) as script, script.client() as asked, pytest.raises(errors.NotFound, match="gone"):
        next(asked.follow_logs("a"))


def test_a_stream_whose_workload_goes_away_between_raises_it() -> None:
    with scripts.scripted(stream(event(1)), GONE) as script, script.client() as asked:
        followed = asked.stream_events(after=0)
        assert next(followed).sequence == 1
        with pytest.raises(errors.NotFound, match="gone"):
            next(followed)


def test_a_server_that_does_not_come_back_is_given_up() -> None:
    broken = pytest.raises(errors.Unavailable, match="broke")

    with scripts.scripted(stream(event(1)), None) as script, script.client() as asked, broken:
        list(asked.stream_events(after=0))

    assert len(script.pauses) == streams.MOST_FAILURES
    assert max(script.pauses) <= streams.MOST_SECONDS_BETWEEN * 1.25


def test_without_a_place_to_begin_a_stream_begins_after_the_newest_event() -> None:
    happened = json.loads(event(41).split(b"data: ")[1])
    page: scripts.Answer = (200, json.dumps({"items": [happened], "total": 41}).encode(), {})

    with scripts.scripted(page, stream(event(42), END)) as script, script.client() as asked:
        assert [one.sequence for one in asked.stream_events()] == [42]

    assert script.seen[0][1] == "/api/v1/events?limit=1"
    assert script.last_ids[1] == "41"
