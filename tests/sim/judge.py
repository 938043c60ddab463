"""Lives a random day in the simulator and judges it: each cycle, restarts on the way, and that it comes to rest."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from aliquot.service import loop
from aliquot.sim import days, runner
from aliquot.sim.clock import VirtualClock
from aliquot.sim.cluster import Cycle, SimCluster
from aliquot.sim.runner import Simulation
from aliquot.sim.world import World
from tests.laws.case import LawBroken
from tests.laws.judge import Law
from tests.sim import laws

MOST_CYCLES_TO_REST = 60
COPIED_EVICTIONS = (1, 4)
"""After which evicting cycles of a day the store is copied: there is most to lose then."""


@dataclass
class Verdict:
    """What was judged, and how often."""

    cycles: int = 0
    evicting_cycles: int = 0
    evicted_workloads: int = 0
    restarts: int = 0
    longest_rest: int = 0
    judged: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Verdict") -> None:
        """Add what was judged on another day."""
        self.cycles += other.cycles
        self.evicting_cycles += other.evicting_cycles
        self.evicted_workloads += other.evicted_workloads
        self.restarts += other.restarts
        self.longest_rest = max(self.longest_rest, other.longest_rest)
        self.judged.update(other.judged)


@dataclass
class _Copies:
    """Copies the store now and then, and compares what a restarted cluster sees with what the other one sees."""

    cluster: SimCluster
    taken: list[tuple[datetime, World]] = field(default_factory=list)
    compared: int = 0
    _evicting: int = 0
    _fresh: World | None = None

    def __call__(self, cycle: Cycle) -> None:
        """Compare the last copy with this cycle, and take another one."""
        if self._fresh is not None:
            self._fresh.take_in(cycle.now)
            if self._fresh.snapshot() != cycle.before:
                raise LawBroken("a-restart-changes-nothing", f"{cycle.now}: the cluster sees something else")
            self.compared += 1
            self._fresh = None
        self._evicting += bool(cycle.plan.evicts)
        if cycle.plan.evicts and self._evicting in COPIED_EVICTIONS:
            self.taken.append((cycle.now, self.cluster.stored()))
            self._fresh = self.cluster.stored()


def judge_day(seed: int, judging: tuple[Law, ...] = laws.LAWS) -> Verdict:
    """Live through the day of this seed. Raises LawBroken, IllegalPlan or NeverAtRest, naming the seed."""
    try:
        return asyncio.run(_judge_day(seed, judging))
    except Exception as error:
        error.add_note(f"on the day of seed {seed}")
        raise


async def _judge_day(seed: int, judging: tuple[Law, ...]) -> Verdict:
    day = days.random_day(seed)
    simulation = day.simulation()
    watch, copies = laws.Watch(day.policy, judging), _Copies(simulation.cluster)
    simulation.cluster.watchers += [watch, copies]
    await runner.run_until(simulation, day.end)
    counts = simulation.cluster.counts
    laws.ledger_is_even(simulation.cluster.world)
    verdict = Verdict(counts.cycles, counts.evicting_cycles, counts.evicted_workloads, copies.compared)
    for now, stored in copies.taken:
        verdict.longest_rest = max(verdict.longest_rest, await _rest(day, now, stored, judging=judging))
    verdict.judged.update(watch.judged)
    return verdict


async def _rest(day: days.Day, now: datetime, stored: World, *, judging: tuple[Law, ...]) -> int:
    """How many cycles a copy needs to come to rest when nothing comes from outside any more."""
    clock = VirtualClock(now)
    copy = Simulation(SimCluster.from_stored(clock, stored), clock, loop.Planner(day.policy))
    copy.cluster.watchers.append(laws.Watch(day.policy, judging))
    return await runner.run_to_rest(copy, at_most=MOST_CYCLES_TO_REST)
