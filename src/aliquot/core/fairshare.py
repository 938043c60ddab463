"""Divides a pool among the queue tree, exactly: whole units (milli-GPU, milli-CPU, bytes), no float, in any order.

Promises: a queue never gets more than it asks for or may have; the shares of the children never add up to more than
their parent's; what one queue gets depends on values alone. A quota that cannot be met in full is cut, so that no
guarantee exceeds what there is. Nothing is rounded on the way down the tree; what a queue gets in the end is rounded
down to the unit, never up.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from aliquot.core.model import RESOURCES, Amounts, PoolTerms, Queue, ResourceName, Usage


@dataclass(frozen=True, slots=True)
class Claimant:
    """One of the siblings among whom an amount is divided. quota None is unlimited, limit None is no ceiling.
    `usage`: what it has used of late, in millionths of the pool."""

    id: str
    request: int
    quota: int | None = None
    weight: int = 1
    limit: int | None = None
    priority: int = 100
    usage: int = 0

    @property
    def wanted(self) -> int:
        """What it asks for, as far as its limit allows."""
        return self.request if self.limit is None else min(self.request, self.limit)


@dataclass(frozen=True, slots=True)
class Portion:
    """What a queue gets: `guaranteed` is its quota as far as it is asked for and can be met; `share` is all in all."""

    guaranteed: int
    share: int


@dataclass(frozen=True, slots=True)
class Shares:
    """What every queue of one pool gets: its share, and the part of it that is guaranteed."""

    share: Mapping[str, Amounts] = field(default_factory=dict)
    guaranteed: Mapping[str, Amounts] = field(default_factory=dict)


_Parts = tuple[int, int]
"""An exact amount: how many parts, and how many of them make a unit."""

_Thirst = tuple[Claimant, int]
"""Who wants more than it has so far, and how many units more."""


def divide(total: int, claimants: Sequence[Claimant], *, usage_weight: tuple[int, int] = (0, 1)) -> dict[str, Portion]:
    """Divide an amount among siblings: quotas first, then what is left by priority and, within one, by weight. Where
    past use counts (`usage_weight` k as a ratio), who has used more than the part of its weight gets less of the rest.
    """
    guaranteed, share = _divide((total, 1), claimants, usage_weight)
    return {one.id: Portion(_units(guaranteed[one.id]), _units(share[one.id])) for one in claimants}


def divide_tree(
    capacity: Amounts,
    queues: Sequence[Queue],
    *,
    pool: str,
    requests: Mapping[str, Amounts],
    usage_weight: tuple[int, int] = (0, 1),
) -> Shares:
    """The shares of all queues in a pool. `requests`: what each leaf holds and waits for; inner queues add up."""
    children = children_of(queues)
    below = list(_from_below(children))
    terms = {queue.id: queue.terms_in(pool) for queue in queues}
    found: list[dict[str, Portion]] = []
    for resource in RESOURCES:
        claimants = _claimants(below, terms, resource, pool=pool, requests=requests)
        found.append(_divide_down(capacity.of(resource), children, claimants, usage_weight))
    return Shares(
        share={queue.id: Amounts(*(one[queue.id].share for one in found)) for queue in queues},
        guaranteed={queue.id: Amounts(*(one[queue.id].guaranteed for one in found)) for queue in queues},
    )


def _divide_down(
    capacity: int,
    children: Mapping[str | None, Sequence[Queue]],
    claimants: Mapping[str, Claimant],
    usage_weight: tuple[int, int],
) -> dict[str, Portion]:
    """One resource, from the root down: what a queue gets is what its children divide."""
    found: dict[str, Portion] = {}
    level: list[tuple[_Parts, Sequence[Queue]]] = [((capacity, 1), children.get(None, ()))]
    while level:
        total, siblings = level.pop()
        sure, in_all = _divide(total, [claimants[queue.id] for queue in siblings], usage_weight)
        found |= {queue.id: Portion(_units(sure[queue.id]), _units(in_all[queue.id])) for queue in siblings}
        level += [(in_all[queue.id], children[queue.id]) for queue in siblings if queue.id in children]
    return found


def children_of(queues: Sequence[Queue]) -> dict[str | None, list[Queue]]:
    """The queue tree from above, siblings by id. A queue whose parent is not there stands at the root."""
    by_id = {queue.id: queue for queue in queues}
    children: dict[str | None, list[Queue]] = {}
    for id in sorted(by_id):
        path = path_of(id, by_id)
        children.setdefault(path[1].id if len(path) > 1 else None, []).append(by_id[id])
    return children


def path_of(queue: str, by_id: Mapping[str, Queue]) -> list[Queue]:
    """The queue and its ancestors, up to the root."""
    path: dict[str, Queue] = {}
    at: str | None = queue
    while at is not None and at in by_id and at not in path:
        path[at] = by_id[at]
        at = by_id[at].parent
    found = list(path.values())
    # A ring of parents is cut above its smallest id, so that every member sees the same tree.
    if at is not None and at in by_id:
        ring = found[list(path).index(at) :]
        top = min(one.id for one in ring)
        found = found[: list(path).index(top) + 1]
    return found


def _from_below(children: Mapping[str | None, Sequence[Queue]]) -> Iterable[tuple[Queue, Sequence[Queue]]]:
    """Every queue with its children, children before their parent."""
    above: list[Queue] = list(children.get(None, ()))
    for queue in above:
        above += children.get(queue.id, ())
    return ((queue, children.get(queue.id, ())) for queue in reversed(above))


def _claimants(
    below: Iterable[tuple[Queue, Sequence[Queue]]],
    terms: Mapping[str, PoolTerms],
    resource: ResourceName,
    *,
    pool: str,
    requests: Mapping[str, Amounts],
) -> dict[str, Claimant]:
    """Every queue with what it asks for: a leaf its own, an inner queue what its children may have of theirs."""
    found: dict[str, Claimant] = {}
    for queue, children in below:
        own = requests[queue.id].of(resource) if queue.id in requests else 0
        asked = own + sum(found[child.id].wanted for child in children)
        claim = terms[queue.id].of(resource)
        usage = queue.usage.get(pool, _NO_USAGE).of(resource)
        found[queue.id] = Claimant(
            queue.id, asked, claim.quota, claim.weight, claim.limit, terms[queue.id].priority, usage
        )
    return found


def _divide(
    total: _Parts, claimants: Sequence[Claimant], usage_weight: tuple[int, int]
) -> tuple[dict[str, _Parts], dict[str, _Parts]]:
    """What each is guaranteed, and its share."""
    left, unit = max(0, total[0]), total[1]
    classes = _by_priority(claimants)
    guaranteed: dict[str, _Parts] = {one.id: (0, 1) for one in claimants}
    for members in classes:
        due = [(one.id, one.wanted if one.quota is None else min(one.quota, one.wanted)) for one in members]
        asked = sum(amount for _, amount in due)
        if asked * unit > left:
            guaranteed |= {id: (left * amount, unit * asked) for id, amount in due}
            return guaranteed, guaranteed
        guaranteed |= {id: (amount, 1) for id, amount in due}
        left -= asked * unit
    share = dict(guaranteed)
    for members in classes:
        thirsty = [
            (one, one.wanted - guaranteed[one.id][0])
            for one in members
            if one.weight > 0 and one.wanted > guaranteed[one.id][0]
        ]
        asked = sum(need for _, need in thirsty)
        if asked * unit > left:
            extra = _pour((left, unit), thirsty, usage_weight)
            return guaranteed, share | {id: _plus(guaranteed[id][0], parts) for id, parts in extra.items()}
        share |= {one.id: (one.wanted, 1) for one, _ in thirsty}
        left -= asked * unit
    return guaranteed, share


def _pour(left: _Parts, thirsty: Sequence[_Thirst], usage_weight: tuple[int, int]) -> dict[str, _Parts]:
    """Give those who together want more than is left all of it."""
    if usage_weight[0] > 0 and any(one.usage for one, _ in thirsty):
        return _pour_by_usage(left, thirsty, usage_weight)
    return _pour_by_weight(left, thirsty)


def _pour_by_weight(total: _Parts, thirsty: Sequence[_Thirst]) -> dict[str, _Parts]:
    """Water-filling: everyone's level rises in proportion to weight until it is satisfied or nothing is left."""
    left, unit = total
    weights = sum(one.weight for one, _ in thirsty)
    # need / weight orders them; whole numbers in the same order compare faster than fractions.
    scale = math.lcm(*(one.weight for one, _ in thirsty))
    thirstiest_first = sorted(thirsty, key=lambda each: each[1] * (scale // each[0].weight), reverse=True)
    found: dict[str, _Parts] = {}
    one, need = thirstiest_first[-1]
    while need * weights * unit <= left * one.weight:  # Somebody stays thirsty, as there is too little for all.
        found[one.id] = (need, 1)
        left -= need * unit
        weights -= one.weight
        thirstiest_first.pop()
        one, need = thirstiest_first[-1]
    return found | {one.id: (left * one.weight, unit * weights) for one, _ in thirstiest_first}


def _pour_by_usage(total: _Parts, thirsty: Sequence[_Thirst], usage_weight: tuple[int, int]) -> dict[str, _Parts]:
    """In rounds: each gets its part of what is left at the start of the round, but no more than it wants. What those
    who are satisfied leave is given in the next round, by the weights of those who are not."""
    left, unit = total
    found: dict[str, _Parts] = {}
    open_needs = [(one, need * unit, 0) for one, need in thirsty]
    while left:
        weights = _weights_by_usage([one for one, *_ in open_needs], usage_weight)
        all_weights = sum(weights)
        # Parts become so much finer that everybody's part is whole.
        base, left, unit = left, left * all_weights, unit * all_weights
        next_needs: list[tuple[Claimant, int, int]] = []
        for (one, need, given), weight in zip(open_needs, weights, strict=True):
            part = min(need * all_weights, base * weight)
            left -= part
            got = given * all_weights + part
            found[one.id] = (got, unit)
            if part < need * all_weights:
                next_needs.append((one, need * all_weights - part, got))
        open_needs = next_needs
    return found


def _weights_by_usage(thirsty: Sequence[Claimant], usage_weight: tuple[int, int]) -> list[int]:
    """max(0, w + k (w - u)) of each, all times the same number that makes them whole. w and u are its parts of the
    weight and of the use of these. They cannot all become 0: without the max they would add up to 1."""
    above, below = usage_weight
    weights = sum(one.weight for one in thirsty)
    usages = sum(one.usage for one in thirsty)
    if not usages:
        return [one.weight for one in thirsty]
    return [max(0, (below + above) * one.weight * usages - above * one.usage * weights) for one in thirsty]


def _by_priority(claimants: Sequence[Claimant]) -> list[list[Claimant]]:
    ordered = sorted(claimants, key=lambda one: (-one.priority, one.id))
    return [list(members) for _, members in groupby(ordered, key=lambda one: one.priority)]


def _plus(whole: int, more: _Parts) -> _Parts:
    return (whole * more[1] + more[0], more[1])


def _units(parts: _Parts) -> int:
    return parts[0] // parts[1]


_NO_USAGE = Usage()
