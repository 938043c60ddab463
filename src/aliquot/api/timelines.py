"""The life of a workload over HTTP."""

from fastapi import APIRouter

from aliquot.api import bodies, given
from aliquot.wire import timelines as shapes

router = APIRouter(
    prefix="/workloads", tags=["workloads"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED
)


@router.get("/{ref}/timeline", operation_id="getTimeline")
async def get_timeline(
    who: given.Who, services: given.Services, ref: given.Ref, *, project: given.Project = None
) -> shapes.Timeline:
    """What it did from its submission to now: waits with their reasons, runs, evictions, ends."""
    return await services.timelines.get(who, ref, project=project)
