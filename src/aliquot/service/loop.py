"""The loop that everything turns on: look, decide, act. The same loop drives a machine and the simulator.

It chooses nothing and knows no cluster: `core.schedule` chooses, the Cluster port looks and acts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aliquot.core import schedule
from aliquot.core import snapshot as worlds
from aliquot.core.model import Policy, Snapshot
from aliquot.core.plan import Plan
from aliquot.service.ports import Clock, Cluster

LONGEST_IDLE = timedelta(seconds=2)
"""A cycle runs at least this often: promises expire, back-offs and time limits end without an event."""
AFTER_FAULT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears of a plan that was applied, of when each cycle began and how long it took, and of a fault that ended
    one."""

    on_plan: Callable[[Plan], None] = field(default=lambda plan: None)
    on_fault: Callable[[Exception], None] = field(default=lambda fault: None)
    on_cycle: Callable[[datetime, timedelta], None] = field(default=lambda began, took: None)


class Pulse:
    """How the last cycle went, for whoever asks; `listeners` tell it."""

    def __init__(self) -> None:
        self.began: datetime | None = None
        self.took = timedelta(0)
        self.fault: str | None = None

    def listeners(self, on_fault: Callable[[Exception], None]) -> Listeners:
        """Listeners that keep this, too."""

        def failed(fault: Exception) -> None:
            self.fault = str(fault) or type(fault).__name__
            on_fault(fault)

        return Listeners(on_fault=failed, on_cycle=self._turned)

    def _turned(self, began: datetime, took: timedelta) -> None:
        self.began, self.took, self.fault = began, took, None


class Planner:
    """Decides by one policy, cycle after cycle. It keeps the scheduler's working copy of the cluster in between, which
    saves time and changes no plan."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._world: worlds.World | None = None

    def plan(self, snapshot: Snapshot, now: datetime) -> Plan:
        """The plan for this snapshot, now."""
        world, self._world = self._world, None  # Where this fails half way, nobody knows what state it is in.
        if world is None:
            world = worlds.World(snapshot)
        else:
            world.sync(snapshot)
        plan = schedule.schedule(world, self.policy, now)
        self._world = world
        return plan


async def run_cycle(cluster: Cluster, planner: Planner, clock: Clock) -> Plan:
    """One cycle: the plan that was applied."""
    snapshot = await cluster.snapshot()
    plan = planner.plan(snapshot, clock.now())
    await cluster.apply(plan)
    return plan


async def run(cluster: Cluster, planner: Planner, clock: Clock, *, listeners: Listeners) -> None:
    """Cycle until cancelled. A cycle that fails is told of, and the next one starts from what is stored."""
    while True:
        began = clock.now()
        try:
            listeners.on_plan(await run_cycle(cluster, planner, clock))
            listeners.on_cycle(began, clock.now() - began)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the jobs that run must not lose their scheduler
            listeners.on_fault(fault)
            await clock.sleep(AFTER_FAULT)
        await cluster.changed(LONGEST_IDLE)
