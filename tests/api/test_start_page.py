"""The plain start page: what it shows, and that nothing a user chose becomes part of it."""

import html.parser
import pathlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from urllib import parse

import pytest

from aliquot import client
from aliquot.service import server
from aliquot.wire import workloads
from tests import builders, serving
from tests.api import machine
from tests.api.raw import ask

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;"


class Page(html.parser.HTMLParser):
    """The elements of a page and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[machine.Here]:
    """A server whose machine has hostile names."""
    facts = server.ServerFacts(
        version="1", url="http://127.0.0.1", pid=1, data_directory=HOSTILE, user=HOSTILE, started=datetime.now(UTC)
    )
    card = builders.device("node-1-gpu-0", model=HOSTILE)
    withheld = builders.device("node-1-gpu-1", withheld=HOSTILE)
    node = replace(builders.node(devices=[card, withheld]), id="node-1")
    with machine.here(tmp_path_factory.mktemp("data"), offered=[node], facts=facts) as found:
        yield found


def signed_in(live: serving.Live, asked: client.Client) -> dict[str, str]:
    """The headers of a browser with a session."""
    link = parse.urlsplit(asked.create_sign_in_link().url)
    _, headers, _ = ask(live, "GET", f"{link.path}?{link.query}")
    return {"Cookie": headers["set-cookie"].partition(";")[0]}


def test_a_browser_without_a_session_is_told_how_to_get_one(live: serving.Live) -> None:
    status, headers, content = ask(live, "GET", "/")

    page = Page(content.decode())
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert "aliquot sign-in" in page.text
    assert HOSTILE not in page.text


def test_a_session_that_is_over_is_told_the_same(live: serving.Live) -> None:
    _, _, content = ask(live, "GET", "/", headers={"Cookie": "aliquot_session=old"})

    assert "aliquot sign-in" in content.decode()


def test_the_page_shows_status_devices_and_workloads(
    here: machine.Here, live: serving.Live, asked: client.Client
) -> None:
    done = asked.submit_workload(workloads.Definition(name="digits", command=["true"], gpu="0.5"))
    here.do(lambda world: world.run(done.id))
    here.do(lambda world: world.finish(done.id))

    status, _, content = ask(live, "GET", "/", headers=signed_in(live, asked))

    text = Page(content.decode()).text
    assert status == 200
    assert "digits" in text
    assert "succeeded" in text
    assert "completed, exit code 0" in text
    assert "node-1/0" in text
    assert "not measured" in text
    assert "2 devices" in text


def test_what_a_user_chose_is_text_and_nothing_else(live: serving.Live, asked: client.Client) -> None:
    _, _, content = ask(live, "GET", "/", headers=signed_in(live, asked))

    page = Page(content.decode())
    assert page.text.count(HOSTILE) >= 3
    assert {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "link", "a"} == set()
    assert not [name for _, given in page.elements for name in given if name.startswith("on") or name == "style"]


def test_the_page_loads_nothing_and_runs_nothing(live: serving.Live, asked: client.Client) -> None:
    cookie = signed_in(live, asked)

    answers = [ask(live, "GET", "/", headers=cookie) for _ in range(2)]

    nonces = []
    for _, headers, content in answers:
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        (nonce,) = re.findall(r"'nonce-([^']+)'", policy)
        assert [given for tag, given in Page(content.decode()).elements if tag == "style"] == [{"nonce": nonce}]
        nonces.append(nonce)
    assert nonces[0] != nonces[1]


def test_the_page_keeps_itself_fresh(live: serving.Live, asked: client.Client) -> None:
    _, _, content = ask(live, "GET", "/", headers=signed_in(live, asked))

    assert ("meta", {"http-equiv": "refresh", "content": "5"}) in Page(content.decode()).elements


def test_signing_out_is_a_button(live: serving.Live, asked: client.Client) -> None:
    cookie = signed_in(live, asked)
    page = Page(ask(live, "GET", "/", headers=cookie)[2].decode())
    (form,) = [given for tag, given in page.elements if tag == "form"]

    ours = {"Origin": live.url, "Content-Type": "application/x-www-form-urlencoded"}
    status, _, _ = ask(live, "POST", str(form["action"]), headers=cookie | ours, body=b"")

    assert (form["method"], status) == ("post", 204)
    assert "aliquot sign-in" in ask(live, "GET", "/", headers=cookie)[2].decode()


def test_an_empty_machine_has_a_page_too(tmp_path: pathlib.Path) -> None:
    with machine.here(tmp_path, offered=[builders.node(devices=0)]) as empty, empty.live.client() as asked:
        _, _, content = ask(empty.live, "GET", "/", headers=signed_in(empty.live, asked))

    text = Page(content.decode()).text
    assert "None: work that asks for no GPU runs." in text
    assert "aliquot run" in text
