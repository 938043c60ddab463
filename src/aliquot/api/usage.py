"""Usage over HTTP."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.service import usage as service
from aliquot.wire import base, series
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


class Between(base.Shape):
    """From when to when."""

    start: base.Asked | None = Field(None, alias="from", description="Left out: from the beginning.")
    end: base.Asked | None = Field(None, alias="to", description="Left out: until now.")


class UsageSeriesQuery(base.Shape):
    """Which GPU hours, in which steps."""

    by: Literal["project", "department"] = "project"
    step: Literal["hour", "day"] = "day"
    start: base.Asked | None = Field(None, alias="from", description="Left out: a week before `to`.")
    end: base.Asked | None = Field(None, alias="to", description="Left out: now.")


@router.get("/projects", operation_id="listProjectUsage")
async def list_project_usage(
    who: given.Who, services: given.Services, query: Annotated[Between, Query()]
) -> base.Page[shapes.Usage]:
    """GPU time of each project, of all time or between two instants."""
    return await services.usage.by_project(who, start=query.start, end=query.end)


@router.get("/series", operation_id="getUsageSeries")
async def get_usage_series(
    who: given.Who, services: given.Services, query: Annotated[UsageSeriesQuery, Query()]
) -> series.UsageSeries:
    """GPU hours over time, allocated and, where it is measured, used."""
    return await services.usage.series(who, service.SeriesRequest(**dict(query)))
