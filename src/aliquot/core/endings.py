"""Evictions that serve nobody: a gang that stays below its minimum, a queue or a node that is drained."""

from datetime import timedelta

from aliquot.core import gang, promises, quantities, wording
from aliquot.core.asks import Entry
from aliquot.core.cycle import Cycle
from aliquot.core.plan import Evict, Rule
from aliquot.core.rooms import Holding


def release_stale(cycle: Cycle, pool: str) -> None:
    """End all pods of gangs that have been below their minimum for longer than their grace, and are promised no places
    for what they lack."""
    for _, entry in sorted(cycle.world.broken.items()):
        workload = entry.workload
        if entry.pool != pool or workload.id in cycle.settled:
            continue
        grace = cycle.policy.stale_grace if workload.stale_grace is None else workload.stale_grace
        stale_for = workload.stale_for or timedelta()
        if grace < timedelta() or stale_for < grace:
            continue
        promised = {one.pod.id for one in cycle.placed(workload.id)}
        if gang.is_satisfied(workload, cycle.pods_in_place(workload.id) | promised):
            continue
        lasted = quantities.format_duration(stale_for)
        _end(cycle, entry, entry.running, Rule.STALE_GANG, f"its gang has been below its minimum for {lasted}")


def drain(cycle: Cycle, pool: str) -> None:
    """End what runs in drained queues, and on drained nodes: there whole gangs, or what is above their minimum."""
    if not _is_any_drained(cycle, pool):
        return
    for entry in _holders(cycle, pool):
        queues = [one.queue for one in cycle.world.accounts_of(pool, entry.workload.queue)]
        drained = next((queue for queue in queues if queue.is_drained), None)
        if drained is not None:
            _end(cycle, entry, entry.running, Rule.DRAIN, f"{drained.name} is drained")
            continue
        leaving = [one for one in entry.running if one.node is not None and one.node.node.is_drained]
        if leaving:
            nodes = sorted({one.node.node.id for one in leaving if one.node is not None})
            _end(cycle, entry, _with_broken(entry, leaving), Rule.DRAIN, f"{wording.names(nodes)} is drained")


def _with_broken(entry: Entry, leaving: list[Holding]) -> list[Holding]:
    """These places, and those of the groups that do not run without them."""
    gone = {one.pod.id for one in leaving}
    left = [one.pod for one in entry.running if one.pod.id not in gone]
    for unit in gang.units(entry.workload, left):
        if gang.is_sound(entry.workload, {one.pod.id for one in entry.running} - gone):
            break
        gone |= {pod.id for pod in unit.pods}
    return [one for one in entry.running if one.pod.id in gone]


def _is_any_drained(cycle: Cycle, pool: str) -> bool:
    world = cycle.world
    return any(queue.is_drained for queue in world.queues.values()) or any(
        node.node.is_drained for node in world.pools[pool].nodes
    )


def _holders(cycle: Cycle, pool: str) -> list[Entry]:
    world = cycle.world
    return [entry for queue in world.holder_queues(pool) for entry in world.holders(pool, queue)]


def _end(cycle: Cycle, entry: Entry, holdings: list[Holding], rule: Rule, text: str) -> None:
    for holding in holdings:
        if holding.pod.id in cycle.evicted:
            continue
        cycle.world.evict(holding)
        cycle.evict(Evict(entry.workload.id, holding.pod.id, "", rule, text), holding)
    promises.drop_broken(cycle, entry.workload.id)
