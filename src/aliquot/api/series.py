"""Figures over time over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from aliquot.api import bodies, given
from aliquot.service import series as service
from aliquot.wire import base
from aliquot.wire import series as shapes

router = APIRouter(prefix="/series", tags=["series"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class SeriesQuery(base.Shape):
    """Which figures, of when, and in how many steps."""

    metric: shapes.Metric = Field(description="GPUs are numbers of devices.")
    by: shapes.By = Field(shapes.By.NONE, description="One line for the cluster, or one for each of these.")
    name: str | None = Field(None, max_length=63, description="Of `by`, this one alone.")
    start: base.Asked | None = Field(None, alias="from", description="Left out: an hour before `to`.")
    end: base.Asked | None = Field(None, alias="to", description="Left out: now.")
    points: int = Field(300, ge=10, le=2000, description="At most so many steps.")


@router.get("", operation_id="getSeries")
async def get_series(who: given.Who, services: given.Services, query: Annotated[SeriesQuery, Query()]) -> shapes.Series:
    """One metric over time. What was not measured, or when no server ran, is null."""
    return await services.series.get(who, service.Request(**dict(query)))
