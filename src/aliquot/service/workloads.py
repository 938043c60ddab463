"""Workloads: submit, look at, change, suspend, resume, stop, delete.

Promises: a submission with a key is done once however often it comes; a wish (suspend, stop, ...) is stored and the
cluster carries it out; every change leaves an event and an audit record in the same transaction. What asks the engine
(dry runs, reasons) is in `aliquot.service.questions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aliquot.core import admission, errors, lifecycle
from aliquot.core.model import Node, Policy, Snapshot
from aliquot.service import access, audit, demand, find, intake, look, paging, ports, questions, records, views
from aliquot.wire import base
from aliquot.wire import workloads as shapes

LISTABLE = paging.Listable(
    filters=("project", "department", "phase", "kind", "name", "actor", "label.", "q"),
    sorts={
        "created": "created",
        "name": "name",
        "phase": "phase",
        "priority": "priority",
        "actor": "actor",
        "waitingSince": "waiting_since",
        "started": "first_started",
        "finished": "finished",
    },
    order=("-created",),
)
_UNFINISHED = tuple(phase for phase in lifecycle.Phase if phase not in lifecycle.FINISHED)
_CHANGEABLE = frozenset({lifecycle.Phase.PENDING, lifecycle.Phase.SUSPENDED})
_DONE = {lifecycle.Signal.SUSPEND: "suspended", lifecycle.Signal.RESUME: "resumed", lifecycle.Signal.STOP: "stopped"}


@dataclass(frozen=True, slots=True)
class Config:
    """How workloads are planned and shown. `data_directory`: where the cluster keeps their folders."""

    policy: Policy = field(default_factory=Policy)
    data_directory: str = ""
    host: str = "127.0.0.1"
    """The host in the URLs of ports."""


class Workloads:
    """The use cases of workloads. `ref` is an id or a name; `project` (a name) says which where names are ambiguous."""

    def __init__(
        self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, ids: ports.Ids, config: Config
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._ids = ids
        self._config = config
        self._journal = audit.Journal(clock, ids)

    async def submit(
        self, actor: access.Actor, definition: shapes.Definition, *, key: str | None = None
    ) -> tuple[shapes.WorkloadDetail, bool]:
        """Take it in. True: it is new; False: the key was seen with the same body. Raises InvalidInput, Conflict."""
        access.check(actor, "create", "workload")
        _check_key(key)
        taken = intake.read(definition)
        nodes = await self._cluster.nodes()

        def work(tx: ports.Transaction) -> tuple[shapes.WorkloadDetail, bool]:
            seen = _seen(tx, actor, key, body=taken.definition)
            if seen is not None:
                return self._show(tx, seen, nodes), False
            row = self._new(tx, actor, taken, key=key)
            _admit(tx, row, nodes)
            tx.workloads.put(row)
            noted = audit.Noted("submitted", f"was submitted by {actor.name}", row.name, row.project)
            self._journal.record(tx, actor, change=audit.Change("create", "workload", row.id), noted=noted)
            return self._show(tx, row, nodes), True

        attempt = audit.Change("create", "workload", definition.name or "")
        detail, is_new = await self._journal.write(self._store, actor, attempt, work=work)
        if is_new:
            self._cluster.wake()
        return detail, is_new

    async def dry_run(self, actor: access.Actor, definition: shapes.Definition) -> shapes.DryRun:
        """What submitting would do now."""
        access.check(actor, "create", "workload")
        taken = intake.read(definition)
        snapshot = await look.snapshot(self._store, self._cluster)

        def work(tx: ports.Transaction) -> records.WorkloadRow:
            row = self._new(tx, actor, taken, key=None)
            _admit(tx, row, snapshot.nodes)
            return row

        row = await self._store.read(work)
        wanted = demand.demand(row, ())
        return await questions.would_do(snapshot, wanted, policy=self._config.policy, now=self._clock.now())

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.WorkloadView]:
        """Filters: project, department, kind, phase (comma lists; phases also `unfinished`, `finished`), name, actor,
        label.X, q (a part of the name or of the project's, or an id)."""
        access.check(actor, "list", "workload")
        paging.check(request, LISTABLE)
        nodes = await self._cluster.nodes()

        def work(tx: ports.Transaction) -> base.Page[shapes.WorkloadView]:
            where = [*find.hidden(tx), *_conditions(tx, request)]
            rows, part = tx.workloads.page(paging.query(request, LISTABLE, where))
            pods: dict[str, list[records.PodRow]] = {row.id: [] for row in rows}
            for pod in tx.pods.find(ports.Where("workload", "in", list(pods)), ports.Where("phase", "in", views.OPEN)):
                pods[pod.workload].append(pod)
            book = self._book(tx, nodes, [pod for found in pods.values() for pod in found])
            items = [views.workload(row, pods[row.id], book) for row in rows]
            return base.Page(items=items, total=part.total, next=part.next)

        return await self._store.read(work)

    async def count(self, actor: access.Actor, filters: Mapping[str, str]) -> shapes.WorkloadCounts:
        """How many match, by phase. Filters as of `list`."""
        access.check(actor, "list", "workload")
        request = paging.ListRequest(filters)
        paging.check(request, LISTABLE)

        def work(tx: ports.Transaction) -> shapes.WorkloadCounts:
            where = [*find.hidden(tx), *_conditions(tx, request)]
            counts = {phase: tx.workloads.count(*where, phase=phase) for phase in lifecycle.Phase}
            return shapes.WorkloadCounts(
                total=sum(counts.values()), phases={phase: count for phase, count in counts.items() if count}
            )

        return await self._store.read(work)

    async def get(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """By id; or by name the unfinished one, else the latest. Raises NotFound (near names in `valid`), Conflict."""
        access.check(actor, "get", "workload")
        nodes = await self._cluster.nodes()

        def work(tx: ports.Transaction) -> shapes.WorkloadDetail:
            return self._show(tx, find.workload(tx, ref, project=project), nodes)

        return await self._store.read(work)

    async def update(
        self, actor: access.Actor, ref: str, change: shapes.WorkloadUpdate, *, project: str | None = None
    ) -> shapes.WorkloadDetail:
        """Change one that waits or is suspended; of one that runs, the priority alone."""
        access.check(actor, "update", "workload")
        given = {name for name in change.model_fields_set if getattr(change, name) is not None}
        nodes = await self._cluster.nodes()

        def work(tx: ports.Transaction) -> records.WorkloadRow:
            row = find.workload(tx, ref, project=project)
            _check_changeable(row, given)
            after = intake.with_changes(row, change)
            if after == row:
                return row
            if row.phase in _CHANGEABLE:
                _refuse(tx, after, nodes)
            tx.workloads.put(after)
            said = ", ".join(f"{name} {_show(getattr(after.definition, name))}" for name in sorted(given))
            noted = audit.Noted("updated", f"was changed by {actor.name}: {said}", row.name, row.project)
            self._journal.record(tx, actor, change=audit.Change("update", "workload", row.id, detail=said), noted=noted)
            return after

        attempt = audit.Change("update", "workload", ref)
        row = await self._journal.write(self._store, actor, attempt, work=work)
        self._cluster.wake()
        return await self._detail(row, nodes)

    async def suspend(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """End its processes and free what it holds, until it is resumed."""
        return await self._wish(actor, ref, lifecycle.Signal.SUSPEND, project=project)

    async def resume(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """Let it wait for a place again."""
        return await self._wish(actor, ref, lifecycle.Signal.RESUME, project=project)

    async def stop(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """End it for good."""
        return await self._wish(actor, ref, lifecycle.Signal.STOP, project=project)

    async def delete(
        self, actor: access.Actor, ref: str, *, project: str | None = None
    ) -> shapes.WorkloadDetail | None:
        """End it and remove its folder and logs; usage, events and receipts stay. None: it had ended, so it is gone."""
        access.check(actor, "delete", "workload")

        def work(tx: ports.Transaction) -> records.WorkloadRow:
            row = find.workload(tx, ref, project=project)
            if row.is_deleting:
                return row
            after = row if row.finished is not None else self._wished(row, lifecycle.Signal.STOP)
            after = replace(after, is_deleting=True)
            tx.workloads.put(after)
            noted = audit.Noted("deleting", f"is to be deleted, says {actor.name}", row.name, row.project)
            self._journal.record(tx, actor, change=audit.Change("delete", "workload", row.id), noted=noted)
            return after

        attempt = audit.Change("delete", "workload", ref)
        row = await self._journal.write(self._store, actor, attempt, work=work)
        self._cluster.wake()
        return await self._detail(row, await self._cluster.nodes()) if find.is_visible(row) else None

    async def reason(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.Reason:
        """Why it waits now, with the smallest change that would start it. Raises Conflict if it does not wait."""
        access.check(actor, "get", "workload")
        row = await self._store.read(lambda tx: find.workload(tx, ref, project=project))
        if row.phase is not lifecycle.Phase.PENDING:
            raise errors.Conflict(f"{row.name} does not wait: it is {row.phase}", code="not-waiting")
        snapshot = await look.snapshot(self._store, self._cluster)
        return await questions.why(snapshot, row, policy=self._config.policy, now=self._clock.now())

    async def _wish(
        self, actor: access.Actor, ref: str, signal: lifecycle.Signal, *, project: str | None
    ) -> shapes.WorkloadDetail:
        access.check(actor, str(signal), "workload")

        def work(tx: ports.Transaction) -> records.WorkloadRow:
            row = find.workload(tx, ref, project=project)
            after = self._wished(row, signal)
            if after == row:
                return row
            tx.workloads.put(after)
            verb = _DONE[signal]
            state = "" if str(after.phase) == verb else f"; it is {after.phase}"
            noted = audit.Noted(_code(after.phase, signal), f"was {verb} by {actor.name}{state}", row.name, row.project)
            self._journal.record(tx, actor, change=audit.Change(str(signal), "workload", row.id), noted=noted)
            return after

        attempt = audit.Change(str(signal), "workload", ref)
        row = await self._journal.write(self._store, actor, attempt, work=work)
        self._cluster.wake()
        return await self._detail(row, await self._cluster.nodes())

    def _wished(self, row: records.WorkloadRow, signal: lifecycle.Signal) -> records.WorkloadRow:
        """The row with the wish in it. One without processes is at once where the wish leads."""
        after = lifecycle.follow(row.phase, signal)
        if after is row.phase:
            return row
        now = self._clock.now()
        if signal is lifecycle.Signal.RESUME:
            return replace(row, phase=after, waiting_since=now, not_before=None)
        if after in lifecycle.FINISHED:
            return replace(row, phase=after, finished=now, outcome="stopped", not_before=None)
        return replace(row, phase=after, not_before=None)

    def _new(
        self, tx: ports.Transaction, actor: access.Actor, taken: intake.Intake, *, key: str | None
    ) -> records.WorkloadRow:
        project = find.queue(tx, taken.definition.project, noun="project", field="project")
        now, id = self._clock.now(), self._ids.new()
        return records.WorkloadRow(
            id=id,
            name=taken.definition.name or intake.make_name(taken.definition.kind, id),
            project=project.id,
            definition=taken.definition,
            request=taken.request,
            priority=taken.priority,
            is_preemptible=taken.is_preemptible,
            grace=taken.grace,
            back_off=taken.back_off,
            actor=actor.name,
            created=now,
            waiting_since=now,
            max_run_time=taken.max_run_time,
            ttl=taken.ttl,
            key=key,
            body_hash=None if key is None else intake.body_hash(taken.definition),
        )

    async def _detail(self, row: records.WorkloadRow, nodes: Sequence[Node]) -> shapes.WorkloadDetail:
        return await self._store.read(lambda tx: self._show(tx, row, nodes))

    def _show(self, tx: ports.Transaction, row: records.WorkloadRow, nodes: Sequence[Node]) -> shapes.WorkloadDetail:
        pods = tx.pods.find(workload=row.id)
        return views.detail(row, pods, self._book(tx, nodes, pods))

    def _book(self, tx: ports.Transaction, nodes: Sequence[Node], pods: Sequence[records.PodRow]) -> views.Book:
        book = views.read_book(tx, nodes, now=self._clock.now(), pods=pods)
        return replace(book, host=self._config.host, data_directory=self._config.data_directory)


def _check_key(key: str | None) -> None:
    if key is not None and not (1 <= len(key) <= 256 and key.isprintable()):
        raise errors.InvalidInput("Idempotency-Key: it must be 1 to 256 printable characters", field="Idempotency-Key")


def _seen(
    tx: ports.Transaction, actor: access.Actor, key: str | None, *, body: shapes.Definition
) -> records.WorkloadRow | None:
    """The workload that came of this key before. Raises KeyReused if its body was another."""
    if key is None:
        return None
    rows = tx.workloads.find(actor=actor.name, key=key)
    if not rows:
        return None
    if rows[0].body_hash != intake.body_hash(body):
        raise errors.KeyReused(
            f"the idempotency key {key!r} was used for {rows[0].name}, with another body", field="Idempotency-Key"
        )
    return rows[0]


def _admit(tx: ports.Transaction, row: records.WorkloadRow, nodes: Sequence[Node]) -> None:
    _refuse(tx, row, nodes)
    if tx.workloads.count(project=row.project, name=row.name, finished=None):
        raise errors.Conflict(
            f"name: an unfinished workload of project {row.definition.project} is called {row.name} already",
            field="name",
            code="name-taken",
        )


def _refuse(tx: ports.Transaction, row: records.WorkloadRow, nodes: Sequence[Node]) -> None:
    """Raises CannotEverStart for what nothing present could ever start."""
    waiting = replace(row, phase=lifecycle.Phase.PENDING)
    refusal = admission.refuse(Snapshot(nodes=tuple(nodes), queues=look.queues(tx)), demand.demand(waiting, ()))
    if refusal is not None:
        raise refusal


def _check_changeable(row: records.WorkloadRow, given: set[str]) -> None:
    if row.phase in lifecycle.FINISHED:
        raise errors.Conflict(f"{row.name} is {row.phase}; nothing of it can be changed any more", code="finished")
    fixed = sorted(given - {"priority"})
    if fixed and row.phase not in _CHANGEABLE:
        raise errors.Conflict(
            f"{row.name} is {row.phase}: only its priority can be changed now; suspend it to change {', '.join(fixed)}",
            field=fixed[0],
            valid=("priority",),
            code="running",
        )


def _conditions(tx: ports.Transaction, request: paging.ListRequest) -> list[ports.Where]:
    where: list[ports.Where] = []
    for name, value in request.filters.items():
        if name == "project":
            where.append(ports.Where("project", "in", _queues(tx, value, noun="project")))
        elif name == "department":
            departments = _queues(tx, value, noun="department")
            inside = [row.id for row in tx.queues.find(ports.Where("department", "in", departments))]
            where.append(ports.Where("project", "in", inside))
        elif name == "phase":
            where.append(ports.Where("phase", "in", _phases(value)))
        elif name == "kind":
            where.append(ports.Where("definition.kind", "in", _kinds(value)))
        elif name.startswith("label."):
            where.append(ports.Where(f"definition.labels.{name.removeprefix('label.')}", "eq", value))
        elif name == "q":
            where.append(_anywhere(tx, value))
        else:
            where.append(ports.Where(name, "eq", value))
    return where


def _anywhere(tx: ports.Transaction, text: str) -> ports.Where:
    """Those with this text in their name or in that of their project, or with this id."""
    projects = [row.id for row in tx.queues.find(find.level("project"), ports.Where("name", "contains", text))]
    named, known = ports.Where("name", "contains", text), ports.Where("id", "eq", text)
    return ports.Where("q", "any", (named, known, ports.Where("project", "in", projects)))


def _queues(tx: ports.Transaction, text: str, *, noun: str) -> list[str]:
    """The ids of a comma list of projects, or departments."""
    return [find.queue(tx, name.strip(), noun=noun, field=noun).id for name in text.split(",")]


def _kinds(text: str) -> tuple[shapes.Kind, ...]:
    names = [name.strip() for name in text.split(",")]
    valid = tuple(shapes.Kind)
    for name in names:
        if name not in valid:
            raise errors.InvalidInput(f"kind: {name!r} is not a kind", field="kind", valid=valid)
    return tuple(map(shapes.Kind, names))


def _phases(text: str) -> tuple[lifecycle.Phase, ...]:
    valid = ("unfinished", "finished", *lifecycle.Phase)
    found: list[lifecycle.Phase] = []
    for name in (part.strip() for part in text.split(",")):
        if name == "unfinished":
            found += _UNFINISHED
        elif name == "finished":
            found += sorted(lifecycle.FINISHED)
        elif name in valid:
            found.append(lifecycle.Phase(name))
        else:
            raise errors.InvalidInput(f"phase: {name!r} is not a phase", field="phase", valid=valid)
    return tuple(found)


def _code(phase: lifecycle.Phase, signal: lifecycle.Signal) -> str:
    """The code of the event that a wish leaves: where it led, or `resumed`."""
    return "resumed" if signal is lifecycle.Signal.RESUME else str(phase)


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
