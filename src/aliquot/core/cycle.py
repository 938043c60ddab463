"""The state of one cycle: the world it changes, who still waits, and what it has decided so far.

The actions (`aliquot.core.schedule`) share it. What a cycle bound or promised is in `settled` and is not taken again.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core import eligibility, placement
from aliquot.core.asks import Ask, Unit
from aliquot.core.model import Pod, Policy
from aliquot.core.order import Turns
from aliquot.core.plan import Bind, Evict, Reason
from aliquot.core.rooms import Holding
from aliquot.core.snapshot import World


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
    """Who may start more, with what would start next."""
    barred: dict[str, tuple[Ask, Reason]] = field(default_factory=dict)
    """Who cannot start in this cycle whatever is free."""
    promises: dict[str, Kept] = field(default_factory=dict)
    standing: dict[str, Kept] = field(default_factory=dict)
    """Those of them that were made in an earlier cycle and not touched in this one: who could evict their holders may
    take them."""
    bound: dict[str, list[Holding]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    """Workloads of which this cycle bound, moved or promised something."""
    evicted: set[str] = field(default_factory=set)
    """Pods told to end in this cycle."""
    losers: set[str] = field(default_factory=set)
    """Workloads of these pods."""
    calmed: set[str] = field(default_factory=set)
    """Who must not evict in this cycle: its promise has just expired."""
    unsearched: set[str] = field(default_factory=set)
    """For whom the cycle's steps ended before all was tried."""
    revoked: dict[str, str] = field(default_factory=dict)
    """Whose promise was taken in this cycle, and by whom."""
    delayed: set[str] = field(default_factory=set)
    """Who would have looked for victims, but has to wait first."""
    protected: set[str] = field(default_factory=set)
    """For whom work was passed over that its minimum run time protects."""
    lost: list[Holding] = field(default_factory=list)
    """The places of the pods told to end in this cycle."""
    trial: dict[str, Holding] = field(default_factory=dict)
    """The same in the simulation at work, by pod."""
    binds: list[Bind] = field(default_factory=list)
    evicts: list[Evict] = field(default_factory=list)
    leaving: dict[str, list[Holding]] = field(default_factory=dict)
    """By node, the places that are being freed: told to end before this cycle, or in it."""
    victims: dict[tuple[str, str], list[Unit]] = field(default_factory=dict)
    """By pool and queue, what may be evicted, the cheapest first; kept from one search to the next."""
    until: str = ""
    """The workload about which alone is asked: the cycle may end when it is served."""

    @property
    def is_answered(self) -> bool:
        """Whether the workload about which is asked has all that it can get: what is settled is not taken again."""
        return self.until in self.settled and self.until not in self.waiting

    @property
    def is_spent(self) -> bool:
        """Whether the steps of the cycle are used up."""
        return self.world.steps >= self.policy.step_budget

    @property
    def pools(self) -> list[str]:
        """The names of all pools, in order."""
        return sorted(self.world.pools)

    @property
    def progress(self) -> int:
        """How much was decided so far."""
        return len(self.binds) + len(self.evicts) + sum(len(kept.holdings) for kept in self.promises.values())

    def turns(self, pool: str, asks: Iterable[Ask]) -> Turns:
        """The asks of a pool in the order in which they are served."""
        asks = list(asks)
        paths = {queue: self.world.accounts_of(pool, queue) for queue in {ask.workload.queue for ask in asks}}
        return Turns(asks, paths, self.policy, is_over=lambda: self.is_answered)

    def asks_in(self, pool: str, rank: int = 0) -> list[Ask]:
        """Who waits for a pool, as the first of its list (rank 0) or a later one; not who has lost a pod in this
        cycle, for that has to end first."""
        found: list[Ask] = []
        for id, ask in self.waiting.items():
            if id in self.losers:
                continue
            if not rank:
                if ask.pool == pool:
                    found.append(ask)
                continue
            other = self._fallback(ask, rank)
            if other == pool:
                others = ask.alternatives
                found.append(
                    self.world.make_ask(ask.workload, pool, ask.pods, is_core=ask.is_core, alternatives=others)
                )
        return found

    def most_pools(self) -> int:
        """The length of the longest list of pools that someone waits for."""
        return 1 + max((len(ask.workload.fallback_pools) for ask in self.waiting.values()), default=0)

    def _fallback(self, ask: Ask, rank: int) -> str | None:
        """The pool at that place of its list, if it may still choose: what runs, or is promised, stays in one pool."""
        pools = ask.workload.fallback_pools
        is_free = not (self.world.running_of(ask.id) or ask.id in self.bound or ask.id in self.promises)
        return pools[rank - 1] if is_free and rank <= len(pools) else None

    def apart(self, ask: Ask) -> list[Ask]:
        """Its choices, each as an ask of its own: what may be taken for one need not be what may be for another."""
        if not ask.alternatives:
            return [ask]
        choices = (ask.pods, *ask.alternatives)
        return [self.world.make_ask(ask.workload, ask.pool, pods, is_core=ask.is_core) for pods in choices]

    def pods_in_place(self, id: str) -> set[str]:
        """The pods of a workload that hold a place after this cycle, promised ones not among them."""
        running = {one.pod.id for one in self.world.running_of(id)} - self.evicted
        return running | {one.pod.id for one in self.bound.get(id, ())}

    def placed(self, id: str) -> list[Holding]:
        """The places of a workload that were bound in this cycle, or are promised."""
        kept = self.promises.get(id)
        return [*self.bound.get(id, ()), *(kept.holdings if kept else ())]

    def bind(self, ask: Ask, holdings: Sequence[Holding]) -> None:
        """Start these pods there."""
        for holding in holdings:
            self.world.hold(holding)
            self.binds.append(Bind(ask.id, holding.place))
        self.bound.setdefault(ask.id, []).extend(holdings)
        self.settle(ask.id)
        self.advance(ask)

    def settle(self, id: str) -> None:
        """Nothing of this workload is taken in this cycle any more."""
        self.settled.add(id)
        self.standing.pop(id, None)
        for key in list(self.victims) if self.world.running_of(id) else ():
            self.victims[key] = [unit for unit in self.victims[key] if unit.workload.id != id]

    def evict(self, evict: Evict, holding: Holding) -> None:
        """Tell a pod to end. The world knows already."""
        self.evicts.append(evict)
        self.evicted.add(holding.pod.id)
        self.lost.append(holding)
        self.losers.add(evict.workload)
        if holding.node is not None:
            self.leaving.setdefault(holding.node.node.id, []).append(holding)

    def advance(self, ask: Ask) -> None:
        """Find what the workload waits for next, now that pods of it were bound or promised."""
        entry = self.world.entries[ask.id]
        kept = self.promises.get(ask.id)
        promised = {one.pod.id for one in kept.holdings} if kept else set()
        taken = promised | {one.pod.id for one in self.bound.get(ask.id, ())}
        left: list[Pod] = [pod for pod in entry.pending if pod.id not in taken]
        self.waiting.pop(ask.id, None)
        if not left:
            return
        following = self.world.next_ask(entry, ask.pool, waiting=left, promised=taken, gone=self.evicted)
        if following is not None:
            self.waiting[ask.id] = following


def begin(world: World, policy: Policy, now: datetime, *, among: Collection[str] | None = None) -> Cycle:
    """The state at the start: who waits (of these, if only some are looked at), and who cannot start whatever is
    free."""
    world.steps = 0
    world.growth += 1
    world.divide(policy.usage_weight)
    cycle = Cycle(policy, now, world, placement.Placer(world, policy))
    cycle.placer.placed = cycle.placed
    for one in world.releasing():
        if one.node is not None and not one.pod.is_stuck:
            cycle.leaving.setdefault(one.node.node.id, []).append(one)
    for id in sorted(world.waiting if among is None else world.waiting.keys() & among):
        entry = world.waiting[id]
        ask = world.first_ask(entry, entry.pool)
        if ask is None:  # Its gang lacks pods, which the bar says.
            ask = world.make_ask(entry.workload, entry.pool, entry.pending, is_core=True)
        reason = eligibility.bar(world, ask, now)
        if reason is None:
            cycle.waiting[id] = ask
        else:
            cycle.barred[id] = (ask, reason)
    return cycle
