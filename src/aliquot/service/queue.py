"""The line of those who wait: in which order, for what, and until when where that can be known.

(The tree of departments and projects, each of which is a queue to the scheduler, is in `aliquot.service.queues`.)

Promises: an expected start is worked out by the engine from stated run times alone; where one of those in the way
states none, it is unknown, with whose it is.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core import lifecycle
from aliquot.core.model import DEFAULT_POOL, WHOLE_DEVICE_MILLI, Node, Policy
from aliquot.service import access, ahead, find, paging, ports, records, views
from aliquot.wire import base
from aliquot.wire import queue as shapes
from aliquot.wire import workloads as workload_shapes

LISTABLE = paging.Listable(filters=("project", "department", "pool"), sorts={}, order=())
MOST_WAITING = 500
"""Where more wait, no expected starts are worked out: each look would cost seconds."""


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What is known of when they start, by workload."""

    starts: Mapping[str, datetime]
    endless: frozenset[str] = field(default_factory=frozenset)
    """Workloads that run and state no run time."""
    is_worked_out: bool = True


class Queue:
    """The use case of the queue."""

    def __init__(
        self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, policy: Policy | None = None
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._policy = policy or Policy()

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.QueueEntry]:
        """Who waits, the first in line first. Filters: project, department, pool."""
        access.check(actor, "list", "workload")
        paging.check(request, LISTABLE)
        nodes = await self._cluster.nodes()
        outlook = await self._outlook()

        def work(tx: ports.Transaction) -> base.Page[shapes.QueueEntry]:
            book = views.read_book(tx, nodes, now=self._clock.now())
            rows = tx.workloads.find(*_conditions(tx, request), phase=lifecycle.Phase.PENDING, deleted=None)
            if request.filters.get("pool", DEFAULT_POOL) != DEFAULT_POOL:
                rows = []
            ordered = sorted(rows, key=lambda row: (book.last.position(row.id) or len(rows) + 1, row.created, row.id))
            return paging.part(ordered, request, lambda row: _entry(tx, row, book, nodes, outlook=outlook))

        return await self._store.read(work)

    async def _outlook(self) -> _Outlook:
        snapshot = await self._cluster.snapshot()
        runs = [one for one in snapshot.workloads if one.started is not None]
        endless = frozenset(one.id for one in runs if one.max_run_time is None)
        if len(snapshot.workloads) - len(runs) > MOST_WAITING:
            return _Outlook({}, endless, is_worked_out=False)
        now = self._clock.now()
        return _Outlook(await asyncio.to_thread(ahead.starts, snapshot, self._policy, now=now), endless)


def _conditions(tx: ports.Transaction, request: paging.ListRequest) -> Sequence[ports.Where]:
    where: list[ports.Where] = []
    if (project := request.filters.get("project")) is not None:
        where.append(ports.Where("project", "eq", find.queue(tx, project, noun="project", field="project").id))
    if (department := request.filters.get("department")) is not None:
        parent = find.queue(tx, department, noun="department", field="department")
        inside = [row.id for row in tx.queues.find(department=parent.id)]
        where.append(ports.Where("project", "in", inside))
    return where


def _entry(
    tx: ports.Transaction, row: records.WorkloadRow, book: views.Book, nodes: Sequence[Node], *, outlook: _Outlook
) -> shapes.QueueEntry:
    reason = views.reason(row, book)
    queue = book.queues.get(row.project)
    start = outlook.starts.get(row.id)
    return shapes.QueueEntry(
        position=book.last.position(row.id),
        workload=row.id,
        name=row.name,
        project=book.names.get(row.project, row.project),
        department=book.names.get(queue.department or "", "") if queue else "",
        pool=DEFAULT_POOL,
        kind=row.definition.kind,
        gpu=row.definition.gpu or "0",
        milli_gpus=_milli(row),
        replicas=row.definition.replicas,
        priority=row.priority,
        waiting_since=row.waiting_since,
        reason=reason,
        promised=_promised(tx, row, nodes),
        expected_start=None if start is None else shapes.StartRange(earliest=book.now, latest=max(start, book.now)),
        expected_unknown_because=None if start is not None else _why_unknown(tx, reason, outlook),
        waits_for=_waits_for(tx, reason, book),
    )


def _milli(row: records.WorkloadRow) -> int:
    """What all replicas ask for; a request by memory is counted when it has a device, so its devices count whole."""
    gpu = row.request.gpu
    if gpu is None:
        return 0
    each = gpu.devices * (max(gpu.milli or 0, gpu.compute) or WHOLE_DEVICE_MILLI)
    return row.definition.replicas * each


def _promised(tx: ports.Transaction, row: records.WorkloadRow, nodes: Sequence[Node]) -> list[str]:
    promise = tx.promises.get(row.id)
    if promise is None:
        return []
    wanted = {place.node for place in promise.places}
    indices = {device.id: device.index for node in nodes if node.id in wanted for device in node.devices}
    return [
        name
        for place in promise.places
        for name in ([f"{place.node}/{indices.get(share.device, '?')}" for share in place.shares] or [place.node])
    ]


def _why_unknown(tx: ports.Transaction, reason: workload_shapes.Reason | None, outlook: _Outlook) -> str:
    if not outlook.is_worked_out:
        return f"more than {MOST_WAITING} wait"
    if reason is None:
        return "no cycle has looked at it yet"
    blocking = [one.workload for one in reason.blockers if one.workload is not None and one.workload in outlook.endless]
    endless = blocking or sorted(outlook.endless)
    row = tx.workloads.get(endless[0]) if endless else None
    if row is None:
        return "what it waits for does not end by itself"
    others = f" and {len(endless) - 1} more" if len(endless) > 1 else ""
    return f"{row.name}{others} run and state no run time" if others else f"{row.name} runs and states no run time"


def _waits_for(
    tx: ports.Transaction, reason: workload_shapes.Reason | None, book: views.Book
) -> Sequence[shapes.Named]:
    named: list[shapes.Named] = []
    for one in reason.blockers if reason is not None else ():
        row = None if one.workload is None else tx.workloads.get(one.workload)
        if row is not None:
            project = book.names.get(row.project, row.project)
            named.append(shapes.Named(workload=row.id, name=row.name, project=project))
    return named
