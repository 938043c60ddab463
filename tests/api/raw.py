"""Requests just as they are written, past the client, which would refuse or mend what the API must withstand."""

import http.client
import json
from collections.abc import Mapping
from urllib import parse

from tests import serving


def ask(
    live: serving.Live, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> tuple[int, Mapping[str, str], bytes]:
    """One request: its status, headers (names in lower case) and content."""
    address = parse.urlsplit(live.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=serving.GUARD_SECONDS)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def with_token(**headers: str) -> dict[str, str]:
    """Headers with the administrator's token, and others with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"Authorization": f"Bearer {serving.TOKEN}", **named}


def code_of(content: bytes) -> str:
    """The stable code of a problem."""
    return str(json.loads(content)["code"])
