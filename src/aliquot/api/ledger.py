"""The ledger's audit of itself over HTTP."""

from fastapi import APIRouter

from aliquot.api import bodies, given
from aliquot.wire import records as shapes

router = APIRouter(prefix="/ledger", tags=["ledger"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


@router.get("", operation_id="auditLedger")
async def audit_ledger(who: given.Who, services: given.Services) -> shapes.LedgerAudit:
    """Whether what the ledger says is held is what pods hold and devices offer."""
    return await services.ledger.audit(who)
