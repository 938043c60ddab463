"""Signing a browser in and out: a one-time link becomes a session in a cookie that scripts cannot read."""

from typing import Annotated

from fastapi import APIRouter, Cookie, Query, Request, Response, responses, status

from aliquot.api import bodies, door, given, guard
from aliquot.core import errors
from aliquot.service import access
from aliquot.wire import records as shapes

router = APIRouter(tags=["sign-in"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)
opening = APIRouter(tags=["sign-in"], route_class=bodies.StrictRoute)
pages = APIRouter(include_in_schema=False, route_class=bodies.StrictRoute)


@router.post("/sign-in-links", operation_id="createSignInLink", status_code=status.HTTP_201_CREATED)
async def create_sign_in_link(who: given.Who, services: given.Services, request: Request) -> shapes.SignInLink:
    """A link that signs one browser in, once, before it expires."""
    code, expires = await services.access.open_link(who)
    return shapes.SignInLink(url=f"{request.base_url}sign-in?code={code}", expires=expires)


@opening.post("/session", operation_id="createSession", status_code=status.HTTP_204_NO_CONTENT, response_class=Response)
async def create_session(services: given.Services, request: Request, new: shapes.SessionNew) -> Response:
    """Sign this browser in by the token, which is exchanged for a cookie that scripts cannot read."""
    guard.check_origin(request.headers)
    secret = await services.access.open_session(new.token)
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    _set_cookie(response, secret, request)
    return response


@router.post("/sign-out", operation_id="signOut", status_code=status.HTTP_204_NO_CONTENT, response_class=Response)
async def sign_out(
    services: given.Services, session: Annotated[str | None, Cookie(alias=given.COOKIE, include_in_schema=False)] = None
) -> Response:
    """End this browser's session."""
    if session is not None:
        await services.access.sign_out(session)
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    response.delete_cookie(given.COOKIE, path="/", httponly=True, samesite="strict")
    return response


@pages.get("/sign-in")
async def sign_in(
    request: Request, services: given.Services, code: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Where the link leads: sets the cookie and goes on to the page."""
    try:
        secret = await services.access.redeem_link(code)
    except errors.Unauthenticated as error:
        return door.closed(error.message)
    response = responses.RedirectResponse("/", status.HTTP_303_SEE_OTHER)
    _set_cookie(response, secret, request)
    return response


def _set_cookie(response: Response, secret: str, request: Request) -> None:
    response.set_cookie(
        given.COOKIE,
        secret,
        max_age=int(access.SESSION_LIFE.total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
