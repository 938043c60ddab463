"""Departments: the use cases. What they share with projects is in `aliquot.service.queues`."""

from collections.abc import Callable

from aliquot.core import errors
from aliquot.service import access, audit, find, paging, ports, queues, records, terms
from aliquot.wire import base
from aliquot.wire import projects as shapes


class Departments:
    """The use cases of departments. `ref` is a name or an id."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, ids: ports.Ids) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._ids = ids
        self._journal = audit.Journal(clock, ids)

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.DepartmentView]:
        """Filters: name, q."""
        access.check(actor, "list", "department")
        paging.check(request, queues.DEPARTMENTS)
        query = paging.query(request, queues.DEPARTMENTS, queues.conditions(request, "department"))

        def work(tx: ports.Transaction) -> base.Page[shapes.DepartmentView]:
            rows, part = tx.queues.page(query)
            return base.Page(items=[_view(tx, row) for row in rows], total=part.total, next=part.next)

        return await self._store.read(work)

    async def get(self, actor: access.Actor, ref: str) -> shapes.DepartmentView:
        """One, with where it stands. Raises NotFound with near names in `valid`."""
        access.check(actor, "get", "department")
        return await self._store.read(lambda tx: _view(tx, find.queue(tx, ref, noun="department")))

    async def create(self, actor: access.Actor, new: shapes.DepartmentNew) -> shapes.DepartmentView:
        """A new one. Raises Conflict if the name is taken."""
        access.check(actor, "create", "department")
        row = records.QueueRow(self._ids.new(), new.name, self._clock.now(), terms=terms.read(new.pools))

        def work(tx: ports.Transaction) -> shapes.DepartmentView:
            queues.refuse_taken(tx, new.name, "department")
            tx.queues.put(row)
            noted = audit.Noted("created", f"was created by {actor.name}", row.name)
            self._journal.record(tx, actor, change=audit.Change("create", "department", row.id), noted=noted)
            return _view(tx, row)

        return await self._write(actor, audit.Change("create", "department", new.name), work)

    async def update(self, actor: access.Actor, ref: str, change: shapes.QueueUpdate) -> shapes.DepartmentView:
        """Change its terms. Setting the GPU quota ends `follows_machine`."""
        access.check(actor, "update", "department")

        def work(tx: ports.Transaction) -> shapes.DepartmentView:
            row = queues.changed(find.queue(tx, ref, noun="department"), change)
            tx.queues.put(row)
            said = queues.describe(change)
            noted = audit.Noted("updated", f"was changed by {actor.name}: {said}", row.name)
            done = audit.Change("update", "department", row.id, detail=said)
            self._journal.record(tx, actor, change=done, noted=noted)
            return _view(tx, row)

        return await self._write(actor, audit.Change("update", "department", ref), work)

    async def delete(self, actor: access.Actor, ref: str) -> None:
        """Remove it. Raises Conflict while a project is in it."""
        access.check(actor, "delete", "department")

        def work(tx: ports.Transaction) -> None:
            row = find.queue(tx, ref, noun="department")
            inside = sorted(project.name for project in tx.queues.find(department=row.id))
            if inside:
                said = ", ".join(inside[:5])
                raise errors.Conflict(
                    f"department {row.name} has {len(inside)} projects ({said}); delete them first", code="not-empty"
                )
            tx.queues.delete(row.id)
            noted = audit.Noted("deleted", f"was deleted by {actor.name}", row.name)
            self._journal.record(tx, actor, change=audit.Change("delete", "department", row.id), noted=noted)

        await self._write(actor, audit.Change("delete", "department", ref), work)

    async def _write(
        self, actor: access.Actor, change: audit.Change, work: Callable[[ports.Transaction], ports.Result]
    ) -> ports.Result:
        result = await self._journal.write(self._store, actor, change, work=work)
        self._cluster.wake()
        return result


def _view(tx: ports.Transaction, row: records.QueueRow) -> shapes.DepartmentView:
    return shapes.DepartmentView(
        id=row.id,
        name=row.name,
        created=row.created,
        pools=queues.pools(row, queues.standings(tx)),
        projects=tx.queues.count(department=row.id),
        follows_machine=row.follows_machine,
    )
