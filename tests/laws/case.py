"""One cycle with all that the laws need: the world, the plan, who holds what before and after, and how to say what is
wrong."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations, product

from aliquot.core.model import PodState, Workload
from aliquot.core.plan import Evict, Plan
from tests.laws import amounts, room, state
from tests.laws.room import Hold
from tests.laws.worlds import World


class LawBroken(AssertionError):
    """A cycle did what the rules forbid. `law` names which."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law


Stage = tuple[Workload, list[Evict], list[Hold]]
"""Who had pods evicted for it, these, and what counted as held just before."""

MOST_ORDERED = 3
"""Of so many workloads that were promised room, every order is thought of."""


class Case:
    """One cycle."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world = world
        self.before, self.policy, self.now, self.plan = world.snapshot, world.policy, world.now, plan
        self.workloads = {one.id: one for one in self.before.workloads}
        self.queues = {one.id: one for one in self.before.queues}
        self.pool_of = {node.id: node.pool for node in self.before.nodes}
        self.running = room.held(self.before, PodState.RUNNING)
        self.releasing = room.held(self.before, PodState.RELEASING)
        self.stuck = [hold for hold in self.releasing if hold.pod.is_stuck]
        self.evicted = {one.pod for one in plan.evicts}
        self.bound = [hold for one in plan.binds for hold in room.at_places(self.workloads[one.workload], [one.place])]
        self.promised = [
            hold for one in plan.nominates for hold in room.at_places(self.workloads[one.workload], one.places)
        ]
        self.after = state.carry_out(self.before, plan, self.now)

    @property
    def now_held(self) -> list[Hold]:
        """What holds places once the plan is begun."""
        return [*self.running, *self.releasing, *self.bound]

    @property
    def later_held(self) -> list[Hold]:
        """What will hold places when all that was told to end has ended."""
        staying = [hold for hold in self.running if hold.pod.id not in self.evicted]
        return [*staying, *self.stuck, *self.bound, *self.promised]

    @cached_property
    def dues(self) -> dict[str, amounts.Due]:
        """By pool, what each queue is due."""
        pools = {pool for one in self.before.workloads for pool in (one.pool, *one.fallback_pools)}
        pools |= set(self.pool_of.values())
        return {pool: self._due(pool) for pool in sorted(pools)}

    def _due(self, pool: str) -> amounts.Due:
        requests: dict[str, amounts.Vector] = {}
        for workload in self.before.workloads:
            holds = [hold for hold in (*self.running, *self.releasing) if hold.workload.id == workload.id]
            at = self.pool_of.get(holds[0].node, workload.pool) if holds else workload.pool
            if at == pool and workload.queue in self.queues:
                own = amounts.add(amounts.zero(), *(amounts.charge(hold) for hold in holds))
                asked = amounts.asked(self.before, workload, pool)
                requests[workload.queue] = amounts.add(requests.get(workload.queue, amounts.zero()), own, asked)
        return amounts.due(self.before, pool, requests=requests, usage_weight=self.policy.usage_weight)

    def broken(self, law: str, what: str) -> LawBroken:
        """The error to raise."""
        return LawBroken(law, what)

    def of(self, workload: str) -> list[Hold]:
        """Where a workload is bound or promised in this plan."""
        return [hold for hold in (*self.bound, *self.promised) if hold.workload.id == workload]

    def room_for(self, workload: str) -> list[Hold]:
        """The places for which others were evicted: what is promised to it, else where it is bound."""
        promised = [hold for hold in self.promised if hold.workload.id == workload]
        return promised or [hold for hold in self.bound if hold.workload.id == workload]

    def parts_for(self, workload: str) -> list[list[Hold]]:
        """A workload that grows may have been promised its places one after the other, not all by these evictions: the
        parts that may have been, the largest first."""
        places = self.room_for(workload)
        has_promise = any(hold.workload.id == workload for hold in self.promised)
        if len(places) > 4 or not has_promise:
            return [places]
        return [list(one) for size in range(len(places), 0, -1) for one in combinations(places, size)]

    def takers(self) -> list[tuple[Workload, list[Evict]]]:
        """Who had pods evicted for it, in the order of the plan, with these pods."""
        evicts = [one for one in self.plan.evicts if one.rule not in state.FOR_NO_ONE]
        order = list(dict.fromkeys(one.beneficiary for one in evicts))
        return [(self.workloads[id], [one for one in evicts if one.beneficiary == id]) for id in order]

    def stages(self) -> Iterator[list[Stage]]:
        """For each taker what counted as held just before it. A plan does not say the whole order of a cycle, so there
        are several readings, and a law is kept if one of them keeps it."""
        takers = {workload.id for workload, _ in self.takers()}
        old = {one.workload: one.places for one in self.before.promises}
        kept = {one.workload for one in self.plan.nominates if old.get(one.workload) == one.places} - takers
        fresh = {one.workload for one in self.plan.nominates} - kept - takers
        dropped = {id for id in old if id in self.workloads} - {one.workload for one in self.plan.nominates} - takers
        lost = [
            hold
            for one in self.before.promises
            if one.workload in dropped
            for hold in room.at_places(self.workloads[one.workload], one.places)
            if hold.pod.state is PodState.PENDING and hold.pod.id not in {held.pod.id for held in self.bound}
        ]
        served = {hold.pod.id for id in takers for hold in self.room_for(id)}
        base = [*self.running, *self.stuck, *(hold for hold in self.bound if hold.pod.id not in served)]
        base += [hold for hold in self.promised if hold.workload.id in kept]
        new = [hold for hold in self.promised if hold.workload.id in fresh and hold.pod.id not in self.evicted]
        sets_of_new = _subsets(new)
        gone = [one.pod for one in self.plan.evicts if one.rule in state.FOR_NO_ONE]
        parts = max((len(self.parts_for(one.id)) for one, _ in self.takers()[:-1]), default=1)
        taken_at = range(len(takers) + 1) if lost else (0,)
        for taken, promised, is_gone, part in product(taken_at, sets_of_new, (True, False), range(parts)):
            if not is_gone and not gone:
                continue
            start = [hold for hold in base + promised if not is_gone or hold.pod.id not in gone]
            yield [
                (taker, evicts, holds + (lost if index < taken else []))
                for index, (taker, evicts, holds) in enumerate(self._walk(start, part))
            ]

    def _walk(self, start: list[Hold], part: int) -> list[Stage]:
        """Those who take get this part of their places by it, and the rest when all have taken."""
        stages: list[Stage] = []
        holds = list(start)
        moved = {hold.pod.id: hold for hold in self.promised if hold.pod.id in self.evicted}
        for taker, evicts in self.takers():
            stages.append((taker, evicts, holds))
            gone = {one.pod for one in evicts}
            parts = self.parts_for(taker.id)
            room_for = parts[min(part, len(parts) - 1)]
            holds = [hold for hold in holds if hold.pod.id not in gone] + room_for
            holds += [moved[one.pod] for one in evicts if one.pod in moved]
        return stages


def _subsets(holds: Sequence[Hold]) -> list[list[Hold]]:
    """What of these may have been promised by then: any workloads of a few, else none or all."""
    ids = sorted({hold.workload.id for hold in holds})
    if len(ids) > MOST_ORDERED:
        return [[], list(holds)]
    chosen = [set(some) for size in range(len(ids) + 1) for some in combinations(ids, size)]
    return [[hold for hold in holds if hold.workload.id in some] for some in chosen]
