"""Replays a trace: the decisions of the production loop on a virtual clock, from the first job to the last.

It does what `service.loop` does with a `SimCluster`: look, decide, act, at every instant at which something happens.
Two things are left out, and neither changes a decision: it awaits nothing, because nothing else runs, and it does not
ask for the reasons of those who wait (`schedule.decide`), because nobody reads a hundred million of them. The world of
the decisions is kept from cycle to cycle and told what changed.

Promises: the same trace, nodes and policy give the same outcome; memory does not grow with the jobs that have ended but
by three numbers each.
"""

import heapq
import itertools
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aliquot.core import cycle as cycles
from aliquot.core import promises, schedule
from aliquot.core import snapshot as snapshots
from aliquot.core.model import Node, Policy, Queue, QueueOrder, Snapshot, Workload
from aliquot.sim import crowd, measures
from aliquot.sim.intake import BEGIN
from aliquot.sim.measures import Measures
from aliquot.sim.runner import TICK, NeverAtRest
from aliquot.sim.script import Job, Submit
from aliquot.sim.world import Ended, Turns, World

MOST_AT_ONCE = 1_000
"""Cycles at one instant: work that ends at once may let others start at once, but not for ever."""
PROGRESS_EVERY = 200
"""Instants between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Course:
    """What is replayed: on which nodes, for which queues, by which rules."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    policy: Policy
    jobs: Iterator[tuple[datetime, Job]]
    """In the order of time."""
    is_strict: bool = False
    """Of each queue only the head may start: the FIFO of the literature, which the product never does."""
    is_crowded: bool = False
    """Whether jobs are alike but for their age, so that who stands far behind others may be left out of a cycle."""
    facts: Snapshot = field(default_factory=Snapshot)
    """Topologies and budgets; what runs when it begins."""
    run_times: Mapping[str, timedelta] = field(default_factory=dict)
    """Of what runs when it begins; what is not in it never ends."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is."""

    ended: int
    waiting: int
    elapsed: timedelta


@dataclass(slots=True)
class Tally:
    """Of each job that ended, in seconds: from its arrival to its first start, all the time without its devices, and
    from its arrival to its end."""

    to_start: "array[float]" = field(default_factory=lambda: array("d"))
    waiting: "array[float]" = field(default_factory=lambda: array("d"))
    completion: "array[float]" = field(default_factory=lambda: array("d"))
    evicted: int = 0
    """How many of them were evicted at least once."""

    def add(self, one: Ended) -> None:
        """Count a job that ended."""
        completion = one.end - one.created
        self.to_start.append((one.first_start - one.created).total_seconds())
        self.waiting.append((completion - one.ran).total_seconds())
        self.completion.append(completion.total_seconds())
        self.evicted += bool(one.evictions)


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    measures: Measures
    tally: Tally = field(default_factory=Tally)
    evictions: Counter[str] = field(default_factory=Counter)
    """Evicted pods by rule."""
    evicted_workloads: int = 0
    lost: timedelta = timedelta(0)
    """Work that was done in vain."""
    running: int = 0
    """Jobs that still run at the end, because they have none."""
    waiting: int = 0
    """Jobs that never started, or not again."""
    cycles: int = 0
    cut_off: int = 0
    """Cycles whose steps ended before all was tried."""
    last_end: datetime = BEGIN


def replay(course: Course, measured: Measures, on_progress: Callable[[Progress], None]) -> Outcome:
    """Live through it."""
    return _Replay(course, measured, on_progress).run()


class _Replay:
    def __init__(self, course: Course, measured: Measures, on_progress: Callable[[Progress], None]) -> None:
        policy = course.policy
        turns = Turns(policy.service_quantum, policy.service_threshold, policy.service_classes)
        self._course = course
        self._policy = policy
        self._world = World(course.nodes, course.queues, grace=policy.release_grace, turns=turns)
        self._world.is_ledger_kept = False
        self._world.facts = course.facts
        for workload in course.facts.workloads:
            self._world.adopt(Job(workload, run_time=course.run_times.get(workload.id)), BEGIN)
        self._accounts = snapshots.World(self._world.snapshot())
        self._outcome = Outcome(measured)
        self._on_progress = on_progress
        self._next: tuple[datetime, Job] | None = next(course.jobs, None)
        self._capacity = crowd.capacity_of(course.nodes)
        leaves = [queue for queue in course.queues if queue.id not in {one.parent for one in course.queues}]
        self._is_by_age_alone = len(leaves) == 1 and leaves[0].order is QueueOrder.WAITING_TIME
        self._queues = {queue.id: queue for queue in course.queues}
        self._wakes: list[datetime] = []
        self._is_still = False
        self._has_bound = False

    def run(self) -> Outcome:
        """All of it."""
        now, at_once = BEGIN, 0
        for count in itertools.count():
            self._look(now)
            if not count % PROGRESS_EVERY:
                self._report(now)
            due = self._next_due(now)
            if due is None:
                break
            at_once = at_once + 1 if due <= now else 0
            if at_once > MOST_AT_ONCE + len(self._world.tasks):
                raise NeverAtRest(f"{at_once} cycles at {now}, and the plans go on changing things")
            now = max(now, due)
        self._report(now)
        return self._close(now)

    def _look(self, now: datetime) -> None:
        world = self._world
        world.take_in(now)
        while self._next is not None and self._next[0] <= now:
            world.happen(Submit(self._next[1]), self._next[0])
            self._await_clocks(self._next[1].workload)
            self._next = next(self._course.jobs, None)
        self._has_bound = False
        while self._wakes and self._wakes[0] <= now:
            heapq.heappop(self._wakes)
            world.has_stirred = True
        is_over = any(promise.expires < now for promise in world.promises.values())
        if (world.waiting or world.promises) and (world.has_stirred or is_over):
            world.has_stirred = False
            self._cycle(now)
        for ended in world.ended:
            self._outcome.tally.add(ended)
            self._outcome.last_end = ended.end
        world.ended.clear()
        self._outcome.measures.see(now, world.occupancy, waiting=len(world.waiting))

    def _cycle(self, now: datetime) -> None:
        accounts, world, outcome = self._accounts, self._world, self._outcome
        accounts.sync(self._seen())
        cycle = schedule.decide(accounts, self._policy, now)
        kept = [promises.nominate(one) for _, one in sorted(cycle.promises.items())]
        if outcome.measures.wants_shares(now):
            outcome.measures.see_shares(now, measures.shares_of(accounts))
        accounts.rollback(0)
        world.keep_promises(kept, now)
        self._evict(cycle, now)
        for bind in cycle.binds:
            world.bind(bind.workload, bind.place, now)
        outcome.cycles += 1
        outcome.cut_off += bool(cycle.unsearched)
        self._is_still = not (cycle.binds or cycle.evicts)
        self._has_bound = bool(cycle.binds)
        world.has_stirred |= self._course.is_strict and self._has_bound

    def _seen(self) -> Snapshot:
        """What is, without those of whom it is certain that they cannot start now."""
        world = self._world
        if self._course.is_strict:
            shown = world.waiting.heads()
        elif self._course.is_crowded:
            is_by_age = self._is_by_age_alone and not world.releasing
            idle = self._capacity - world.occupancy.held
            shown = world.waiting.front_of_one(idle) if is_by_age else world.waiting.front(self._capacity)
        else:
            return world.snapshot()
        return world.snapshot(shown | world.promises.keys())

    def _evict(self, cycle: cycles.Cycle, now: datetime) -> None:
        victims: dict[str, set[str]] = {}
        for evict in cycle.evicts:
            self._outcome.evictions[str(evict.rule)] += 1
            victims.setdefault(evict.workload, set()).add(evict.pod)
        for workload, pods in victims.items():
            self._world.evict(workload, frozenset(pods), now)

    def _next_due(self, now: datetime) -> datetime | None:
        """The next instant with something to do. Where nothing is left to come and nothing moves, there is none."""
        world = self._world
        if self._next is None and not world.tasks:
            return None  # What is still due is of jobs that have ended.
        if self._course.is_strict and self._has_bound and world.waiting:
            return now  # The next head may fit as well.
        times = [] if self._next is None else [self._next[0]]
        due = world.next_due()
        if due is not None:
            times.append(due)
        if times or not self._is_still:
            times += [promise.expires + TICK for promise in world.promises.values() if promise.expires + TICK > now]
            times += self._wakes[:1]
        return min(times, default=None)

    def _await_clocks(self, workload: Workload) -> None:
        """Remember when its case changes though nothing happens: it may evict, it may start, room is held for it."""
        times = [workload.not_before, workload.created + workload.preemption_delay]
        above: Queue | None = self._queues.get(workload.queue)
        while above is not None and above.hold_after is None:
            above = self._queues.get(above.parent or "")
        if above is not None and above.hold_after is not None:
            times.append(workload.created + above.hold_after)
        for instant in times:
            if instant is not None and instant > workload.created:
                heapq.heappush(self._wakes, instant)

    def _report(self, now: datetime) -> None:
        ended = len(self._outcome.tally.completion)
        self._on_progress(Progress(ended, len(self._world.waiting), now - BEGIN))

    def _close(self, now: datetime) -> Outcome:
        outcome, world = self._outcome, self._world
        outcome.measures.close(now)
        outcome.evicted_workloads = world.counts.evicted_workloads
        outcome.lost = world.counts.lost_time
        outcome.waiting = len(world.waiting)
        outcome.running = len(world.tasks) - outcome.waiting
        return outcome
