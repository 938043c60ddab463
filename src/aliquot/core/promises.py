"""Room that is being freed for a workload: kept for it from cycle to cycle, until it binds or the promise expires.

A promise is dropped when its workload is gone or changed, or when its places can no longer be had (a node was cordoned,
say). When it expires, its workload is planned anew, once without evicting.
"""

from collections.abc import Sequence
from datetime import datetime

from aliquot.core import placement, quota
from aliquot.core.cycle import Cycle, Kept
from aliquot.core.model import Place, Pod, Promise
from aliquot.core.order import Ask
from aliquot.core.plan import Nominate
from aliquot.core.snapshot import Holding


def honour(cycle: Cycle) -> None:
    """Set the room of all promises that stand aside, the oldest first."""
    for promise in sorted(cycle.world.snapshot.promises, key=lambda one: (one.made, one.workload)):
        ask = cycle.waiting.get(promise.workload)
        if ask is None or promise.workload in cycle.promises or not _is_for(promise, ask):
            continue
        if promise.expires <= cycle.now:
            if promise.may_evict:
                cycle.calmed.add(ask.id)
            continue
        holdings = _held(cycle, promise, ask)
        if holdings is not None:
            cycle.promises[ask.id] = Kept(
                ask, holdings, promise.waits_for, promise.due, promise.expires, promise.may_evict
            )


def redeem(cycle: Cycle, ask: Ask) -> bool:
    """Bind a promised workload at its places, or anywhere it fits; else its promise goes on."""
    kept = cycle.promises[ask.id]
    for holding in kept.holdings:
        cycle.world.unpromise(holding)
    places = [holding.place for holding in kept.holdings]
    found = cycle.placer.stay(ask, places, "now") or cycle.placer.place(ask, "now")
    if found is None:
        for holding in kept.holdings:
            cycle.world.promise(holding)
        return False
    del cycle.promises[ask.id]
    cycle.bind(ask, found)
    return True


def make(cycle: Cycle, ask: Ask, holdings: Sequence[Holding], *, evicted: Sequence[Holding]) -> None:
    """Promise these places; `evicted` are the pods that were told to end for it in this cycle."""
    waits_for = sorted({one.pod.id: one for one in (*_releasing_for(cycle, ask, holdings), *evicted)}.items())
    due = max((_gone_by(cycle, pod.pod) for _, pod in waits_for), default=cycle.now + cycle.policy.release_grace)
    for holding in holdings:
        cycle.world.promise(holding)
    cycle.promises[ask.id] = Kept(
        ask,
        tuple(holdings),
        tuple(id for id, _ in waits_for),
        due,
        due + (due - cycle.now),
        may_evict=ask.id not in cycle.calmed,
    )
    cycle.settled.add(ask.id)


def revoke(cycle: Cycle, workload: str, *, by: str) -> None:
    """Its promise is gone: another, who could evict it, takes the room. The caller has given the room back."""
    del cycle.promises[workload]
    cycle.revoked[workload] = by


def nominate(kept: Kept) -> Nominate:
    """The promise as the plan says it."""
    places = tuple(holding.place for holding in kept.holdings)
    return Nominate(kept.ask.id, places, kept.waits_for, kept.due, kept.expires, kept.may_evict)


def _is_for(promise: Promise, ask: Ask) -> bool:
    """Whether the promise is for just the pods that wait, and for what they ask."""
    places = {place.pod: place for place in promise.places}
    return set(places) == {pod.id for pod in ask.pods} and all(_is_same(places[pod.id], pod) for pod in ask.pods)


def _is_same(place: Place, pod: Pod) -> bool:
    gpu = pod.request.gpu
    if gpu is None:
        return not place.shares
    if len(place.shares) != gpu.devices:
        return False
    return all(share.mib == gpu.mib if gpu.mib is not None else share.milli == gpu.milli for share in place.shares)


def _held(cycle: Cycle, promise: Promise, ask: Ask) -> tuple[Holding, ...] | None:
    """The room of a promise, set aside in the world; None if it cannot be had any more."""
    world = cycle.world
    mark = world.mark()
    pods = {pod.id: pod for pod in ask.pods}
    holdings: list[Holding] = []
    for place in sorted(promise.places, key=lambda place: place.pod):
        holding = world.holding(ask.workload, pods[place.pod], place)
        if not placement.can_hold(holding, "later"):
            world.rollback(mark)
            return None
        world.promise(holding)
        holdings.append(holding)
    return tuple(holdings)


def _releasing_for(cycle: Cycle, ask: Ask, holdings: Sequence[Holding]) -> list[Holding]:
    """The pods told to end, now or before, for which these places wait: those that hold the same devices, or a node
    that lacks CPU, memory or a place for a pod until then, or a limit that still counts them."""
    devices = {slot.room.device.id for holding in holdings for slot in holding.slots}
    needs: dict[str, list[int]] = {}
    for holding in holdings:
        if holding.node is not None:
            total = needs.setdefault(holding.node.node.id, [0, 0, 0])
            for index, amount in enumerate(holding.room):
                total[index] += amount
    accounts = cycle.world.accounts_of(ask.workload.pool, ask.workload.queue)
    over = quota.over_limit(accounts, placement.charge_of(holdings), counting="now")
    found: list[Holding] = []
    for one in _ending(cycle):
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


def _ending(cycle: Cycle) -> list[Holding]:
    before = [one for group in cycle.world.releasing.values() for one in group]
    now = [one for group in cycle.world.running.values() for one in group if one.pod.id in cycle.evicted]
    return [*before, *now]


def _gone_by(cycle: Cycle, pod: Pod) -> datetime:
    """When a pod is gone at the latest: as stated, or after the grace."""
    stated = pod.release_due
    return stated if stated is not None and stated > cycle.now else cycle.now + cycle.policy.release_grace
