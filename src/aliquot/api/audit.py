"""Audit records over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.wire import base
from aliquot.wire import records as shapes

router = APIRouter(prefix="/audit", tags=["audit"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class AuditQuery(lists.ListQuery):
    """Which records."""

    actor: str | None = Field(None, max_length=200)
    verb: str | None = Field(None, max_length=63)
    noun: str | None = Field(None, max_length=63)
    subject: str | None = Field(None, max_length=253)
    outcome: str | None = Field(None, max_length=63, description="`done`, or the code of a refusal.")


@router.get("", operation_id="listAuditRecords")
async def list_audit_records(
    who: given.Who, services: given.Services, query: Annotated[AuditQuery, Query()]
) -> base.Page[shapes.AuditRecord]:
    """Who did what, the newest first."""
    return await services.audit.list(who, query.request())
