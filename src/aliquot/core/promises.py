"""Room that is being freed for a workload: kept for it from cycle to cycle, until it binds or the promise expires.

A promise is dropped when its workload is gone or changed, or when its places can no longer be had (a node was cordoned,
a limit lowered). When it expires, its workload is planned anew, once without evicting. Others respect it, except who
could evict its holder, and work that ends, by its stated run time, before the promise falls due.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from aliquot.core import gang, quota, rooms
from aliquot.core.asks import Ask, Entry
from aliquot.core.cycle import Cycle, Kept
from aliquot.core.model import Place, Pod, Promise
from aliquot.core.plan import Nominate
from aliquot.core.rooms import Holding


def honour(cycle: Cycle) -> None:
    """Set the room of all promises that stand aside, the oldest first."""
    for promise in sorted(cycle.world.snapshot.promises, key=lambda one: (one.made, one.workload)):
        id = promise.workload
        entry = cycle.world.entries.get(id)
        if entry is None or id in cycle.promises or not _may_start(cycle, entry):
            continue
        if promise.expires <= cycle.now:
            if promise.may_evict:
                cycle.calmed.add(id)
            continue
        kept = _kept(cycle, promise, entry)
        if kept is None:
            continue
        cycle.promises[id] = cycle.standing[id] = kept
        if id in cycle.waiting:
            cycle.await_(kept.ask)


def redeem(cycle: Cycle, ask: Ask) -> bool:
    """Bind a promised workload at its places, or anywhere it fits; else its promise goes on. Of a gang that is at its
    minimum without them the pods are bound one by one, as they fit."""
    kept = cycle.promises.pop(ask.id)
    for holding in kept.holdings:
        cycle.world.unpromise(holding)
    places = [holding.place for holding in kept.holdings]
    found = cycle.placer.stay(kept.ask, places, "now") or cycle.placer.place(kept.ask, "now")
    if found is not None:
        cycle.bind(kept.ask, found)
        return True
    done = _bind_parts(cycle, kept)
    left = tuple(one for one in kept.holdings if one.pod.id not in done)
    for holding in left:
        cycle.world.promise(holding)
    if left and done:
        rest = cycle.world.make_ask(kept.ask.workload, kept.ask.pool, tuple(one.pod for one in left), is_core=False)
        kept = replace(kept, ask=rest, holdings=left)
    if left:  # pragma: no branch - what can start part by part with nothing left has started whole, above
        cycle.promises[ask.id] = kept
    cycle.advance(ask)
    return bool(done)


def redeem_drawn(cycle: Cycle) -> None:
    """Redeem what was promised to those who are drawn to others, or kept apart: these may have started since. A promise
    is dropped if those who have started keep its workload away from its places."""
    barred = cycle.barred.keys() | cycle.losers
    for kept in sorted(cycle.promises.values(), key=lambda one: one.ask.id):
        id = kept.ask.id
        if not any(request.is_social for request in kept.ask.requests):
            continue
        if (id not in cycle.world.waiting or id in barred or not redeem(cycle, kept.ask)) and not _stands(cycle, kept):
            _forget(cycle, kept)


def drop_broken(cycle: Cycle, workload: str) -> None:
    """Give back the promise of a gang that would be below its minimum with it: more of it has been told to end."""
    kept = cycle.promises.get(workload)
    if kept is None:
        return
    promised = {one.pod.id for one in kept.holdings}
    if not gang.is_satisfied(kept.ask.workload, cycle.pods_in_place(workload) | promised):
        for holding in kept.holdings:
            cycle.world.unpromise(holding)
        _forget(cycle, kept)


def _forget(cycle: Cycle, kept: Kept) -> None:
    del cycle.promises[kept.ask.id]
    cycle.standing.pop(kept.ask.id, None)
    cycle.advance(kept.ask)
    if kept.ask.id not in cycle.waiting:
        cycle.await_(kept.ask)  # What is told to end has to end first; meanwhile it is told why it waits.


def _stands(cycle: Cycle, kept: Kept) -> bool:
    """Whether its places can still be had; they are given back if not."""
    for holding in kept.holdings:
        cycle.world.unpromise(holding)
    mark = cycle.world.mark()
    if _stand(cycle, kept.ask, kept.holdings):
        return True
    cycle.world.rollback(mark)
    return False


def make(cycle: Cycle, ask: Ask, holdings: Sequence[Holding], *, evicted: Sequence[Holding]) -> None:
    """Promise these places; `evicted` are the pods that were told to end for it in this cycle."""
    waits_for = sorted({one.pod.id: one for one in (*_releasing_for(cycle, ask, holdings), *evicted)}.items())
    due = max((_gone_by(cycle, pod.pod) for _, pod in waits_for), default=cycle.now + cycle.policy.release_grace)
    keep(cycle, ask, holdings, waits_for=[id for id, _ in waits_for], due=due)


def keep(cycle: Cycle, ask: Ask, holdings: Sequence[Holding], *, waits_for: Sequence[str], due: datetime) -> None:
    """Enter a promise, or add to the one that the workload has."""
    for holding in holdings:
        cycle.world.promise(holding)
    expires = due + (due - cycle.now)
    before = cycle.promises.get(ask.id)
    if before is not None:
        holdings = (*before.holdings, *holdings)
        waits_for = sorted({*before.waits_for, *waits_for})
        due, expires = max(due, before.due), max(expires, before.expires)
        pods = tuple(one.pod for one in holdings)
        ask = cycle.world.make_ask(ask.workload, ask.pool, pods, is_core=before.ask.is_core)
    may_evict = ask.id not in cycle.calmed
    cycle.promises[ask.id] = Kept(ask, tuple(holdings), tuple(waits_for), due, expires, may_evict)
    cycle.settle(ask.id)
    cycle.advance(ask)


def move(cycle: Cycle, ask: Ask, holdings: Sequence[Holding]) -> None:
    """Promise pods that were told to end in this cycle a new place."""
    own = {holding.pod.id for holding in holdings}
    make(cycle, ask, holdings, evicted=[one for one in cycle.lost if one.pod.id in own])


def revoke(cycle: Cycle, workload: str, *, by: str) -> None:
    """Its promise is gone: another, who could evict it, takes the room. The caller has given the room back."""
    kept = cycle.promises.pop(workload)
    cycle.standing.pop(workload, None)
    cycle.revoked[workload] = by
    cycle.advance(kept.ask)


def nominate(kept: Kept) -> Nominate:
    """The promise as the plan says it."""
    places = tuple(holding.place for holding in kept.holdings)
    return Nominate(kept.ask.id, places, kept.waits_for, kept.due, kept.expires, kept.may_evict)


def _may_start(cycle: Cycle, entry: Entry) -> bool:
    """Whether it waits for nothing but room, or for the end of its own last attempt."""
    return entry.workload.id in cycle.waiting or bool(entry.releasing)


def _kept(cycle: Cycle, promise: Promise, entry: Entry) -> Kept | None:
    """A stored promise, if it is for pods that wait, for what they ask, and its room can still be had."""
    workload = entry.workload
    waiting = {pod.id: pod for pod in (*entry.pending, *(one.pod for one in entry.releasing))}
    pods = [waiting[place.pod] for place in promise.places if place.pod in waiting]
    if len(pods) < len(promise.places) or not pods:
        return None
    if not all(_is_same(place, waiting[place.pod]) for place in promise.places):
        return None
    in_place = {one.pod.id for one in entry.running}
    if not gang.is_satisfied(workload, in_place | {pod.id for pod in pods}):
        return None
    node = cycle.world.nodes.get(promise.places[0].node)
    pool = node.node.pool if node else entry.pool
    is_core = not gang.is_satisfied(workload, in_place)
    ask = cycle.world.make_ask(workload, pool, tuple(sorted(pods, key=gang.task_key)), is_core=is_core)
    holdings = _held(cycle, promise, ask)
    if holdings is None:
        return None
    return Kept(ask, holdings, promise.waits_for, promise.due, promise.expires, promise.may_evict)


def _is_same(place: Place, pod: Pod) -> bool:
    gpu = pod.request.gpu
    if gpu is None:
        return not place.shares
    if len(place.shares) != gpu.devices:
        return False
    if gpu.profile is not None:
        return True
    charge = max(gpu.milli or 0, gpu.compute)
    return all(share.mib == gpu.mib if gpu.mib is not None else share.milli == charge for share in place.shares)


def _held(cycle: Cycle, promise: Promise, ask: Ask) -> tuple[Holding, ...] | None:
    """The room of a promise, set aside in the world; None if it cannot be had any more.

    What runs there may be what the promise waits for, or end by its stated run time before the promise falls due.
    """
    world = cycle.world
    mark = world.mark()
    pods = {pod.id: pod for pod in ask.pods}
    places = sorted(promise.places, key=lambda place: place.pod)
    fixed = _fixed_of(cycle, ask)
    found = [world.holding(ask.workload, pods[one.pod], one, is_fixed=one.pod in fixed) for one in places]
    if not _stand(cycle, ask, found):
        world.rollback(mark)
        rows = {(one.node.node.pool, one.node.row) for one in found if one.node is not None}
        for one in _ends_before(cycle, promise, rows):
            world.evict(one)
        is_there = _stand(cycle, ask, found)
        world.rollback(mark)
        if not is_there:
            return None
        for one in found:
            world.promise(one)
    return tuple(found)


def _fixed_of(cycle: Cycle, ask: Ask) -> set[str]:
    """The pods of an ask that count as work that does not give way: of a semi-preemptible gang those of its minimum."""
    workload = ask.workload
    if workload.is_preemptible:
        return set()
    if not workload.is_semi_preemptible:
        return {pod.id for pod in ask.pods}
    in_place = [one.pod for one in cycle.world.running_of(ask.id)]
    return {pod.id for unit in gang.units(workload, [*in_place, *ask.pods]) if unit.is_core for pod in unit.pods}


def _stand(cycle: Cycle, ask: Ask, holdings: Sequence[Holding]) -> bool:
    if cycle.placer.excess(ask, rooms.charge_of(holdings), "later") is not None:
        return False
    if not cycle.placer.keeps_near(ask, holdings):
        return False
    for one in holdings:
        if not cycle.placer.can_hold(one, "later"):
            return False
        cycle.world.promise(one)
    return True


def _ends_before(cycle: Cycle, promise: Promise, rows: set[tuple[str, int]]) -> list[Holding]:
    waits_for = set(promise.waits_for)
    found: list[Holding] = []
    for pool in sorted({pool for pool, _ in rows}):
        for queue in cycle.world.holder_queues(pool):
            for entry in cycle.world.holders(pool, queue):
                found += [
                    one
                    for one in entry.running
                    if one.node is not None
                    and (pool, one.node.row) in rows
                    and (one.pod.id in waits_for or one.ends_by(promise.due))
                ]
    return found


def _bind_parts(cycle: Cycle, kept: Kept) -> set[str]:
    """Bind what of a promise may start before the rest: the least that starts the gang, then a group or a pod at a
    time; the pods that were bound."""
    workload = kept.ask.workload
    left = {one.pod.id: one for one in kept.holdings}
    done: set[str] = set()
    is_growing = True
    while is_growing and left:
        in_place = cycle.pods_in_place(workload.id)
        parts = gang.choices(workload, active=in_place, waiting=[one.pod for one in left.values()])
        parts += [(one.pod,) for one in left.values() if gang.is_sound(workload, in_place | {one.pod.id})]
        is_growing = False
        for pods in parts:
            part = {pod.id for pod in pods}
            rest = [one for id, one in left.items() if id not in part]
            if _bind_part(cycle, kept, [left[pod.id] for pod in pods], rest):
                left = {one.pod.id: one for one in rest}
                done |= part
                is_growing = True
                break
    return done


def _bind_part(cycle: Cycle, kept: Kept, part: Sequence[Holding], rest: Sequence[Holding]) -> bool:
    workload = kept.ask.workload
    is_core = not gang.is_satisfied(workload, cycle.pods_in_place(workload.id))
    ask = cycle.world.make_ask(workload, kept.ask.pool, tuple(one.pod for one in part), is_core=is_core)
    for one in rest:  # The rest of the promise keeps its room meanwhile.
        cycle.world.promise(one)
    found = cycle.placer.stay(ask, [one.place for one in part], "now") or cycle.placer.place(ask, "now")
    for one in rest:
        cycle.world.unpromise(one)
    if found is not None:
        cycle.bind(ask, found)
    return found is not None


def _releasing_for(cycle: Cycle, ask: Ask, holdings: Sequence[Holding]) -> list[Holding]:
    """The pods told to end, now or before, for which these places wait: those that hold the same devices, or a node
    that lacks CPU, memory or a place for a pod until then, or a limit that still counts them."""
    devices = {slot.room.device.id for holding in holdings for slot in holding.slots}
    needs: dict[str, list[int]] = {}
    for holding, node in ((one, one.node.node.id) for one in holdings if one.node is not None):
        total = needs.setdefault(node, [0, 0, 0])
        for index, amount in enumerate(holding.room):
            total[index] += amount
    accounts = cycle.world.accounts_of(ask.pool, ask.workload.queue)
    over = quota.over_limit(accounts, rooms.charge_of(holdings), counting="now")
    nodes = sorted(cycle.leaving) if over is not None else sorted(needs)
    found: list[Holding] = []
    for one in (one for node in nodes for one in cycle.leaving.get(node, ())):
        is_on_device = any(slot.room.device.id in devices for slot in one.slots)
        need = needs.get(one.node.node.id) if one.node is not None else None
        is_on_node = (
            need is not None
            and one.node is not None
            and any(amount > idle for amount, idle in zip(need, one.node.idle, strict=True) if amount)
        )
        if is_on_device or is_on_node or (over is not None and over.account in one.accounts):
            found.append(one)
    return found


def _gone_by(cycle: Cycle, pod: Pod) -> datetime:
    """When a pod is gone at the latest: as stated, or after the grace."""
    stated = pod.release_due
    return stated if stated is not None and stated > cycle.now else cycle.now + cycle.policy.release_grace
