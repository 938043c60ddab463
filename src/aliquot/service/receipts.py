"""Receipts: what evictions left behind."""

from aliquot.service import access, paging, ports
from aliquot.wire import base
from aliquot.wire import workloads as shapes


class Receipts:
    """The use cases of receipts."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.Receipt]:
        """Newest first. Filters: workload (id or name), project, beneficiary, rule."""
        raise NotImplementedError
