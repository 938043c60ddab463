"""Usage over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.wire import base
from aliquot.wire import records as shapes

router = APIRouter(prefix="/usage", tags=["usage"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class UsageQuery(lists.ListQuery):
    """Usage of which workloads."""

    project: str | None = Field(None, max_length=63)
    name: str | None = Field(None, max_length=63, description="The whole name.")
    q: str | None = Field(None, max_length=200, description="A part of the name.")


@router.get("/workloads", operation_id="listWorkloadUsage")
async def list_workload_usage(
    who: given.Who, services: given.Services, query: Annotated[UsageQuery, Query()]
) -> base.Page[shapes.Usage]:
    """GPU time of each workload, of those that are gone too."""
    return await services.usage.by_workload(who, query.request())


@router.get("/projects", operation_id="listProjectUsage")
async def list_project_usage(who: given.Who, services: given.Services) -> base.Page[shapes.Usage]:
    """GPU time of each project."""
    return await services.usage.by_project(who)
