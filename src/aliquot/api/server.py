"""The server itself over HTTP."""

from fastapi import APIRouter

from aliquot.api import bodies, given
from aliquot.wire import records as shapes

router = APIRouter(tags=["server"], route_class=bodies.StrictRoute)


@router.get("/health", operation_id="healthCheck")
async def health_check(services: given.Services) -> shapes.Health:
    """Whether the server answers. The one route that needs no token."""
    return services.server.health()


@router.get("/status", operation_id="getStatus", dependencies=given.PROTECTED)
async def get_status(who: given.Who, services: given.Services) -> shapes.Status:
    """What the server is, what it has and how it does."""
    return await services.server.status(who)
