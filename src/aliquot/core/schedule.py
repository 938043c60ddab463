"""The decision: a snapshot, a policy and an instant in, a plan out. Pure and deterministic.

The actions run in the order of `ACTIONS`; each sees what those before it did. Placing what fits comes first and is
never held up by a search for victims. The work is bounded in steps (a place looked for, a victim considered), so that
the same input gives the same plan on every machine.
"""

import itertools
from collections.abc import Callable, Collection
from datetime import datetime

from aliquot.core import consolidation, endings, eviction, promises, reasons, reservations, rooms, victims
from aliquot.core import cycle as cycles
from aliquot.core.asks import Ask
from aliquot.core.cycle import Cycle
from aliquot.core.lines import Lines
from aliquot.core.model import ActionName, Amounts, Policy, Snapshot
from aliquot.core.order import Turns
from aliquot.core.plan import Plan, Reason, Rule, Wait
from aliquot.core.rooms import View
from aliquot.core.snapshot import World

Action = Callable[[Cycle], None]
"""One kind of step of a cycle, done for all pools."""


def schedule(snapshot: Snapshot | World, policy: Policy, now: datetime) -> Plan:
    """What to do now: who starts where, who ends for whom, who is promised what, and why everyone else waits.

    A world that is kept from cycle to cycle saves building it; it is left as it was.
    """
    world = snapshot if isinstance(snapshot, World) else World(snapshot)
    cycle = decide(world, policy, now)
    plan = _plan(cycle)
    world.rollback(0)
    return plan


def decide(
    world: World, policy: Policy, now: datetime, *, among: Collection[str] | None = None, until: str = ""
) -> Cycle:
    """All decisions of a cycle, without the reasons; they stand in the world until it is rolled back.

    `until`: the workload about which alone is asked; the cycle ends when it is served. `among`: the workloads that
    wait, if the others may be left out.
    """
    cycle = cycles.begin(world, policy, now, among=among)
    cycle.until = until
    promises.honour(cycle)
    drain(cycle)
    for name, action in ACTIONS:
        if name in policy.actions and not cycle.is_answered:
            action(cycle)
    return cycle


def drain(cycle: Cycle) -> None:
    """End what runs in drained queues and on drained nodes."""
    for pool in cycle.pools:
        endings.drain(cycle, pool)


def allocate(cycle: Cycle) -> None:
    """Start what fits, in order; promise what will fit when all that was told to end is gone. What does not fit holds
    nothing back that needs other room. Who finds no room in its first pool tries the others of its list, in turn."""
    views: tuple[View, ...] = ("now", "later") if cycle.leaving else ("now",)
    before = -1
    while before < cycle.progress:
        before = cycle.progress
        for pool in cycle.pools:
            _serve(cycle, pool, views)
        for rank in range(1, cycle.most_pools()):
            for pool in cycle.pools:
                _serve(cycle, pool, ("now",), rank=rank)
        if not cycle.is_social:
            return
        cycle.world.growth += 1  # Who is drawn to others may find a place near those who have just started.
        promises.redeem_drawn(cycle)


def consolidate(cycle: Cycle) -> None:
    """Move what runs to make room for those who may give way themselves."""
    for pool in cycle.pools:
        turns = cycle.turns(pool, admits=lambda ask: ask.workload.is_preemptible)
        while (ask := turns.next()) is not None:
            if not _may_evict(cycle, ask):
                continue
            if cycle.is_spent:
                cycle.unsearched.add(ask.id)
            elif any(consolidation.Consolidation(cycle, one).take() for one in cycle.apart(ask)):
                turns.refresh_all()
            elif ask.id not in cycle.unsearched:
                turns.drop(ask.shape)


def reclaim(cycle: Cycle) -> None:
    """Take back what is due from other queues."""
    _make_room(cycle, Rule.RECLAIM)


def preempt(cycle: Cycle) -> None:
    """Take from lower priorities of the same queue."""
    _make_room(cycle, Rule.PREEMPT)


def slice_time(cycle: Cycle) -> None:
    """Take turns inside a queue that serves those first who have had the least GPU time."""
    _make_room(cycle, Rule.TIME_SLICE)


def release_stale(cycle: Cycle) -> None:
    """End gangs that stay below their minimum."""
    for pool in cycle.pools:
        endings.release_stale(cycle, pool)


def await_releases(cycle: Cycle) -> None:
    """Give out, or promise, room that this cycle frees to the first who fits there, so that it need not evict later."""
    for pool in cycle.pools if cycle.evicted or cycle.revoked else ():
        _serve(cycle, pool, ("now", "later"))


def hold(cycle: Cycle) -> None:
    """Keep the next room for heads of queues that have waited for long."""
    is_wanted = any(queue.hold_after is not None for queue in cycle.world.snapshot.queues)
    for pool in cycle.pools if is_wanted else ():
        turns = cycle.turns(pool)
        seen: set[str] = set()
        while (ask := turns.next()) is not None:
            if ask.workload.queue in seen:
                continue
            seen.add(ask.workload.queue)
            if ask.id in cycle.promises or not reservations.is_head_due(cycle, ask):
                continue
            if cycle.is_spent:
                cycle.unsearched.add(ask.id)
            else:
                reservations.hold(cycle, ask)


ACTIONS: tuple[tuple[ActionName, Action], ...] = (
    ("allocate", allocate),
    ("consolidate", consolidate),
    ("reclaim", reclaim),
    ("preempt", preempt),
    ("preempt", slice_time),
    ("stale-gang", release_stale),
    ("allocate", await_releases),
    ("allocate", hold),
)


def _serve(cycle: Cycle, pool: str, views: tuple[View, ...], *, rank: int = 0) -> None:
    turns = cycle.turns(pool, rank=rank)
    while (ask := turns.next()) is not None:
        if cycle.is_spent:
            cycle.unsearched.add(ask.id)
            continue
        kept = cycle.promises.get(ask.id)
        if kept is not None and kept.ask is ask:
            promises.redeem(cycle, ask)
        elif not _start(cycle, ask, views):
            _pass_over(cycle, turns, ask, views)
            continue
        turns.refresh(ask.workload.queue)
        following = cycle.waiting.get(ask.id)
        if following is not None and following is not ask and following.pool == pool:
            turns.push(following)


def _pass_over(cycle: Cycle, turns: Turns, ask: Ask, views: tuple[View, ...]) -> None:
    """Do not try those who would not start either. Beside promises each is tried: one that ends soon may fill a gap."""
    if cycle.promises:
        return
    turns.drop_like(ask)
    if cycle.placer.is_full(ask, views):
        turns.drop(ask.shape)


def _start(cycle: Cycle, ask: Ask, views: tuple[View, ...]) -> bool:
    """Bind it, or promise it places; False if there is no room. Where the rest of its gang is only promised, it can be
    promised no more than that."""
    is_rest = ask.id in cycle.promises
    for view in views:
        if view == "now" and is_rest:
            continue
        found = cycle.placer.place(ask, view)
        if found is not None and view == "now":
            cycle.bind(ask, found)
            return True
        if found is not None:
            promises.make(cycle, ask, found, evicted=())
            return True
    found = reservations.backfill(cycle, ask) if "now" in views else None
    if found is not None:
        cycle.bind(ask, found)
    return found is not None


def _make_room(cycle: Cycle, rule: Rule) -> None:
    for rank in range(cycle.most_pools()):
        for pool in cycle.pools:
            for admits in victims.seekers(cycle, pool, rule):
                _make_room_for(cycle, pool, cycle.turns(pool, rank=rank, admits=admits), rule)


def _make_room_for(cycle: Cycle, pool: str, turns: Turns, rule: Rule) -> None:
    hopeless: set[int] = set()
    while (ask := turns.next()) is not None:
        if not _may_evict(cycle, ask):
            continue
        if cycle.is_spent:
            cycle.unsearched.add(ask.id)
        elif ask.likeness in hopeless:
            continue
        elif any(eviction.Search(cycle, one, rule).take() for one in cycle.apart(ask)):
            hopeless.clear()
            turns.refresh_all()
            following = cycle.waiting.get(ask.id)
            if following is not None and following is not ask and following.pool == pool:
                turns.push(following)
        elif ask.id not in cycle.unsearched:
            hopeless.add(ask.likeness)
            if not ask.workload.preemption_delay:  # Else it is said of each that it waits for that.
                turns.drop_like(ask)


def _is_delayed(cycle: Cycle, ask: Ask) -> bool:
    return ask.workload.created + ask.workload.preemption_delay > cycle.now


def _may_evict(cycle: Cycle, ask: Ask) -> bool:
    """Whether it may look for victims: it has no promise, lost nothing itself, and has waited as long as it must."""
    workload = ask.workload
    if ask.id in cycle.promises or ask.id in cycle.losers or ask.id in cycle.calmed or ask.id in cycle.revoked:
        return False
    if workload.never_preempts or not cycle.placer.could_ever_fit(ask):
        return False
    if _is_delayed(cycle, ask):
        cycle.delayed.add(ask.id)
        return False
    return True


def _plan(cycle: Cycle) -> Plan:
    world = cycle.world
    accounts = {
        (pool.name, id): account for pool in world.pools.values() for id, account in sorted(pool.accounts.items())
    }
    promised: dict[tuple[str, str], Amounts] = {}
    for kept in cycle.promises.values():
        for account in world.accounts_of(kept.ask.pool, kept.ask.workload.queue):
            key = (kept.ask.pool, account.queue.id)
            promised[key] = promised.get(key, Amounts()) + Amounts(*rooms.charge_of(kept.holdings))
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
    for pool in cycle.pools:
        ordered = queue_of(cycle, pool)
        waits += [Wait(ask.id, reasons_of.why(ask), index + 1) for index, ask in enumerate(ordered)]
        barred = barred_from(cycle, pool)
        waits += [Wait(ask.id, cycle.barred[ask.id][1], len(ordered) + 1 + at) for at, ask in enumerate(barred)]
    return tuple(waits)


def reason_of(cycle: Cycle, ask: Ask) -> Reason:
    """Why one that waits after the cycle does."""
    barred = cycle.barred.get(ask.id)
    return reasons.Reasons(cycle).why(ask) if barred is None else barred[1]


def before(cycle: Cycle, ask: Ask) -> list[Ask]:
    """Who is served before one that waits after the cycle, in order; before one that cannot start everybody who can."""
    line = (*queue_of(cycle, ask.pool), *barred_from(cycle, ask.pool))
    return list(itertools.takewhile(lambda one: one.id != ask.id, line))


def ask_of(cycle: Cycle, id: str) -> Ask | None:
    """What a workload waits for after the cycle; None if it does not wait."""
    if id in cycle.barred:
        return cycle.barred[id][0]
    kept = cycle.promises.get(id)
    return cycle.waiting.get(id) if kept is None else kept.ask


def queue_of(cycle: Cycle, pool: str) -> list[Ask]:
    """Who waits for a pool after the cycle, in the order in which it would be served."""
    promised = {id: kept for id, kept in cycle.promises.items() if id not in cycle.barred}
    waiting = cycle.waiting

    def is_open(ask: Ask) -> bool:
        id = ask.workload.id
        return waiting.get(id) is ask if id not in promised else promised[id].ask is ask

    kept = Lines(one.ask for one in promised.values() if one.ask.pool == pool and not cycle.is_in_line(one.ask))
    lines = [*cycle.lines(pool), kept]
    return cycle.turns_of(pool, lines, is_open=is_open, admits=lambda ask: True).rest()


def barred_from(cycle: Cycle, pool: str) -> list[Ask]:
    """Who cannot start whatever is free in a pool, the oldest first."""
    barred = [ask for ask, _ in cycle.barred.values() if ask.pool == pool]
    return sorted(barred, key=lambda ask: (ask.workload.created, ask.id))
