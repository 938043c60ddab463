"""A real JupyterLab as a workspace: its URL answers with its token, and with no other."""

import http.client
import importlib.util
import pathlib
import urllib.parse

import pytest

from tests.machine.server import served
from tests.machine.server.served import Served

ROOT = pathlib.Path(__file__).parents[3]

pytestmark = [
    pytest.mark.must_have,
    pytest.mark.skipif(
        importlib.util.find_spec("jupyterlab") is None,
        reason="JupyterLab is not installed; `make test-notebook` does it",
    ),
]


def status_of(url: str) -> int | None:
    """What the URL answers; None while nobody listens."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        return connection.getresponse().status
    except ConnectionError:
        return None
    finally:
        connection.close()


def test_a_notebook_is_reached_by_its_url_with_its_token(small_server: Served) -> None:
    said = small_server.run("submit", "examples/notebook.yaml", cwd=ROOT)
    assert said.returncode == 0, said.stderr
    found = small_server.wait_phase("notebook", "running")

    line = served.wait_for("its URL", lambda: next(iter(small_server.log("notebook")), None))
    url = line.removeprefix("JupyterLab: ").replace("/lab?", "/api/status?")
    right = served.wait_for("JupyterLab to answer", lambda: status_of(url))
    wrong = status_of(url.partition("token=")[0] + "token=another")

    assert found.url is not None
    assert url.startswith(found.url)
    assert (right, wrong) == (200, 403)
    assert found.devices != []
    assert not found.preemptible
