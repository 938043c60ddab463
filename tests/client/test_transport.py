"""How the client sends: again where that is safe, not where it is not, and never for ever."""

import json
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from aliquot.api import problems
from aliquot.client import transport
from aliquot.core import errors
from aliquot.wire import projects, workloads
from tests.client import scripts

JOB = workloads.Definition(command=["true"])
HEALTHY: scripts.Answer = (200, b'{"status": "ok", "version": "1"}', {})
ABSENT = scripts.problem(errors.NotFound("no"))
TAKEN = scripts.problem(errors.Conflict("taken"))
BUSY = scripts.problem(errors.Unavailable("busy", retry_after_seconds=3))


def test_a_server_that_is_busy_is_asked_again_after_the_time_it_named() -> None:
    with scripts.scripted(BUSY, BUSY, HEALTHY) as script, script.client() as asked:
        health = asked.health_check()

    assert health.version == "1"
    assert len(script.seen) == 3
    assert all(3 * 0.75 <= pause <= 3 * 1.25 for pause in script.pauses)


def test_a_proxy_whose_server_is_away_is_asked_again() -> None:
    away = (502, b"<html>Bad Gateway", {"Retry-After": "2"})

    with scripts.scripted(away, HEALTHY) as script, script.client() as asked:
        assert asked.health_check().status == "ok"

    assert 2 * 0.75 <= script.pauses[0] <= 2 * 1.25


def test_a_change_is_sent_again_when_the_server_says_that_it_was_busy() -> None:
    view = {"id": "1", "name": "a", "department": "d", "created": "2030-01-01T00:00:00Z", "pools": {}, "waiting": 0}
    done: scripts.Answer = (201, json.dumps(view | {"running": 0, "followsMachine": False}).encode(), {})

    with scripts.scripted(BUSY, done) as script, script.client() as asked:
        created = asked.create_project(projects.ProjectNew(name="a"))

    assert created.id == "1"
    assert [method for method, *_ in script.seen] == ["POST", "POST"]


def test_a_submission_whose_connection_breaks_is_sent_again_with_the_same_key() -> None:
    with (
        scripts.scripted(None, TAKEN) as script,
        script.client() as asked,
        pytest.raises(errors.Conflict),
    ):
        asked.submit_workload(JOB)

    keys = [key for _, _, key, _ in script.seen]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert len(keys[0]) > 16


def test_two_submissions_have_keys_of_their_own() -> None:
    with scripts.scripted(TAKEN) as script, script.client() as asked:
        for _ in range(2):
            with pytest.raises(errors.Conflict):
                asked.submit_workload(JOB)

    assert len({key for _, _, key, _ in script.seen}) == 2


def test_a_change_that_may_have_arrived_is_not_sent_again() -> None:
    with (
        scripts.scripted(None) as script,
        script.client() as asked,
        pytest.raises(errors.Unavailable, match=r"the connection to .* broke"),
    ):
        asked.create_project(projects.ProjectNew(name="a"))

    assert len(script.seen) == 1


def test_a_question_whose_connection_breaks_is_asked_again() -> None:
    with scripts.scripted(None, HEALTHY) as script, script.client() as asked:
        assert asked.health_check().status == "ok"

    assert len(script.seen) == 2


def test_a_server_that_stays_busy_is_given_up_after_a_bounded_number_of_tries() -> None:
    with scripts.scripted(BUSY) as script, script.client() as asked, pytest.raises(errors.Unavailable, match="busy"):
        asked.health_check()

    assert len(script.seen) == transport.MOST_TRIES
    assert max(script.pauses) <= transport.MOST_SECONDS_BETWEEN * 1.25


def test_an_error_that_trying_again_does_not_mend_is_raised_at_once() -> None:
    with (
        scripts.scripted(ABSENT) as script,
        script.client() as asked,
        pytest.raises(errors.NotFound),
    ):
        asked.get_project("a")

    assert len(script.seen) == 1
    assert script.pauses == []


@pytest.mark.parametrize("answer", [(200, b"<html>", {}), (404, b"<html>", {}), (502, b"", {}), (200, b"{}", {})])
def test_an_answer_that_is_not_from_aliquot_is_an_error_that_says_so(answer: scripts.Answer) -> None:
    with scripts.scripted(answer) as script, script.client() as asked, pytest.raises(errors.AliquotError) as caught:
        asked.health_check()

    assert caught.value.stable_code == "not-aliquot"


KNOWN = [
    errors.InvalidInput("m", field="f", valid=["a"], details={"x": 1}),
    errors.InvalidInput("m", code="duplicate-key"),
    errors.CannotEverStart("m", details={"asked": 9, "have": 8}),
    errors.NotFound("m", valid=["near"]),
    errors.Conflict("m"),
    errors.Conflict("m", code="cannot-stop"),
    errors.KeyReused("m"),
    errors.Unauthenticated("m"),
    errors.Forbidden("m"),
    errors.TooLarge("m"),
    errors.Unavailable("m", retry_after_seconds=7),
    errors.Unavailable("m", code="disk-full"),
]


@pytest.mark.parametrize("error", KNOWN, ids=lambda error: f"{type(error).__name__}-{error.stable_code}")
def test_an_error_comes_out_of_the_client_as_it_went_into_the_api(error: errors.AliquotError) -> None:
    status, body, headers = scripts.problem(error)

    again = transport.rebuild(status, body, after=headers.get("retry-after"))

    assert type(again) is type(error)
    assert (again.message, again.stable_code, again.field) == (error.message, error.stable_code, error.field)
    assert (again.valid, again.details) == (error.valid, error.details)


def test_every_class_of_the_error_tree_has_a_status_of_its_own_or_of_its_parent() -> None:
    def tree(kind: type[errors.AliquotError]) -> Iterator[type[errors.AliquotError]]:
        for child in kind.__subclasses__():
            yield child
            yield from tree(child)

    ours = [kind for kind in tree(errors.AliquotError) if kind.__module__ == "aliquot.core.errors"]

    assert len(ours) > 8
    for kind in ours:
        assert problems.status_of(kind("m")) is not HTTPStatus.INTERNAL_SERVER_ERROR


def test_what_nobody_foresaw_says_nothing_of_the_inside() -> None:
    answer = problems.answer(errors.AliquotError("the password is 123"))

    assert answer.status_code == 500
    assert b"password" not in bytes(answer.body)


def test_left_out_fields_of_a_change_are_not_sent() -> None:
    with (
        scripts.scripted(ABSENT) as script,
        script.client() as asked,
        pytest.raises(errors.NotFound),
    ):
        asked.update_workload("a", workloads.WorkloadUpdate(priority=3))

    assert json.loads(script.seen[0][3]) == {"priority": 3}


@pytest.mark.parametrize(
    ("ref", "path"),
    [("a b", "a%20b"), ("a/b", "a%2Fb"), ("..", "%2E%2E"), ("ä?#", "%C3%A4%3F%23")],
)
def test_a_name_is_one_step_of_the_path_whatever_is_in_it(ref: str, path: str) -> None:
    with (
        scripts.scripted(ABSENT) as script,
        script.client() as asked,
        pytest.raises(errors.NotFound),
    ):
        asked.get_workload(ref)

    assert script.seen[0][1] == f"/api/v1/workloads/{path}"


def test_a_label_is_a_filter_by_either_spelling() -> None:
    with scripts.scripted(ABSENT) as script, script.client() as asked:
        for query in ({"label": ["team=vision"]}, {"label.team": "vision"}):
            with pytest.raises(errors.NotFound):
                asked.list_workloads(**query)

    assert {path for _, path, _, _ in script.seen} == {"/api/v1/workloads?label=team%3Dvision"}
