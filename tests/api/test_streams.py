"""Streams of events and logs: nothing lost, nothing twice, over cuts and restarts; and nothing left behind."""

import http.client
import pathlib
import threading
import time
from urllib import parse

import pytest

from aliquot import client
from aliquot.core import errors
from aliquot.wire import workloads
from tests import serving
from tests.api import machine
from tests.api.raw import ask, code_of, with_token


class Raw:
    """A stream, read line by line, that can be cut at any place."""

    def __init__(self, live: serving.Live, path: str, **headers: str) -> None:
        address = parse.urlsplit(live.url)
        self._connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=serving.GUARD_SECONDS
        )
        self._connection.request("GET", path, headers=with_token(**headers))
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert self._answer.headers["Content-Type"].startswith("text/event-stream")

    def events(self, most: int) -> list[tuple[str, str]]:
        """The next events, as id and kind, at most so many; fewer at the end of the stream."""
        found: list[tuple[str, str]] = []
        id, kind = "", "message"
        while len(found) < most:
            line = self._answer.readline().decode()
            if not line:
                break
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                id = value
            elif name == "event":
                kind = value
            elif name == "":
                found.append((id, kind))
                id, kind = "", "message"
        return found

    def cut(self) -> None:
        """Close without a word."""
        self._answer.close()
        self._connection.close()


def submit(asked: client.Client, count: int) -> list[str]:
    """Submit so many workloads; their ids."""
    return [asked.submit_workload(workloads.Definition(command=["true"])).id for _ in range(count)]


def followers(here: machine.Here) -> int:
    """How many streams of events the store serves."""
    return len(here.world.store._news._followers)


def await_followers(here: machine.Here, asked: client.Client, count: int) -> None:
    """Ask the server for one thing and another until it serves so many streams."""
    end = time.monotonic() + serving.GUARD_SECONDS
    while followers(here) != count:
        assert time.monotonic() < end, f"{followers(here)} streams are served, not {count}"
        asked.health_check()


def test_a_stream_that_is_cut_at_every_event_gives_each_event_once(live: serving.Live, asked: client.Client) -> None:
    start = asked.list_events(limit=1).items[0].sequence
    made = submit(asked, 12)

    seen: list[str] = []
    last = str(start)
    while len(seen) < len(made):
        raw = Raw(live, "/api/v1/events/stream?noun=workload", Last_Event_ID=last)
        ((last, _),) = raw.events(1)
        raw.cut()
        seen.append(last)

    kept = [str(event.sequence) for event in asked.list_events(after=start, noun="workload", sort="sequence").items]
    assert seen == kept
    assert len(set(seen)) == len(made)


def test_events_that_happen_while_nobody_looks_come_after_the_cut(live: serving.Live, asked: client.Client) -> None:
    raw = Raw(live, f"/api/v1/events/stream?after={asked.list_events(limit=1).items[0].sequence}")
    first = submit(asked, 1)
    ((last, _),) = raw.events(1)
    raw.cut()
    missed = submit(asked, 3)

    again = Raw(live, "/api/v1/events/stream", Last_Event_ID=last)
    sequences = [id for id, _ in again.events(3)]
    again.cut()

    subjects = {str(event.sequence): event.subject for event in asked.list_events().items}
    assert [subjects[sequence] for sequence in sequences] == missed
    assert subjects[last] == first[0]


def test_a_client_that_goes_away_leaves_nothing_behind(
    here: machine.Here, live: serving.Live, asked: client.Client
) -> None:
    await_followers(here, asked, 0)
    streams = [Raw(live, "/api/v1/events/stream") for _ in range(5)]
    await_followers(here, asked, 5)

    for raw in streams:
        raw.cut()

    await_followers(here, asked, 0)


def test_the_lines_of_all_replicas_come_once_over_cuts_and_attempts(
    here: machine.Here, live: serving.Live, asked: client.Client
) -> None:
    made = asked.submit_workload(workloads.Definition(command=["true"], replicas=2))
    pods = here.world.pods
    first = here.do(lambda world: world.run(made.id))
    for number in range(4):
        for index, pod in enumerate(first):
            pods.write(pod, f"first {index} {number}", index=index)

    raw = Raw(live, f"/api/v1/workloads/{made.id}/logs/stream")
    events = raw.events(5)
    raw.cut()
    pods.over.update(first)
    second = here.do(lambda world: world.run(made.id, attempt=2))
    for index, pod in enumerate(second):
        pods.write(pod, f"second {index}", index=index)
    here.do(lambda world: world.finish(made.id))
    rest = list(asked.follow_logs(made.id, after=events[-1][0]))

    whole = [line.text for line in asked.follow_logs(made.id, after="1:")]
    assert len(whole) == 10
    assert sorted(whole)[:8] == sorted(f"first {index} {number}" for index in range(2) for number in range(4))
    assert len(rest) == 5
    assert [line.text for line in rest] == whole[5:]


def test_a_log_stream_says_its_end_when_the_workload_is_over(
    here: machine.Here, live: serving.Live, asked: client.Client
) -> None:
    (made,) = submit(asked, 1)
    (pod,) = here.do(lambda world: world.run(made))
    here.world.pods.write(pod, "only")
    here.do(lambda world: world.finish(made))

    raw = Raw(live, f"/api/v1/workloads/{made}/logs/stream")
    events = raw.events(10)
    raw.cut()

    assert [kind for _, kind in events] == ["message", "end"]


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("workloads/nope/logs/stream", {}, 404, "not-found"),
        ("workloads/{made}/logs/stream?index=1", {}, 404, "not-found"),
        ("workloads/{made}/logs/stream?after=x", {}, 422, "invalid"),
        ("workloads/{made}/logs/stream", {"Last_Event_ID": "x"}, 422, "invalid"),
        ("workloads/{made}/logs/stream?tail=-1", {}, 422, "invalid"),
        ("events/stream", {"Last_Event_ID": "-1"}, 422, "invalid"),
        ("events/stream", {"Last_Event_ID": "9" * 30}, 422, "invalid"),
        ("events/stream?colour=red", {}, 422, "invalid"),
    ],
)
def test_a_stream_that_cannot_begin_is_a_problem(
    live: serving.Live, asked: client.Client, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    (made,) = submit(asked, 1)

    answered, _, content = ask(live, "GET", f"/api/v1/{path.format(made=made)}", headers=with_token(**headers))

    assert (answered, code_of(content)) == (status, code)


def test_a_server_that_ends_does_not_wait_for_its_streams(tmp_path: pathlib.Path) -> None:
    with machine.here(tmp_path) as here, here.live.client() as asked:
        (made,) = submit(asked, 1)
        here.do(lambda world: world.run(made))
        streams = [Raw(here.live, "/api/v1/events/stream"), Raw(here.live, f"/api/v1/workloads/{made}/logs/stream")]

        here.live.stop()

        assert [raw.events(1) for raw in streams] == [[], []]
        for raw in streams:
            raw.cut()


@pytest.mark.slow  # The client waits, a little longer each time, until the second server answers.
def test_a_follower_lives_through_a_restart_of_the_server(tmp_path: pathlib.Path) -> None:
    seen: list[str] = []
    has_seen = threading.Event()

    def follow(asked: client.Client) -> None:
        for event in asked.stream_events(after=0, noun="workload"):
            seen.append(event.subject)
            has_seen.set()
            if len(seen) == 2:
                return

    with machine.here(tmp_path) as first:
        port = parse.urlsplit(first.live.url).port or 0
        asked = first.live.client()
        follower = threading.Thread(target=follow, args=[asked])
        follower.start()
        made = submit(asked, 1)
        assert has_seen.wait(serving.GUARD_SECONDS)
    with machine.here(tmp_path, port=port):
        made += submit(asked, 1)
        follower.join(serving.GUARD_SECONDS)
    asked.close()

    assert seen == made


def test_a_follower_of_a_workload_that_is_not_there_learns_it_at_once(asked: client.Client) -> None:
    with pytest.raises(errors.NotFound, match="nope"):
        next(asked.follow_logs("nope"))
