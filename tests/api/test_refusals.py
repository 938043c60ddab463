"""Bad input by the door of the API: a 4xx with a stable code that names the field, and nothing is created."""

import json
from typing import Any

import pytest

from aliquot.api import bodies
from tests import serving
from tests.api import machine
from tests.api.raw import ask, code_of, with_token

JSON = with_token(Content_Type="application/json")
JOB: dict[str, Any] = {"command": ["true"]}  # Any: a JSON document
NEW: dict[str, Any] = {"name": "other"}  # Any: a JSON document


def terms(**claim: object) -> dict[str, Any]:  # Any: a JSON document
    """A project whose GPU claim is this."""
    return NEW | {"pools": {"default": {"gpu": claim}}}


WORKLOADS = [
    ("an unknown project", JOB | {"project": "nope"}, "project", "no-such-project"),
    ("more GPUs than any node has", JOB | {"gpu": "9"}, "gpu", "cannot-ever-start"),
    ("no GPU, said as 0", JOB | {"gpu": "0"}, "gpu", "invalid"),
    ("a GPU that is no number", JOB | {"gpu": "nan"}, "gpu", "invalid"),
    ("a GPU that is no number but one of JSON", JOB | {"gpu": 1e999}, None, "malformed-json"),
    ("a GPU and a half", JOB | {"gpu": "1.5"}, "gpu", "invalid"),
    ("a negative GPU", JOB | {"gpu": "-1"}, "gpu", "invalid"),
    ("an infinite GPU", JOB | {"gpu": "inf"}, "gpu", "invalid"),
    ("GPUs with many digits", JOB | {"gpu": "9" * 65}, "gpu", "invalid"),
    ("a GPU that is true", JOB | {"gpu": True}, "gpu", "invalid"),
    ("more memory than a device has", JOB | {"gpu": "81Gi"}, "gpu", "cannot-ever-start"),
    ("a negative CPU", JOB | {"cpu": "-1"}, "cpu", "invalid"),
    ("memory without sense", JOB | {"memory": "lots"}, "memory", "invalid"),
    ("an unknown field", JOB | {"gpus": 1}, "gpus", "invalid"),
    ("an unknown kind", JOB | {"kind": "service"}, "kind", "invalid"),
    ("an unknown priority", JOB | {"priority": "urgent"}, "priority", "invalid"),
    ("no command", {}, "command", "invalid"),
    ("an empty command", {"command": []}, "command", "invalid"),
    ("command and script", JOB | {"script": "true"}, "command", "invalid"),
    ("a NUL in the command", {"command": ["a\0b"]}, "command[0]", "invalid"),
    ("a NUL in the script", {"script": "a\0b"}, "script", "invalid"),
    ("a NUL in the environment", JOB | {"environment": {"A": "\0"}}, "environment.A", "invalid"),
    ("a relative folder", JOB | {"workingDirectory": "x"}, "workingDirectory", "invalid"),
    ("no replicas", JOB | {"replicas": 0}, "replicas", "invalid"),
    ("a name in capitals", JOB | {"name": "Job"}, "name", "invalid"),
    ("a name with a line feed", JOB | {"name": "job\n"}, "name", "invalid"),
    ("time without a unit", JOB | {"maxRunTime": "soon"}, "maxRunTime", "invalid"),
    ("negative time", JOB | {"gracePeriod": "-1s"}, "gracePeriod", "invalid"),
    ("a list", [JOB], None, "invalid"),
    ("null", None, None, "invalid"),
    ("a word", "job", None, "invalid"),
]
PROJECTS = [
    ("no name", {}, "name", "invalid"),
    ("an unknown department", NEW | {"department": "nope"}, "department", "no-such-department"),
    ("a quota that is no number", terms(quota="nan"), "pools.default.gpu.quota", "invalid"),
    ("a negative quota", terms(quota="-1"), "pools.default.gpu.quota", "invalid"),
    ("a negative weight", terms(weight=-1), "pools.default.gpu.weight", "invalid"),
    ("a limit below the quota", terms(quota="2", limit="1"), "pools.default.gpu.limit", "invalid"),
    ("an unknown resource", NEW | {"pools": {"default": {"tpu": {}}}}, "pools.default.tpu", "invalid"),
]
RAW = [
    ("a duplicate key", b'{"command": ["true"], "gpu": 1, "gpu": 2}', 422, "duplicate-key", "gpu"),
    ("bad UTF-8", b'{"command": ["\xff"]}', 422, "not-utf-8", None),
    ("half a surrogate pair", b'{"command": ["\\ud800"]}', 422, "not-utf-8", None),
    ("no JSON", b"command: [true]", 422, "malformed-json", None),
    ("no number", b'{"gpu": NaN}', 422, "malformed-json", None),
    ("nothing", b"", 422, "malformed-json", None),
    ("10 MB", b'{"script": "' + b"x" * 10_000_000 + b'"}', 413, "too-large", None),
    ("a little too much", b" " * (bodies.MAX_BODY_BYTES + 1), 413, "too-large", None),
    ("much depth", b"[" * 50_000 + b"]" * 50_000, 422, "malformed-json", None),
]


def counted(here: machine.Here) -> tuple[int, int, int]:
    """How much there is, and how much has happened."""

    async def work(world: machine.World) -> tuple[int, int, int]:
        return await world.store.read(lambda tx: (tx.workloads.count(), tx.queues.count(), tx.events.count()))

    return here.do(work)


@pytest.mark.parametrize(("document", "field", "code"), [case[1:] for case in WORKLOADS], ids=[c[0] for c in WORKLOADS])
@pytest.mark.parametrize("query", ["", "?dryRun=true"], ids=["submitted", "dry"])
def test_a_definition_that_is_not_right_is_refused(
    live: serving.Live, here: machine.Here, document: object, field: str | None, code: str, query: str
) -> None:
    before = counted(here)

    status, headers, content = ask(
        live, "POST", f"/api/v1/workloads{query}", headers=JSON, body=json.dumps(document).encode()
    )

    problem = json.loads(content)
    assert (status, problem["code"], problem["field"]) == (422, code, field), problem["detail"]
    assert headers["content-type"] == "application/problem+json"
    assert counted(here) == before


@pytest.mark.parametrize(("document", "field", "code"), [case[1:] for case in PROJECTS], ids=[c[0] for c in PROJECTS])
def test_a_project_that_is_not_right_is_refused(
    live: serving.Live, here: machine.Here, document: object, field: str | None, code: str
) -> None:
    before = counted(here)

    status, _, content = ask(live, "POST", "/api/v1/projects", headers=JSON, body=json.dumps(document).encode())

    problem = json.loads(content)
    assert (status, problem["code"], problem["field"]) == (422, code, field), problem["detail"]
    assert counted(here) == before


@pytest.mark.parametrize(("raw", "status", "code", "field"), [case[1:] for case in RAW], ids=[case[0] for case in RAW])
@pytest.mark.parametrize("path", ["workloads", "projects", "departments"])
def test_a_body_that_is_no_strict_json_is_refused(
    live: serving.Live, here: machine.Here, path: str, raw: bytes, status: int, code: str, field: str | None
) -> None:
    before = counted(here)

    answered, _, content = ask(live, "POST", f"/api/v1/{path}", headers=JSON, body=raw)

    problem = json.loads(content)
    assert (answered, problem["code"], problem["field"]) == (status, code, field)
    assert counted(here) == before


def test_a_body_that_grows_past_the_limit_without_saying_its_length_is_refused(live: serving.Live) -> None:
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    chunked = chunk * (bodies.MAX_BODY_BYTES // 1024 + 2) + b"0\r\n\r\n"

    status, _, content = ask(
        live, "POST", "/api/v1/workloads", headers={**JSON, "Transfer-Encoding": "chunked"}, body=chunked
    )

    assert (status, code_of(content)) == (413, "too-large")


def test_a_body_of_the_greatest_length_is_read(live: serving.Live) -> None:
    body = b'{"command": ["true"]}'.ljust(bodies.MAX_BODY_BYTES)

    assert ask(live, "POST", "/api/v1/workloads?dryRun=true", headers=JSON, body=body)[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "yaml", ""])
def test_a_body_of_another_kind_is_refused(live: serving.Live, kind: str) -> None:
    headers = with_token(Content_Type=kind)

    status, _, content = ask(live, "POST", "/api/v1/workloads", headers=headers, body=json.dumps(JOB).encode())

    assert (status, code_of(content)) == (415, "unsupported-media-type")


def test_all_fields_at_fault_are_named_at_once(live: serving.Live) -> None:
    body = json.dumps(JOB | {"replicas": 0, "kind": "x", "gpux": 1}).encode()

    problem = json.loads(ask(live, "POST", "/api/v1/workloads", headers=JSON, body=body)[2])

    assert {one["field"] for one in problem["errors"]} == {"replicas", "kind", "gpux"}
    assert next(one["valid"] for one in problem["errors"] if one["field"] == "kind") == ["workspace", "training"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("workloads?limit=0", "limit"),
        ("workloads?limit=1001", "limit"),
        ("workloads?limit=x", "limit"),
        ("workloads?limit=1&limit=2", "limit"),
        ("workloads?sort=colour", "sort"),
        ("workloads?cursor=x", "cursor"),
        ("workloads?phase=asleep", "phase"),
        ("workloads?projct=a", "projct"),
        ("workloads?label=team", "label"),
        ("workloads/a?projct=a", "projct"),
        ("events?after=-1", "after"),
        ("events/stream?after=x", "after"),
        ("workloads/a/logs?index=-1", "index"),
        ("health?x=1", "x"),
    ],
)
def test_a_parameter_that_is_not_right_is_refused(live: serving.Live, path: str, field: str) -> None:
    status, _, content = ask(live, "GET", f"/api/v1/{path}", headers=with_token())

    problem = json.loads(content)
    assert (status, problem["code"], problem["field"]) == (422, "invalid", field)


def test_an_unknown_parameter_lists_the_known_ones_and_suggests_the_nearest(live: serving.Live) -> None:
    problem = json.loads(ask(live, "GET", "/api/v1/workloads?projct=a", headers=with_token())[2])

    assert "did you mean 'project'?" in problem["detail"]
    assert {"project", "label", "limit", "phase"} <= set(problem["valid"])


@pytest.mark.parametrize("key", ["", "with space", "ä", "x" * 201])
def test_an_idempotency_key_that_is_none_is_refused(live: serving.Live, here: machine.Here, key: str) -> None:
    before = counted(here)
    headers = {**JSON, "Idempotency-Key": key}

    status, _, content = ask(live, "POST", "/api/v1/workloads", headers=headers, body=json.dumps(JOB).encode())

    problem = json.loads(content)
    assert (status, problem["field"]) == (422, "Idempotency-Key")
    assert counted(here) == before


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api", 404, "no-such-route"),
        ("GET", "/api/v1/nothing", 404, "no-such-route"),
        ("GET", "/api/v1/workloads/", 404, "no-such-route"),
        ("GET", "/assets/gone.js", 404, "no-such-route"),
        ("GET", "/api/v1/workloads/nope", 404, "not-found"),
        ("GET", "/api/v1/workloads/..%2f..%2fetc", 404, "no-such-route"),
        ("GET", "/api/v1/workloads/%00", 404, "not-found"),
        ("GET", "/api/v1/workloads/%ff", 404, "not-found"),
        ("DELETE", "/api/v1/projects/nope", 404, "not-found"),
        ("GET", "/api/v1/workloads/nope/logs/stream", 404, "not-found"),
        ("POST", "/api/v1/cordons/99", 404, "not-found"),
        ("PUT", "/api/v1/workloads", 405, "method-not-allowed"),
        ("DELETE", "/api/v1/status", 405, "method-not-allowed"),
        ("POST", "/", 405, "method-not-allowed"),
        ("OPTIONS", "/api/v1/status", 405, "method-not-allowed"),
    ],
)
def test_what_is_not_there_is_a_problem_too(live: serving.Live, method: str, path: str, status: int, code: str) -> None:
    answered, headers, content = ask(live, method, path, headers=with_token())

    assert (answered, code_of(content)) == (status, code)
    assert headers["content-type"] == "application/problem+json"


def test_the_same_key_with_another_body_is_a_conflict(live: serving.Live) -> None:
    headers = {**JSON, "Idempotency-Key": "twice"}

    answers = [
        ask(live, "POST", "/api/v1/workloads", headers=headers, body=json.dumps(JOB | {"gpu": gpu}).encode())
        for gpu in ("1", "1", "2")
    ]

    assert [status for status, _, _ in answers] == [201, 200, 409]
    assert code_of(answers[2][2]) == "idempotency-key-reused"
    first, second = (json.loads(content) for _, _, content in answers[:2])
    assert first["id"] == second["id"]
    assert answers[0][1]["location"] == f"/api/v1/workloads/{first['id']}"
