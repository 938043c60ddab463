"""Divides a pool among the queue tree, exactly: whole units (milli-GPU, milli-CPU, bytes), no float, in any order.

Promises: a queue never gets more than it asks for or may have; the shares of the children never add up to more than
their parent's; what one queue gets depends on values alone. A quota that cannot be met in full is cut, so that no
guarantee exceeds what there is. Amounts are rounded down to the unit, never up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby

from aliquot.core.model import RESOURCES, Amounts, Queue, ResourceName


@dataclass(frozen=True, slots=True)
class Claimant:
    """One of the siblings among whom an amount is divided. quota None is unlimited, limit None is no ceiling."""

    id: str
    request: int
    quota: int | None = None
    weight: int = 1
    limit: int | None = None
    priority: int = 100

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


def divide(total: int, claimants: Sequence[Claimant]) -> dict[str, Portion]:
    """Divide an amount among siblings: quotas first, then what is left by priority and, within one, by weight."""
    guaranteed = _guarantee(total, claimants)
    share = dict(guaranteed)
    left = total - sum(guaranteed.values())
    for members in _by_priority(claimants):
        needs = {one.id: one.wanted - guaranteed[one.id] for one in members}
        filled = _fill(left, [(one.id, needs[one.id], one.weight) for one in members])
        for id, extra in filled.items():
            share[id] += extra
        left -= sum(filled.values())
        if any(filled.get(id, 0) < need for id, need in needs.items() if _weight(members, id) > 0):
            break  # What rounding left of a class that is not satisfied is not for a lower class.
    return {one.id: Portion(guaranteed[one.id], share[one.id]) for one in claimants}


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
    share: dict[str, dict[ResourceName, int]] = {queue.id: {} for queue in queues}
    guaranteed: dict[str, dict[ResourceName, int]] = {queue.id: {} for queue in queues}
    for resource in RESOURCES:
        wanted = _wanted(children, pool, resource, requests=requests)
        level: list[tuple[int, Sequence[Queue]]] = [(capacity.of(resource), children.get(None, ()))]
        while level:
            total, siblings = level.pop()
            claimants = [_claimant(queue, pool, resource, request=wanted[queue.id]) for queue in siblings]
            for id, portion in divide(total, claimants).items():
                share[id][resource] = portion.share
                guaranteed[id][resource] = portion.guaranteed
                level.append((portion.share, children.get(id, ())))
    return Shares(
        share={id: amounts(by_resource) for id, by_resource in share.items()},
        guaranteed={id: amounts(by_resource) for id, by_resource in guaranteed.items()},
    )


def children_of(queues: Sequence[Queue]) -> dict[str | None, list[Queue]]:
    """The queue tree from above, siblings by id. A queue whose parent is not there stands at the root."""
    by_id = {queue.id: queue for queue in queues}
    children: dict[str | None, list[Queue]] = {}
    for queue in sorted(queues, key=lambda queue: queue.id):
        path = path_of(queue.id, by_id)
        children.setdefault(path[1].id if len(path) > 1 else None, []).append(queue)
    return children


def path_of(queue: str, by_id: Mapping[str, Queue]) -> list[Queue]:
    """The queue and its ancestors, up to the root."""
    path: list[Queue] = []
    at: str | None = queue
    while at is not None and at in by_id and by_id[at] not in path:
        path.append(by_id[at])
        at = by_id[at].parent
    # A ring of parents is cut above its smallest id, so that every member sees the same tree.
    if at is not None and at in by_id:
        ring = path[path.index(by_id[at]) :]
        top = min(ring, key=lambda one: one.id)
        path = path[: path.index(top) + 1]
    return path


def amounts(by_resource: Mapping[ResourceName, int]) -> Amounts:
    """Amounts from a mapping by resource."""
    return Amounts(by_resource.get("gpu", 0), by_resource.get("cpu", 0), by_resource.get("memory", 0))


def _claimant(queue: Queue, pool: str, resource: ResourceName, *, request: int) -> Claimant:
    terms = queue.terms_in(pool)
    claim = terms.of(resource)
    return Claimant(queue.id, request, claim.quota, claim.weight, claim.limit, terms.priority)


def _wanted(
    children: Mapping[str | None, Sequence[Queue]],
    pool: str,
    resource: ResourceName,
    *,
    requests: Mapping[str, Amounts],
) -> dict[str, int]:
    """What every queue asks for: a leaf its own, an inner queue what its children may have of theirs."""
    wanted: dict[str, int] = {}

    def ask(queue: Queue) -> int:
        own = requests.get(queue.id, Amounts()).of(resource)
        wanted[queue.id] = own + sum(ask(child) for child in children.get(queue.id, ()))
        return _claimant(queue, pool, resource, request=wanted[queue.id]).wanted

    for root in children.get(None, ()):
        ask(root)
    return wanted


def _guarantee(total: int, claimants: Sequence[Claimant]) -> dict[str, int]:
    """min(quota, wanted) of each; where these pass the total they are cut by priority, then in proportion."""
    basis = {one.id: one.wanted if one.quota is None else min(one.quota, one.wanted) for one in claimants}
    left = total
    granted = dict.fromkeys(basis, 0)
    for members in _by_priority(claimants):
        asked = sum(basis[one.id] for one in members)
        if asked > left:
            granted |= {one.id: left * basis[one.id] // asked for one in members}
            break
        granted |= {one.id: basis[one.id] for one in members}
        left -= asked
    return granted


def _fill(left: int, needs: Sequence[tuple[str, int, int]]) -> dict[str, int]:
    """Water-filling: everyone's level rises in proportion to weight until it is satisfied or nothing is left."""
    open_needs = sorted((Fraction(need, weight), id, need, weight) for id, need, weight in needs if weight > 0 < need)
    filled: dict[str, int] = {}
    weights = sum(weight for *_, weight in open_needs)
    for level, id, need, weight in open_needs:
        if level * weights > left:
            break
        filled[id] = need
        left -= need
        weights -= weight
    rest = [(id, weight) for _, id, _, weight in open_needs if id not in filled]
    return filled | {id: left * weight // weights for id, weight in rest}


def _by_priority(claimants: Sequence[Claimant]) -> list[list[Claimant]]:
    ordered = sorted(claimants, key=lambda one: (-one.priority, one.id))
    return [list(members) for _, members in groupby(ordered, key=lambda one: one.priority)]


def _weight(members: Sequence[Claimant], id: str) -> int:
    return next(one.weight for one in members if one.id == id)
