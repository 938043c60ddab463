"""Audit records: who did what, to what, from where, with what outcome. And the one way in which a change is noted.

Promises: a change, its event and its audit record are in the same transaction; a change that is refused because of the
state of things leaves a record, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from aliquot.core import errors
from aliquot.service import access, paging, ports, records
from aliquot.wire import base
from aliquot.wire import records as shapes


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that somebody did. `outcome`: `done`, or the code of the error for which it was refused."""

    verb: str
    noun: str
    subject: str
    outcome: str = "done"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """What the event feed says of a change. `subject_name` and `project` (an id) are for filters and for people."""

    code: str
    message: str
    subject_name: str
    project: str | None = None


class Journal:
    """Writes audit records and events."""

    def __init__(self, clock: ports.Clock, ids: ports.Ids) -> None:
        self._clock = clock
        self._ids = ids

    def record(self, tx: ports.Transaction, actor: access.Actor, *, change: Change, noted: Noted | None = None) -> None:
        """Note a change in the transaction that makes it; `noted` for what pages and streams should show."""
        now = self._clock.now()
        tx.audit.put(
            records.AuditRow(
                id=self._ids.new(),
                time=now,
                actor=actor.name,
                origin=actor.origin,
                verb=change.verb,
                noun=change.noun,
                subject=change.subject,
                outcome=change.outcome,
                detail=change.detail,
            )
        )
        if noted is not None:
            tx.events.put(
                records.EventRow(
                    time=now,
                    noun=change.noun,
                    subject=change.subject,
                    subject_name=noted.subject_name,
                    code=noted.code,
                    message=noted.message,
                    project=noted.project,
                )
            )

    async def write(
        self,
        store: ports.Store,
        actor: access.Actor,
        change: Change,
        *,
        work: Callable[[ports.Transaction], ports.Result],
    ) -> ports.Result:
        """Do `work` in a transaction, which notes the change itself. What is refused because of the state of things is
        noted here, on its own: its transaction is undone."""
        try:
            return await store.write(work)
        except (errors.Conflict, errors.Forbidden) as error:
            refused = replace(change, outcome=error.stable_code, detail=error.message)
            await store.write(lambda tx: self.record(tx, actor, change=refused))
            raise


LISTABLE = paging.Listable(
    filters=("actor", "verb", "noun", "subject", "outcome"), sorts={"time": "time"}, order=("-time",)
)


class Audit:
    """The use cases of audit records."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.AuditRecord]:
        """Newest first. Filters: actor, verb, noun, subject, outcome."""
        access.check(actor, "list", "audit record")
        paging.check(request, LISTABLE)
        where = [ports.Where(name, "eq", value) for name, value in request.filters.items()]
        query = paging.query(request, LISTABLE, where)

        def work(tx: ports.Transaction) -> base.Page[shapes.AuditRecord]:
            rows, part = tx.audit.page(query)
            return base.Page(items=[_show(row) for row in rows], total=part.total, next=part.next)

        return await self._store.read(work)


def _show(row: records.AuditRow) -> shapes.AuditRecord:
    return shapes.AuditRecord(
        id=row.id,
        time=row.time,
        actor=row.actor,
        origin=row.origin,
        verb=row.verb,
        noun=row.noun,
        subject=row.subject,
        outcome=row.outcome,
        detail=row.detail,
    )
