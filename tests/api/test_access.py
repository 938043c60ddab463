"""Who gets in: tokens, sessions, sign-in links, and what a page of another origin cannot do."""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any
from urllib import parse

import pytest

from aliquot import client
from aliquot.api import app as api
from aliquot.api import description, guard
from aliquot.core import errors
from tests import serving
from tests.api.raw import ask, code_of


def sign_in(live: serving.Live) -> str:
    """The cookie of a browser that followed a new link."""
    with live.client() as known:
        link = parse.urlsplit(known.create_sign_in_link().url)
    status, headers, _ = ask(live, "GET", f"{link.path}?{link.query}")
    assert (status, headers["location"]) == (303, "/")
    return headers["set-cookie"]


def cookie_of(header: str) -> dict[str, str]:
    """A Cookie header that sends back what Set-Cookie said."""
    return {"Cookie": header.partition(";")[0]}


def every_operation() -> Iterator[tuple[str, str]]:
    """Method and path of all that the OpenAPI document lists, with some value for each parameter."""
    document: dict[str, Any] = api.assemble().openapi()  # Any: a JSON document
    for path, methods in document["paths"].items():
        for method in methods.keys() & description.METHODS:
            yield method.upper(), re.sub(r"{\w+}", "x", path)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {serving.TOKEN}"},
        {"Authorization": serving.TOKEN},
        {"Cookie": "aliquot_session=wrong"},
        {"Cookie": f"aliquot_session={serving.TOKEN}"},
        {"Cookie": "aliquot_session="},
    ],
    ids=str,
)
def test_every_operation_but_health_needs_a_token_or_a_session(live: serving.Live, headers: dict[str, str]) -> None:
    answers = {
        (method, path): ask(live, method, path, headers=headers | {"Sec-Fetch-Site": "same-origin"})
        for method, path in every_operation()
        if (method.upper(), path) not in guard.OPEN
    }

    assert len(answers) > 30
    assert {(status, code_of(content)) for status, _, content in answers.values()} == {(401, "unauthenticated")}
    assert {headers["content-type"] for _, headers, _ in answers.values()} == {"application/problem+json"}
    assert {headers["www-authenticate"] for _, headers, _ in answers.values()} == {"Bearer"}


def test_health_needs_nothing(live: serving.Live) -> None:
    status, _, content = ask(live, "GET", "/api/v1/health")

    assert (status, json.loads(content)["status"]) == (200, "ok")


def test_the_api_document_is_served_to_whoever_has_the_token(live: serving.Live) -> None:
    path = "/api/v1/openapi.json"

    assert ask(live, "GET", path)[0] == 401
    status, _, content = ask(live, "GET", path, headers={"Authorization": f"bearer {serving.TOKEN}"})
    assert (status, json.loads(content)["openapi"]) == (200, "3.2.0")


def test_the_token_is_not_in_the_database(live: serving.Live, folder: pathlib.Path) -> None:
    sign_in(live)

    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())

    assert serving.TOKEN.encode() not in kept


def test_a_sign_in_link_gives_a_cookie_that_scripts_and_other_sites_cannot_use(live: serving.Live) -> None:
    cookie = sign_in(live)

    assert cookie.startswith("aliquot_session=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert ask(live, "GET", "/api/v1/audit", headers=cookie_of(cookie))[0] == 200


def test_a_sign_in_link_works_once(live: serving.Live) -> None:
    with live.client() as known:
        link = parse.urlsplit(known.create_sign_in_link().url)
    path = f"{link.path}?{link.query}"

    first, second = ask(live, "GET", path), ask(live, "GET", path)

    assert (first[0], second[0]) == (303, 401)
    assert "set-cookie" not in second[1]
    assert b"used already or has expired" in second[2]


@pytest.mark.parametrize("query", ["", "?code=", "?code=wrong", f"?code={serving.TOKEN}"])
def test_what_is_no_sign_in_code_gives_no_cookie(live: serving.Live, query: str) -> None:
    status, headers, _ = ask(live, "GET", f"/sign-in{query}")

    assert status == 401
    assert "set-cookie" not in headers


def test_signing_out_ends_the_session_and_not_the_others(live: serving.Live) -> None:
    first, second = sign_in(live), sign_in(live)
    ours = {"Sec-Fetch-Site": "same-origin"}

    status, headers, _ = ask(live, "POST", "/api/v1/sign-out", headers=cookie_of(first) | ours)

    assert status == 204
    assert "Max-Age=0" in headers["set-cookie"]
    assert ask(live, "GET", "/api/v1/audit", headers=cookie_of(first))[0] == 401
    assert ask(live, "GET", "/api/v1/audit", headers=cookie_of(second))[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": "http://{host}"}, 201),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://{host}"}, 201),
    ],
    ids=str,
)
def test_a_session_changes_something_only_for_a_page_of_the_same_origin(
    live: serving.Live, headers: dict[str, str], status: int
) -> None:
    host = parse.urlsplit(live.url).netloc
    sent = {name: value.format(host=host) for name, value in headers.items()}

    answer = ask(live, "POST", "/api/v1/sign-in-links", headers=sent | cookie_of(sign_in(live)))

    assert answer[0] == status
    assert status == 201 or code_of(answer[2]) == "other-origin"


def test_a_token_needs_no_origin(live: serving.Live) -> None:
    headers = {"Authorization": f"Bearer {serving.TOKEN}", "Origin": "http://evil.example"}

    assert ask(live, "POST", "/api/v1/sign-in-links", headers=headers)[0] == 201


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "localhost@evil", "", "[::1", "127.0.0.2"]
)
@pytest.mark.parametrize("path", ["/", "/sign-in", "/api/v1/health", "/api/v1/status"])
def test_a_name_that_is_not_ours_is_refused_everywhere(live: serving.Live, host: str, path: str) -> None:
    port = parse.urlsplit(live.url).port
    headers = {"Host": host.format(port=port), "Authorization": f"Bearer {serving.TOKEN}"}

    status, _, content = ask(live, "GET", path, headers=headers)

    assert (status, code_of(content)) == (403, "unknown-host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8265", "localhost."])
def test_every_name_of_the_loopback_is_ours(live: serving.Live, host: str) -> None:
    assert ask(live, "GET", "/api/v1/health", headers={"Host": host})[0] == 200


def test_every_answer_tells_the_browser_to_be_careful(live: serving.Live) -> None:
    answers = [ask(live, "GET", path)[1] for path in ("/", "/api/v1/health", "/api/v1/status", "/nothing")]

    for headers in answers:
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


def test_a_client_with_a_wrong_token_raises_unauthenticated(live: serving.Live) -> None:
    with live.client(token="wrong") as stranger, pytest.raises(errors.Unauthenticated, match="not valid"):
        stranger.list_audit_records()


def test_a_client_without_a_server_says_where_nothing_answers() -> None:
    with client.Client("http://127.0.0.1:1", "t") as lonely, pytest.raises(errors.Unavailable) as caught:
        lonely.get_status()

    assert caught.value.stable_code == "no-server"
    assert "nothing answers at http://127.0.0.1:1" in caught.value.message
