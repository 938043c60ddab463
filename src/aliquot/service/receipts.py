"""Receipts: what evictions left behind."""

from aliquot.service import access, find, paging, ports, views
from aliquot.wire import base
from aliquot.wire import workloads as shapes

LISTABLE = paging.Listable(
    filters=("workload", "project", "beneficiary", "rule"), sorts={"evicted": "evicted"}, order=("-evicted",)
)
_NAMES = {"workload": "workload_name", "beneficiary": "beneficiary_name"}


class Receipts:
    """The use cases of receipts."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.Receipt]:
        """Newest first. Filters: workload (id or name), project, beneficiary (id or name), rule."""
        access.check(actor, "list", "receipt")
        paging.check(request, LISTABLE)

        def work(tx: ports.Transaction) -> base.Page[shapes.Receipt]:
            where = [_condition(tx, name, value) for name, value in request.filters.items()]
            rows, part = tx.receipts.page(paging.query(request, LISTABLE, where))
            names = {id: find.queue_name(tx, id) for id in {row.project for row in rows}}
            return base.Page(items=[views.receipt(row, names) for row in rows], total=part.total, next=part.next)

        return await self._store.read(work)


def _condition(tx: ports.Transaction, name: str, value: str) -> ports.Where:
    if name == "project":
        return ports.Where("project", "eq", find.queue(tx, value, noun="project", field="project").id)
    if name in _NAMES and tx.workloads.get(value) is None:
        return ports.Where(_NAMES[name], "eq", value)
    return ports.Where(name, "eq", value)
