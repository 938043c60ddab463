"""The `Cluster` port in virtual time: the production loop runs on it unchanged, and a day takes seconds.

Promises: it acts on a plan and never chooses; applying a plan twice does nothing the second time; a cluster made anew
from `stored` goes on exactly where the other one stopped.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from aliquot.core.model import Node, Queue, Snapshot
from aliquot.core.plan import Evict, Plan
from aliquot.service.ports import ClusterFacts
from aliquot.sim.clock import VirtualClock
from aliquot.sim.script import Event, Happening
from aliquot.sim.world import Counts, World

GRACE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Cycle:
    """One turn of the loop, for whoever watches: what was seen, what was decided, and what came of it."""

    now: datetime
    before: Snapshot
    plan: Plan
    after: Snapshot
    outside_changes: int
    """How many changes from outside there were until now; equal numbers mean that nothing came from outside between."""


class SimCluster:
    """Simulated nodes on a virtual clock. `watchers` are called after each applied plan."""

    def __init__(
        self, clock: VirtualClock, *, nodes: Sequence[Node], queues: Sequence[Queue] = (), grace: timedelta = GRACE
    ) -> None:
        self._clock = clock
        self._world = World(nodes, queues, grace=grace)
        self._last: Snapshot | None = None
        self._wake = asyncio.Event()
        self.watchers: list[Callable[[Cycle], None]] = []

    @property
    def counts(self) -> Counts:
        """Everything that happened, counted."""
        return self._world.counts

    @property
    def world(self) -> World:
        """What there is, for tests and reports."""
        return self._world

    def plan_ahead(self, events: Sequence[Event]) -> None:
        """Let these happen when their time comes."""
        self._world.plan_ahead(events)

    def happen(self, what: Happening) -> None:
        """Let something happen now, and wake the loop."""
        self._world.take_in(self._clock.now())
        self._world.counts.outside_changes += 1
        self._world.happen(what, self._clock.now())
        self.wake()

    def next_due(self) -> datetime | None:
        """When the next thing happens by itself; None if nothing will."""
        return self._world.next_due()

    def stored(self) -> World:
        """All that a restart would find: a copy, which goes its own way."""
        return self._world.twin()

    @classmethod
    def from_stored(cls, clock: VirtualClock, world: World) -> "SimCluster":
        """The cluster after a restart: nothing is remembered but what was stored."""
        cluster = cls(clock, nodes=(), grace=world.grace)
        cluster._world = world
        return cluster

    async def snapshot(self) -> Snapshot:
        """What is, after everything that was due."""
        self._world.take_in(self._clock.now())
        self._last = self._world.snapshot()
        return self._last

    async def apply(self, plan: Plan) -> None:
        """Promises first, then evictions, then starts, as the real ones do. Raises IllegalPlan for what cannot be."""
        now = self._clock.now()
        before = self._last or self._world.snapshot()
        self._world.keep_promises(plan.nominates, now)
        for workload, pods in _by_workload(plan.evicts).items():
            self._world.evict(workload, pods, now)
        for bind in plan.binds:
            self._world.bind(bind.workload, bind.place, now)
        self._count(plan)
        after = self._world.snapshot()
        cycle = Cycle(now, before, plan, after, self._world.counts.outside_changes)
        for watch in self.watchers:
            watch(cycle)

    async def changed(self, timeout: timedelta) -> None:
        """Return when the next thing happens, when somebody wakes it, or after `timeout`."""
        end = self._clock.now() + timeout
        due = self._world.next_due()
        span = (end if due is None else min(end, due)) - self._clock.now()
        sleeper = asyncio.ensure_future(self._clock.sleep(span))
        waker = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait((sleeper, waker), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            waker.cancel()
        self._wake.clear()

    def wake(self) -> None:
        """Make `changed` return."""
        self._wake.set()

    async def nodes(self) -> Sequence[Node]:
        """The nodes with all their devices, withheld ones too."""
        return self._world.snapshot().nodes

    async def facts(self) -> ClusterFacts:
        """What it says of itself."""
        devices = sum(len(node.devices) for node in self._world.nodes.values())
        return ClusterFacts(
            node="sim",
            description=f"{devices} simulated devices on {len(self._world.nodes)} simulated nodes",
            limits="not enforced: nothing runs",
        )

    def _count(self, plan: Plan) -> None:
        counts = self._world.counts
        counts.cycles += 1
        counts.evicting_cycles += bool(plan.evicts)
        for wait in plan.waits:
            counts.waits[wait.reason.code] = counts.waits.get(wait.reason.code, 0) + 1


def _by_workload(evicts: Sequence[Evict]) -> dict[str, frozenset[str]]:
    pods: dict[str, frozenset[str]] = {}
    for evict in evicts:
        pods[evict.workload] = pods.get(evict.workload, frozenset()) | {evict.pod}
    return pods
