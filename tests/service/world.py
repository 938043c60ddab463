"""A small whole world for the use cases: a real store in memory, the real scheduler and books, and processes that are
only pretended: each starts at once and runs until the test ends it.
"""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from aliquot.core import errors, schedule
from aliquot.core.model import Node, Snapshot
from aliquot.core.plan import Plan
from aliquot.db import store as db
from aliquot.local import bookkeeping, launch
from aliquot.service import (
    access,
    audit,
    changes,
    departments,
    device_map,
    events,
    ledger,
    logs,
    look,
    loop,
    mirror,
    nodes,
    overview,
    paging,
    ports,
    previews,
    projects,
    queue,
    queues,
    receipts,
    records,
    series,
    server,
    terminals,
    timelines,
    usage,
    watch,
    workloads,
)
from aliquot.wire import projects as project_shapes
from aliquot.wire import workloads as shapes
from aliquot.wire.nodes import DeviceUse
from tests import builders

ANN = access.Actor("ann", "test")


class HandClock:
    """A clock that moves when a test moves it, or when somebody sleeps."""

    def __init__(self) -> None:
        self._now = builders.NOW
        self.on_sleep: Callable[[], Awaitable[None]] = _nothing

    def now(self) -> datetime:
        return self._now

    def advance(self, span: timedelta) -> None:
        self._now += span

    async def sleep(self, span: timedelta) -> None:
        self.advance(span)
        await self.on_sleep()


async def _nothing() -> None:
    """What happens while somebody sleeps, unless a test says otherwise."""


class Numbers:
    """Ids that count."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def new(self) -> str:
        return f"id-{next(self._next):06}"

    def secret(self) -> str:
        return f"secret-{next(self._next)}"


class PretendCluster:
    """The Cluster port over a store. Pods run until `finish` ends them, or until they are told to end.

    While `is_lingering`, those that are told to end do so when `let_go` says so.
    """

    def __init__(self, store: ports.Store, clock: HandClock, machines: Sequence[Node]) -> None:
        self._store = store
        self._clock = clock
        self.machines = list(machines)
        self.use: Mapping[str, DeviceUse] = {}
        self.seen: dict[str, launch.Observation] = {}
        self.wakes = 0
        self.is_lingering = False

    async def snapshot(self) -> Snapshot:
        now = self._clock.now()

        def work(tx: ports.Transaction) -> Any:  # Any: the turns of a look
            turns = bookkeeping.look_over(tx, bookkeeping.open_rows(tx), self.seen, now=now)
            bookkeeping.write_turns(tx, turns)
            return turns

        for turn in await self._store.write(work):
            for pod in turn.starts:
                self.seen[pod.id] = launch.Observation(pod.id, pod.workload, "running", 100, now)
            for pod in turn.ends:
                self.seen[pod.id] = replace(self.seen[pod.id], is_ending=True)
                if not self.is_lingering:
                    self.let_go(pod.id)
        await self._store.write(work)
        return await look.snapshot(self._store, self)

    async def apply(self, plan: Plan) -> None:
        taken = await look.snapshot(self._store, self)
        pen = bookkeeping.Pen(self._clock.now(), lambda taken: 40_000 + len(taken))
        await self._store.write(lambda tx: bookkeeping.write_plan(tx, plan, taken, pen))

    async def changed(self, timeout: timedelta) -> None:
        self._clock.advance(timeout)

    def wake(self) -> None:
        self.wakes += 1

    async def nodes(self) -> Sequence[Node]:
        cordons = await self._store.read(lambda tx: {row.id for row in tx.cordons.find()})
        return [
            replace(
                node,
                is_cordoned=node.id in cordons,
                devices=tuple(
                    replace(device, withheld="cordoned") if device.id in cordons else device for device in node.devices
                ),
            )
            for node in self.machines
        ]

    async def facts(self) -> ports.ClusterFacts:
        return ports.ClusterFacts("node-1", "8 pretended devices", "not at all", use=self.use)

    def finish(self, pod: str, code: int = 0) -> None:
        """The pod's process exits."""
        self._end(pod, launch.ExitKind.EXITED, code, None)

    def let_go(self, pod: str) -> None:
        """A pod that was told to end ends."""
        assert self.seen[pod].is_ending, "it was not told to end"
        self._end(pod, launch.ExitKind.SIGNALLED, None, 15)

    def _end(self, pod: str, kind: launch.ExitKind, code: int | None, signal: int | None) -> None:
        ended = launch.Exit(kind, code, signal, self._clock.now())
        self.seen[pod] = replace(self.seen[pod], state="ended", exit=ended)


class PretendPods:
    """The Pods port: logs are lists of lines that a test fills; one byte is one line."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}
        self.complete: set[str] = set()
        self.files: dict[str, bytes] = {}

    async def logs(self, pod: str, *, offset: int, limit: int) -> shapes.LogChunk:
        if pod not in self.lines:
            raise errors.NotFound("it has no log")
        texts = self.lines[pod]
        start = max(0, len(texts) + offset) if offset < 0 else offset
        part = texts[start : start + limit]
        index = int(pod.rpartition("-")[2])
        lines = [
            shapes.LogLine(offset=start + place, time=builders.NOW, stream="stdout", text=text, pod=pod, index=index)
            for place, text in enumerate(part)
        ]
        end = start + len(part)
        return shapes.LogChunk(lines=lines, next_offset=end, is_complete=pod in self.complete and end == len(texts))

    async def exec(self, pod: str, request: ports.ExecRequest) -> ports.Terminal:
        raise errors.Conflict(f"{pod} was asked to run {request.argv[0]}")

    async def attach(self, pod: str) -> ports.Terminal:
        raise errors.Conflict(f"{pod} was attached to")

    async def read_archive(self, pod: str, path: str) -> AsyncIterator[bytes]:
        if path not in self.files:
            raise errors.NotFound(f"{pod} has no {path}")
        for start in range(0, len(self.files[path]), 2):
            yield self.files[path][start : start + 2]

    async def write_archive(self, pod: str, path: str, data: AsyncIterator[bytes]) -> None:
        self.files[path] = b"".join([chunk async for chunk in data])


@dataclass
class World:
    """Everything together."""

    store: db.SqlStore
    clock: HandClock = field(default_factory=HandClock)
    ids: Numbers = field(default_factory=Numbers)
    pods: PretendPods = field(default_factory=PretendPods)
    machines: Sequence[Node] = (builders.node(devices=8),)

    def __post_init__(self) -> None:
        store, clock, ids = self.store, self.clock, self.ids
        self.cluster = PretendCluster(store.patient, clock, self.machines)
        self.planner = loop.Planner(workloads.Config().policy)
        config = workloads.Config(data_directory="/data")
        facts = server.ServerFacts("1", "http://127.0.0.1", 1, "/data", "me", clock.now())
        self.access = access.Access(store, clock, ids)
        self.audit = audit.Audit(store)
        self.changes = changes.Changes(store, self.cluster, clock=clock, facts=facts)
        self.departments = departments.Departments(store, self.cluster, clock=clock, ids=ids)
        self.events = events.Events(store)
        self.ledger = ledger.Ledger(store)
        self.logs = logs.Logs(store, self.pods, clock=clock)
        seen = mirror.Mirror(store)
        self.nodes = nodes.Nodes(store, self.cluster, seen, clock=clock, ids=ids)
        self.pulse = loop.Pulse()
        self.watch = watch.Watch(store, self.cluster, seen, clock=clock)
        self.device_map = device_map.DeviceMap(seen, self.cluster, clock=clock)
        self.overview = overview.Overview(seen, self.cluster, self.watch, clock=clock, facts=facts, pulse=self.pulse)
        self.previews = previews.Previews(store, self.cluster, clock=clock, policy=self.planner.policy)
        self.projects = projects.Projects(store, self.cluster, clock=clock, ids=ids)
        self.queue = queue.Queue(store, self.cluster, seen, clock=clock, policy=self.planner.policy)
        self.receipts = receipts.Receipts(store)
        self.series = series.Series(store, clock=clock)
        self.terminals = terminals.Terminals(store, self.pods, clock=clock, ids=ids)
        self.timelines = timelines.Timelines(store, self.cluster, clock=clock)
        self.usage = usage.Usage(store, clock)
        self.workloads = workloads.Workloads(store, self.cluster, clock=clock, ids=ids, config=config)

    async def prepare(self) -> "World":
        """The ready default, with the whole machine as its quota."""
        await queues.ensure_default(self.store, clock=self.clock, ids=self.ids)
        await self.quota("default", "8", department="default")
        return self

    async def quota(self, project: str, gpu: str, *, department: str | None = None) -> None:
        """Set a GPU quota."""
        pools = {"default": project_shapes.PoolTermsUpdate(gpu=project_shapes.Claim(quota=gpu))}
        change = project_shapes.QueueUpdate(pools=pools)
        await self.projects.update(ANN, project, change)
        if department is not None:
            await self.departments.update(ANN, department, change)

    async def submit(self, name: str | None = None, **fields: Any) -> shapes.WorkloadDetail:  # Any: a definition's
        """Submit a training that runs `true`."""
        given = {"command": ["true"]} | fields
        detail, _ = await self.workloads.submit(ANN, shapes.Definition(name=name, **given))
        return detail

    async def cycle(self, times: int = 1) -> Plan:
        """Let the scheduler turn; a pod that is bound runs after it."""
        plan = Plan()
        for _ in range(times):
            snapshot = await self.cluster.snapshot()
            plan = self.planner.plan(snapshot, self.clock.now())
            fresh = schedule.schedule(snapshot, self.planner.policy, self.clock.now())
            assert plan == fresh, "a plan of a kept world differs"
            await self.cluster.apply(plan)
            await self.cluster.snapshot()
        return plan

    async def rows(self, **equal: Any) -> Sequence[records.WorkloadRow]:  # Any: the values of fields
        """Stored workloads."""
        return await self.store.read(lambda tx: tx.workloads.find(**equal))


def everything(**filters: str) -> paging.ListRequest:
    """A list of all that match."""
    return paging.ListRequest({name.replace("label_", "label."): value for name, value in filters.items()})


@contextmanager
def opened(**given: Any) -> Iterator[World]:  # Any: fields of World
    """A world that is closed afterwards."""
    store = db.open_store(":memory:")
    try:
        yield World(store, **given)
    finally:
        store.close()
