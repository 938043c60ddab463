"""Fair share, and what a project may use at all."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aliquot.core import eligibility, endings, fairshare, quota, rooms, snapshot
from aliquot.core.cycle import Cycle
from aliquot.core.fairshare import Claimant
from aliquot.core.model import Amounts, Node, PoolTerms, Queue
from aliquot.core.placement import Placer
from aliquot.core.rooms import Account, NodeRoom, Vector
from aliquot.core.snapshot import Pool
from tests.scenarios.rule import around, rule, without

Parts = tuple[int, int]
Divided = tuple[dict[str, Parts], dict[str, Parts]]
Divide = Callable[[Parts, Sequence[Claimant], Parts], Divided]


def _for_all_claimants(change: Callable[[Claimant], Claimant]) -> Callable[[Divide], Divide]:
    def wrap(known: Divide) -> Divide:
        return lambda total, claimants, weight: known(total, [change(one) for one in claimants], weight)

    return wrap


def _whatever_the_parent_gets(
    capacity: int, children: Mapping[str | None, Sequence[Queue]], claimants: Mapping[str, Claimant], weight: Parts
) -> dict[str, fairshare.Portion]:
    found: dict[str, fairshare.Portion] = {}
    for siblings in children.values():
        found |= fairshare.divide(capacity, [claimants[queue.id] for queue in siblings], usage_weight=weight)
    return found


def _what_is_there(pool: Pool) -> Amounts:
    return Amounts(1000 * sum(len(node.devices) for node in pool.nodes), 10**9, 10**15)


def _what_is_ready(pool: Pool) -> Amounts:
    return Amounts(1000 * sum(len(node.devices) for node in pool.usable), 10**9, 10**15)


def _same_in_all_pools(queue: Queue, pool: str) -> PoolTerms:
    return queue.terms[min(queue.terms)]


def _gpu_alone(known: Callable[..., fairshare.Shares]) -> Callable[..., fairshare.Shares]:
    def divide_tree(capacity: Amounts, queues: Sequence[Queue], **more: Any) -> fairshare.Shares:
        found = known(capacity, queues, **more)
        share = {id: Amounts(one.milli_gpus, 10**9, 10**15) for id, one in found.share.items()}
        return replace(found, share=share)

    return divide_tree


def _all_at_the_top(queues: Sequence[Queue]) -> dict[str | None, list[Queue]]:
    return {None: sorted(queues, key=lambda queue: queue.id)}


def _guaranteed(due: Callable[[Parts, Mapping[str, int]], Mapping[str, Parts]]) -> Callable[[Divide], Divide]:
    """Quotas that pass what there is are cut otherwise."""

    def wrap(known: Divide) -> Divide:
        def divide(total: Parts, claimants: Sequence[Claimant], weight: Parts) -> Divided:
            wanted = {one.id: one.wanted if one.quota is None else min(one.quota, one.wanted) for one in claimants}
            if sum(wanted.values()) * total[1] <= total[0]:
                return known(total, claimants, weight)
            found = dict(due(total, wanted))
            return found, found

        return divide

    return wrap


def _uncut(_: Parts, wanted: Mapping[str, int]) -> Mapping[str, Parts]:
    return {id: (amount, 1) for id, amount in wanted.items()}


def _in_equal_parts(total: Parts, wanted: Mapping[str, int]) -> Mapping[str, Parts]:
    return dict.fromkeys(wanted, (total[0], total[1] * len(wanted)))


def _one_class(claimants: Sequence[Claimant]) -> list[list[Claimant]]:
    return [list(claimants)] if claimants else []


def _poured_once(total: Parts, thirsty: Sequence[tuple[Claimant, int]]) -> dict[str, Parts]:
    weights = sum(one.weight for one, _ in thirsty)
    return {
        one.id: min((need, 1), (total[0] * one.weight, total[1] * weights), key=lambda parts: parts[0] / parts[1])
        for one, need in thirsty
    }


def _rounded_each_time(known: Divide) -> Divide:
    def divide(total: Parts, claimants: Sequence[Claimant], weight: Parts) -> Divided:
        sure, in_all = known((total[0] // total[1], 1), claimants, weight)
        return sure, in_all

    return divide


def _rounded_up(parts: Parts) -> int:
    return -(-parts[0] // parts[1])


def _plain_weights(thirsty: Sequence[Claimant], _: Parts) -> list[int]:
    return [one.weight for one in thirsty]


def _by_use(factor: Callable[[int], int]) -> Callable[[Sequence[Claimant], Parts], list[int]]:
    def weights_by_usage(thirsty: Sequence[Claimant], usage_weight: Parts) -> list[int]:
        above, below = usage_weight
        weights, usages = sum(one.weight for one in thirsty), sum(one.usage for one in thirsty)
        if not usages:
            return [one.weight for one in thirsty]
        return [factor((below + above) * one.weight * usages - above * one.usage * weights) for one in thirsty]

    return weights_by_usage


def _more_to_who_used_more(thirsty: Sequence[Claimant], usage_weight: Parts) -> list[int]:
    above, below = usage_weight
    weights, usages = sum(one.weight for one in thirsty), sum(one.usage for one in thirsty)
    if not usages:
        return [one.weight for one in thirsty]
    return [max(0, (below - above) * one.weight * usages + above * one.usage * weights) for one in thirsty]


def _parts_of_the_first_round(
    left: Parts, thirsty: Sequence[tuple[Claimant, int]], usage_weight: Parts
) -> dict[str, Parts]:
    weights = fairshare._weights_by_usage([one for one, _ in thirsty], usage_weight)
    scale = math.gcd(*weights)
    fixed = [
        (replace(one, weight=max(1, weight // scale)), need)
        for (one, need), weight in zip(thirsty, weights, strict=True)
    ]
    return fairshare._pour_by_weight(left, fixed)


Over = Callable[..., quota.Excess | None]


def _of_the_leaf(known: Over) -> Over:
    def over(accounts: Sequence[Account], amounts: Vector, *, counting: str) -> quota.Excess | None:
        return known(accounts[:1], amounts, counting=counting)

    return over


def _as_cut(accounts: Sequence[Account], amounts: Vector, *, counting: str) -> quota.Excess | None:
    for one in accounts:
        for index, asked in enumerate(amounts):
            if asked and one.fixed[index] + asked > one.guaranteed[index]:
                return quota.Excess(one, "gpu", one.fixed[index], asked, one.guaranteed[index])
    return None


def _never_over(accounts: Sequence[Account], amounts: Vector, *, counting: str) -> None:
    return None


def _nobody_ends(cycle: Cycle, pool: str) -> None:
    return None


def _open(known: Callable[..., NodeRoom], **changes: Any) -> Callable[..., NodeRoom]:
    def node_room(node: Node, *, row: int, touched: list[int]) -> NodeRoom:
        return known(replace(node, **changes), row=row, touched=touched)

    return node_room


FAIR_SHARE = (
    rule(
        "Divided is what the nodes of a pool offer that take new work, and on the others what still runs there.",
        "what-is-ready-is-divided what-runs-there-still-counts",
        without(snapshot, "_capacity", _what_is_there),
        without(snapshot, "_capacity", _what_is_ready),
    ),
    rule(
        "Every queue (a department, or a project in it) has a quota, a weight, a limit and a priority, for each node "
        "pool.",
        "terms-by-pool",
        without(Queue, "terms_in", _same_in_all_pools),
    ),
    rule(
        "For GPU, CPU and memory by themselves, from the top of the tree down:",
        "cpu-by-itself from-the-top",
        around(fairshare, "divide_tree", _gpu_alone),
        without(fairshare, "children_of", _all_at_the_top),
    ),
    rule(
        "Everyone gets the quota, as far as it is asked for and the limit allows.",
        "quotas-first quota-not-asked-for quota-over-the-limit",
        around(fairshare, "_divide", _for_all_claimants(lambda one: replace(one, quota=0))),
        without(Claimant, "wanted", property(lambda one: max(one.request, one.quota or 0))),
        without(Claimant, "wanted", property(lambda one: one.request)),
    ),
    rule(
        "Where these amounts pass what there is, they are cut: by priority, and among equals in proportion.",
        "cut-by-priority cut-in-proportion",
        without(fairshare, "_by_priority", _one_class),
        around(fairshare, "_divide", _guaranteed(_uncut)),
        around(fairshare, "_divide", _guaranteed(_in_equal_parts)),
    ),
    rule(
        "What is left goes to those who ask for more, by priority; among equals by weight, until all have what they "
        "ask for.",
        "rest-by-priority rest-by-weight rest-until-all-have-theirs",
        without(fairshare, "_by_priority", _one_class),
        around(fairshare, "_divide", _for_all_claimants(lambda one: replace(one, weight=1))),
        without(fairshare, "_pour_by_weight", _poured_once),
    ),
    rule(
        "A quota that is not set is unlimited: it counts as what is asked, and is cut like any other.",
        "unlimited-quota-is-what-is-asked",
        around(fairshare, "_divide", _for_all_claimants(lambda one: replace(one, quota=one.quota or 0))),
        around(fairshare, "_divide", _guaranteed(_uncut)),
    ),
    rule(
        "The projects of a department together never get more than it does.",
        "no-more-than-the-department",
        without(fairshare, "_divide_down", _whatever_the_parent_gets),
    ),
    rule(
        "Nothing is rounded on the way down; the result is rounded down to a thousandth of a device.",
        "nothing-is-rounded-on-the-way the-result-is-rounded-down",
        around(fairshare, "_divide", _rounded_each_time),
        without(fairshare, "_units", _rounded_up),
    ),
    rule(
        "An administrator may let past use count, by a factor `k`.",
        "past-use-counts",
        without(fairshare, "_weights_by_usage", _plain_weights),
    ),
    rule(
        "Then among those who still want more, the weight of each is its part `w` of all weights, plus `k` times what "
        "that is above its part `u` of all past use; never below zero.",
        "past-use-counts past-use-never-below-zero",
        without(fairshare, "_weights_by_usage", _plain_weights),
        without(fairshare, "_weights_by_usage", _by_use(abs)),
    ),
    rule(
        "Who used more than the part of its weight gets less of what is left over, who used less gets more.",
        "past-use-counts",
        without(fairshare, "_weights_by_usage", _more_to_who_used_more),
    ),
    rule(
        "Quotas do not change.",
        "quotas-do-not-change",
        around(fairshare, "_divide", _for_all_claimants(lambda one: replace(one, quota=0 if one.usage else one.quota))),
    ),
    rule(
        "Who has what it asks for drops out, and the parts are worked out anew among the others.",
        "parts-are-worked-out-anew",
        without(fairshare, "_pour_by_usage", _parts_of_the_first_round),
    ),
)

ALLOWED = (
    rule("A **limit** is never passed.", "limit", without(quota, "over_limit", _never_over)),
    rule(
        "Work that is **not preemptible** uses the quota only, since nobody could take it back.",
        "fixed-work-uses-the-quota",
        without(quota, "over_quota", _never_over),
    ),
    rule(
        "Semi-preemptible work is that up to its minimum, and preemptible above it.",
        "fixed-up-to-its-minimum",
        without(Placer, "fixed_of", lambda placer, ask, amounts: amounts),
        without(Placer, "fixed_of", lambda placer, ask, amounts: (0, 0, 0)),
    ),
    rule(
        "Both go by the quota and the limit as they were set, at every level of the tree.",
        "terms-at-every-level terms-as-they-are-set",
        around(quota, "over_limit", _of_the_leaf),
        around(quota, "over_quota", _of_the_leaf),
        without(quota, "over_quota", _as_cut),
    ),
    rule(
        "A queue that is **held** starts nothing new.",
        "queue-held",
        without(eligibility, "_is_held", lambda queue: False),
    ),
    rule(
        "One that is **drained** starts nothing new and ends what runs.",
        "queue-drained",
        without(endings, "drain", _nobody_ends),
        without(eligibility, "_is_held", lambda queue: queue.is_held),
    ),
    rule(
        "The same words hold for a node: **cordoned** and **drained**.",
        "node-cordoned node-drained",
        around(rooms, "node_room", lambda known: _open(known, is_cordoned=False)),
        around(rooms, "node_room", lambda known: _open(known, is_drained=False)),
        without(endings, "drain", _nobody_ends),
    ),
)

RULES = (*FAIR_SHARE, *ALLOWED)
