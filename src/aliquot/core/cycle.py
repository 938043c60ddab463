"""The state of one cycle: the world it changes, who still waits, and what it has decided so far.

The actions (`aliquot.core.schedule`) share it. What a cycle bound or promised is in `settled` and is not taken again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core import eligibility, placement
from aliquot.core.asks import Ask, UnitsInOrder
from aliquot.core.lines import Lines
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
    more: dict[str, Ask] = field(default_factory=dict)
    """Those of them who wait for something else than what the world has them in line for."""
    is_of_all: bool = True
    """Whether all who wait are looked at."""
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
    victims: dict[tuple[str, str], UnitsInOrder] = field(default_factory=dict)
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
        """How much was decided so far; to bind what was promised is a step, too."""
        return 2 * len(self.binds) + len(self.evicts) + sum(len(kept.holdings) for kept in self.promises.values())

    def turns(self, pool: str, *, rank: int = 0, admits: Callable[[Ask], bool] = lambda ask: True) -> Turns:
        """Who waits for a pool, as the first of its list (rank 0) or a later one, in the order in which they are
        served; not who has lost a pod in this cycle, for that has to end first. `admits`: of which kinds, asked of the
        first of those who are alike."""
        waiting, losers = self.waiting, self.losers
        if rank:
            others = Lines(self._fallbacks(pool, rank))
            return self.turns_of(pool, [others], is_open=lambda ask: True, admits=admits)
        return self.turns_of(
            pool,
            self.lines(pool),
            is_open=lambda ask: waiting.get(ask.workload.id) is ask and ask.workload.id not in losers,
            admits=admits,
        )

    def turns_of(
        self, pool: str, lines: Iterable[Lines], *, is_open: Callable[[Ask], bool], admits: Callable[[Ask], bool]
    ) -> Turns:
        """These asks of a pool in the order in which they are served."""
        return Turns(
            lines,
            lambda queue: self.world.accounts_of(pool, queue),
            self.policy,
            is_over=lambda: self.is_answered,
            is_open=is_open,
            admits=admits,
        )

    def lines(self, pool: str) -> list[Lines]:
        """Who waits for a pool. Some of these may not wait any more, or for something else."""
        more = Lines(ask for ask in self.more.values() if ask.pool == pool)
        return [self.world.lines[pool], more] if self.is_of_all and pool in self.world.lines else [more]

    def is_in_line(self, ask: Ask) -> bool:
        """Whether it is among the lines."""
        entry = self.world.entries[ask.id]
        return self.more.get(ask.id) is ask or (self.is_of_all and entry.asks.get(entry.pool) is ask)

    def firsts(self) -> list[Ask]:
        """One of each kind that waits."""
        return [ask for pool in self.pools for lines in self.lines(pool) for ask in lines.firsts()]

    def most_pools(self) -> int:
        """The length of the longest list of pools that someone waits for."""
        return 1 + max((len(ask.workload.fallback_pools) for ask in self.firsts()), default=0)

    @property
    def is_social(self) -> bool:
        """Whether it matters to someone who waits, or is promised room, what other pods are where."""
        if any(request.is_social for kept in self.promises.values() for request in kept.ask.requests):
            return True
        if not any(request.is_social for ask in self.firsts() for request in ask.requests):
            return False
        return any(request.is_social for ask in self.waiting.values() for request in ask.requests)

    def _fallbacks(self, pool: str, rank: int) -> Iterator[Ask]:
        """What those ask for who come to a pool as a later one of their list."""
        for id, ask in self.waiting.items():
            if id not in self.losers and self._fallback(ask, rank) == pool:
                workload, others = ask.workload, ask.alternatives
                yield self.world.make_ask(workload, pool, ask.pods, is_core=ask.is_core, alternatives=others)

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
        for listed in self.victims.values() if self.world.running_of(id) else ():
            listed.strike(listed.of(id))

    def evict(self, evict: Evict, holding: Holding) -> None:
        """Tell a pod to end. The world knows already."""
        self.evicts.append(evict)
        self.evicted.add(holding.pod.id)
        self.lost.append(holding)
        self.losers.add(evict.workload)
        if holding.node is not None:
            self.leaving.setdefault(holding.node.node.id, []).append(holding)

    def advance(self, ask: Ask) -> None:
        """Find what the workload waits for next, now that pods of it were bound or promised, or a promise was lost."""
        entry = self.world.entries[ask.id]
        if len(self.bound.get(ask.id, ())) == len(entry.pending):  # The common case: nothing of it is left.
            self.waiting.pop(ask.id, None)
            self.more.pop(ask.id, None)
            return
        kept = self.promises.get(ask.id)
        promised = {one.pod.id for one in kept.holdings} if kept else set()
        taken = promised | {one.pod.id for one in self.bound.get(ask.id, ())}
        left: list[Pod] = [pod for pod in entry.pending if pod.id not in taken]
        self.waiting.pop(ask.id, None)
        self.more.pop(ask.id, None)
        if not left:
            return
        pool = ask.pool if taken else entry.pool  # Who has lost its promise may choose among all its pools again.
        following = self.world.next_ask(entry, pool, waiting=left, promised=taken, gone=self.evicted)
        if following is not None:
            self.await_(following)

    def await_(self, ask: Ask) -> None:
        """Its workload waits for this now."""
        self.waiting[ask.id] = self.more[ask.id] = ask


def begin(world: World, policy: Policy, now: datetime, *, among: Collection[str] | None = None) -> Cycle:
    """The state at the start: who waits (of these, if only some are looked at), and who cannot start whatever is
    free."""
    world.steps = 0
    world.growth += 1
    world.divide(policy.usage_weight)
    cycle = Cycle(policy, now, world, placement.Placer(world, policy), is_of_all=among is None)
    cycle.placer.placed = cycle.placed
    for one in world.releasing():
        if one.node is not None and not one.pod.is_stuck:
            cycle.leaving.setdefault(one.node.node.id, []).append(one)
    bars = eligibility.Bars(world, now)
    for id in sorted(world.waiting if among is None else world.waiting.keys() & among):
        entry = world.waiting[id]
        first = world.first_ask(entry, entry.pool)
        # Its gang may lack pods, which the bar says.
        ask = first or world.make_ask(entry.workload, entry.pool, entry.pending, is_core=True)
        reason = bars.of(entry, ask)
        if reason is not None:
            cycle.barred[id] = (ask, reason)
        elif among is None and first is not None:
            cycle.waiting[id] = ask
        else:
            cycle.await_(ask)
    return cycle
