"""Drives the production loop over a simulated cluster: until an instant, or until nothing moves any more.

Promises: a cycle runs at every instant at which something happened, and nowhere else, so that a day costs as many
cycles as it has events.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from aliquot.core.errors import AliquotError
from aliquot.core.model import Policy
from aliquot.service import loop
from aliquot.sim.clock import VirtualClock
from aliquot.sim.cluster import SimCluster

TICK = timedelta(milliseconds=1)
"""Promises end after, not at, their time."""


class NeverAtRest(AliquotError):
    """Without any change from outside the plans went on changing things."""

    code = "never-at-rest"


@dataclass(frozen=True, slots=True)
class Simulation:
    """A cluster, its clock, and who decides by the rules."""

    cluster: SimCluster
    clock: VirtualClock
    planner: loop.Planner

    @property
    def policy(self) -> Policy:
        """The rules."""
        return self.planner.policy

    def after_restart(self) -> "Simulation":
        """The same from what is stored alone, on a clock of its own: what it does from here does not touch this one."""
        clock = VirtualClock(self.clock.now())
        return Simulation(SimCluster.from_stored(clock, self.cluster.stored()), clock, loop.Planner(self.policy))


async def run_until(simulation: Simulation, end: datetime) -> None:
    """Cycle whenever something happens, up to and including `end`."""
    while simulation.clock.now() <= end:
        await loop.run_cycle(simulation.cluster, simulation.planner, simulation.clock)
        due = _next(simulation)
        if due is None or due > end:
            break
        simulation.clock.set(due)
    simulation.clock.set(max(end, simulation.clock.now()))


async def run_to_rest(simulation: Simulation, *, at_most: int) -> int:
    """Cycle without anything from outside until nothing is left to do; the number of cycles.

    Raises NeverAtRest after `at_most` cycles, or as soon as a cycle that changes things meets a state that was before.
    """
    simulation.cluster.world.forget_outside()
    seen: set[tuple[object, ...]] = set()
    for count in range(at_most):
        state = await _shape(simulation)
        plan = await loop.run_cycle(simulation.cluster, simulation.planner, simulation.clock)
        if plan.binds or plan.evicts:
            if state in seen:
                raise NeverAtRest(f"a state came back after {count} cycles, and the plan changes it")
            seen.add(state)
        due = _next(simulation)
        if due is None:
            return count + 1
        simulation.clock.set(due)
    raise NeverAtRest(f"things went on changing for {at_most} cycles")


def _next(simulation: Simulation) -> datetime | None:
    """The next instant with something to decide: an event, or the end of a promise."""
    now = simulation.clock.now()
    promises = [promise.expires + TICK for promise in simulation.cluster.world.promises.values()]
    waits = [task.workload.not_before for task in simulation.cluster.world.tasks.values()]
    later = [instant for instant in (*promises, *waits, simulation.cluster.next_due()) if instant and instant > now]
    return min(later, default=None)


async def _shape(simulation: Simulation) -> tuple[object, ...]:
    """What is held, without times: two instants with equal shapes differ in nothing but their date."""
    snapshot = await simulation.cluster.snapshot()
    held = sorted(
        (pod.id, str(pod.state), pod.node, pod.shares) for workload in snapshot.workloads for pod in workload.pods
    )
    return (tuple(held), tuple(sorted((one.workload, one.places, one.may_evict) for one in snapshot.promises)))
