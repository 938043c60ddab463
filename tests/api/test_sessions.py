"""Signing in by the token: it becomes a session in a cookie, for a page of this server alone."""

import json

import pytest

from aliquot import client
from tests import serving
from tests.api.raw import ask, code_of, with_token

PATH = "/api/v1/session"
OURS = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}


def sign_in(live: serving.Live, token: str = serving.TOKEN, **headers: str) -> tuple[int, str, bytes]:
    """Exchange a token: the status, the cookie and the content."""
    body = json.dumps({"token": token}).encode()
    status, answered, content = ask(live, "POST", PATH, headers=OURS | headers, body=body)
    return status, answered.get("set-cookie", ""), content


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(live: serving.Live) -> None:
    status, cookie, content = sign_in(live)

    assert (status, content) == (204, b"")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert serving.TOKEN not in cookie
    known = {"Cookie": cookie.partition(";")[0]}
    assert ask(live, "GET", "/api/v1/audit", headers=known)[0] == 200


def test_a_session_says_who_it_is_of_and_when_it_ends_and_a_token_does_not_end(live: serving.Live) -> None:
    _, cookie, _ = sign_in(live)

    by_cookie = json.loads(ask(live, "GET", PATH, headers={"Cookie": cookie.partition(";")[0]})[2])
    by_token = json.loads(ask(live, "GET", PATH, headers=with_token(Cookie=cookie.partition(";")[0]))[2])

    assert by_cookie == {"actor": "admin", "expires": by_cookie["expires"], "version": "1"}
    assert by_cookie["expires"] is not None
    assert by_token == {"actor": "admin", "expires": None, "version": "1"}


@pytest.mark.parametrize("token", ["wrong", serving.TOKEN + "x", "é"])
def test_a_wrong_token_is_refused_at_its_field(live: serving.Live, token: str) -> None:
    status, cookie, content = sign_in(live, token)

    problem = json.loads(content)
    assert (status, problem["code"], problem["field"], cookie) == (401, "unauthenticated", "token", "")


def test_the_secret_of_a_session_is_no_token(live: serving.Live) -> None:
    _, cookie, _ = sign_in(live)
    secret = cookie.partition(";")[0].partition("=")[2]

    assert sign_in(live, secret)[0] == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example"},
    ],
    ids=str,
)
def test_a_page_of_another_origin_signs_nobody_in(live: serving.Live, headers: dict[str, str]) -> None:
    status, cookie, content = sign_in(live, **headers)

    assert (status, code_of(content), cookie) == (403, "other-origin", "")


def test_who_says_no_origin_signs_nobody_in(live: serving.Live) -> None:
    body = json.dumps({"token": serving.TOKEN}).encode()

    status, _, content = ask(live, "POST", PATH, headers={"Content-Type": "application/json"}, body=body)

    assert (status, code_of(content)) == (403, "other-origin")


def test_without_a_session_nobody_is_told_about_one(live: serving.Live) -> None:
    assert ask(live, "GET", PATH)[0] == 401


def test_the_client_checks_a_token_as_a_browser_does(asked: client.Client) -> None:
    asked.create_session(serving.TOKEN)

    assert asked.get_session().actor == "admin"
