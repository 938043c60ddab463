"""Who gives way: reclaim between queues and preemption inside one, with the fewest and cheapest victims.

Promises: nothing is evicted unless the workload it is for then fits, in the same simulation; no victim is taken that
the result does not need; each step is legal before and after, so that no two workloads ever evict each other.

Reclaim. A workload takes from other queues if its queue, and all above it below the common ancestor, stay within their
guaranteed amounts with it, and each level on the victim's side stays at or above its own after each step; the same
holds for fair shares. One resource must be the ground: asked by the one and held by the other. Other resources that are
short in the pool have a say too: by quota where one is set, by fair share always. The amounts below what is guaranteed
(or fair) thus only ever shrink, which is why there is no loop.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from aliquot.core import order, promises, wording
from aliquot.core.cycle import Cycle
from aliquot.core.model import RESOURCES, Amounts, PodState, Workload
from aliquot.core.order import Ask
from aliquot.core.plan import Evict, Rule
from aliquot.core.snapshot import Account, Holding, Vector, World

_GPU = 0
_MOST_REJECTED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """What is evicted at once: one pod above the minimum of its gang, or all the rest, or a promise."""

    workload: Workload
    holdings: tuple[Holding, ...]
    amounts: Vector
    is_core: bool
    is_promise: bool


@dataclass(slots=True, eq=False)
class Giver:
    """A queue that may have to give: its units, cheapest first, and the levels at which the rules are compared."""

    accounts: tuple[Account, ...]
    below: tuple[Account, ...]
    """Its own account and those above it, below the lowest common ancestor with the taker."""
    units: list[Unit]
    taker: tuple[Account, ...] = ()
    grounds: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """By rule ("quota", "fair share"), the resources on which the taker may take from it."""
    key: tuple[order.QueueKey, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A victim, by which rule, and on the ground of which resource."""

    unit: Unit
    giver: Giver
    basis: str
    ground: int


@dataclass(slots=True)
class Search:
    """The search for victims for one workload by one rule. The world is left as it was unless `take` succeeds."""

    cycle: Cycle
    ask: Ask
    rule: Rule
    rejected: list[str] = field(default_factory=list)
    """What was considered before the victims and would not have done."""
    explanations: list[str] = field(default_factory=list)
    """For each victim, the numbers that make its step legal."""
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Whom the rules protect, with the number of victims that had been found before it."""

    def take(self) -> bool:
        """Find victims, evict them and promise (or bind) the places; False if there are none that help."""
        world, cycle = self.cycle.world, self.cycle
        givers = _reclaimable(cycle, self.ask) if self.rule is Rule.RECLAIM else _preemptible(cycle, self.ask)
        if not givers:
            return False
        mark = world.mark()
        chosen = self._chosen(givers)
        world.rollback(mark)
        if chosen is None:
            cycle.unsearched.add(self.ask.id)
            return False
        if not self._is_legal(chosen):  # pragma: no cover - sparing victims only makes the others more legal
            world.rollback(mark)
            return False
        holdings = cycle.placer.place(self.ask, "later")
        if holdings is None:
            world.rollback(mark)
            return False
        self._commit(chosen, holdings)
        return True

    def _chosen(self, givers: Sequence[Giver]) -> list[Choice] | None:
        """The victims, none if nothing helps (or none is needed), None if the steps of the cycle ended.

        Where the rules protect someone, small victims may have used up what a queue can give and left it just too
        little for the large one that would do: then the large ones are tried first.
        """
        mark = self.cycle.world.mark()
        if self._fits():
            return []
        larger = [replace(giver, units=_largest_first(giver.units)) for giver in givers]
        chosen = self._fewest(givers)
        if chosen or chosen is None or not self.refused:
            return chosen
        self.cycle.world.rollback(mark)
        return self._fewest(larger)

    def _fewest(self, givers: Sequence[Giver]) -> list[Choice] | None:
        """As few victims, from the first on, as make it fit."""
        world = self.cycle.world
        mark = world.mark()
        self.refused.clear()
        every = self._collect(givers)
        if every is None:
            return None
        if not every or not self._fits():
            return []
        low, high = 1, len(every)
        while low < high:
            middle = (low + high) // 2
            world.rollback(mark)
            _evict(world, every[:middle])
            if self._fits():
                high = middle
            else:
                low = middle + 1
        world.rollback(mark)
        kept = self._shrunk(every[:high])
        if kept is not None:
            spared = [one.unit.workload.name for one in every[:high] if one not in kept]
            self.rejected = ["nothing: it does not fit without an eviction"]
            self.rejected += [text for before, text in self.refused if before < high]
            self.rejected += [f"{name}: the result does not need it" for name in dict.fromkeys(spared)]
        return kept

    def _collect(self, givers: Sequence[Giver]) -> list[Choice] | None:
        """All that may be taken, in order, each step legal; evicted in the world."""
        world = self.cycle.world
        chosen: list[Choice] = []
        refused: set[str] = set()
        for one in givers:
            one.key = order.last_served_key(one.accounts)
        while (giver := _next_giver(givers)) is not None:
            if self.cycle.is_spent:
                return None
            unit = giver.units.pop(0)
            world.steps += 1
            choice = None if unit.workload.id in refused else self._choice(giver, unit)
            if choice is None:
                refused.add(unit.workload.id)  # A core does not go while pods above it stay.
                self.refused.append((len(chosen), _protect(giver, unit)))
                continue
            chosen.append(choice)
            _evict(world, [choice])
        return chosen

    def _shrunk(self, chosen: list[Choice]) -> list[Choice] | None:
        """Without those that the result does not need; the dearest are spared first."""
        world = self.cycle.world
        _evict(world, chosen)
        kept = self._near(chosen)
        for choice in reversed(list(kept)):
            if self.cycle.is_spent:
                return None
            if self._loses_core(choice.unit.workload, kept) and not choice.unit.is_core:
                continue  # Pods above the minimum do not stay without the core.
            _restore(world, choice)
            if self._fits():
                kept.remove(choice)
            else:
                _evict(world, [choice])
        return kept

    def _loses_core(self, workload: Workload, chosen: Sequence[Choice]) -> bool:
        units = [choice.unit for choice in chosen if choice.unit.workload is workload]
        return any(unit.is_core and not unit.is_promise for unit in units)

    def _near(self, chosen: list[Choice]) -> list[Choice]:
        """Those on the nodes of the places found, if they do; a quick first cut of a long list."""
        world = self.cycle.world
        holdings = self.cycle.placer.place(self.ask, "later") or []
        nodes = {id(holding.node) for holding in holdings}
        workloads = {
            choice.unit.workload.id
            for choice in chosen
            if any(id(holding.node) in nodes for holding in choice.unit.holdings)
        }
        far = [choice for choice in chosen if choice.unit.workload.id not in workloads]
        for choice in far:
            _restore(world, choice)
        if self._fits():
            return [choice for choice in chosen if choice.unit.workload.id in workloads]
        _evict(world, far)
        return list(chosen)

    def _is_legal(self, chosen: Sequence[Choice]) -> bool:
        """Evict what was chosen, looking again at each step whether it is legal."""
        for choice in chosen:
            if self._choice(choice.giver, choice.unit) is None:  # pragma: no cover
                return False
            self.explanations.append(_explain(self.cycle, self.ask, choice))
            _evict(self.cycle.world, [choice])
        return True

    def _fits(self) -> bool:
        return self.cycle.placer.place(self.ask, "later") is not None

    def _choice(self, giver: Giver, unit: Unit) -> Choice | None:
        if self.rule is Rule.PREEMPT:
            return Choice(unit, giver, "priority", _GPU)
        for basis, grounds in giver.grounds.items():
            for ground in grounds:
                if unit.amounts[ground] and _stays(self.cycle, giver, unit, basis=basis, ground=ground):
                    return Choice(unit, giver, basis, ground)
        return None

    def _commit(self, chosen: Sequence[Choice], holdings: list[Holding]) -> None:
        cycle = self.cycle
        evicted: list[Holding] = []
        for choice, explanation in zip(chosen, self.explanations, strict=True):
            unit = choice.unit
            if unit.is_promise:
                promises.revoke(cycle, unit.workload.id, by=self.ask.id)
                continue
            for holding in unit.holdings:
                evicted.append(holding)
                cycle.evicted.add(holding.pod.id)
                cycle.evicts.append(
                    Evict(
                        unit.workload.id,
                        holding.pod.id,
                        self.ask.id,
                        self.rule,
                        explanation,
                        tuple(self.rejected[:_MOST_REJECTED]),
                    )
                )
        now = cycle.placer.stay(self.ask, [holding.place for holding in holdings], "now")
        if now is not None:
            cycle.bind(self.ask, now)
        else:
            promises.make(cycle, self.ask, holdings, evicted=evicted)


def _protect(giver: Giver, unit: Unit) -> str:
    """Why a unit of a queue that has to give is not taken."""
    bases = [(basis, ground) for basis, grounds in giver.grounds.items() for ground in grounds if unit.amounts[ground]]
    for (basis, ground), account in itertools.product(bases, giver.below):
        left, due = account.level[ground] - unit.amounts[ground], _due(account, basis)[ground]
        if left < due:
            resource = RESOURCES[ground]
            return (
                f"{unit.workload.name}: without it {account.queue.name} would hold "
                f"{wording.amount(resource, left)} of its {basis} of {wording.amount(resource, due)}"
            )
    return f"{unit.workload.name}: {giver.accounts[0].queue.name} is not over what it is due of what it holds"


def _evict(world: World, chosen: Sequence[Choice]) -> None:
    for choice in chosen:
        for holding in choice.unit.holdings:
            if choice.unit.is_promise:
                world.unpromise(holding)
            else:
                world.evict(holding)


def _restore(world: World, choice: Choice) -> None:
    for holding in choice.unit.holdings:
        if choice.unit.is_promise:
            world.promise(holding)
        else:
            world.restore(holding)


def _reclaimable(cycle: Cycle, ask: Ask) -> list[Giver]:
    """The other queues of the pool from which the rules let this workload take."""
    world = cycle.world
    pool = world.pools[ask.workload.pool]
    taker = world.accounts_of(pool.name, ask.workload.queue)
    givers: list[Giver] = []
    for leaf, workloads in _by_queue(cycle, pool.name).items():
        accounts = world.accounts_of(pool.name, leaf)
        if leaf == ask.workload.queue or not accounts:
            continue
        common = {account.queue.id for account in taker} & {account.queue.id for account in accounts}
        below = tuple(account for account in accounts if account.queue.id not in common)
        own = tuple(account for account in taker if account.queue.id not in common)
        grounds = {basis: _grounds(own, below, ask.amounts, basis) for basis in ("quota", "fair share")}
        if not below or not any(grounds.values()):
            continue
        units = _units(cycle, workloads)
        if units:
            givers.append(Giver(accounts, below, units, own, grounds))
    return givers


def _preemptible(cycle: Cycle, ask: Ask) -> list[Giver]:
    """Lower priorities of the same queue."""
    own = _by_queue(cycle, ask.workload.pool).get(ask.workload.queue, [])
    units = _units(cycle, [one for one in own if one.priority < ask.workload.priority])
    accounts = cycle.world.accounts_of(ask.workload.pool, ask.workload.queue)
    return [Giver(accounts, (), units)] if units else []


def _grounds(taker: Sequence[Account], giver: Sequence[Account], asked: Vector, basis: str) -> tuple[int, ...]:
    """The resources on which the one may take from the other: the one stays within, the other is over."""
    for account in taker:
        for index, amount in enumerate(asked):
            is_bound = basis == "fair share" or account.terms.of(RESOURCES[index]).quota is not None
            if amount and is_bound and account.level[index] + amount > _due(account, basis)[index]:
                return ()
    return tuple(
        index
        for index, amount in enumerate(asked)
        if amount
        and all(account.level[index] + amount <= _due(account, basis)[index] for account in taker)
        and all(account.level[index] > _due(account, basis)[index] for account in giver)
    )


def _stays(cycle: Cycle, giver: Giver, unit: Unit, *, basis: str, ground: int) -> bool:
    """Whether every level of the giver is still at or above what it is due without this unit."""
    contended = cycle.world.pools[unit.workload.pool].is_contended
    for account in giver.below:
        for index, amount in enumerate(unit.amounts):
            is_bound = basis == "fair share" or account.terms.of(RESOURCES[index]).quota is not None
            has_say = index == ground or (contended[index] and is_bound)
            if amount and has_say and account.level[index] - amount < _due(account, basis)[index]:
                return False
    return True


def _due(account: Account, basis: str) -> Vector:
    return account.guaranteed if basis == "quota" else account.share


def _by_queue(cycle: Cycle, pool: str) -> dict[str, list[Workload]]:
    """Preemptible work that holds places or promises, by queue."""
    holders = {id: group[0].workload for id, group in cycle.world.running.items()}
    holders |= {id: kept.ask.workload for id, kept in cycle.promises.items()}
    found: dict[str, list[Workload]] = {}
    for id, workload in sorted(holders.items()):
        if workload.pool == pool and workload.is_preemptible and id not in cycle.settled:
            found.setdefault(workload.queue, []).append(workload)
    return found


def _units(cycle: Cycle, workloads: Sequence[Workload]) -> list[Unit]:
    """What can be evicted, cheapest first: low priority, above the minimum, little work lost, few pods, young."""
    units = [unit for workload in workloads for unit in _units_of(cycle, workload)]
    units.sort(key=lambda unit: (unit.workload.id, unit.holdings[-1].pod.index, unit.holdings[-1].pod.id), reverse=True)
    units.sort(
        key=lambda unit: (
            unit.workload.priority,
            unit.is_core,
            _work_lost(cycle, unit),
            len(unit.holdings),
            cycle.now - unit.workload.created,
        )
    )
    return units


def _largest_first(units: Sequence[Unit]) -> list[Unit]:
    """By what a workload holds in all; still, of one workload what is above its minimum comes before its core."""
    total: dict[str, Vector] = {}
    for unit in units:
        before = total.get(unit.workload.id, (0, 0, 0))
        total[unit.workload.id] = (
            before[0] + unit.amounts[0],
            before[1] + unit.amounts[1],
            before[2] + unit.amounts[2],
        )
    return sorted(units, key=lambda unit: total[unit.workload.id], reverse=True)


def _units_of(cycle: Cycle, workload: Workload) -> list[Unit]:
    running = [one for one in cycle.world.running.get(workload.id, ()) if one.pod.id not in cycle.evicted]
    ended_well = sum(pod.state is PodState.SUCCEEDED for pod in workload.pods)
    core = max(0, workload.min_pods - ended_well)
    units = [_unit(workload, (one,)) for one in running[core:]]
    if running[:core]:
        units.append(_unit(workload, tuple(running[:core]), is_core=True))
    if workload.id in cycle.promises:
        units.append(_unit(workload, cycle.promises[workload.id].holdings, is_core=True, is_promise=True))
    return units


def _unit(
    workload: Workload, holdings: tuple[Holding, ...], *, is_core: bool = False, is_promise: bool = False
) -> Unit:
    gpu, cpu, memory = (sum(one.charge[index] for one in holdings) for index in range(3))
    return Unit(workload, holdings, (gpu, cpu, memory), is_core, is_promise)


def _work_lost(cycle: Cycle, unit: Unit) -> tuple[timedelta, timedelta]:
    """Run time by GPUs, then run time alone (of work without a GPU)."""
    if unit.is_promise or unit.workload.started is None:
        return (timedelta(), timedelta())
    span = max(timedelta(), cycle.now - unit.workload.started)
    return (span * unit.amounts[_GPU], span)


def _next_giver(givers: Sequence[Giver]) -> Giver | None:
    """The queue that would be served last. Giving only ever lowers a key, so an old key is an upper bound."""
    open_givers = [giver for giver in givers if giver.units]
    while open_givers:
        last = max(open_givers, key=lambda giver: giver.key)
        fresh = order.last_served_key(last.accounts)
        if fresh == last.key:
            return last
        last.key = fresh
    return None


def _explain(cycle: Cycle, ask: Ask, choice: Choice) -> str:
    victim = choice.unit.workload
    if choice.basis == "priority":
        return (
            f"{ask.workload.name} has priority {ask.workload.priority}, {victim.name} of the same project has "
            f"{victim.priority}"
        )
    resource = RESOURCES[choice.ground]
    asked = cycle.world.pools[ask.workload.pool].asked
    taker, giver = choice.giver.taker[-1], choice.giver.below[-1]
    return (
        f"{taker.queue.name} holds {wording.amount(resource, taker.level[choice.ground])} and stays with "
        f"{ask.workload.name} within its {_said(taker, choice, asked[taker.queue.id])}; {giver.queue.name} holds "
        f"{wording.amount(resource, giver.level[choice.ground])}, over its "
        f"{_said(giver, choice, asked[giver.queue.id])}"
    )


def _said(account: Account, choice: Choice, asked: Amounts) -> str:
    """What a queue is due, as it is set where nothing cuts it."""
    resource = RESOURCES[choice.ground]
    due = _due(account, choice.basis)[choice.ground]
    quota = account.terms.of(resource).quota
    if choice.basis != "quota" or quota is None:
        return f"{choice.basis} of {wording.amount(resource, due)}"
    is_cut = due < min(quota, asked.of(resource))
    return f"quota of {wording.amount(resource, quota)}" + (
        f", cut to {wording.amount(resource, due)}" if is_cut else ""
    )
