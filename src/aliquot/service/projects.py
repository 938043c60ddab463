"""Projects: the use cases. What they share with departments is in `aliquot.service.queues`."""

from collections.abc import Callable

from aliquot.core import errors, lifecycle
from aliquot.service import access, audit, find, paging, ports, queues, records, terms
from aliquot.wire import base
from aliquot.wire import projects as shapes


class Projects:
    """The use cases of projects. `ref` is a name or an id."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, ids: ports.Ids) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._ids = ids
        self._journal = audit.Journal(clock, ids)

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.ProjectView]:
        """Filters: name, q, department."""
        access.check(actor, "list", "project")
        paging.check(request, queues.PROJECTS)

        def work(tx: ports.Transaction) -> base.Page[shapes.ProjectView]:
            where = queues.conditions(request, "project")
            department = request.filters.get("department")
            if department is not None:
                parent = find.queue(tx, department, noun="department", field="department")
                where.append(ports.Where("department", "eq", parent.id))
            rows, part = tx.queues.page(paging.query(request, queues.PROJECTS, where))
            return base.Page(items=[_view(tx, row) for row in rows], total=part.total, next=part.next)

        return await self._store.read(work)

    async def get(self, actor: access.Actor, ref: str) -> shapes.ProjectView:
        """One, with where it stands. Raises NotFound with near names in `valid`."""
        access.check(actor, "get", "project")
        return await self._store.read(lambda tx: _view(tx, find.queue(tx, ref, noun="project")))

    async def create(self, actor: access.Actor, new: shapes.ProjectNew) -> shapes.ProjectView:
        """A new one. Raises Conflict if the name is taken, InvalidInput if there is no such department."""
        access.check(actor, "create", "project")
        amounts = terms.read(new.pools)

        def work(tx: ports.Transaction) -> shapes.ProjectView:
            parent = find.queue(tx, new.department, noun="department", field="department")
            queues.refuse_taken(tx, new.name, "project")
            row = records.QueueRow(self._ids.new(), new.name, self._clock.now(), department=parent.id, terms=amounts)
            tx.queues.put(row)
            noted = audit.Noted("created", f"was created by {actor.name}", row.name, row.id)
            self._journal.record(tx, actor, change=audit.Change("create", "project", row.id), noted=noted)
            return _view(tx, row)

        return await self._write(actor, audit.Change("create", "project", new.name), work)

    async def update(self, actor: access.Actor, ref: str, change: shapes.QueueUpdate) -> shapes.ProjectView:
        """Change its terms. Setting the GPU quota ends `follows_machine`."""
        access.check(actor, "update", "project")

        def work(tx: ports.Transaction) -> shapes.ProjectView:
            row = queues.changed(find.queue(tx, ref, noun="project"), change)
            tx.queues.put(row)
            said = queues.describe(change)
            noted = audit.Noted("updated", f"was changed by {actor.name}: {said}", row.name, row.id)
            done = audit.Change("update", "project", row.id, detail=said)
            self._journal.record(tx, actor, change=done, noted=noted)
            return _view(tx, row)

        return await self._write(actor, audit.Change("update", "project", ref), work)

    async def delete(self, actor: access.Actor, ref: str) -> None:
        """Remove it; what its workloads used stays known. Raises Conflict while one of them is unfinished."""
        access.check(actor, "delete", "project")

        def work(tx: ports.Transaction) -> None:
            row = find.queue(tx, ref, noun="project")
            unfinished = tx.workloads.count(project=row.id, finished=None)
            if unfinished:
                raise errors.Conflict(
                    f"project {row.name} has {unfinished} unfinished workloads; stop them first", code="not-empty"
                )
            tx.queues.delete(row.id)
            noted = audit.Noted("deleted", f"was deleted by {actor.name}", row.name, row.id)
            self._journal.record(tx, actor, change=audit.Change("delete", "project", row.id), noted=noted)

        await self._write(actor, audit.Change("delete", "project", ref), work)

    async def _write(
        self, actor: access.Actor, change: audit.Change, work: Callable[[ports.Transaction], ports.Result]
    ) -> ports.Result:
        result = await self._journal.write(self._store, actor, change, work=work)
        self._cluster.wake()
        return result


def _view(tx: ports.Transaction, row: records.QueueRow) -> shapes.ProjectView:
    return shapes.ProjectView(
        id=row.id,
        name=row.name,
        department=find.queue_name(tx, row.department or ""),
        created=row.created,
        pools=queues.pools(row, queues.standings(tx)),
        waiting=tx.workloads.count(project=row.id, phase=lifecycle.Phase.PENDING),
        running=queues.count_active(tx, row.id),
        follows_machine=row.follows_machine,
    )
