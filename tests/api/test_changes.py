"""The stream of changes over HTTP: as the page reads it."""

import json

import pytest

from aliquot import client
from aliquot.wire import workloads
from tests import serving
from tests.api import machine
from tests.api.raw import ask, code_of, with_token
from tests.api.test_streams import Raw, await_followers, submit

PATH = "/api/v1/changes/stream"


def test_a_page_is_greeted_told_what_changes_and_goes_on_after_a_cut(live: serving.Live, asked: client.Client) -> None:
    raw = Raw(live, PATH)
    ((hello, kind),) = raw.events(1)
    submit(asked, 1)
    ((first, change),) = raw.events(1)
    raw.cut()
    submit(asked, 1)

    again = Raw(live, PATH, Last_Event_ID=first)
    ((start, _), (second, missed)) = again.events(2)
    again.cut()

    assert (kind, change, missed) == ("hello", "changes", "changes")
    assert int(hello) < int(first) == int(start) < int(second)


def test_the_client_follows_what_changes(asked: client.Client) -> None:
    after = asked.list_events(limit=1).items[0].sequence
    made = asked.submit_workload(workloads.Definition(command=["true"]))

    told = next(asked.stream_changes(after=after))

    assert made.id in [view.id for view in told.workloads]


def test_a_page_that_goes_away_leaves_nothing_behind(
    here: machine.Here, live: serving.Live, asked: client.Client
) -> None:
    await_followers(here, asked, 0)
    pages = [Raw(live, PATH) for _ in range(3)]
    await_followers(here, asked, 1)  # One tells all.

    for raw in pages:
        raw.cut()

    await_followers(here, asked, 0)


@pytest.mark.parametrize(("query", "headers"), [("?after=x", {}), ("", {"Last_Event_ID": "x"}), ("?noun=node", {})])
def test_what_is_no_place_to_go_on_from_is_refused(live: serving.Live, query: str, headers: dict[str, str]) -> None:
    status, _, content = ask(live, "GET", PATH + query, headers=with_token(**headers))

    assert (status, code_of(content)) == (422, "invalid")
    assert json.loads(content)["errors"]
