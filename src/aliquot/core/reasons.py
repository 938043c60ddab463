"""Why a workload waits: one code, one sentence, the numbers that prove it, and who is in the way.

Every reason is true of the world as the cycle leaves it. They are tried from what will never change by waiting (too
large, a limit) to what will (others hold the room).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aliquot.core import placement, quota, snapshot, wording
from aliquot.core.cycle import Cycle
from aliquot.core.model import RESOURCES, GpuRequest, PodRequest
from aliquot.core.order import Ask
from aliquot.core.placement import Placer
from aliquot.core.plan import Blocker, Code, Reason
from aliquot.core.snapshot import Holding, NodeRoom, Pool, World

_MOST_BLOCKERS = 10
_SHORT_OF = {Code.NO_FREE_CPU: 1, Code.NO_FREE_MEMORY: 2}


@dataclass(slots=True)
class Reasons:
    """Gives the reasons of one cycle, and keeps what it finds out about equal shapes."""

    cycle: Cycle
    _empty: dict[tuple[str, tuple[str, ...]], Placer] = field(default_factory=dict)
    _fits: dict[tuple[object, ...], bool] = field(default_factory=dict)
    _shortages: dict[tuple[object, ...], Reason] = field(default_factory=dict)
    _holders: dict[tuple[str, int], list[list[Holding]]] = field(default_factory=dict)
    _freed: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def why(self, ask: Ask) -> Reason:
        """Why it was neither bound before nor in this cycle."""
        pool = self.cycle.world.pools[ask.workload.pool]
        if not pool.nodes:
            return Reason(Code.POOL_EMPTY, f"no node is in pool {pool.name}", {"pool": pool.name})
        if ask.id in self.cycle.promises:
            return self._promised(ask)
        return (
            self._too_large(ask, pool)
            or self._over_terms(ask)
            or self._unavailable(ask, pool)
            or self._cut_off(ask)
            or self._behind(ask)
            or self._ending(ask)
            or self._short(ask, pool)
        )

    def _promised(self, ask: Ask) -> Reason:
        kept = self.cycle.promises[ask.id]
        names = {pod.id: one for one in self.cycle.world.snapshot.workloads for pod in one.pods}
        owners = sorted({(names[id].id, names[id].name) for id in kept.waits_for if id in names})
        due = kept.due.isoformat(timespec="seconds")
        whom = f" until {wording.names([name for _, name in owners])} has ended" if owners else ""
        return Reason(
            Code.WAITING_FOR_RELEASE,
            f"its room is being freed: it waits{whom}, by {due} at the latest",
            {"due": kept.due.isoformat(), "pods": len(kept.waits_for)},
            tuple(Blocker(id, f"{name} is ending") for id, name in owners),
        )

    def _too_large(self, ask: Ask, pool: Pool) -> Reason | None:
        everything = ("node", "device-in-use", "withheld")
        for request in sorted(set(ask.requests), key=repr):
            if not self._fits_empty(ask, everything, (request,)):
                return larger_than_any_node(request, pool)
        if self._fits_empty(ask, everything, ask.requests):
            return None
        asked = [wording.amount(resource, ask.amounts[index]) for index, resource in enumerate(RESOURCES)]
        asked = [text for index, text in enumerate(asked) if ask.amounts[index]]
        count = len(ask.requests)
        return Reason(
            Code.LARGER_THAN_POOL,
            f"it starts {wording.plural(count, 'pod')} at once ({', '.join(asked)} in all); "
            f"pool {pool.name} cannot hold them even when empty",
            {"pods": count, **_numbers("asked", ask.amounts)},
        )

    def _over_terms(self, ask: Ask) -> Reason | None:
        accounts = self.cycle.world.accounts_of(ask.workload.pool, ask.workload.queue)
        over = quota.over_limit(accounts, ask.amounts, counting="now")
        if over is not None:
            return _over(Code.QUEUE_LIMIT, over, "limit", "")
        if ask.workload.is_preemptible:
            return None
        over = quota.over_quota(accounts, ask.amounts, counting="now")
        if over is None:
            return None
        return _over(Code.NON_PREEMPTIBLE_OVER_QUOTA, over, "quota", " in work that may not be preempted")

    def _unavailable(self, ask: Ask, pool: Pool) -> Reason | None:
        if self._fits_empty(ask, (), ask.requests):
            return None
        if self._fits_empty(ask, ("device-in-use",), ask.requests):
            uses = [
                (room.device.id, use) for node in pool.nodes for room in node.devices for use in room.device.foreign
            ]
            texts = [f"process {use.pid} of {use.user} holds {use.mib} MiB of {device}" for device, use in uses]
            said = "; ".join(texts[:3]) or "a process from outside holds a device"
            return Reason(
                Code.DEVICE_IN_USE,
                f"a GPU that it needs is used by others: {said}",
                {"processes": len(uses)},
                tuple(Blocker(None, text) for text in texts[:_MOST_BLOCKERS]),
            )
        away = [f"node {node.node.id} is {_state(node)}" for node in pool.nodes if not node.is_usable]
        away += [
            f"{room.device.id} is withheld ({room.device.withheld})"
            for node in pool.nodes
            for room in node.devices
            if room.device.withheld is not None
        ]
        return Reason(
            Code.NODE_UNAVAILABLE,
            f"what it needs is there but takes no work now: {'; '.join(away[:3])}",
            {"unavailable": len(away)},
            tuple(Blocker(None, text) for text in away[:_MOST_BLOCKERS]),
        )

    def _cut_off(self, ask: Ask) -> Reason | None:
        if ask.id not in self.cycle.unsearched:
            return None
        budget = self.cycle.policy.step_budget
        return Reason(
            Code.BUDGET,
            f"the {budget} steps of this cycle ended before all was tried for it; the next cycle goes on",
            {"stepBudget": budget},
        )

    def _behind(self, ask: Ask) -> Reason | None:
        """It would fit but for room that is promised to others."""
        return None if self.cycle.placer.place(ask, "held") is None else self._promised_away(ask)

    def _would_fit_without_promises(self, ask: Ask) -> bool:
        key = (ask.workload.pool, ask.workload.queue, ask.requests)
        if key not in self._freed:
            world = self.cycle.world
            mark = world.mark()
            for _, kept in sorted(self.cycle.promises.items()):
                for holding in kept.holdings:
                    world.unpromise(holding)
            self._freed[key] = bool(self.cycle.promises) and self.cycle.placer.place(ask, "later") is not None
            world.rollback(mark)
        return self._freed[key]

    def _promised_away(self, ask: Ask) -> Reason:
        holders = [
            kept.ask.workload
            for _, kept in sorted(self.cycle.promises.items())
            if kept.ask.workload.pool == ask.workload.pool
        ]
        by = self.cycle.revoked.get(ask.id)
        if by is not None:
            holders = [one for one in self.cycle.world.snapshot.workloads if one.id == by] or holders
        return Reason(
            Code.BEHIND,
            f"the room that is or becomes free is promised to {wording.names([one.name for one in holders])}",
            {"promises": len(holders)},
            tuple(Blocker(one.id, f"{one.name} has the promise of it") for one in holders[:_MOST_BLOCKERS]),
        )

    def _ending(self, ask: Ask) -> Reason | None:
        """It would fit when what was told to end has ended."""
        if self.cycle.placer.place(ask, "later") is None:
            return None
        world = self.cycle.world
        ending = sorted({one.workload.id: one.workload for group in world.releasing.values() for one in group}.items())
        return Reason(
            Code.WAITING_FOR_RELEASE,
            f"it waits until {wording.names([one.name for _, one in ending])} has ended",
            {"workloads": len(ending)},
            tuple(Blocker(id, f"{one.name} is ending") for id, one in ending[:_MOST_BLOCKERS]),
        )

    def _short(self, ask: Ask, pool: Pool) -> Reason:
        """Others hold what it needs."""
        key = (pool.name, ask.requests)
        if key not in self._shortages:
            self._shortages[key] = self._shortage(ask, pool)
        reason = self._shortages[key]
        index = _SHORT_OF.get(reason.code, 0)
        holders = self._held(pool, index)
        blockers = tuple(_blocker(holdings, index) for holdings in holders[:_MOST_BLOCKERS])
        foreign = tuple(
            Blocker(None, f"process {use.pid} of {use.user} holds {use.mib} MiB of {room.device.id}")
            for node in pool.nodes
            for room in node.devices
            for use in room.device.foreign
            if index == 0
        )
        over = self._over_share(ask, pool, index)
        if over is None and self._would_fit_without_promises(ask):
            return self._promised_away(ask)
        code, message, numbers = reason.code, reason.message, dict(reason.numbers)
        if over is not None:
            code, message = Code.OVER_FAIR_SHARE, f"{message}; {over.message}"
            numbers |= over.numbers
        return Reason(code, message, numbers | {"holders": len(holders)}, (*blockers, *foreign)[:_MOST_BLOCKERS])

    def _over_share(self, ask: Ask, pool: Pool, index: int) -> Reason | None:
        """Whether its queue would need more than its fair share to take from the others, who hold some."""
        accounts = self.cycle.world.accounts_of(pool.name, ask.workload.queue)
        others = [
            holdings
            for holdings in self._held(pool, index)
            if holdings[0].workload.queue != ask.workload.queue and holdings[0].workload.is_preemptible
        ]
        if not others or not ask.amounts[index]:
            return None
        for account in accounts:
            held, share = account.level[index], account.share[index]
            if held + ask.amounts[index] > share and any(account not in one[0].accounts for one in others):
                resource = RESOURCES[index]
                return Reason(
                    Code.OVER_FAIR_SHARE,
                    f"{account.queue.name} holds {wording.amount(resource, held)} and its fair share is "
                    f"{wording.amount(resource, share)}, so it takes from no other project",
                    {"resource": resource, "held": held, "fairShare": share, "asked": ask.amounts[index]},
                )
        return None

    def _held(self, pool: Pool, index: int) -> list[list[Holding]]:
        """Who holds some of a resource in a pool, the oldest first."""
        if (pool.name, index) not in self._holders:
            self._holders[pool.name, index] = _holders(self.cycle, pool, index)
        return self._holders[pool.name, index]

    def _shortage(self, ask: Ask, pool: Pool) -> Reason:
        world = self.cycle.world
        count = len(ask.requests)
        fitting = count_fitting(world, self.cycle.placer, ask)
        if count > 1 and fitting > 0:
            return Reason(
                Code.GANG_INCOMPLETE,
                f"it starts its {count} pods at once or not at all; {fitting} would fit now",
                {"pods": count, "fitting": fitting},
            )
        request = ask.requests[0]
        nodes = pool.usable
        if request.gpu is not None and all(
            placement.fit_devices(node.devices, request.gpu, "now") is None for node in nodes
        ):
            return _short_of_devices(request.gpu, nodes)
        for code, index in _SHORT_OF.items():
            resource = RESOURCES[index]
            asked = (request.milli_cpus, request.memory_bytes)[index - 1]
            free, best = max((max(0, _free(node, index - 1)), node.node.id) for node in nodes)
            if asked > free:
                return Reason(
                    code,
                    f"needs {wording.amount(resource, asked)} on one node; the most that is free is "
                    f"{wording.amount(resource, free)} on {best}",
                    {"asked": asked, "free": free},
                )
        fullest = [node for node in nodes if _free(node, 2) > 0]
        if not fullest:
            most = max((node.node.max_pods, node.node.id) for node in nodes)
            return Reason(
                Code.NODE_UNAVAILABLE,
                f"every node that could take it runs as many pods as it may ({most[0]} on {most[1]})",
                {"maxPods": most[0]},
            )
        return Reason(
            Code.FRAGMENTED,
            "no one node has all that it needs free together, though each part is free somewhere",
            {"nodes": len(nodes)},
        )

    def _fits_empty(self, ask: Ask, whole: tuple[str, ...], requests: tuple[PodRequest, ...]) -> bool:
        """Whether pods with these requests fit the pool with nothing in it."""
        name = ask.workload.pool
        key = (name, whole, requests)
        if key not in self._fits:
            if (name, whole) not in self._empty:
                emptied = snapshot.emptied(self.cycle.world.snapshot, pool=name, whole=whole)
                roomy = replace(emptied, queues=())  # Terms do not matter here, and to divide them takes long.
                self._empty[name, whole] = Placer(World(roomy, more_pools=(name,)))
            self._fits[key] = placement.fits_empty(self._empty[name, whole], ask, requests)
        return self._fits[key]


def larger_than_any_node(request: PodRequest, pool: Pool) -> Reason:
    """Which amount of one pod is too large for every node of the pool, even when empty."""
    gpu = request.gpu
    if gpu is not None:
        largest = max((len(node.devices), node.node.id) for node in pool.nodes)
        if gpu.devices > largest[0]:
            return Reason(
                Code.LARGER_THAN_ANY_NODE,
                f"needs {wording.plural(gpu.devices, 'GPU')} on one node; the largest node of pool {pool.name} has "
                f"{largest[0]}",
                {"resource": "gpu", "asked": gpu.devices, "largest": largest[0]},
            )
        offered = max(room.device.memory_mib for node in pool.nodes for room in node.devices)
        if gpu.mib is not None and gpu.mib > offered:
            return Reason(
                Code.NO_DEVICE_FITS,
                f"needs {wording.gpu(gpu)}; the largest GPU of pool {pool.name} offers {offered} MiB",
                {"resource": "gpu", "asked": gpu.mib, "largest": offered},
            )
    for index, resource in ((1, RESOURCES[1]), (2, RESOURCES[2])):
        asked = (request.milli_cpus, request.memory_bytes)[index - 1]
        largest_amount = max((node.node.milli_cpus, node.node.memory_bytes)[index - 1] for node in pool.nodes)
        if asked > largest_amount:
            return Reason(
                Code.LARGER_THAN_ANY_NODE,
                f"needs {wording.amount(resource, asked)} on one node; the largest node of pool {pool.name} has "
                f"{wording.amount(resource, largest_amount)}",
                {"resource": resource, "asked": asked, "largest": largest_amount},
            )
    return Reason(
        Code.LARGER_THAN_ANY_NODE,
        f"no one node of pool {pool.name} has all that a pod of it needs, even when empty",
        {"nodes": len(pool.nodes)},
    )


def _over(code: Code, over: quota.Excess, noun: str, what: str) -> Reason:
    kind = "project" if over.account.is_leaf else "department"
    amount = wording.amount
    return Reason(
        code,
        f"{kind} {over.account.queue.name} holds {amount(over.resource, over.held)}{what}, this asks "
        f"{amount(over.resource, over.asked)}, and the {noun} is {amount(over.resource, over.bound)}",
        {
            "queue": over.account.queue.name,
            "resource": over.resource,
            "held": over.held,
            "asked": over.asked,
            noun: over.bound,
        },
    )


def _short_of_devices(gpu: GpuRequest, nodes: Sequence[NodeRoom]) -> Reason:
    """No node has the devices that one pod asks for free now."""
    parts = [(node.node.id, [placement.free_part(room, "now") for room in node.devices]) for node in nodes]
    slots = [
        (sum(placement.slot_on(room, gpu, "now") is not None for room in node.devices), node.node.id) for node in nodes
    ]
    best, best_node = max(slots, key=lambda one: one[0])
    total, free = sum(count for count, _ in slots), sum(part for _, of_node in parts for part in of_node)
    there = sum(room.is_usable for node in nodes for room in node.devices)
    needs = f"needs {wording.gpu(gpu)}"
    numbers = {"asked": gpu.devices, "largestFree": best, "free": total, "freeMilli": free}
    if total >= gpu.devices:
        return Reason(
            Code.FRAGMENTED, f"{needs} on one node; the most that is free on one is {best}, on {best_node}", numbers
        )
    if gpu.is_whole and free >= 1000 * gpu.devices:
        return Reason(
            Code.FRAGMENTED,
            f"{needs}; {total or 'none'} of {there} {_is(total)} wholly free, what is free lies in pieces of "
            f"{wording.amount('gpu', free)} together",
            numbers,
        )
    if gpu.is_whole or free == 0:
        return Reason(Code.NO_FREE_DEVICE, f"{needs}; {total or 'none'} of {there} {_is(total)} free", numbers)
    room = max(
        (room for node in nodes for room in node.devices if room.is_usable),
        key=lambda room: (room.free_mib, room.free_milli),
    )
    return Reason(
        Code.NO_DEVICE_FITS,
        f"{needs}; the best single GPU, {room.device.id}, has {max(0, room.free_mib)} of its "
        f"{room.device.memory_mib} MiB free",
        numbers | {"bestFreeMib": max(0, room.free_mib)},
    )


def count_fitting(world: World, placer: Placer, ask: Ask) -> int:
    """How many of its pods would find a place now."""
    mark = world.mark()
    count = 0
    for pod in ask.pods:
        found = placer.best(world.pools[ask.workload.pool], pod.request, "now")
        if found is None:
            break
        world.hold(placer.at(ask, pod, node=found[0], slots=found[1]))
        count += 1
    world.rollback(mark)
    return count


def _free(node: NodeRoom, index: int) -> int:
    return min(node.idle[index], node.future[index])


def _holders(cycle: Cycle, pool: Pool, index: int) -> list[list[Holding]]:
    """Who holds some of a resource in a pool, by workload, the oldest first."""
    groups = [*cycle.world.running.values(), *cycle.world.releasing.values(), *cycle.bound.values()]
    held = [
        group
        for group in groups
        if group[0].workload.pool == pool.name and any(holding.charge[index] for holding in group)
    ]
    held.sort(key=lambda group: (group[0].workload.created, group[0].workload.id))
    return held


def _blocker(holdings: Sequence[Holding], index: int) -> Blocker:
    workload, resource = holdings[0].workload, RESOURCES[index]
    total = sum(holding.charge[index] for holding in holdings)
    return Blocker(workload.id, f"{workload.name} holds {wording.amount(resource, total)}")


def _numbers(prefix: str, amounts: snapshot.Vector) -> dict[str, int | str]:
    names = {"gpu": "MilliGpus", "cpu": "MilliCpus", "memory": "MemoryBytes"}
    return {prefix + names[resource]: amounts[index] for index, resource in enumerate(RESOURCES) if amounts[index]}


def _is(count: int) -> str:
    return "are" if count > 1 else "is"


def _state(node: NodeRoom) -> str:
    if node.node.is_ready:
        return "cordoned"
    return f"not ready: {node.node.trouble}" if node.node.trouble else "not ready"
