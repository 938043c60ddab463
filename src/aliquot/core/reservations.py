"""Room that is kept without evicting, and how it is used meanwhile.

The head of a queue that has waited for long may be promised the next room that becomes free, so that a large gang is
not starved by small work. Until a promise falls due, work whose stated run time ends before may run in its room.
"""

from datetime import datetime

from aliquot.core import promises
from aliquot.core.cycle import Cycle
from aliquot.core.rooms import Holding
from aliquot.core.snapshot import Ask


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
    gone: list[tuple[datetime | None, Holding]] = []
    found: list[Holding] | None = None
    for end, holding in _by_end(cycle, ask.pool):
        world.evict(holding)
        gone.append((end, holding))
        if cycle.placer.may_fit(ask, "later"):
            found = cycle.placer.place(ask, "later")
        if found is not None:
            break
    world.rollback(mark)
    if found is None:
        return False
    nodes = {id(one.node) for one in found}
    awaited = [(end, holding) for end, holding in gone if id(holding.node) in nodes]
    for _, holding in awaited:
        world.evict(holding)
    found = cycle.placer.stay(ask, [one.place for one in found], "later")
    world.rollback(mark)
    if found is None:  # It waits for more than room, for the end of others of its queue.
        return False
    ends = [end for end, _ in awaited if end is not None]
    due = max([*ends, cycle.now + cycle.policy.release_grace])
    promises.keep(cycle, ask, found, waits_for=sorted(holding.pod.id for _, holding in awaited), due=due)
    return True


def is_head_due(cycle: Cycle, ask: Ask) -> bool:
    """Whether its queue, or the nearest above that says so, holds room for a head that has waited so long."""
    for account in cycle.world.accounts_of(ask.pool, ask.workload.queue):
        if account.queue.hold_after is not None:
            return ask.workload.created + account.queue.hold_after <= cycle.now
    return False


def _by_end(cycle: Cycle, pool: str) -> list[tuple[datetime | None, Holding]]:
    """What runs, by its stated end; what states none comes last."""
    found: list[tuple[datetime | None, Holding]] = []
    for queue in cycle.world.holder_queues(pool):
        for entry in cycle.world.holders(pool, queue):
            workload = entry.workload
            end = None
            if workload.max_run_time is not None and workload.started is not None:
                end = max(cycle.now, workload.started + workload.max_run_time)
            found += [(end, one) for one in entry.running if one.pod.id not in cycle.evicted]
    return sorted(
        found,
        key=lambda one: (one[0] is None, one[0] or one[1].workload.created, one[1].workload.id, one[1].pod.id),
    )
