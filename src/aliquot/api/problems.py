"""Turns every error into an RFC 9457 problem. The only place that knows which error is which HTTP status.

Promises: each problem has a stable `code`; `errors` names the fields as the caller wrote them; an error that nobody
foresaw says that it happened and nothing of the inside.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import fastapi
import structlog
from fastapi import exceptions as fastapi_exceptions
from starlette import exceptions as starlette_exceptions
from starlette import requests, responses, websockets
from starlette.types import Receive, Scope, Send

from aliquot.core import errors
from aliquot.wire import faults, records

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:aliquot:problem:"

STATUSES: Mapping[type[errors.AliquotError], HTTPStatus] = {
    errors.InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.AliquotError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_CODES = {
    HTTPStatus.NOT_FOUND: "no-such-route",
    HTTPStatus.METHOD_NOT_ALLOWED: "method-not-allowed",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported-media-type",
}
POLICY_VIOLATION = 1008
"""The close code of a websocket whose client said what it may not (RFC 6455)."""
_MOST_REASON_BYTES = 120  # 123 by RFC 6455
_CONNECTING = websockets.WebSocketState.CONNECTING
_UNFORESEEN = "something went wrong inside the server; its log says what"

log = structlog.get_logger(__name__)


class UnknownHost(errors.Forbidden):
    """The Host header names no name of this server, as when another site's name was made to point here."""

    code = "unknown-host"


class OtherOrigin(errors.Forbidden):
    """A page of another origin tried to act with this browser's session."""

    code = "other-origin"


def register(app: fastapi.FastAPI) -> None:
    """Make the app answer with problems, whatever goes wrong."""
    on_known: Any = _on_known  # Any: Starlette has no type for a handler of requests and of websockets
    for known in (
        errors.AliquotError,
        fastapi_exceptions.RequestValidationError,
        fastapi_exceptions.WebSocketRequestValidationError,
        starlette_exceptions.HTTPException,
    ):
        app.add_exception_handler(known, on_known)
    app.add_exception_handler(Exception, _on_unforeseen)


def status_of(error: errors.AliquotError) -> HTTPStatus:
    """The status of the nearest class of the tree that has one."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def answer(error: errors.AliquotError) -> responses.Response:
    """An error of the tree as a response."""
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("an error reached the API that has no status of its own", error=repr(error))
        return _respond(_plain(status, "internal", _UNFORESEEN), {})
    details = dict(error.details)
    listed = details.pop("errors", None)
    if listed is None:
        named = records.FieldProblem(field=error.field or "", message=error.message, valid=list(error.valid))
        listed = [named] if error.field else []
    problem = _plain(status, error.stable_code, error.message).model_copy(
        update={
            "field": error.field,
            "valid": list(error.valid),
            "errors": [records.FieldProblem.model_validate(one) for one in _entries(listed)],
            "details": details,
        }
    )
    headers = {}
    if isinstance(error, errors.Unavailable):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, errors.Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return _respond(problem, headers)


async def refuse(error: errors.AliquotError, scope: Scope, *, receive: Receive, send: Send) -> None:
    """Answer a request, or deny a websocket that was not accepted yet."""
    await answer(error)(scope, receive, send)


def _entries(listed: object) -> list[Any]:  # Any: validated right after
    return listed if isinstance(listed, list) else []


def _plain(status: HTTPStatus, code: str, detail: str) -> records.Problem:
    title = code.replace("-", " ").capitalize()
    return records.Problem(type=TYPE + code, title=title, status=status, detail=detail, code=code)


def _respond(problem: records.Problem, headers: Mapping[str, str]) -> responses.Response:
    # Not model_dump_json: text that came from outside may hold what UTF-8 has no bytes for.
    body = json.dumps(problem.model_dump(mode="python", by_alias=True), default=str)
    return responses.Response(body, status_code=problem.status, media_type=MEDIA_TYPE, headers=dict(headers))


async def _on_known(connection: requests.Request | websockets.WebSocket, error: Exception) -> responses.Response | None:
    response = _answer_known(connection, error)
    if isinstance(connection, requests.Request) or connection.application_state is _CONNECTING:
        return response  # Of a websocket that was not accepted yet it is the denial.
    await connection.close(POLICY_VIOLATION, str(error).encode()[:_MOST_REASON_BYTES].decode(errors="ignore"))
    return None


def _answer_known(connection: requests.HTTPConnection, error: Exception) -> responses.Response:
    if isinstance(error, errors.AliquotError):
        return answer(error)
    if isinstance(error, fastapi_exceptions.ValidationException):
        return answer(_invalid(connection, error))
    if isinstance(error, starlette_exceptions.HTTPException):
        return _http(connection, error)
    raise error


def _invalid(connection: requests.HTTPConnection, error: fastapi_exceptions.ValidationException) -> errors.InvalidInput:
    body = getattr(error, "body", None)
    field = getattr(connection.scope.get("route"), "body_field", None)
    model = field.field_info.annotation if field is not None else None
    problems: list[records.FieldProblem] = []
    for one in error.errors():
        place, *rest = one["loc"]
        stripped = one | {"loc": tuple(rest)}
        document = body if place == "body" else {rest[0]: one.get("input")} if rest else None
        problems += faults.explain([stripped], document, model=model if place == "body" else None)
    return faults.refusal(faults.merge(problems))


def _http(connection: requests.HTTPConnection, error: starlette_exceptions.HTTPException) -> responses.Response:
    status = HTTPStatus(error.status_code)
    code = _CODES.get(status, status.phrase.lower().replace(" ", "-"))
    detail = str(error.detail)
    if status is HTTPStatus.NOT_FOUND:
        detail = f"there is nothing at {connection.url.path}"
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{connection.scope['method']} is not possible at {connection.url.path}"
    return _respond(_plain(status, code, detail), error.headers or {})


async def _on_unforeseen(connection: requests.Request, error: Exception) -> responses.Response:
    # Starlette raises the error again after this answer, so the server's log has it with its traceback.
    del connection, error
    return _respond(_plain(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", _UNFORESEEN), {})
