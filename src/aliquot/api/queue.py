"""The line of those who wait over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from aliquot.api import bodies, given
from aliquot.service import paging
from aliquot.wire import base
from aliquot.wire import queue as shapes

router = APIRouter(prefix="/queue", tags=["queue"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class QueueQuery(base.Shape):
    """Which part of the line."""

    project: str | None = Field(None, max_length=63)
    department: str | None = Field(None, max_length=63)
    pool: str | None = Field(None, max_length=63)
    limit: int = Field(100, ge=1, le=paging.MAX_LIMIT, description="At most so many on this page.")
    cursor: str | None = Field(None, max_length=4096, description="`next` of the page before.")


@router.get("", operation_id="listQueue")
async def list_queue(
    who: given.Who, services: given.Services, query: Annotated[QueueQuery, Query()]
) -> base.Page[shapes.QueueEntry]:
    """Who waits, in order, for what, and until when where stated run times say so."""
    filters = query.model_dump(include={"project", "department", "pool"}, exclude_none=True)
    return await services.queue.list(who, paging.ListRequest(filters, limit=query.limit, cursor=query.cursor))
