"""The decision: a snapshot, a policy and an instant in, a plan out. Pure and deterministic.

The actions run in the order of `ACTIONS`; each sees what those before it did. Placing what fits comes first and is
never held up by a search for victims. The work is bounded in steps (a node looked at for a pod, a victim considered),
so that the same input gives the same plan on every machine.
"""

from collections.abc import Callable
from datetime import datetime

from aliquot.core import cycle as cycles
from aliquot.core import eviction, placement, promises, reasons
from aliquot.core.cycle import Cycle
from aliquot.core.model import Amounts, Policy, Snapshot
from aliquot.core.order import Ask
from aliquot.core.plan import Plan, Rule, Wait

Action = Callable[[Cycle, str], None]
"""One kind of step of a cycle, done for one pool."""


def schedule(snapshot: Snapshot, policy: Policy, now: datetime) -> Plan:
    """What to do now: who starts where, who ends for whom, who is promised what, and why everyone else waits."""
    cycle = cycles.begin(snapshot, policy, now)
    promises.honour(cycle)
    for action in ACTIONS:
        for pool in cycle.world.pools:
            action(cycle, pool)
    return _plan(cycle)


def allocate(cycle: Cycle, pool: str) -> None:
    """Start what fits, in order. What does not fit holds nothing back that needs other room."""
    turns = cycle.turns(pool, [ask for ask in cycle.waiting.values() if ask.workload.pool == pool])
    while (ask := turns.next()) is not None:
        if cycle.is_spent:
            cycle.unsearched.add(ask.id)
            continue
        if ask.id in cycle.promises:
            promises.redeem(cycle, ask)
            continue
        holdings = cycle.placer.place(ask, "now")
        if holdings is not None:
            cycle.bind(ask, holdings)


def reclaim(cycle: Cycle, pool: str) -> None:
    """Take back what is due from other queues."""
    _make_room(cycle, pool, Rule.RECLAIM)


def preempt(cycle: Cycle, pool: str) -> None:
    """Take from lower priorities of the same queue."""
    _make_room(cycle, pool, Rule.PREEMPT)


def await_releases(cycle: Cycle, pool: str) -> None:
    """Promise room that is being freed anyway to the first who fits there, so that it need not evict later."""
    if not cycle.world.releasing and not cycle.evicted:
        return
    turns = cycle.turns(pool, cycle.waiting_in(pool))
    while (ask := turns.next()) is not None:
        if cycle.is_spent:
            cycle.unsearched.add(ask.id)
            continue
        holdings = cycle.placer.place(ask, "later")
        if holdings is not None:
            promises.make(cycle, ask, holdings, evicted=())


ACTIONS: tuple[Action, ...] = (allocate, reclaim, preempt, await_releases)


def _make_room(cycle: Cycle, pool: str, rule: Rule) -> None:
    turns = cycle.turns(pool, cycle.waiting_in(pool))
    hopeless: set[tuple[object, ...]] = set()
    while (ask := turns.next()) is not None:
        if ask.id in cycle.calmed or ask.id in cycle.revoked or cycle.has_lost(ask):
            continue
        if cycle.is_spent:
            cycle.unsearched.add(ask.id)
            continue
        key = (ask.workload.queue, ask.workload.priority, ask.workload.is_preemptible, ask.requests)
        if key in hopeless:
            continue
        if eviction.Search(cycle, ask, rule).take():
            hopeless.clear()
            turns.refresh_all()
        elif ask.id not in cycle.unsearched:
            hopeless.add(key)


def _plan(cycle: Cycle) -> Plan:
    world = cycle.world
    accounts = {
        (pool.name, id): account for pool in world.pools.values() for id, account in sorted(pool.accounts.items())
    }
    promised: dict[tuple[str, str], Amounts] = {}
    for kept in cycle.promises.values():
        workload = kept.ask.workload
        for account in world.accounts_of(workload.pool, workload.queue):
            key = (workload.pool, account.queue.id)
            promised[key] = promised.get(key, Amounts()) + Amounts(*placement.charge_of(kept.holdings))
    steps = world.steps  # What the reasons cost is no part of the search: it is bounded by the shapes that wait.
    nominates = tuple(promises.nominate(kept) for _, kept in sorted(cycle.promises.items()))
    return Plan(
        binds=tuple(cycle.binds),
        evicts=tuple(cycle.evicts),
        nominates=nominates,
        waits=_waits(cycle),
        fair_share={key: Amounts(*account.share) for key, account in accounts.items()},
        held={
            key: Amounts(*account.level) + Amounts(*account.releasing) - promised.get(key, Amounts())
            for key, account in accounts.items()
        },
        asked={(pool.name, id): asked for pool in world.pools.values() for id, asked in sorted(pool.asked.items())},
        steps=steps,
        step_budget=cycle.policy.step_budget,
        is_cut_off=bool(cycle.unsearched),
    )


def _waits(cycle: Cycle) -> tuple[Wait, ...]:
    waits: list[Wait] = []
    reasons_of = reasons.Reasons(cycle)
    for pool in cycle.world.pools:
        turns = cycle.turns(pool, [ask for ask in cycle.waiting.values() if ask.workload.pool == pool])
        ordered: list[Ask] = []
        while (ask := turns.next()) is not None:
            ordered.append(ask)
        waits += [Wait(ask.id, reasons_of.why(ask), index + 1) for index, ask in enumerate(ordered)]
        barred = [(ask, reason) for ask, reason in cycle.barred.values() if ask.workload.pool == pool]
        barred.sort(key=lambda one: (one[0].workload.created, one[0].id))
        waits += [Wait(ask.id, reason, len(ordered) + index + 1) for index, (ask, reason) in enumerate(barred)]
    return tuple(waits)
