"""Events: what happened, as a list and as a stream that can be resumed."""

from collections.abc import AsyncIterator, Mapping, Sequence

from aliquot.core import errors
from aliquot.service import access, find, paging, ports, records
from aliquot.wire import base
from aliquot.wire import records as shapes

LISTABLE = paging.Listable(
    filters=("noun", "subject", "name", "project", "code", "after"),
    sorts={"sequence": "sequence", "time": "time"},
    order=("-sequence",),
)
_FOLLOWED = paging.Listable(filters=LISTABLE.filters[:-1], sorts=LISTABLE.sorts, order=("sequence",))
_AT_ONCE = 500
_FIELDS = {"name": "subject_name"}


class Events:
    """The use cases of events."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.Event]:
        """Newest first. Filters: noun, subject, name, project, code, after (a sequence)."""
        access.check(actor, "list", "event")
        paging.check(request, LISTABLE)

        def work(tx: ports.Transaction) -> base.Page[shapes.Event]:
            where = _conditions(tx, request.filters)
            rows, part = tx.events.page(paging.query(request, LISTABLE, where))
            return base.Page(items=_show(tx, rows), total=part.total, next=part.next)

        return await self._store.read(work)

    async def follow(
        self, actor: access.Actor, after: int | None, *, filters: Mapping[str, str] | None = None
    ) -> AsyncIterator[shapes.Event]:
        """Every event after a sequence (None: only new ones), for ever. Filters as of `list`, less `after`."""
        access.check(actor, "list", "event")
        wanted = dict(filters or {})
        paging.check(paging.ListRequest(wanted), _FOLLOWED)
        where = await self._store.read(lambda tx: _conditions(tx, wanted))
        async for newest in self._store.changes():
            after = newest if after is None else after
            while after < newest:
                events, after = await _next(self._store, where, after, newest=newest)
                for event in events:
                    yield event


def _conditions(tx: ports.Transaction, filters: Mapping[str, str]) -> list[ports.Where]:
    where: list[ports.Where] = []
    for name, value in filters.items():
        if name == "project":
            where.append(ports.Where("project", "eq", find.queue(tx, value, noun="project", field="project").id))
        elif name == "after":
            if not (value.isascii() and value.isdigit() and len(value) < 19):
                raise errors.InvalidInput(
                    f"after: {value[:40]!r} is not a sequence", field="after", valid=("a number",)
                )
            where.append(ports.Where("sequence", "gt", int(value)))
        else:
            where.append(ports.Where(_FIELDS.get(name, name), "eq", value))
    return where


def _show(tx: ports.Transaction, rows: Sequence[records.EventRow]) -> list[shapes.Event]:
    names = {id: find.queue_name(tx, id) for id in {row.project for row in rows} if id is not None}
    return [
        shapes.Event(
            sequence=row.sequence,
            time=row.time,
            noun=row.noun,
            subject=row.subject,
            subject_name=row.subject_name,
            project=None if row.project is None else names[row.project],
            code=row.code,
            message=row.message,
        )
        for row in rows
    ]


async def _next(
    store: ports.Store, where: Sequence[ports.Where], after: int, *, newest: int
) -> tuple[list[shapes.Event], int]:
    """Some events after a sequence, and the sequence up to which all are read then."""
    bounds = [ports.Where("sequence", "gt", after), ports.Where("sequence", "le", newest)]
    query = ports.Query((*where, *bounds), ("sequence",), limit=_AT_ONCE)

    def work(tx: ports.Transaction) -> tuple[list[shapes.Event], int]:
        rows, part = tx.events.page(query)
        return _show(tx, rows), newest if part.next is None else rows[-1].sequence

    return await store.read(work)
