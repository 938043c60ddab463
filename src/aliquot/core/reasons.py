"""Why a workload waits: one code, one sentence, the numbers that prove it, and who is in the way.

Every reason is true of the world as the cycle leaves it. They are tried from what will never change by waiting (too
large, a limit) to what will (others hold the room).
"""

from dataclasses import dataclass, field, replace

from aliquot.core import bounds, constraints, house, quota, shortages, wording
from aliquot.core.asks import Ask
from aliquot.core.cycle import Cycle
from aliquot.core.model import RESOURCES, PodRequest
from aliquot.core.placement import Placer
from aliquot.core.plan import Blocker, Code, Reason
from aliquot.core.snapshot import Pool, World

_MOST_BLOCKERS = 10
_SHORT_OF = {Code.NO_FREE_CPU: 1, Code.NO_FREE_MEMORY: 2}
_EVERYTHING = ("node", "device-in-use", "withheld")
"""An empty pool as if nothing in it were kept back."""


@dataclass(slots=True)
class Reasons:
    """Gives the reasons of one cycle, and keeps what it finds out about equal shapes."""

    cycle: Cycle
    _empty: dict[tuple[str, tuple[str, ...]], Placer] = field(default_factory=dict)
    _fits: dict[tuple[object, ...], bool] = field(default_factory=dict)
    _shortages: dict[tuple[object, ...], Reason] = field(default_factory=dict)
    _held: dict[tuple[str, int], shortages.Held] = field(default_factory=dict)
    _foreign: dict[str, tuple[Blocker, ...]] = field(default_factory=dict)
    _freed: dict[tuple[object, ...], bool] = field(default_factory=dict)
    _known: dict[tuple[object, ...], Reason] = field(default_factory=dict)
    _told: set[str] | None = None
    _sound: dict[str, bool] = field(default_factory=dict)
    _owners: dict[str, tuple[str, str]] = field(default_factory=dict)

    def why(self, ask: Ask) -> Reason:
        """Why it was neither bound before nor in this cycle."""
        cycle = self.cycle
        pool = cycle.world.pools[ask.pool]
        if not pool.nodes and ask.id not in cycle.unsearched:
            return Reason(Code.POOL_EMPTY, f"no node is in pool {pool.name}", {"pool": pool.name})
        if ask.id in cycle.promises and ask.id not in cycle.unsearched:
            return self._promised(ask)
        if ask.id in cycle.delayed or ask.id in cycle.revoked or ask.id in cycle.protected:
            return self._found(ask, pool)
        key = (*_terms(ask), ask.id in cycle.unsearched)
        if key not in self._known:
            self._known[key] = self._found(ask, pool)
        return self._known[key]

    def _found(self, ask: Ask, pool: Pool) -> Reason:
        return (
            self._cut_off(ask)
            or self._kept_off(ask, pool)
            or self._too_large(ask, pool)
            or self._too_far_apart(ask)
            or self._over_terms(ask)
            or self._unavailable(ask, pool)
            or self._behind(ask)
            or self._ending(ask)
            or self._delayed(ask)
            or self._short(ask, pool)
        )

    def _kept_off(self, ask: Ask, pool: Pool) -> Reason | None:
        """Taints or selectors keep it off every node."""
        for request in _distinct(ask):
            if not any(constraints.refusal(node.node, request) is None for node in pool.nodes):
                refusals = [(constraints.refusal(node.node, request) or "", node.node) for node in pool.nodes]
                return shortages.kept_off(request, refusals)
        return None

    def _too_far_apart(self, ask: Ask) -> Reason | None:
        """Not even an empty pool has a domain that holds what must be near each other."""
        if not shortages.has_required(ask.workload.root) or self._fits_near(ask):
            return None
        level = shortages.required_level(ask.workload.root)
        return Reason(
            Code.TOPOLOGY,
            f"its pods must share one {level}; no {level} of pool {ask.pool} holds them even when empty",
            {"level": level, "pods": len(ask.pods)},
        )

    def _delayed(self, ask: Ask) -> Reason | None:
        """It could look for victims, but has to wait first."""
        if ask.id not in self.cycle.delayed:
            return None
        end = ask.workload.created + ask.workload.preemption_delay
        return Reason(
            Code.PREEMPTION_DELAY,
            f"nothing is free for it, and it may evict others only after {end.isoformat(timespec='seconds')}",
            {"until": end.isoformat()},
        )

    def _promised(self, ask: Ask) -> Reason:
        kept = self.cycle.promises[ask.id]
        if not self._owners:
            self._owners.update(
                {pod.id: (one.id, one.name) for one in self.cycle.world.snapshot.workloads for pod in one.pods}
            )
        owners = sorted({self._owners[id] for id in kept.waits_for if id in self._owners})
        due = kept.due.isoformat(timespec="seconds")
        whom = f" until {wording.names([name for _, name in owners])} has ended" if owners else ""
        if set(kept.waits_for) - self._leaving():
            return Reason(
                Code.WAITING_FOR_RELEASE,
                f"it has waited for long, so that the next room is kept for it: it waits{whom}",
                {"due": kept.due.isoformat(), "pods": len(kept.waits_for)},
                tuple(Blocker(id, f"{name} runs where it will start") for id, name in owners),
            )
        return Reason(
            Code.WAITING_FOR_RELEASE,
            f"its room is being freed: it waits{whom}, by {due} at the latest",
            {"due": kept.due.isoformat(), "pods": len(kept.waits_for)},
            tuple(Blocker(id, f"{name} is ending") for id, name in owners),
        )

    def _leaving(self) -> set[str]:
        """The pods that were told to end."""
        if self._told is None:
            before = {one.pod.id for group in self.cycle.leaving.values() for one in group}
            self._told = before | self.cycle.evicted
        return self._told

    def _too_large(self, ask: Ask, pool: Pool) -> Reason | None:
        for request in _distinct(ask):
            if not self._fits_empty(ask, _EVERYTHING, (request,)):
                return shortages.larger_than_any_node(request, pool)
        if self._fits_empty(ask, _EVERYTHING, ask.requests):
            return None
        asked = [wording.amount(resource, ask.amounts[index]) for index, resource in enumerate(RESOURCES)]
        asked = [text for index, text in enumerate(asked) if ask.amounts[index]]
        count = len(ask.requests)
        return Reason(
            Code.LARGER_THAN_POOL,
            f"it starts {wording.plural(count, 'pod')} at once ({', '.join(asked)} in all); "
            f"pool {pool.name} cannot hold them even when empty",
            {"pods": count, **shortages.numbers("asked", ask.amounts)},
        )

    def _over_terms(self, ask: Ask) -> Reason | None:
        accounts = self.cycle.world.accounts_of(ask.pool, ask.workload.queue)
        over = quota.over_limit(accounts, ask.amounts, counting="now")
        if over is not None:
            return shortages.over(Code.QUEUE_LIMIT, over, "limit", "")
        over = quota.over_quota(accounts, self.cycle.placer.fixed_of(ask, ask.amounts), counting="now")
        if over is None:
            return None
        return shortages.over(Code.NON_PREEMPTIBLE_OVER_QUOTA, over, "quota", " in work that may not be preempted")

    def _unavailable(self, ask: Ask, pool: Pool) -> Reason | None:
        if self._fits_empty(ask, (), ask.requests):
            return None
        alone = [(request,) for request in _distinct(ask) if not self._fits_empty(ask, (), (request,))]
        requests = alone[0] if alone else ask.requests
        if self._fits_surely(ask, ("device-in-use",), requests):
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
        if not self._fits_surely(ask, _EVERYTHING, requests):
            return None
        away = [f"node {node.node.id} is {shortages.state(node)}" for node in pool.nodes if not node.is_usable]
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
        if "allocate" not in self.cycle.policy.actions:
            return Reason(Code.BEHIND, "this cycle starts nothing: its policy leaves that out", {"promises": 0})
        if not self.cycle.promises and ask.id not in self.cycle.revoked:
            return None
        return None if self.cycle.placer.place(ask, "held") is None else self._promised_away(ask)

    def _would_fit_without_promises(self, ask: Ask) -> bool:
        key = _terms(ask)
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
        holders = [kept.ask.workload for _, kept in sorted(self.cycle.promises.items()) if kept.ask.pool == ask.pool]
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
        ending = sorted({one.workload.id: one.workload for one in [*world.releasing(), *self.cycle.lost]}.items())
        return Reason(
            Code.WAITING_FOR_RELEASE,
            f"it waits until {wording.names([one.name for _, one in ending])} has ended",
            {"workloads": len(ending)},
            tuple(Blocker(id, f"{one.name} is ending") for id, one in ending[:_MOST_BLOCKERS]),
        )

    def _short(self, ask: Ask, pool: Pool) -> Reason:
        """Others hold what it needs."""
        if ask.shape not in self._shortages:
            self._shortages[ask.shape] = shortages.shortage(self.cycle.placer, ask, pool)
        reason = self._shortages[ask.shape]
        index = _SHORT_OF.get(reason.code, 0)
        held = self._held_of(pool, index)
        foreign = self._foreign_of(pool) if index == 0 else ()
        over = self._over_share(ask, pool, index)
        if over is None and self._would_fit_without_promises(ask):
            return self._promised_away(ask)
        code, message, numbers = reason.code, reason.message, dict(reason.numbers)
        if over is None and ask.id in self.cycle.protected:
            code = Code.PROTECTED_MIN_RUNTIME
            message = f"{message}; what it could evict has not run for its minimum run time yet"
        if over is not None:
            code, message = Code.OVER_FAIR_SHARE, f"{message}; {over.message}"
            numbers |= over.numbers
        return Reason(code, message, numbers | {"holders": held.count}, (*held.blockers, *foreign)[:_MOST_BLOCKERS])

    def _over_share(self, ask: Ask, pool: Pool, index: int) -> Reason | None:
        """Whether its queue would need more than its fair share to take from the others, who hold some."""
        accounts = self.cycle.world.accounts_of(pool.name, ask.workload.queue)
        others = [held for queue, held in self._held_of(pool, index).preemptible.items() if queue != ask.workload.queue]
        if not others or not ask.amounts[index]:
            return None
        for account in accounts:
            held, share = account.level[index], account.share[index]
            if held + ask.amounts[index] > share and any(account not in one for one in others):
                resource = RESOURCES[index]
                return Reason(
                    Code.OVER_FAIR_SHARE,
                    f"{account.queue.name} holds {wording.amount(resource, held)} and its fair share is "
                    f"{wording.amount(resource, share)}, so it takes from no other project",
                    {"resource": resource, "held": held, "fairShare": share, "asked": ask.amounts[index]},
                )
        return None

    def _held_of(self, pool: Pool, index: int) -> shortages.Held:
        """Who holds some of a resource in a pool."""
        if (pool.name, index) not in self._held:
            self._held[pool.name, index] = shortages.held(self.cycle, pool, index, most=_MOST_BLOCKERS)
        return self._held[pool.name, index]

    def _foreign_of(self, pool: Pool) -> tuple[Blocker, ...]:
        """The processes from outside on the devices of a pool."""
        if pool.name not in self._foreign:
            self._foreign[pool.name] = tuple(
                Blocker(None, f"process {use.pid} of {use.user} holds {use.mib} MiB of {room.device.id}")
                for node in pool.nodes
                for room in node.devices
                for use in room.device.foreign
            )
        return self._foreign[pool.name]

    def _fits_near(self, ask: Ask) -> bool:
        """Whether its gang, with what it has to be near, fits the pool with nothing in it. No only where that is
        proven."""
        placer = self._emptied(ask.pool, _EVERYTHING)
        free = {pod.id: replace(pod, node=None, request=shortages.alone(pod.request)) for pod in ask.workload.pods}
        workload = replace(ask.workload, pods=tuple(free.values()))
        pods, *others = (tuple(free[pod.id] for pod in choice) for choice in (ask.pods, *ask.alternatives))
        lone = placer.world.make_ask(workload, ask.pool, pods, is_core=True, alternatives=tuple(others))
        if placer.has_room(lone, "now"):
            return True
        return not all(bounds.is_too_far_apart(placer, lone, one, workload.root) for one in (pods, *others))

    def _fits_empty(self, ask: Ask, whole: tuple[str, ...], requests: tuple[PodRequest, ...]) -> bool:
        """Whether pods with these requests fit the pool with nothing in it."""
        key = (ask.pool, whole, requests)
        if key not in self._fits:
            counted = self._count_says(ask, requests)
            self._fits[key] = self._may_fit_empty(ask, whole, requests) if counted is None else counted
        return self._fits[key]

    def _may_fit_empty(self, ask: Ask, whole: tuple[str, ...], requests: tuple[PodRequest, ...]) -> bool:
        """No only where that is proven: several pods may fit in a way that placement does not find."""
        placer = self._emptied(ask.pool, whole)
        if shortages.fits_empty(placer, ask, requests):
            return True
        alone = [shortages.alone(request) for request in requests]
        return len(alone) > 1 and not bounds.is_too_much(placer, placer.world.pools[ask.pool], alone)

    def _fits_surely(self, ask: Ask, whole: tuple[str, ...], requests: tuple[PodRequest, ...]) -> bool:
        """Whether pods with these requests are seen to fit the pool with nothing in it."""
        key = ("surely", ask.pool, whole, requests)
        if key not in self._fits:
            self._fits[key] = shortages.fits_empty(self._emptied(ask.pool, whole), ask, requests)
        return self._fits[key]

    def _count_says(self, ask: Ask, requests: tuple[PodRequest, ...]) -> bool | None:
        """The quick answer: how many equal pods fit the nodes as they are, were they empty. A no holds only where all
        nodes and devices take pods."""
        world = self.cycle.world
        kinds = {world.kind_of(request) for request in requests}
        if len(kinds) > 1 or any(request.is_social or request.labels for request in requests[:1]):
            return None
        pool = world.pools[ask.pool]
        is_enough = int(self.cycle.placer.scores.empty_counts(pool, kinds.pop()).sum()) >= len(requests)
        return True if is_enough else False if self._is_sound(pool) else None

    def _is_sound(self, pool: Pool) -> bool:
        """Whether all nodes and devices of a pool take pods, and offer all they have."""
        if pool.name not in self._sound:
            self._sound[pool.name] = all(
                node.is_usable and all(room.is_usable and not room.device.foreign for room in node.devices)
                for node in pool.nodes
            )
        return self._sound[pool.name]

    def _emptied(self, pool: str, whole: tuple[str, ...]) -> Placer:
        if (pool, whole) not in self._empty:
            emptied = house.emptied(self.cycle.world.snapshot, pool=pool, whole=whole)
            roomy = replace(emptied, queues=())  # Terms do not matter here, and to divide them takes long.
            self._empty[pool, whole] = Placer(World(roomy, more_pools=(pool,)), self.cycle.policy)
        return self._empty[pool, whole]


def _terms(ask: Ask) -> tuple[object, ...]:
    """Whoever has the same waits for the same room on the same terms."""
    workload = ask.workload
    grows = ask.id if workload.is_semi_preemptible and not ask.is_core else ""
    return (workload.queue, workload.is_preemptible, ask.is_core, ask.shape, ask.amounts, grows)


def _distinct(ask: Ask) -> list[PodRequest]:
    """The different requests of its pods."""
    return sorted(set(ask.requests), key=repr)
