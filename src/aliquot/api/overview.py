"""The overview over HTTP."""

from fastapi import APIRouter

from aliquot.api import bodies, given
from aliquot.wire import overview as shapes

router = APIRouter(prefix="/overview", tags=["overview"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


@router.get("", operation_id="getOverview")
async def get_overview(who: given.Who, services: given.Services) -> shapes.Overview:
    """How the GPUs do, who waits for what, and what is broken, in one answer."""
    return await services.overview.get(who)
