"""Room that is kept without evicting, and how it is used meanwhile.

The head of a queue that has waited for long may be promised the next room that becomes free, so that a large gang is
not starved by small work. Until a promise falls due, work whose stated run time ends before may run in its room.
"""

from datetime import datetime

from aliquot.core import promises
from aliquot.core.asks import Ask, Entry
from aliquot.core.cycle import Cycle
from aliquot.core.rooms import Holding


def backfill(cycle: Cycle, ask: Ask) -> list[Holding] | None:
    """Places in promised room for work that ends before the promises fall due; the world is left as it was."""
    span = ask.workload.max_run_time
    if span is None or not cycle.promises or ask.id in cycle.promises:
        return None
    lent = [
        kept for _, kept in sorted(cycle.promises.items()) if kept.ask.pool == ask.pool and kept.due >= cycle.now + span
    ]
    if not lent:
        return None
    mark = cycle.world.mark()
    for kept in lent:
        for holding in kept.holdings:
            cycle.world.unpromise(holding)
    found = cycle.placer.place(ask, "now")
    cycle.world.rollback(mark)
    return found


def hold(cycle: Cycle, ask: Ask) -> bool:
    """Promise the head of a queue the room that is free first, by the stated ends of what runs."""
    world = cycle.world
    mark = world.mark()
    gone: list[tuple[datetime | None, list[Holding]]] = []
    found: list[Holding] | None = None
    for end, holdings in _by_end(cycle, ask):
        for one in holdings:
            world.evict(one)
        gone.append((end, holdings))
        if cycle.placer.may_fit(ask, "later"):
            found = cycle.placer.place(ask, "later")
        if found is not None:
            break
    world.rollback(mark)
    if found is None:
        return False
    nodes = {id(one.node) for one in found}
    awaited = [(end, holdings) for end, holdings in gone if any(id(one.node) in nodes for one in holdings)]
    waits_for = [one for _, holdings in awaited for one in holdings]
    for one in waits_for:
        world.evict(one)
    found = cycle.placer.stay(ask, [one.place for one in found], "later")
    world.rollback(mark)
    if found is None:  # It waits for more than room, for the end of others of its queue.
        return False
    ends = [end for end, _ in awaited if end is not None]
    due = max([*ends, cycle.now + cycle.policy.release_grace])
    promises.keep(cycle, ask, found, waits_for=sorted(one.pod.id for one in waits_for), due=due)
    return True


def is_head_due(cycle: Cycle, ask: Ask) -> bool:
    """Whether its queue, or the nearest above that says so, holds room for a head that has waited so long."""
    for account in cycle.world.accounts_of(ask.pool, ask.workload.queue):
        if account.queue.hold_after is not None:
            return ask.workload.created + account.queue.hold_after <= cycle.now
    return False


def _by_end(cycle: Cycle, ask: Ask) -> list[tuple[datetime | None, list[Holding]]]:
    """The other workloads that run, each whole, by stated end; what states none comes last."""
    found: list[tuple[datetime | None, Entry]] = []
    for queue in cycle.world.holder_queues(ask.pool):
        for entry in cycle.world.holders(ask.pool, queue):
            workload = entry.workload
            if workload.id == ask.id:
                continue
            end = None
            if workload.max_run_time is not None and workload.started is not None:
                end = max(cycle.now, workload.started + workload.max_run_time)
            found.append((end, entry))
    found.sort(key=lambda one: (one[0] is None, one[0] or one[1].workload.created, one[1].workload.id))
    return [(end, [one for one in entry.running if one.pod.id not in cycle.evicted]) for end, entry in found]
