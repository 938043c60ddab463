"""The page as it is served: its policy, its files, and the door before it."""

import gzip
import pathlib
import re

import pytest

from aliquot.api import page
from tests import serving
from tests.api.raw import ask, with_token


@pytest.fixture
def built(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A page that is built, with one file beside it, and a file outside of it."""
    folder = tmp_path / "built"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(f'<meta property="csp-nonce" nonce="{page.NONCE}"><div id="root"></div>')
    (folder / "assets" / "main-abc.js").write_text("export {}")
    (folder / "assets" / "main-abc.js.gz").write_bytes(gzip.compress(b"export {}"))
    (folder / "icon.svg").write_text("<svg/>")
    (tmp_path / "secret").write_text("what lies outside")
    monkeypatch.setattr(page, "BUILT", folder)
    return folder


@pytest.mark.parametrize("path", ["/", "/workloads?q=a&anything=b", "/workloads/01-2", "/no/such/place"])
def test_every_path_is_the_page_which_knows_what_it_means(live: serving.Live, built: pathlib.Path, path: str) -> None:
    status, headers, content = ask(live, "GET", path)

    assert (status, headers["cache-control"]) == (200, "no-store")
    assert b'id="root"' in content


def test_each_answer_has_a_nonce_of_its_own_and_allows_no_script_but_its_own(
    live: serving.Live, built: pathlib.Path
) -> None:
    found = set()
    for _ in range(2):
        _, headers, content = ask(live, "GET", "/")
        policy = headers["content-security-policy"]
        nonce = re.search(r"'nonce-([^']+)'", policy)
        assert nonce is not None
        assert nonce[1] in content.decode()
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert page.NONCE not in content.decode()
        found.add(nonce[1])
    assert len(found) == 2


def test_files_with_a_hash_are_kept_for_ever_and_come_packed(live: serving.Live, built: pathlib.Path) -> None:
    status, headers, plain = ask(live, "GET", "/assets/main-abc.js")
    _, packed_headers, packed = ask(live, "GET", "/assets/main-abc.js", headers={"Accept-Encoding": "gzip"})
    _, icon, _ = ask(live, "GET", "/icon.svg")

    assert (status, plain, gzip.decompress(packed)) == (200, b"export {}", b"export {}")
    assert "immutable" in headers["cache-control"]
    assert packed_headers["content-encoding"] == "gzip"
    assert headers["content-type"].startswith("text/javascript")
    assert "immutable" not in icon["cache-control"]


@pytest.mark.parametrize("path", ["/..%2fsecret", "/assets/..%2f..%2fsecret", "/%2e%2e/secret"])
def test_nothing_outside_of_the_page_is_served(live: serving.Live, built: pathlib.Path, path: str) -> None:
    _, _, content = ask(live, "GET", path)

    assert b"what lies outside" not in content


def test_a_checkout_without_a_page_says_how_to_build_it(
    live: serving.Live, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path / "nothing")

    status, _, content = ask(live, "GET", "/")

    assert status == 503
    assert b"make page" in content


def test_a_link_that_was_used_says_how_to_get_in(live: serving.Live) -> None:
    status, headers, content = ask(live, "GET", "/sign-in?code=%3Cscript%3E")

    assert status == 401
    assert b"aliquot sign-in" in content
    assert b"<script" not in content
    assert "default-src 'none'" in headers["content-security-policy"]


def test_signing_out_ends_the_session(live: serving.Live) -> None:
    with live.client() as asked:
        link = asked.create_sign_in_link().url.partition("/sign-in")[2]
    _, headers, _ = ask(live, "GET", f"/sign-in{link}")
    cookie = {"Cookie": headers["set-cookie"].partition(";")[0]}
    before, _, _ = ask(live, "GET", "/api/v1/session", headers=cookie)
    ask(live, "POST", "/api/v1/sign-out", headers={**cookie, "Sec-Fetch-Site": "same-origin"})
    after, _, _ = ask(live, "GET", "/api/v1/session", headers=cookie)
    by_token, _, _ = ask(live, "GET", "/api/v1/session", headers=with_token())

    assert (before, after, by_token) == (200, 401, 200)
