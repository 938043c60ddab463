"""What-if for one workload that waits: whether it would be served in this very cycle after a change, and for whom not.

Promises: pure for who asks (the world is left as it was taken), and exact: a yes is the answer of a whole cycle of the
engine. Where few wait, a no is exact too. Where many wait a whole cycle for every change would take too long: there a
change is tried first on those alone who can matter (who is served, and some of each kind of those who come before), and
a no of that trial counts.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from aliquot.core import change, schedule
from aliquot.core.asks import Ask
from aliquot.core.change import Change
from aliquot.core.cycle import Cycle
from aliquot.core.model import Policy, QueueOrder, Snapshot, Workload
from aliquot.core.plan import Rule
from aliquot.core.rooms import Vector, View
from aliquot.core.snapshot import World

MOST_WHOLE = 150
"""Up to so many waiting workloads every trial is a whole cycle."""
_OF_EACH_KIND = 2
"""So many of equal workloads that come before it are looked at in a trial of few."""

Evicting = Literal["nobody", "others"]

Outcome = tuple[str, ...] | None
"""The workloads that are evicted for it; None if it goes on waiting."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a queue holds after the cycle, with and without what is ending."""

    now: Vector
    later: Vector


@dataclass(frozen=True, slots=True)
class Question:
    """A workload that waits, and how the cycle ended that left it waiting."""

    snapshot: Snapshot
    workload: Workload
    policy: Policy
    now: datetime
    world: World
    ask: Ask
    line: tuple[Ask, ...]
    """Who is served before it, in its pool."""
    served: frozenset[str]
    dues: tuple[datetime, ...]
    """When what is promised in its pool falls due."""
    held: dict[str, Held]
    """By queue, its own and those above it."""
    is_large: bool
    shares: dict[tuple[str, str], Vector] | None
    """By pool and queue the fair shares, if the cycle did nothing at all."""
    free: dict[str, set[int]]
    """Amounts at which something changes, where many wait: what is free of a device (milli, mib) or a node (cpu, and
    memory in MiB), or left of a limit."""


def question(cycle: Cycle, ask: Ask, line: Sequence[Ask], *, most_whole: int) -> Question:
    """What there is to know about a workload that waits after a cycle. `line`: who is served before it."""
    world = cycle.world
    is_large = len(world.waiting) > most_whole
    accounts = world.accounts_of(ask.pool, ask.workload.queue)
    stored = {one.workload for one in world.snapshot.promises}
    return Question(
        snapshot=world.snapshot,
        workload=ask.workload,
        policy=cycle.policy,
        now=cycle.now,
        world=world,
        ask=ask,
        line=tuple(line),
        served=frozenset({*cycle.bound, *cycle.promises, *cycle.revoked, *stored}),
        dues=tuple(sorted({one.due for one in cycle.promises.values() if one.ask.pool == ask.pool})),
        held={
            one.queue.id: Held(
                now=_sum(one.level, one.releasing),
                later=(one.level[0], one.level[1], one.level[2]),
            )
            for one in accounts
        },
        is_large=is_large,
        shares=_shares(world) if _did_nothing(cycle) else None,
        free=_free(world, ask) if is_large else {},
    )


def _did_nothing(cycle: Cycle) -> bool:
    is_as_before = all(cycle.standing.get(id) is kept for id, kept in cycle.promises.items())
    return not cycle.binds and not cycle.evicts and not cycle.revoked and not cycle.unsearched and is_as_before


def _shares(world: World) -> dict[tuple[str, str], Vector]:
    return {(pool.name, id): one.share for pool in world.pools.values() for id, one in pool.accounts.items()}


def _free(world: World, ask: Ask) -> dict[str, set[int]]:
    free: dict[str, set[int]] = {"milli": set(), "mib": set(), "cpu": set(), "memory": set()}
    views: tuple[View, ...] = ("now", "later")
    for node, view in itertools.product(world.pools[ask.pool].usable, views):
        free["cpu"].add(node.free(0, view))
        free["memory"].add(node.free(1, view) // 2**20)
        for room in (one for one in node.devices if one.future_mib > 0):
            free["milli"].add(room.part(view))
            free["mib"].add(room.free(view)[0])
    for account in world.accounts_of(ask.pool, ask.workload.queue):
        for index, bound in (*account.limits, *account.quotas):
            left = bound - account.level[index]
            for of in (("milli",), ("cpu",), ("memory",))[index]:
                free[of].add(left // 2**20 if index == 2 else left)
    return free


@dataclass(frozen=True, slots=True)
class _Found:
    """What came of a trial, and whether a whole cycle would say the same."""

    outcome: Outcome
    is_sure: bool


@dataclass(slots=True)
class Trials:
    """Tries changes in the engine, each once."""

    about: Question
    steps: int = 0
    """What all trials cost so far, as the engine counts it."""
    _whole: dict[tuple[Change, ...], _Found] = field(default_factory=dict)
    _few: dict[tuple[Change, ...], _Found] = field(default_factory=dict)

    def starts(self, *changes: Change, evicting: Evicting = "others") -> bool:
        """Whether these changes start it; `evicting` "nobody": without an eviction for it."""
        if not self.could_start(*changes, evicting=evicting):
            return False
        return _is_start(self._surely(changes), evicting)

    def could_start(self, *changes: Change, evicting: Evicting = "others") -> bool:
        """The quick answer: where many wait, a no is to be relied on as far as a trial of few is."""
        return not self.about.is_large or _is_start(self._first(changes).outcome, evicting)

    def evicted_by(self, *changes: Change) -> tuple[str, ...]:
        """The workloads that are evicted for it after these changes."""
        return self._surely(changes) or ()

    def _surely(self, changes: tuple[Change, ...]) -> Outcome:
        """What a whole cycle says."""
        if self.about.is_large and (found := self._first(changes)).is_sure:
            return found.outcome
        return self._all(changes).outcome

    def _first(self, changes: tuple[Change, ...]) -> _Found:
        if changes not in self._few:
            among = self._who_matters(changes)
            if among is None or 2 * len(among) > len(self.about.world.waiting):
                return self._all(changes)
            self._few[changes] = self._try(changes, among)
        return self._few[changes]

    def _all(self, changes: tuple[Change, ...]) -> _Found:
        if changes not in self._whole:
            self._whole[changes] = self._try(changes, None)
        return self._whole[changes]

    def _try(self, changes: Sequence[Change], among: set[str] | None) -> _Found:
        about, id = self.about, self.about.workload.id
        about.world.sync(change.overlay(about.snapshot, changes))
        cycle = schedule.decide(about.world, about.policy, about.now, among=among, until=id)
        self.steps += about.world.steps
        is_own = all(isinstance(one, change.OfWorkload) for one in changes)
        is_sure = among is None or (is_own and self._is_like_a_whole_one(cycle))
        about.world.rollback(0)
        if id not in cycle.bound and id not in cycle.promises:
            return _Found(None, is_sure)
        return _Found(tuple(sorted({one.workload for one in cycle.evicts if one.beneficiary == id})), is_sure)

    def _is_like_a_whole_one(self, cycle: Cycle) -> bool:
        """After a change of its own: whether all others find no more than they did in the cycle that did nothing: then
        whoever was left out changes nothing until this one is served. Not where it moves others, as who is like it may
        have been refused that, nor where it takes from other queues, as what waits there may forbid that."""
        about = self.about
        if about.shares is None or about.shares != _shares(cycle.world) or cycle.is_spent:
            return False
        is_plain = all(one.rule is Rule.PREEMPT for one in cycle.evicts)
        queue = cycle.world.queues.get(about.workload.queue)
        return is_plain and queue is not None and queue.order is not QueueOrder.LARGEST_FIRST

    def _who_matters(self, changes: Sequence[Change]) -> set[str] | None:
        """Those who wait and have to be looked at; None is all of them."""
        about = self.about
        among = {about.workload.id, *about.served}
        kinds: dict[tuple[object, ...], int] = {}
        for ask in about.line:
            workload = ask.workload
            kind = (workload.queue, workload.priority, workload.is_preemptible, ask.is_core, ask.shape)
            kinds[kind] = kinds.get(kind, 0) + 1
            if kinds[kind] <= _OF_EACH_KIND:
                among.add(ask.id)
        if any(isinstance(one, change.ReleaseQueue) for one in changes):
            return None
        raised = {one.queue for one in changes if isinstance(one, change.SetTerms)}
        if len(raised) == 1:
            among |= {ask.id for ask in ahead(about, raised.pop())}
        return among


def _is_start(outcome: Outcome, evicting: Evicting) -> bool:
    return outcome is not None and (evicting == "others" or not outcome)


def ahead(about: Question, queue: str) -> list[Ask]:
    """Who is served before it and counts for a queue too."""
    accounts_of = about.world.accounts_of
    leaves = {ask.workload.queue for ask in about.line}
    below = {leaf for leaf in leaves if any(one.queue.id == queue for one in accounts_of(about.ask.pool, leaf))}
    return [ask for ask in about.line if ask.workload.queue in below]


def _sum(one: Sequence[int], other: Sequence[int]) -> Vector:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])
