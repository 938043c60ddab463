"""Receipts of evictions over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.wire import base
from aliquot.wire import workloads as shapes

router = APIRouter(prefix="/receipts", tags=["receipts"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class ReceiptQuery(lists.ListQuery):
    """Which receipts."""

    workload: str | None = Field(None, max_length=200, description="Id or name of what was evicted.")
    project: str | None = Field(None, max_length=63)
    beneficiary: str | None = Field(None, max_length=200, description="Id or name of what it was evicted for.")
    rule: str | None = Field(None, max_length=63)


@router.get("", operation_id="listReceipts")
async def list_receipts(
    who: given.Who, services: given.Services, query: Annotated[ReceiptQuery, Query()]
) -> base.Page[shapes.Receipt]:
    """What evictions left behind, the newest first."""
    return await services.receipts.list(who, query.request())
