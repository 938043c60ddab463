"""The device map over HTTP: packed, and sent again only if it is another."""

import gzip
import http.client
import json
from urllib import parse

from aliquot import client
from tests import serving
from tests.api import machine
from tests.api.raw import ask, with_token
from tests.api.test_streams import submit

PATH = "/api/v1/devices/map"


def test_a_map_that_is_known_is_not_sent_again(here: machine.Here, live: serving.Live, asked: client.Client) -> None:
    status, headers, content = ask(live, "GET", PATH, headers=with_token())
    mark = headers["etag"]

    known = ask(live, "GET", PATH, headers=with_token(If_None_Match=mark))
    (made,) = submit(asked, 1)
    here.do(lambda world: world.run(made))
    other = ask(live, "GET", PATH, headers=with_token(If_None_Match=mark))

    assert (status, mark) == (200, f'W/"{json.loads(content)["version"]}"')
    assert (known[0], known[2], known[1]["etag"]) == (304, b"", mark)
    assert other[0] == 200
    assert json.loads(other[2])["held"][0] == 1
    assert asked.get_device_map().nodes[0].count == 8


def test_large_answers_are_packed_for_who_takes_that_and_small_ones_and_streams_are_not(live: serving.Live) -> None:
    packed = ask(live, "GET", "/api/v1/openapi.json", headers=with_token(Accept_Encoding="gzip"))
    plain = ask(live, "GET", "/api/v1/openapi.json", headers=with_token())
    small = ask(live, "GET", "/api/v1/health", headers={"Accept-Encoding": "gzip"})

    assert packed[1]["content-encoding"] == "gzip"
    assert packed[1]["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed[2]) == plain[2]
    assert "content-encoding" not in plain[1]
    assert "content-encoding" not in small[1]


def test_the_stream_of_changes_is_not_packed(live: serving.Live) -> None:
    address = parse.urlsplit(live.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=serving.GUARD_SECONDS)
    connection.request("GET", "/api/v1/changes/stream", headers=with_token(Accept_Encoding="gzip"))
    answer = connection.getresponse()

    line = answer.readline()
    answer.close()
    connection.close()

    assert answer.headers.get("content-encoding") is None
    assert line == b"event: hello\n"
