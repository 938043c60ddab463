"""Laws of sameness: what must not change a plan, and that a plan leaves nothing undone that it could do.

These plan the same world again in other ways: in another order, built afresh, from a world that was kept, with fewer
steps, and once more after the plan was carried out.
"""

import functools
import random
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from aliquot.core import change, schedule, snapshot
from aliquot.core.model import PodState, Policy, PoolTerms, Snapshot
from aliquot.core.plan import Code, Plan
from tests.laws.case import Case
from tests.laws.worlds import World

T = TypeVar("T")
KEPT = 0.7
"""In how many worlds a change is entered into a world that is kept."""
Planner = Callable[[Snapshot, Policy, datetime], Plan]


def plan_of(world: World) -> Plan:
    """What the engine plans."""
    return schedule.schedule(world.snapshot, world.policy, world.now)


@functools.lru_cache(maxsize=1)
def cut_off(case: Case) -> Case | None:
    """The same world with fewer steps than its plan took, as many as its seed says; None if that cannot be."""
    if not case.plan.steps or case.plan.is_cut_off:
        return None
    budget = random.Random(case.world.seed).randint(0, case.plan.steps)
    world = replace(case.world, policy=replace(case.policy, step_budget=budget))
    return Case(world, plan_of(world))


def _plan(case: Case, taken: Snapshot, policy: Policy | None = None) -> Plan:
    return schedule.schedule(taken, policy or case.policy, case.now)


def difference(one: Plan, other: Plan) -> str:
    """The first part in which two plans differ."""
    for part in fields(Plan):
        first, second = getattr(one, part.name), getattr(other, part.name)
        if first != second and isinstance(first, tuple):
            return f"{part.name}: {sorted(set(map(str, first)) ^ set(map(str, second)))[:4] or 'another order'}"
        if first != second:
            return f"{part.name}: {first} and {second}"
    return ""


def order_does_not_matter(case: Case) -> int:
    """The same plan for every permutation of the snapshot."""
    rng = random.Random(case.world.seed)
    other = shuffled(case.before, rng)
    found = difference(case.plan, _plan(case, other))
    if found:
        raise case.broken("order-does-not-matter", found)
    return 1


def shuffled(value: T, rng: random.Random) -> T:
    """The same snapshot with every tuple of parts and every mapping in another order. What has an order of its own (the
    list of pools, levels of a topology, starts of a profile, sets of keys in a request) keeps it."""
    if not isinstance(value, Snapshot):
        return value
    nodes = [
        replace(
            node,
            devices=tuple(rng.sample(node.devices, len(node.devices))),
            labels=_mixed(node.labels, rng),
            resources=_mixed(node.resources, rng),
            taints=tuple(rng.sample(node.taints, len(node.taints))),
        )
        for node in value.nodes
    ]
    queues = [replace(one, terms=_mixed(one.terms, rng), usage=_mixed(one.usage, rng)) for one in value.queues]
    workloads = [replace(one, pods=tuple(rng.sample(one.pods, len(one.pods)))) for one in value.workloads]
    promises = [replace(one, places=tuple(rng.sample(one.places, len(one.places)))) for one in value.promises]
    return replace(
        value,
        nodes=tuple(rng.sample(nodes, len(nodes))),
        queues=tuple(rng.sample(queues, len(queues))),
        workloads=tuple(rng.sample(workloads, len(workloads))),
        promises=tuple(rng.sample(promises, len(promises))),
        topologies=tuple(rng.sample(value.topologies, len(value.topologies))),
        budgets=tuple(rng.sample(value.budgets, len(value.budgets))),
        recent=tuple(rng.sample(value.recent, len(value.recent))),
    )


def _mixed(values: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:  # Any: whatever a mapping holds
    return dict(rng.sample(sorted(values.items(), key=lambda one: one[0]), len(values)))


def copied(value: Any) -> Any:  # Any: any part of a snapshot
    """The same again, sharing nothing that could be told apart by identity."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: copied(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, tuple):
        return tuple(copied(one) for one in value)
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    return value


def an_overlay_is_like_the_world_built_afresh(case: Case) -> int:
    """What-if: the plan of changed parts laid over a snapshot, in a new world or a kept one, is that of the same
    snapshot made anew. One of the two in each world, as each is a plan more."""
    rng = random.Random(case.world.seed)
    changes = _changes(case, rng)
    laid_over = change.overlay(case.before, changes)
    afresh = _plan(case, copied(laid_over))
    taken: Snapshot | snapshot.World = laid_over
    if rng.random() < KEPT:
        taken = snapshot.World(case.before)
        taken.sync(laid_over)
    found = difference(afresh, schedule.schedule(taken, case.policy, case.now))
    if found:
        name = "laid over" if taken is laid_over else "kept world"
        raise case.broken("an-overlay-is-like-afresh", f"{name}, {changes}: {found}")
    return 1


def _changes(case: Case, rng: random.Random) -> list[change.Change]:
    changes: list[change.Change] = []
    if case.before.workloads:
        one = rng.choice(case.before.workloads)
        pods = tuple(
            replace(pod, id=f"x-{pod.index}", state=PodState.PENDING, node=None, shares=()) for pod in one.pods
        )
        changes.append(change.AddWorkload(replace(one, id="x", name="x", pods=pods, started=None)))
        gone = rng.choice(case.before.workloads)
        changes.append(change.RemoveWorkload(gone.id))
    if case.before.queues:
        queue = rng.choice(case.before.queues)
        pool = rng.choice(("default", "other"))
        terms = queue.terms_in(pool)
        raised: PoolTerms = replace(terms, gpu=replace(terms.gpu, quota=2500, weight=2))
        changes.append(change.SetTerms(queue.id, pool, raised))
        changes.append(change.ReleaseQueue(rng.choice(case.before.queues).id))
    if case.before.nodes:
        changes.append(change.UncordonNode(rng.choice(case.before.nodes).id))
        changes += [change.OfferDevice(one.id) for one in rng.choice(case.before.nodes).devices]
    return [one for one in changes if rng.random() < 0.7]


def a_kept_world_is_like_a_fresh_one(case: Case) -> int:
    """Snapshots entered one after the other into a world that is kept: the plan of the last is that of a new world."""
    kept = snapshot.World(case.before)
    found = difference(case.plan, schedule.schedule(kept, case.policy, case.now))
    if found:
        raise case.broken("a-kept-world-is-like-a-fresh-one", f"a world built before: {found}")
    kept.sync(case.after)
    found = difference(_plan(case, case.after), schedule.schedule(kept, case.policy, case.now))
    if found:
        raise case.broken("a-kept-world-is-like-a-fresh-one", f"after the next snapshot: {found}")
    kept.sync(case.before)
    found = difference(case.plan, schedule.schedule(kept, case.policy, case.now))
    if found:
        raise case.broken("a-kept-world-is-like-a-fresh-one", f"back at the snapshot before: {found}")
    return 1


def nothing_that_fits_waits(case: Case) -> int:
    """After a cycle that ended within its budget no waiting unit fits: once more, with no evictions, starts nothing."""
    if case.plan.is_cut_off or "allocate" not in case.policy.actions:
        return 0
    again = _plan(case, case.after, replace(case.policy, actions=("allocate",)))
    if again.binds:
        places = [(one.place.pod, one.place.node) for one in again.binds]
        raise case.broken("nothing-that-fits-waits", f"at once after the plan fit {places}")
    return len(case.plan.waits)


def a_cut_off_cycle_says_so(case: Case) -> int:
    """With fewer steps: what was left undone is said, and only then."""
    waits = [one.workload for one in case.plan.waits if one.reason.code is Code.BUDGET]
    if waits and not case.plan.is_cut_off:
        raise case.broken("a-cut-off-cycle-says-so", f"{waits} wait for a budget that did not end")
    if case.plan.is_cut_off and case.plan.steps < case.policy.step_budget:
        raise case.broken("a-cut-off-cycle-says-so", f"cut off after {case.plan.steps} of {case.policy.step_budget}")
    less = cut_off(case)
    if less is None:
        return 0
    cut, budget = less.plan, less.policy.step_budget
    same = (cut.binds, cut.evicts, cut.nominates) == (case.plan.binds, case.plan.evicts, case.plan.nominates)
    if same:
        return 1  # It ended in time, or what was left to do did nothing.
    found = difference(replace(cut, step_budget=case.plan.step_budget), case.plan)
    if not cut.is_cut_off:
        raise case.broken("a-cut-off-cycle-says-so", f"{budget} steps did less and say nothing: {found}")
    if not any(one.reason.code is Code.BUDGET for one in cut.waits):
        raise case.broken(
            "a-cut-off-cycle-says-so", f"cut off after {budget} steps, and nobody waits for that: {found}"
        )
    return 1


LAWS = (
    order_does_not_matter,
    an_overlay_is_like_the_world_built_afresh,
    a_kept_world_is_like_a_fresh_one,
    nothing_that_fits_waits,
    a_cut_off_cycle_says_so,
)
