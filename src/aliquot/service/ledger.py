"""The ledger's audit of itself: what it says is held, against what pods hold and devices offer."""

from aliquot.service import access, ports
from aliquot.wire import records as shapes


class Ledger:
    """The use cases of the ledger."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store

    async def audit(self, actor: access.Actor) -> shapes.LedgerAudit:
        """Compare within one consistent view; every fault is a sentence."""
        raise NotImplementedError
