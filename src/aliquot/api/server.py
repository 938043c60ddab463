"""The server itself over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Cookie, Request

from aliquot.api import bodies, given
from aliquot.wire import records as shapes

router = APIRouter(tags=["server"], route_class=bodies.StrictRoute)


@router.get("/health", operation_id="healthCheck")
async def health_check(services: given.Services) -> shapes.Health:
    """Whether the server answers. The one route that needs no token."""
    return services.server.health()


@router.get("/session", operation_id="getSession", dependencies=given.PROTECTED)
async def get_session(
    who: given.Who,
    services: given.Services,
    request: Request,
    session: Annotated[str | None, Cookie(alias=given.COOKIE, include_in_schema=False)] = None,
) -> shapes.Session:
    """Who asks, and until when."""
    is_by_token = "authorization" in request.headers
    return await services.server.session(who, None if is_by_token else session)


@router.get("/status", operation_id="getStatus", dependencies=given.PROTECTED)
async def get_status(who: given.Who, services: given.Services) -> shapes.Status:
    """What the server is, what it has and how it does."""
    return await services.server.status(who)
