"""How far the engine is from the best that brute force finds on small clusters: gangs placed, and victims chosen.

    python -m tests.laws.optimum [--worlds 2000] [--seed 0]

In each world one workload waits alone. A gang is placed by trying all places; victims are found by trying all legal
sets in the order in which the rules compare them. Nothing of the engine is used but its plan.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import combinations, product

from aliquot.core.model import RESOURCES, ActionName, Pod, PodState, Policy, Queue, ResourceName, Snapshot, Workload
from tests.laws import amounts, gangs, sameness, worlds
from tests.laws.case import Case
from tests.laws.gangs import TooHard
from tests.laws.room import Hold, Room
from tests.laws.worlds import World

FEATURES = frozenset(
    {"gangs", "elastic", "unlike-pods", "portions", "memory-shares", "several-devices", "cpu", "scarce", "models"}
    | {"labels", "near", "selectors", "choosy", "profiles", "mig-mode", "taints", "gang-trees", "resources"}
    | {"named-resources", "compute-apart"}
)
"""What makes placement hard."""
VICTIM_FEATURES = frozenset(
    {"gangs", "elastic", "portions", "several-devices", "cpu", "scarce", "models", "priorities", "departments"}
    | {"weights", "saved", "cpu-terms", "unlike-pods", "queue-priorities", "unlimited", "non-preemptible"}
)
MOST_UNITS = 9
"""Pods that may be victims, of which all sets are tried."""


@dataclass
class Distance:
    """How often the engine did as well as can be, and how much worse at most."""

    compared: int = 0
    equal: int = 0
    most_extra: int = 0
    too_hard: int = 0
    missed: int = 0
    """It found nothing though there was something."""
    worst: tuple[int, ...] = ()
    """Seeds in which it was not equal."""

    @property
    def share(self) -> Fraction:
        """The part in which it was equal."""
        return Fraction(self.equal, self.compared) if self.compared else Fraction(1)

    def add(self, seed: int, *, is_equal: bool, extra: int = 0) -> None:
        """Count one comparison."""
        self.compared += 1
        self.equal += is_equal
        self.most_extra = max(self.most_extra, extra)
        if not is_equal:
            self.worst = (*self.worst, seed)

    def __str__(self) -> str:
        seeds = ", ".join(map(str, self.worst[:8]))
        return (
            f"{self.equal} of {self.compared} equal ({float(100 * self.share):.1f} %), at most {self.most_extra} pods "
            f"more, {self.missed} missed, {self.too_hard} too hard to say; not equal: {seeds or 'none'}"
        )


def lone(world: World, *, actions: tuple[ActionName, ...]) -> Iterator[World]:
    """The world with one of its waiting workloads at a time, and no promises."""
    waiting = [one for one in world.snapshot.workloads if all(pod.state is PodState.PENDING for pod in one.pods)]
    others = tuple(_running(one) for one in world.snapshot.workloads if one not in waiting)
    for one in waiting:
        snapshot = replace(world.snapshot, workloads=(*others, one), promises=())
        yield replace(world, snapshot=snapshot, policy=Policy(actions=actions, gpu_placement="pack"))


def _running(workload: Workload) -> Workload:
    """The workload without the pods that wait."""
    return replace(workload, pods=tuple(pod for pod in workload.pods if pod.state is not PodState.PENDING))


# Gangs.


def compare_gangs(numbers: Sequence[int], *, least_pods: int = 2) -> Distance:
    """Whether gangs start just where there is a way to start them."""
    distance = Distance()
    for number in numbers:
        for world in lone(worlds.make(number, FEATURES), actions=("allocate",)):
            _compare_gang(world, distance, least_pods)
    return distance


def _compare_gang(world: World, distance: Distance, least_pods: int) -> None:
    workload = world.snapshot.workloads[-1]
    options = gangs.chunks(workload)
    if not options or len(options[0]) < least_pods or not amounts.is_project(world.snapshot, workload.queue):
        return
    case = Case(world, sameness.plan_of(world))
    held = [*case.running, *case.releasing]
    try:
        is_possible = any(_place_within_limits(world, held, workload, pods) for pods in options)
    except TooHard:
        distance.too_hard += 1
        return
    is_started = bool(case.plan.binds)
    if is_possible or is_started:
        distance.missed += is_possible and not is_started
        distance.add(world.seed, is_equal=is_possible == is_started)


def _place_within_limits(world: World, held: list[Hold], workload: Workload, pods: list[Pod]) -> bool:
    staying = [hold for hold in held if hold.pod.state is PodState.RUNNING]
    found = gangs.place(Room(world.snapshot, held), workload, pods, also=Room(world.snapshot, staying))
    return found is not None and _is_within_terms(world.snapshot, held, found)


def _is_within_terms(snapshot: Snapshot, held: list[Hold], found: list[Hold]) -> bool:
    pools = {node.id: node.pool for node in snapshot.nodes}
    pool, workload = pools[found[0].node], found[0].workload
    levels = amounts.levels(snapshot, [*held, *found], pool)
    fixed = amounts.levels(snapshot, [hold for hold in (*held, *found) if not hold.workload.is_preemptible], pool)
    for queue in amounts.chain(snapshot, workload.queue):
        for name in RESOURCES:
            claim = amounts.claim(queue, pool, name)
            if not any(amounts.charge(hold)[name] for hold in found):
                continue
            if claim.limit is not None and levels[queue.id][name] > claim.limit:
                return False
            if not workload.is_preemptible and claim.quota is not None and fixed[queue.id][name] > claim.quota:
                return False
    return True


# Victims.

Key = tuple[object, ...]


def compare_victims(numbers: Sequence[int], action: ActionName) -> Distance:
    """Whether those are evicted who are the least loss."""
    distance = Distance()
    for number in numbers:
        for world in lone(worlds.make(number, VICTIM_FEATURES), actions=("allocate", action)):
            _compare_victims(world, distance, action)
    return distance


def _compare_victims(world: World, distance: Distance, action: ActionName) -> None:
    plan = sameness.plan_of(world)
    if plan.binds:
        return
    case = Case(world, plan)
    try:
        best = best_victims(case, world.snapshot.workloads[-1], action)
    except TooHard:
        distance.too_hard += 1
        return
    chosen = {one.pod for one in plan.evicts}
    if best is None:
        return  # Nothing is legal without leaving a queue below what it is due: nothing to compare with.
    distance.missed += not chosen
    same = _key(case, [hold for hold in case.running if hold.pod.id in chosen]) if chosen else None
    is_equal = chosen == {hold.pod.id for hold in best} or (same is not None and same[:4] == _key(case, best)[:4])
    distance.add(world.seed, is_equal=is_equal, extra=len(chosen) - len(best))


def best_victims(case: Case, taker: Workload, action: ActionName) -> list[Hold] | None:
    """The least of all legal sets that make room; None if there is none."""
    open_to = [hold for hold in case.running if _may_be_victim(case, taker, hold, action)]
    if len(open_to) > MOST_UNITS:
        raise TooHard
    sets = [list(one) for size in range(1, len(open_to) + 1) for one in combinations(open_to, size)]
    sets = [one for one in sets if _leaves_gangs_whole(one)]
    for victims in sorted(sets, key=lambda one: _key(case, one)):
        if _is_legal(case, taker, victims, action) and _makes_room(case, taker, victims):
            return victims
    return None


def _may_be_victim(case: Case, taker: Workload, hold: Hold, action: ActionName) -> bool:
    if not hold.workload.is_preemptible:
        return False
    if action == "preempt":
        return hold.workload.queue == taker.queue and hold.workload.priority < taker.priority
    return hold.workload.queue != taker.queue


def _leaves_gangs_whole(victims: list[Hold]) -> bool:
    """The core of a gang, its first pods up to the minimum, goes whole and last."""
    gone = {hold.pod.id for hold in victims}
    for workload in {hold.workload.id: hold.workload for hold in victims}.values():
        running = [pod for pod in gangs.pods_in(workload, workload.root) if pod.state is PodState.RUNNING]
        core = {pod.id for pod in running[: workload.min_pods]}
        if core & gone and not {pod.id for pod in running} <= gone:
            return False
    return True


def _is_legal(case: Case, taker: Workload, victims: list[Hold], action: ActionName) -> bool:
    """By quota or by fair share, for all of them together: levels only fall, so each step is legal if the last is."""
    if action == "preempt":
        return True
    gone = {hold.pod.id for hold in victims}
    left = [hold for hold in (*case.running,) if hold.pod.id not in gone]
    return any(
        all(_has_ground(case, taker, hold, left, basis, ground) for hold, ground in zip(victims, grounds, strict=True))
        for basis in ("quota", "share")
        for grounds in product(RESOURCES, repeat=min(1, len(victims)))
        for grounds in [grounds * len(victims)]
    )


def _has_ground(case: Case, taker: Workload, victim: Hold, left: list[Hold], basis: str, ground: ResourceName) -> bool:
    pool = case.pool_of[victim.node]
    due = case.dues[pool].quota if basis == "quota" else case.dues[pool].share
    asked = amounts.asked(case.before, taker, pool, gangs.chunks(taker)[0])
    charge = amounts.charge(victim)
    if not asked[ground] or not charge[ground]:
        return False
    levels = amounts.levels(case.before, left, pool)
    own, theirs = amounts.chain(case.before, taker.queue), amounts.chain(case.before, victim.workload.queue)
    common = {queue.id for queue in own} & {queue.id for queue in theirs}

    def counts(queue: Queue, name: ResourceName) -> bool:
        return basis == "share" or amounts.claim(queue, pool, name).quota is not None

    stays = all(
        levels[queue.id][name] + asked[name] <= due[queue.id][name]
        for queue in own
        if queue.id not in common
        for name in RESOURCES
        if asked[name] and (name == ground or counts(queue, name))
    )
    return stays and all(
        levels[queue.id][name] >= due[queue.id][name]
        for queue in theirs
        if queue.id not in common
        for name in RESOURCES
        if charge[name] and (name == ground or counts(queue, name))
    )


def _makes_room(case: Case, taker: Workload, victims: list[Hold]) -> bool:
    gone = {hold.pod.id for hold in victims}
    left = [hold for hold in (*case.running, *case.stuck) if hold.pod.id not in gone]
    for pods in gangs.chunks(taker):
        found = gangs.place(Room(case.before, left), taker, pods)
        if found is not None and _is_within_terms(case.before, left, found):
            return True
    return False


def _key(case: Case, victims: list[Hold]) -> Key:
    """How sets of victims are compared: the queue served last, lowest priority, least work lost, fewest pods, youngest,
    last pod."""
    lost = sum((_work_lost(case.now, hold) for hold in victims), timedelta())
    return (
        _Reversed(min(_served(case, hold) for hold in victims)),
        max(hold.workload.priority for hold in victims),
        lost,
        len(victims),
        _Reversed(min(hold.workload.created for hold in victims)),
        _Reversed(sorted(hold.pod.id for hold in victims)),
    )


def _work_lost(now: datetime, hold: Hold) -> timedelta:
    since = hold.workload.saved or hold.workload.started or now
    return max(timedelta(), now - since) * sum(share.milli for share in hold.shares)


def _served(case: Case, hold: Hold) -> tuple[tuple[object, ...], ...]:
    """Where a queue, and those above it, stand in the order in which queues are served: the largest is served last."""
    pool = case.pool_of[hold.node]
    levels = amounts.levels(case.before, case.running, pool)
    return tuple(
        _queue_key(case, queue, pool, levels[queue.id])
        for queue in reversed(amounts.chain(case.before, hold.workload.queue))
    )


def _queue_key(case: Case, queue: Queue, pool: str, level: amounts.Vector) -> tuple[object, ...]:
    due = case.dues[pool]
    parts = [
        (level[name] / due.share[queue.id][name]) if due.share[queue.id][name] else Fraction(10**9 + level[name])
        for name in RESOURCES
        if level[name]
    ]
    dominant = max(parts, default=Fraction(0))
    is_starved = all(level[name] <= due.quota[queue.id][name] for name in RESOURCES)
    priority = queue.terms_in(pool).priority
    return (dominant > 1, not is_starved, -priority, dominant, queue.created, queue.name)


class _Reversed:
    """Sorts the other way round."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __lt__(self, other: "_Reversed") -> bool:
        return bool(other.value < self.value)  # type: ignore[operator]  # both are of one kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]  # only compared


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and say how far it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    numbers = range(chosen.seed, chosen.seed + chosen.worlds)
    found = {
        "gangs placed": compare_gangs(numbers),
        "victims of reclaim": compare_victims(numbers, "reclaim"),
        "victims of preemption": compare_victims(numbers, "preempt"),
    }
    for what, distance in found.items():
        print(f"{what}: {distance}", flush=True)
    return 0 if all(one.share >= Fraction(95, 100) and one.most_extra <= 1 for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
