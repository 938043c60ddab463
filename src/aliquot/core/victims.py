"""Who may have to give way for a workload, in which order, and when a step is legal.

Reclaim. A workload takes from other queues if its queue, and all above it below the common ancestor, stay within their
guaranteed amounts with it, and each level on the victim's side stays at or above its own after each step; the same
holds for fair shares. One resource must be the ground: asked by the one and held by the other. Other resources that are
short in the pool have a say too: by quota where one is set, by fair share always. The amounts below what is guaranteed
(or fair) thus only ever shrink, which is why there is no loop.

Preemption. Inside a queue a higher priority takes from a lower one; and where a queue serves those first who have had
the least GPU time, work of an earlier class takes from work of a later one that has run for a quantum.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from aliquot.core import asks, order
from aliquot.core.asks import Ask, Unit, Units, UnitsInOrder
from aliquot.core.cycle import Cycle
from aliquot.core.model import RESOURCES, QueueOrder, Workload
from aliquot.core.plan import Rule
from aliquot.core.rooms import Account, Vector

BASES = ("quota", "fair share")
_GPU = 0
_NO_TIME = timedelta()


@dataclass(slots=True, eq=False)
class Giver:
    """A queue that may have to give: its units, cheapest first, and the levels at which the rules are compared."""

    accounts: tuple[Account, ...]
    below: tuple[Account, ...]
    """Its own account and those above it, below the lowest common ancestor with the taker."""
    units: Units
    taker: tuple[Account, ...] = ()
    asked: Vector = (0, 0, 0)
    pool: str = ""
    next: int = 0
    """How many of its units were looked at."""
    key: tuple[order.QueueKey, ...] = ()
    _grounds: tuple[int, dict[str, tuple[int, ...]]] = (-1, {})

    def grounds(self) -> dict[str, tuple[int, ...]]:
        """By rule ("quota", "fair share"), the resources on which the taker, as things stand, may take from a queue
        that is over what it is due."""
        version = sum(account.version for account in self.taker)
        if self._grounds[0] != version:
            found = {basis: _grounds(self.taker, self.asked, basis) for basis in BASES}
            self._grounds = (version, found)
        return self._grounds[1]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A victim, by which rule, and on the ground of which resource."""

    unit: Unit
    giver: Giver
    basis: str
    ground: int


def givers(cycle: Cycle, ask: Ask, rule: Rule) -> list[Giver]:
    """Who may have to give to this workload by a rule."""
    return _reclaimable(cycle, ask) if rule is Rule.RECLAIM else _preemptible(cycle, ask, rule)


def in_order(cycle: Cycle, found: Sequence[Giver]) -> Iterator[tuple[Giver, Unit]]:
    """Their units one by one: of the queue that would be served last, the cheapest. Who asks for the next one may have
    evicted the one before."""
    for one in found:
        one.next = 0
        one.key = order.last_served_key(one.accounts)
    while (giver := _next_giver(found)) is not None:
        cycle.world.steps += 1
        unit = giver.units[giver.next]
        giver.next += 1
        yield giver, unit


def choose(cycle: Cycle, giver: Giver, unit: Unit, rule: Rule, *, may_cross: bool = False) -> Choice | None:
    """The unit as a victim, if the step is legal as things stand. `may_cross`: a queue that is over what it is due
    gives a unit that cannot be split, though that leaves it below."""
    if not unit.is_promise and not may_lose(cycle, giver.accounts, unit):
        return None
    if rule is not Rule.RECLAIM:
        return Choice(unit, giver, "priority", _GPU)
    for basis, grounds in giver.grounds().items():
        for ground in grounds:
            if not unit.amounts[ground]:
                continue
            if basis == "fair share" and _has_claim(giver, unit, "quota"):
                continue  # It would take it back by its quota: what is guaranteed goes before what is fair.
            if _stays(cycle, giver, unit, basis=basis, ground=ground, may_cross=False) or (
                may_cross
                and _stays(cycle, giver, unit, basis=basis, ground=ground, may_cross=True)
                and not _could_take_back(cycle, giver, unit)
            ):
                return Choice(unit, giver, basis, ground)
    return None


def may_lose(cycle: Cycle, accounts: Sequence[Account], unit: Unit) -> bool:
    """Whether disruption budgets and the limits of evictions allow it."""
    return _is_within_limits(cycle, accounts, unit) and _is_within_budgets(cycle, unit)


def due(account: Account, basis: str) -> Vector:
    """What a queue is due by a rule."""
    return account.guaranteed if basis == "quota" else account.share


def most_to_give(cycle: Cycle, giver: Giver, asked: Vector, resource: int) -> int:
    """An upper bound of what all legal steps but the last can free of a resource; see `largest`."""
    held = giver.accounts[0].level[resource]
    if not giver.below:
        return held
    is_only = not any(amount for index, amount in enumerate(asked) if index != resource)
    is_contended = cycle.world.pools[giver.pool].is_contended[resource]
    most = 0
    for basis in BASES:
        spare = held
        for account in giver.below:
            has_say = basis == "fair share" or account.terms.of(RESOURCES[resource]).quota is not None
            if is_only or (is_contended and has_say):
                spare = min(spare, account.level[resource] - due(account, basis)[resource])
        most = max(most, spare)
    return max(0, most)


def largest(giver: Giver, resource: int) -> int:
    """The most that the last step, by a unit that cannot be split, can free besides."""
    return max((unit.amounts[resource] for unit in giver.units), default=1) - 1


def units_of(cycle: Cycle, pool: str, queue: str) -> Units:
    """What of a queue may be evicted, cheapest first: low priority, above the minimum, little work lost, few pods,
    young. What this cycle bound, moved or promised is not among it."""
    key = (pool, queue)
    if key not in cycle.victims:
        found = [
            unit
            for entry in cycle.world.holders(pool, queue)
            if entry.workload.id not in cycle.settled
            for unit in running_units(cycle, entry.workload)
        ]
        found += [
            asks.unit_of(kept.ask.workload, kept.holdings, is_core=True, is_promise=True)
            for _, kept in sorted(cycle.standing.items())
            if kept.ask.workload.queue == queue and kept.ask.pool == pool and kept.ask.workload.is_preemptible
        ]
        cycle.victims[key] = UnitsInOrder(found, lambda units: _sort(cycle, units))
    return cycle.victims[key]


def _sort(cycle: Cycle, units: list[Unit]) -> None:
    keys = _keys(cycle, units)
    units.sort(key=_last_key, reverse=True)
    units.sort(key=lambda unit: keys[id(unit)])


def running_units(cycle: Cycle, workload: Workload) -> list[Unit]:
    """What of a running workload may be evicted, in the order in which it would be given up."""
    if not workload.is_preemptible and not workload.is_semi_preemptible:
        return []
    entry = cycle.world.entries[workload.id]
    found = cycle.world.units_of(entry)
    if workload.id in cycle.losers:
        found = asks.units_of(workload, [one for one in entry.running if one.pod.id not in cycle.evicted])
    return found if workload.is_preemptible else [unit for unit in found if not unit.is_core]


def work_lost(cycle: Cycle, workload: Workload, milli_gpus: int) -> tuple[timedelta, timedelta]:
    """Run time since the last checkpoint by GPUs, then that time alone (of work without a GPU)."""
    since = workload.saved or workload.started
    if since is None or since >= cycle.now:
        return (_NO_TIME, _NO_TIME)
    span = cycle.now - since
    return (span * milli_gpus, span)


def _keys(cycle: Cycle, units: Sequence[Unit]) -> dict[int, tuple[object, ...]]:
    """What of a queue would be given up first, by unit: the smallest. The units of one workload come in the order in
    which it gives them up, and none of them before the one ahead of it."""
    keys: dict[int, tuple[object, ...]] = {}
    ahead: dict[str, tuple[int, timedelta, timedelta, int, timedelta, bool]] = {}
    now = cycle.now
    for unit in units:  # This runs for all that a queue holds: it is written for speed.
        workload = unit.workload
        lost = (_NO_TIME, _NO_TIME) if unit.is_promise else work_lost(cycle, workload, unit.amounts[_GPU])
        key = (workload.priority, *lost, len(unit.holdings), now - workload.created, unit.is_core)
        before = ahead.get(workload.id)
        if before is not None and before > key:
            key = before
        keys[id(unit)] = ahead[workload.id] = key
    return keys


def _last_key(unit: Unit) -> tuple[str, int, int, str]:
    """Of units that are equal otherwise the last one goes first."""
    last = unit.holdings[-1].pod
    return (unit.workload.id, -last.priority, last.index, last.id)


def _reclaimable(cycle: Cycle, ask: Ask) -> list[Giver]:
    """The other queues of the pool from which the rules let this workload take."""
    world = cycle.world
    taker = world.accounts_of(ask.pool, ask.workload.queue)
    above = {account.queue.id for account in taker}
    found: list[Giver] = []
    for leaf in _leaves(cycle, ask.pool):
        accounts = world.accounts_of(ask.pool, leaf)
        if leaf == ask.workload.queue or not accounts:
            continue
        common = above & {account.queue.id for account in accounts}
        below = tuple(account for account in accounts if account.queue.id not in common)
        own = tuple(account for account in taker if account.queue.id not in common)
        # What the taker's own queue is due does not change with what is taken from others.
        if not any(_is_within(taker[0], ask.amounts, basis) for basis in BASES):
            return []
        # Whether the taker stays within what it is due may change with what is taken; what a giver is due does not.
        if not below or not any(_is_over(below, ask.amounts, basis) for basis in BASES):
            continue
        units = _open_units(cycle, ask, leaf, span=_protection(accounts, "reclaim"))
        if units:
            found.append(Giver(accounts, below, units, own, ask.amounts, ask.pool))
    return found


def _preemptible(cycle: Cycle, ask: Ask, rule: Rule) -> list[Giver]:
    """Lower priorities of the same queue; or, for a time slice, work that has had its quantum."""
    accounts = cycle.world.accounts_of(ask.pool, ask.workload.queue)
    units = _open_units(cycle, ask, ask.workload.queue, span=_protection(accounts, "preempt"))
    if rule is Rule.TIME_SLICE:
        able = [unit for unit in units if _is_later_class(cycle, ask, unit)]
    else:
        able = [unit for unit in units if unit.workload.priority < ask.workload.priority]
    return [Giver(accounts, (), able)] if able else []


def _is_later_class(cycle: Cycle, ask: Ask, unit: Unit) -> bool:
    workload = unit.workload
    if unit.is_promise or workload.priority != ask.workload.priority or not _has_had_its_turn(cycle, workload):
        return False
    return order.service_class(ask.workload, cycle.policy) < order.service_class(workload, cycle.policy)


def _has_had_its_turn(cycle: Cycle, workload: Workload) -> bool:
    started = workload.started
    return started is not None and started + cycle.policy.service_quantum <= cycle.now


def _is_sliced(cycle: Cycle, queue: str) -> bool:
    """Whether a queue serves those first who have had the least GPU time."""
    found = cycle.world.queues.get(queue)
    return found is not None and found.order is QueueOrder.LEAST_ATTAINED_SERVICE


def seekers(cycle: Cycle, pool: str, rule: Rule) -> list[Callable[[Ask], bool]]:
    """Who looks for victims, in turn: those for whom something may run that they may evict, which is a sound "no" for
    the others, before any search. What a quota guarantees may take its queue over its fair share of something else; so
    work that asks for nothing its queue has a quota of takes from others after it, or it would have to give back."""
    if rule is Rule.RECLAIM:
        leaves = _leaves(cycle, pool)
        may_find: Callable[[Ask], bool] = lambda ask: len(leaves) > (ask.workload.queue in leaves)  # noqa: E731
        return [
            lambda ask: may_find(ask) and _is_covered(cycle, ask),
            lambda ask: may_find(ask) and not _is_covered(cycle, ask),
        ]
    if rule is Rule.PREEMPT:
        return [lambda ask: _least_priority(cycle, pool, ask.workload.queue) < ask.workload.priority]
    last: dict[tuple[str, int], int] = {}
    for queue in _leaves(cycle, pool):
        for one in _holders(cycle, pool, queue) if _is_sliced(cycle, queue) else ():
            if _has_had_its_turn(cycle, one):
                key = (queue, one.priority)
                last[key] = max(last.get(key, 0), order.service_class(one, cycle.policy))
    return [
        lambda ask: (
            order.service_class(ask.workload, cycle.policy) < last.get((ask.workload.queue, ask.workload.priority), 0)
        )
    ]


def _least_priority(cycle: Cycle, pool: str, queue: str) -> float:
    """The lowest priority of what runs of a queue, or is promised room; infinity if there is nothing."""
    held = cycle.world.held_by(pool, queue)
    promised = [kept.ask for kept in cycle.standing.values()]
    found = [ask.workload.priority for ask in promised if ask.workload.queue == queue and ask.pool == pool]
    return min([*found, *([held.least_priority] if held is not None else [])], default=math.inf)


def _is_covered(cycle: Cycle, ask: Ask) -> bool:
    own = cycle.world.accounts_of(ask.pool, ask.workload.queue)[0]
    return any(quota and ask.amounts[index] for index, quota in own.quotas)


def _holders(cycle: Cycle, pool: str, queue: str) -> list[Workload]:
    """What of a queue runs in a pool, or is promised room there."""
    running = [entry.workload for entry in cycle.world.holders(pool, queue)]
    promised = (kept.ask for _, kept in sorted(cycle.standing.items()))
    return running + [ask.workload for ask in promised if ask.workload.queue == queue and ask.pool == pool]


def _leaves(cycle: Cycle, pool: str) -> list[str]:
    promised = {kept.ask.workload.queue for kept in cycle.standing.values()}
    return sorted({*cycle.world.holder_queues(pool), *promised})


def _open_units(cycle: Cycle, ask: Ask, leaf: str, *, span: timedelta) -> Units:
    """The units of a queue that no minimum run time protects."""
    found = units_of(cycle, ask.pool, leaf)
    if not span:
        return found
    free = [unit for unit in found if not _is_protected(cycle, unit, span)]
    if len(free) < len(found):
        cycle.protected.add(ask.id)
    return free


def _is_protected(cycle: Cycle, unit: Unit, span: timedelta) -> bool:
    """What is above the minimum of a gang is not protected, nor a promise."""
    started = unit.workload.started
    return unit.is_core and not unit.is_promise and started is not None and cycle.now < started + span


def _protection(accounts: Sequence[Account], rule: str) -> timedelta:
    """The minimum run time that holds on the victim's side: the nearest value that is set."""
    for account in accounts:
        queue = account.queue
        span = queue.reclaim_min_runtime if rule == "reclaim" else queue.preempt_min_runtime
        if span is not None:
            return span
    return timedelta()


def is_nested(found: Sequence[Giver]) -> bool:
    """Whether what one of them gives may let the taker take from another."""
    return any(len(giver.taker) > 1 for giver in found)


def _is_within(account: Account, asked: Vector, basis: str) -> bool:
    """Whether a queue stays within what it is due, wherever that binds it."""
    if basis == "quota":
        return all(
            account.level[index] + asked[index] <= account.guaranteed[index] or not asked[index]
            for index, _ in account.quotas
        )
    return all(account.level[index] + amount <= account.share[index] for index, amount in enumerate(asked) if amount)


def _is_over(giver: Sequence[Account], asked: Vector, basis: str) -> bool:
    return any(
        amount and all(account.level[index] > due(account, basis)[index] for account in giver)
        for index, amount in enumerate(asked)
    )


def _grounds(taker: Sequence[Account], asked: Vector, basis: str) -> tuple[int, ...]:
    """The resources of which the taker stays within what it is due, if it does wherever that binds it."""
    if not all(_is_within(account, asked, basis) for account in taker):
        return ()
    return tuple(
        index
        for index, amount in enumerate(asked)
        if amount and all(account.level[index] + amount <= due(account, basis)[index] for account in taker)
    )


def _stays(cycle: Cycle, giver: Giver, unit: Unit, *, basis: str, ground: int, may_cross: bool) -> bool:
    """Whether every level of the giver is at or above what it is due without this unit; or is above it with it."""
    contended = cycle.world.pools[giver.pool].is_contended
    for account in giver.below:
        dues = account.guaranteed if basis == "quota" else account.share
        for index in (0, 1, 2):  # This runs for every victim that is considered: it is written for speed.
            amount = unit.amounts[index]
            if not amount or account.level[index] >= dues[index] + (1 if may_cross else amount):
                continue
            is_bound = basis == "fair share" or account.terms.of(RESOURCES[index]).quota is not None
            if index == ground or (contended[index] and is_bound):
                return False
    return True


def _could_take_back(cycle: Cycle, giver: Giver, unit: Unit) -> bool:
    """Whether something that waits on the giver's side, or the unit itself, would have a claim against the taker once
    the unit is gone: then to take the giver below what it is due would begin a circle."""
    bases = [basis for basis in BASES if _passes(giver, unit, basis)]
    if not bases:
        return False
    below = {account.queue.id for account in giver.below}
    common = {account.queue.id for account in giver.accounts} - below
    waiting: set[tuple[str, Vector]] = {(giver.accounts[0].queue.id, unit.amounts)}
    waiting |= {(ask.workload.queue, ask.amounts) for ask in cycle.waiting.values() if ask.pool == giver.pool}
    waiting |= {(one.workload.queue, one.charge) for one in cycle.lost}
    for queue, asked in sorted(waiting):
        path = [one for one in cycle.world.accounts_of(giver.pool, queue) if one.queue.id not in common]
        if not below & {account.queue.id for account in path}:
            continue
        if any(all(_is_due(account, asked, unit, basis, below) for account in path) for basis in bases):
            return True
    return False


def _is_due(account: Account, asked: Vector, unit: Unit, basis: str, below: set[str]) -> bool:
    """Whether a queue stays within what it is due with this much more, once the unit of the giver is gone."""
    gone = unit.amounts if account.queue.id in below else (0, 0, 0)
    return all(
        account.level[index] - gone[index] + asked[index] <= due(account, basis)[index]
        for index in (0, 1, 2)
        if asked[index] and (basis == "fair share" or account.terms.of(RESOURCES[index]).quota is not None)
    )


def _has_claim(giver: Giver, unit: Unit, basis: str) -> bool:
    return _passes(giver, unit, basis) and _stays_within(giver, unit, basis)


def _stays_within(giver: Giver, unit: Unit, basis: str) -> bool:
    """Whether the giver, with the unit, is within what it is due, wherever that binds it."""
    return all(
        account.level[index] <= due(account, basis)[index]
        for account in giver.below
        for index in (0, 1, 2)
        if unit.amounts[index] and (basis == "fair share" or account.terms.of(RESOURCES[index]).quota is not None)
    )


def _passes(giver: Giver, unit: Unit, basis: str) -> bool:
    """Whether the taker will be over what it is due of something that the unit would ask for."""
    return any(
        unit.amounts[index]
        and all(account.level[index] + giver.asked[index] > due(account, basis)[index] for account in giver.taker)
        for index in (0, 1, 2)
    )


def _is_within_limits(cycle: Cycle, accounts: Sequence[Account], unit: Unit) -> bool:
    """Whether the queue, and those above it, may lose so many more pods today."""
    for account in accounts:
        limit = account.queue.evictions_left
        if limit is None:
            continue
        lost = sum(account in holding.accounts for holding in (*cycle.lost, *cycle.trial.values()))
        if lost + len(unit.holdings) > limit:
            return False
    return True


def _is_within_budgets(cycle: Cycle, unit: Unit) -> bool:
    """Whether every disruption budget allows these pods to end, beside those that this cycle has told to."""
    for budget in cycle.world.snapshot.budgets:
        more = sum(holding.pod.id in budget.pods for holding in unit.holdings)
        before = sum(holding.pod.id in budget.pods for holding in (*cycle.lost, *cycle.trial.values()))
        if more and more + before > budget.allowed:
            return False
    return True


def _next_giver(found: Sequence[Giver]) -> Giver | None:
    """The queue that would be served last. Giving only ever lowers a key, so an old key is an upper bound."""
    open_givers = [giver for giver in found if giver.next < len(giver.units)]
    if len(found) == 1:
        return next(iter(open_givers), None)
    while open_givers:
        last = max(open_givers, key=lambda giver: giver.key)
        fresh = order.last_served_key(last.accounts)
        if fresh == last.key:
            return last
        last.key = fresh
    return None
