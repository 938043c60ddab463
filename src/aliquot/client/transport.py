"""Sends requests and reads answers: tries again where that is safe, and turns problems back into errors.

Promises: what a server says it could not do now (503) is tried again after the time it named; a connection that broke
is tried again only if asking twice is as good as once; after a bounded number of tries it is an error that says so.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib import parse

import httpx2

from aliquot.core import errors
from aliquot.wire import base, records

PREFIX = "/api/v1"
MOST_TRIES = 8
MOST_SECONDS_BETWEEN = 10.0
_IDEMPOTENT = frozenset({"GET", "PUT", "PATCH", "DELETE"})
_FROM_PROXIES = frozenset({502, 503, 504})
"""What a proxy answers while the server behind it starts again."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})

Pairs = Sequence[tuple[str, str]]

_CLASSES: Mapping[str, type[errors.AliquotError]] = {
    kind.code: kind
    for kind in (
        errors.InvalidInput,
        errors.CannotEverStart,
        errors.NotFound,
        errors.Conflict,
        errors.KeyReused,
        errors.Unauthenticated,
        errors.Forbidden,
        errors.TooLarge,
    )
}
_BY_STATUS: Mapping[int, type[errors.AliquotError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.TooLarge,
    415: errors.InvalidInput,
    422: errors.InvalidInput,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `is_repeatable`: sending it twice does what sending it once does; None: as its method says."""

    method: str
    path: str
    query: Pairs = ()
    body: base.Shape | None = None
    headers: Mapping[str, str] | None = None
    is_repeatable: bool | None = None

    @property
    def may_repeat(self) -> bool:
        """Whether it may be sent again when nobody knows if it arrived."""
        return self.method in _IDEMPOTENT if self.is_repeatable is None else self.is_repeatable


class Transport:
    """A pool of connections to one server. May be used from several threads."""

    def __init__(self, url: str, token: str, *, timeout: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout
        self.is_local = parse.urlsplit(self.url).hostname in _LOCAL
        self._sleep = sleep
        self._http = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            # A proxy of the environment is not for this machine; and no cookie jar or .netrc is ever wanted.
            trust_env=not self.is_local,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, call: Call) -> httpx2.Response:
        """The answer, read whole. Raises the error that the server answered, or Unavailable."""
        content, headers = _content(call)
        for attempt in range(1, MOST_TRIES + 1):
            try:
                response = self._http.request(
                    call.method, PREFIX + call.path, params=list(call.query), content=content, headers=headers
                )
            except httpx2.TransportError as error:
                self._pause(self.broken(error), attempt, is_safe=call.may_repeat and not _is_refused(error))
                continue
            if response.status_code < 400:
                return response
            fault = rebuild(response.status_code, response.content, after=response.headers.get("Retry-After"))
            self._pause(fault, attempt, is_safe=isinstance(fault, errors.Unavailable))
        raise AssertionError("the last try returns or raises")  # pragma: no cover

    @contextmanager
    def stream(
        self, call: Call, *, content: Iterator[bytes] | None = None, timeout: float | None = None
    ) -> Iterator[httpx2.Response]:
        """One answer, read as it comes; sent once. Raises as `send`, also while it is read."""
        try:
            with self._http.stream(
                call.method,
                PREFIX + call.path,
                params=list(call.query),
                content=content,
                headers=call.headers,
                timeout=httpx2.Timeout(self.timeout, read=timeout, write=timeout),
            ) as response:
                if response.status_code >= 400:
                    raise rebuild(response.status_code, response.read(), after=response.headers.get("Retry-After"))
                yield response
        except httpx2.TransportError as error:
            raise self.broken(error) from error

    def broken(self, error: httpx2.TransportError) -> errors.Unavailable:
        """What a connection that failed is called."""
        if _is_refused(error):
            fault = errors.Unavailable(f"nothing answers at {self.url}: is the server up?", code="no-server")
        elif isinstance(error, httpx2.TimeoutException):
            fault = errors.Unavailable(f"{self.url} did not answer within {self.timeout:g} s", code="no-answer")
        else:
            fault = errors.Unavailable(f"the connection to {self.url} broke: {error}", code="connection-broken")
        fault.__cause__ = error
        return fault

    def pause(self, seconds: float) -> None:
        """Wait, a little longer or shorter than others do."""
        self._sleep(seconds * random.uniform(0.75, 1.25))

    def _pause(self, fault: errors.AliquotError, attempt: int, *, is_safe: bool) -> None:
        """Wait before the next try. Raises the fault if there is none."""
        if not is_safe or attempt == MOST_TRIES:
            raise fault
        asked = fault.retry_after_seconds if isinstance(fault, errors.Unavailable) else 1
        self.pause(min(max(asked, 0.1 * 2**attempt), MOST_SECONDS_BETWEEN))


def pairs(given: Mapping[str, Any]) -> list[tuple[str, str]]:  # Any: what the caller filters by
    """Keyword arguments as query parameters. `None` is left out; a sequence comes more than once."""
    found: list[tuple[str, str]] = []
    for name, value in given.items():
        if name.startswith("label."):
            found.append(("label", f"{name.removeprefix('label.')}={value}"))
        elif isinstance(value, list | tuple):
            found += [(name, str(one)) for one in value]
        elif isinstance(value, bool):
            found.append((name, "true" if value else "false"))
        elif value is not None:
            found.append((name, str(value)))
    return found


def encode(query: Pairs) -> str:
    """A query as the part of a URL after `?`."""
    return parse.urlencode(list(query))


def segment(text: str) -> str:
    """A name or an id as one step of a path."""
    # `.` and `..` are resolved by whoever sends a URL, so they must not look like that.
    return parse.quote(text, safe="").replace(".", "%2E") if text.strip(".") == "" else parse.quote(text, safe="")


def rebuild(status: int, content: bytes, *, after: str | None = None) -> errors.AliquotError:
    """The error that a problem tells of. `after`: the Retry-After header."""
    seconds = int(after) if after is not None and after.isdecimal() else 1
    try:
        problem = records.Problem.model_validate_json(content)
    except ValueError:
        said = f"the answer is HTTP {status} and not from Aliquot"
        if status in _FROM_PROXIES:
            return errors.Unavailable(said, retry_after_seconds=seconds, code="not-aliquot")
        return errors.AliquotError(said, code="not-aliquot")
    if status == 503:
        return errors.Unavailable(problem.detail, retry_after_seconds=seconds, code=problem.code)
    kind = _CLASSES.get(problem.code) or _BY_STATUS.get(status, errors.AliquotError)
    details = dict(problem.details)
    if len(problem.errors) > 1:
        details["errors"] = [one.model_dump(by_alias=True) for one in problem.errors]
    return kind(problem.detail, field=problem.field, valid=problem.valid, details=details, code=problem.code)


def _content(call: Call) -> tuple[bytes | None, dict[str, str]]:
    headers = dict(call.headers or {})
    if call.body is None:
        return None, headers
    headers["Content-Type"] = "application/json"
    # What was left out is not sent: a change must leave it as it is.
    return call.body.model_dump_json(by_alias=True, exclude_unset=True).encode(), headers


def _is_refused(error: httpx2.TransportError) -> bool:
    return isinstance(error, httpx2.ConnectError)
