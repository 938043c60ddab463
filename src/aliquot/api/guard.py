"""Stands before every route: whose Host header is right, who is known, and whether a page of our own asks.

Promises: what lies under /api is reached without a token or session only if it is in OPEN, so that a route that is
added is closed until someone opens it; a session alone changes nothing for a page of another origin; every answer has
the headers that keep a browser careful.
"""

import re

from starlette import datastructures, requests
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aliquot.api import given, problems, services
from aliquot.core import errors
from aliquot.service import access

OPEN = frozenset({("GET", "/api/v1/health"), ("HEAD", "/api/v1/health"), ("POST", "/api/v1/session")})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^:\[\]/@\s]+)(:\d+)?")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class Guard:
    """The middleware."""

    def __init__(self, app: ASGIApp, *, services: services.Services, hosts: frozenset[str]) -> None:
        self._app = app
        self._access = services.access
        self._hosts = LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it with a problem."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        connection = requests.HTTPConnection(scope)
        careful = _with_headers(send)
        try:
            check_host(connection.headers.getlist("host"), self._hosts)
            if scope["path"].startswith("/api/") and (scope.get("method", ""), scope["path"]) not in OPEN:
                connection.state.actor = await authenticate(self._access, connection)
        except errors.AliquotError as error:
            await problems.refuse(error, scope, receive=receive, send=careful)
            return
        await self._app(scope, receive, careful)


def check_host(headers: list[str], hosts: frozenset[str]) -> None:
    """Raises UnknownHost unless the Host header names this server: a name of another site may be made to point here."""
    named = _HOST.fullmatch(headers[0]) if len(headers) == 1 else None
    if named is None or named["name"].strip("[]").rstrip(".").lower() not in hosts:
        said = ", ".join(headers) or "nothing"
        raise problems.UnknownHost(f"this server is not called {said!r}", field="Host", valid=sorted(hosts))


async def authenticate(known: access.Access, connection: requests.HTTPConnection) -> access.Actor:
    """The actor of the token, else of the session. Raises Unauthenticated, OtherOrigin."""
    origin = connection.client.host if connection.client else ""
    header = connection.headers.get("authorization")
    if header is not None:
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise errors.Unauthenticated("the Authorization header must be `Bearer` and the token")
        return await known.authenticate_token(secret.strip(), origin=origin)
    cookie = connection.cookies.get(given.COOKIE)
    if cookie is None:
        raise errors.Unauthenticated("this needs the token of the server (`aliquot token` shows it) or a session")
    is_socket = connection.scope["type"] == "websocket"
    if is_socket or connection.scope["method"] not in SAFE_METHODS:
        check_origin(connection.headers)
    return await known.authenticate_session(cookie, origin=origin)


def check_origin(headers: datastructures.Headers) -> None:
    """Raises OtherOrigin unless the browser says that a page of this server asks: another port is another origin."""
    site, page = headers.get("sec-fetch-site"), headers.get("origin")
    is_ours = (site or page) is not None
    if site is not None:
        is_ours = is_ours and site == "same-origin"
    if page is not None:
        is_ours = is_ours and page.partition("://")[2].lower() == headers.get("host", "").lower()
    if not is_ours:
        raise problems.OtherOrigin(
            "a session acts only for pages of this server, which Origin or Sec-Fetch-Site must say"
        )


def _with_headers(send: Send) -> Send:
    async def careful(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            headers = datastructures.MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return careful
