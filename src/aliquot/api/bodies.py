"""Reads what a request says, strictly: JSON in UTF-8, each key once, no NaN, not too much, no unknown parameter.

Promises: what is refused is refused before any service is called, with the field that is at fault.
"""

import difflib
import json
import re
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import pydantic
from fastapi import routing
from fastapi.dependencies import models as dependency_models
from starlette import exceptions, requests, responses
from starlette.types import Receive, Scope

from aliquot.core import errors
from aliquot.wire import faults

MAX_BODY_BYTES = 4 * 2**20
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Stands in the parsed document where an object said one key twice."""

    key: str


class StrictRoute(routing.APIRoute):
    """A route that reads its query and its body as this module promises."""

    def get_route_handler(self) -> Callable[[requests.Request], Coroutine[Any, Any, responses.Response]]:
        """FastAPI's handler, behind the checks."""
        serve = super().get_route_handler()
        known = query_names(self.dependant)
        takes_body = self.body_field is not None

        async def handle(request: requests.Request) -> responses.Response:
            check_query(request, known)
            if takes_body:
                request = await _read(request)
            return await serve(request)

        return handle


class _ReadRequest(requests.Request):
    """A request whose body was read and parsed already."""

    def __init__(self, scope: Scope, receive: Receive, *, raw: bytes, document: object) -> None:
        super().__init__(scope, receive)
        self._raw = raw
        self._document = document

    async def body(self) -> bytes:
        return self._raw

    async def json(self) -> Any:  # Any: as the method that it overrides
        return self._document


def query_names(dependant: dependency_models.Dependant) -> dict[str, bool]:
    """The query parameters of a route by their names, and whether each may come more than once."""
    names: dict[str, bool] = {}
    for inner in dependant.dependencies:
        names |= query_names(inner)
    for field in dependant.query_params:
        annotation = field.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
            for name, member in annotation.model_fields.items():
                names[member.alias or name] = "list" in str(member.annotation)
        else:
            names[field.alias] = "list" in str(annotation)
    return names


def check_query(connection: requests.HTTPConnection, known: dict[str, bool]) -> None:
    """Raises InvalidInput for a parameter that is not known, or that came twice where one is meant."""
    seen: set[str] = set()
    for name, _ in connection.query_params.multi_items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise errors.InvalidInput(f"there is no parameter {name!r} here{hint}", field=name, valid=sorted(known))
        if name in seen and not known[name]:
            raise errors.InvalidInput(f"{name} is given more than once", field=name)
        seen.add(name)


def parse(raw: bytes) -> object:
    """The document in `raw`. Raises InvalidInput with a code of its own for each way in which it is no such thing."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise errors.InvalidInput(
            f"the body is not UTF-8: byte {error.start} cannot be read", code="not-utf-8"
        ) from error
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
        if _SURROGATE.search(raw):
            json.dumps(document, ensure_ascii=False, default=str).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise errors.InvalidInput(f"the body is not JSON: {error.msg} at {where}", code="malformed-json") from error
    except UnicodeEncodeError as error:
        raise errors.InvalidInput("the body holds half of a surrogate pair", code="not-utf-8") from error
    except (RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise errors.InvalidInput(f"the body is not JSON: {reason}", code="malformed-json") from error
    for path, repeated in _repeats(document, ()):
        field = faults.write_path([*path, repeated.key])
        raise errors.InvalidInput(f"{field} is given twice", field=field, code="duplicate-key")
    return document


async def _read(request: requests.Request) -> _ReadRequest:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise exceptions.HTTPException(415, f"send JSON, with Content-Type application/json, not {kind or 'none'}")
    raw = await _bytes(request)
    if not raw.strip():
        raise errors.InvalidInput("the request has no body; it takes a JSON object", code="malformed-json")
    return _ReadRequest(request.scope, request.receive, raw=raw, document=parse(raw))


async def _bytes(request: requests.Request) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > MAX_BODY_BYTES:
        _refuse_size()
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MAX_BODY_BYTES:
            _refuse_size()
    return bytes(raw)


def _refuse_size() -> NoReturn:
    raise errors.TooLarge(
        f"the body is larger than {MAX_BODY_BYTES // 2**20} MiB", details={"limitBytes": MAX_BODY_BYTES}
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        found[key] = _Repeated(key) if key in found else value
    return found


def _repeats(document: object, path: tuple[str | int, ...]) -> Iterable[tuple[tuple[str | int, ...], _Repeated]]:
    if isinstance(document, _Repeated):
        yield path[:-1], document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from _repeats(value, (*path, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from _repeats(value, (*path, index))
