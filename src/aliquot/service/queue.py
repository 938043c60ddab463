"""The line of those who wait: in which order, for what, and until when where that can be known.

(The tree of departments and projects, each of which is a queue to the scheduler, is in `aliquot.service.queues`.)

Promises: an expected start is worked out by the engine from stated run times alone; where one of those in the way
states none, it is unknown, with whose it is.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core import lifecycle
from aliquot.core.model import DEFAULT_POOL, Node, Policy
from aliquot.service import access, ahead, find, look, mirror, paging, ports, records, views
from aliquot.wire import base
from aliquot.wire import queue as shapes
from aliquot.wire import workloads as workload_shapes

LISTABLE = paging.Listable(filters=("project", "department", "pool"), sorts={}, order=())
MOST_WAITING = 500
"""Where more wait, no expected starts are worked out: each look would cost seconds."""
REST = 10
"""After expected starts were worked out they are good for so many times as long as that took."""


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
        self,
        store: ports.Store,
        cluster: ports.Cluster,
        seen: mirror.Mirror,
        *,
        clock: ports.Clock,
        policy: Policy,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._mirror = seen
        self._clock = clock
        self._policy = policy
        self._working_out = asyncio.Lock()
        self._last: _Worked | None = None

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.QueueEntry]:
        """Who waits, the first in line first. Filters: project, department, pool."""
        access.check(actor, "list", "workload")
        paging.check(request, LISTABLE)
        projects = await self._store.read(lambda tx: _projects(tx, request))
        sight = await self._mirror.look()
        nodes, outlook = await self._cluster.nodes(), await self._outlook(sight)
        line = _Line(sight, nodes, outlook, self._clock.now(), mirror.device_mib(nodes))
        rows = [
            row
            for row in sight.workloads.values()
            if row.phase is lifecycle.Phase.PENDING and (projects is None or row.project in projects)
        ]
        if request.filters.get("pool", DEFAULT_POOL) != DEFAULT_POOL:
            rows = []
        rows.sort(key=lambda row: (sight.waits.position(row.id) or len(rows) + 1, row.created, row.id))
        return paging.part(rows, request, line.entry)

    async def _outlook(self, sight: mirror.Sight) -> _Outlook:
        """What is known of when they start. Worked out anew where something changed, at most a tenth of the time."""
        if sum(row.phase is lifecycle.Phase.PENDING for row in sight.workloads.values()) > MOST_WAITING:
            return _Outlook({}, is_worked_out=False)
        async with self._working_out:
            now, last = self._clock.now(), self._last
            if last is None or (last.commit != sight.commit and now >= last.fresh_until):
                snapshot = await look.snapshot(self._store, self._cluster)
                runs = [one for one in snapshot.workloads if one.started is not None]
                endless = frozenset(one.id for one in runs if one.max_run_time is None)
                starts = await asyncio.to_thread(ahead.starts, snapshot, ahead.planner(self._policy), now=now)
                done = self._clock.now()
                last = self._last = _Worked(sight.commit, done + REST * (done - now), _Outlook(starts, endless))
            return last.outlook


@dataclass(frozen=True, slots=True)
class _Worked:
    """An outlook, what it was made from, and until when it is good enough."""

    commit: int
    fresh_until: datetime
    outlook: _Outlook


@dataclass(frozen=True, slots=True)
class _Line:
    """All that an entry is made from."""

    sight: mirror.Sight
    nodes: Sequence[Node]
    outlook: _Outlook
    now: datetime
    device_mib: int

    def entry(self, row: records.WorkloadRow) -> shapes.QueueEntry:
        """One who waits."""
        sight = self.sight
        reason = views.reason(row, sight.waits)
        start = self.outlook.starts.get(row.id)
        return shapes.QueueEntry(
            position=sight.waits.position(row.id),
            workload=row.id,
            name=row.name,
            project=sight.name(row.project),
            department=sight.name(sight.department(row.project)),
            pool=DEFAULT_POOL,
            kind=row.definition.kind,
            gpu=row.definition.gpu or "0",
            milli_gpus=mirror.asked_milli(row, self.device_mib),
            replicas=row.definition.replicas,
            priority=row.priority,
            waiting_since=row.waiting_since,
            reason=reason,
            promised=self._promised(row.id),
            expected_start=None if start is None else shapes.StartRange(earliest=self.now, latest=max(start, self.now)),
            expected_unknown_because=None if start is not None else self._why_unknown(reason),
            waits_for=list(self._waits_for(reason)),
        )

    def _promised(self, workload: str) -> list[str]:
        promise = self.sight.promises.get(workload)
        if promise is None:
            return []
        wanted = {place.node for place in promise.places}
        indices = {device.id: device.index for node in self.nodes if node.id in wanted for device in node.devices}
        return [
            name
            for place in promise.places
            for name in ([f"{place.node}/{indices.get(share.device, '?')}" for share in place.shares] or [place.node])
        ]

    def _why_unknown(self, reason: workload_shapes.Reason | None) -> str:
        if not self.outlook.is_worked_out:
            return f"more than {MOST_WAITING} wait"
        if reason is None:
            return "no cycle has looked at it yet"
        blockers = [one.workload for one in reason.blockers if one.workload in self.outlook.endless]
        endless = blockers or sorted(self.outlook.endless)
        row = self.sight.workloads.get(endless[0] or "") if endless else None
        if row is None:
            return "what it waits for does not end by itself"
        if len(endless) == 1:
            return f"{row.name} runs and states no run time"
        return f"{row.name} and {len(endless) - 1} more run and state no run time"

    def _waits_for(self, reason: workload_shapes.Reason | None) -> Iterator[shapes.Named]:
        for one in reason.blockers if reason is not None else ():
            row = self.sight.workloads.get(one.workload or "")
            if row is not None:
                yield shapes.Named(workload=row.id, name=row.name, project=self.sight.name(row.project))


def _projects(tx: ports.Transaction, request: paging.ListRequest) -> frozenset[str] | None:
    """The projects that are asked for; None: all. Raises InvalidInput for one that is not there."""
    found: frozenset[str] | None = None
    if (project := request.filters.get("project")) is not None:
        found = frozenset({find.queue(tx, project, noun="project", field="project").id})
    if (department := request.filters.get("department")) is not None:
        parent = find.queue(tx, department, noun="department", field="department")
        inside = frozenset(row.id for row in tx.queues.find(department=parent.id))
        found = inside if found is None else found & inside
    return found
