"""The state of one cycle: the world it changes, who still waits, and what it has decided so far.

The actions (`aliquot.core.schedule`) share it. What a cycle bound or promised is in `settled` and is not taken again.
"""

from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core import eligibility, order, placement
from aliquot.core.model import PodState, Policy, Snapshot
from aliquot.core.order import Ask, Turns
from aliquot.core.plan import Bind, Evict, Reason
from aliquot.core.snapshot import Holding, World


@dataclass(frozen=True, slots=True)
class Kept:
    """A promise that stands: the room it keeps, until when, and for whose release it waits."""

    ask: Ask
    holdings: tuple[Holding, ...]
    waits_for: tuple[str, ...]
    due: datetime
    expires: datetime
    may_evict: bool = True


@dataclass(slots=True)
class Cycle:
    """One cycle at work."""

    policy: Policy
    now: datetime
    world: World
    placer: placement.Placer
    waiting: dict[str, Ask] = field(default_factory=dict)
    """Who may start and has not been bound, promised or not."""
    barred: dict[str, tuple[Ask, Reason]] = field(default_factory=dict)
    """Who cannot start in this cycle whatever is free."""
    promises: dict[str, Kept] = field(default_factory=dict)
    bound: dict[str, list[Holding]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    evicted: set[str] = field(default_factory=set)
    """Pods told to end in this cycle."""
    calmed: set[str] = field(default_factory=set)
    """Who must not evict in this cycle: its promise has just expired."""
    unsearched: set[str] = field(default_factory=set)
    """For whom the cycle's steps ended before all was tried."""
    revoked: dict[str, str] = field(default_factory=dict)
    """Whose promise was taken in this cycle, and by whom."""
    binds: list[Bind] = field(default_factory=list)
    evicts: list[Evict] = field(default_factory=list)

    @property
    def is_spent(self) -> bool:
        """Whether the steps of the cycle are used up."""
        return self.world.steps >= self.policy.step_budget

    def turns(self, pool: str, asks: list[Ask]) -> Turns:
        """The asks of a pool in the order in which they are served."""
        paths = {ask.workload.queue: self.world.accounts_of(pool, ask.workload.queue) for ask in asks}
        return Turns(asks, paths)

    def waiting_in(self, pool: str) -> list[Ask]:
        """Who waits in a pool, has no promise, and has lost no pod in this cycle: these first have to end."""
        return [
            ask
            for ask in self.waiting.values()
            if ask.workload.pool == pool and ask.id not in self.promises and not self.has_lost(ask)
        ]

    def has_lost(self, ask: Ask) -> bool:
        """Whether a pod of it was told to end in this cycle."""
        return any(pod.id in self.evicted for pod in ask.workload.pods)

    def bind(self, ask: Ask, holdings: list[Holding]) -> None:
        """Start it there."""
        for holding in holdings:
            self.world.hold(holding)
            self.binds.append(Bind(ask.id, holding.place))
        self.bound[ask.id] = list(holdings)
        self.settled.add(ask.id)
        del self.waiting[ask.id]


def begin(taken: Snapshot, policy: Policy, now: datetime) -> Cycle:
    """The state at the start: who waits, and who cannot start whatever is free."""
    world = World(taken)
    cycle = Cycle(policy, now, world, placement.Placer(world, policy.gpu_placement))
    for workload in sorted(taken.workloads, key=lambda one: one.id):
        if all(pod.state is not PodState.PENDING for pod in workload.pods):
            continue
        ask = order.ask_of(world, workload)
        reason = eligibility.bar(world, ask, now)
        if reason is None:
            cycle.waiting[workload.id] = ask
        else:
            cycle.barred[workload.id] = (ask, reason)
    return cycle
