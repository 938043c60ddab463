"""Gangs: which pods of a workload start next, and which end together.

A gang is a tree. A leaf runs with at least its minimum of pods, an inner group with at least its minimum of groups that
run. Below its minimum a gang starts whole or not at all; above it, it grows by one pod, or one group, at a time. It
shrinks the other way round: what is above the minimum goes first, one at a time, and the rest goes whole.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from aliquot.core.model import Group, Pod, PodState, Workload

MOST_CHOICES = 8
"""Of a gang that needs some of many groups, so many selections are tried."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What ends together: one pod or group above a minimum, or all that is left (`is_core`)."""

    pods: tuple[Pod, ...]
    is_core: bool


def task_key(pod: Pod) -> tuple[int, int, str]:
    """Which pods of a workload come first."""
    return (-pod.priority, pod.index, pod.id)


def leaf_of(workload: Workload, pod: Pod) -> str:
    """The leaf of the tree that a pod belongs to."""
    root = workload.root
    return pod.group if root.groups else root.name


def is_satisfied(workload: Workload, active: Collection[str]) -> bool:
    """Whether the gang is at its minimum, with these pods in place; those that ended well do not count as missing."""
    if workload.gang is None:
        in_place = sum(pod.id in active or pod.state is PodState.SUCCEEDED for pod in workload.pods)
        return in_place >= workload.min_pods
    return _is_satisfied(workload.root, _counts(workload, active))


def is_sound(workload: Workload, active: Collection[str]) -> bool:
    """Whether it is at its minimum, and so is every group of it that runs."""
    if workload.gang is None:
        return is_satisfied(workload, active)
    counts = _counts(workload, active)
    return _is_satisfied(workload.root, counts) and _is_sound(workload.root, counts)


def choices(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
    """The sets of pods that could start next, the preferred one first; empty if the gang lacks pods.

    `active`: the ids of the pods that hold a place or are promised one.
    """
    waiting = sorted(waiting, key=task_key)
    if workload.gang is None:
        missing = workload.min_pods - sum(pod.id in active or pod.state is PodState.SUCCEEDED for pod in workload.pods)
        if missing > len(waiting) or not waiting:
            return []
        return _of_kinds(waiting, max(1, missing))
    pods: dict[str, list[Pod]] = {}
    for pod in waiting:
        pods.setdefault(leaf_of(workload, pod), []).append(pod)
    return [tuple(one) for one in _choices(workload.root, _counts(workload, active), pods)]


def _of_kinds(waiting: Sequence[Pod], wanted: int) -> list[tuple[Pod, ...]]:
    """So many of the pods that wait: the first; and where they are unlike, those of each kind before the others."""
    found = [tuple(waiting[:wanted])]
    if wanted < len(waiting):
        for kind in dict.fromkeys(pod.request for pod in waiting):
            first = [pod for pod in waiting if pod.request == kind]
            others = [pod for pod in waiting if pod.request != kind]
            choice = tuple([*first, *others][:wanted])
            if choice not in found:
                found.append(choice)
    return found[:MOST_CHOICES]


def units(workload: Workload, placed: Sequence[Pod]) -> list[Unit]:
    """All pods that hold places as what ends together, in the order in which they would be given up."""
    left = sorted(placed, key=task_key)
    if workload.gang is None:
        succeeded = sum(pod.state is PodState.SUCCEEDED for pod in workload.pods)
        core = max(0, workload.min_pods - succeeded)
        found = [Unit((pod,), is_core=False) for pod in reversed(left[core:])]
        return [*found, Unit(tuple(left[:core]), is_core=True)] if left[:core] else found
    found = []
    while left:
        counts = _counts(workload, {pod.id for pod in left})
        by_leaf: dict[str, list[Pod]] = {}
        for pod in left:
            by_leaf.setdefault(leaf_of(workload, pod), []).append(pod)
        surplus = _surplus(workload.root, counts, by_leaf)
        if surplus is None:
            return [*found, Unit(tuple(left), is_core=True)]
        found.append(Unit(tuple(surplus), is_core=False))
        gone = {pod.id for pod in surplus}
        left = [pod for pod in left if pod.id not in gone]
    return found


def leaves_of(group: Group) -> list[str]:
    """The names of the leaves below a group."""
    return [group.name] if not group.groups else [name for child in group.groups for name in leaves_of(child)]


def least_pods(group: Group) -> int:
    """The smallest number of pods with which it runs."""
    if not group.groups:
        return group.minimum
    return sum(sorted(least_pods(child) for child in group.groups)[: group.minimum])


def _counts(workload: Workload, active: Collection[str]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for pod in workload.pods:
        if pod.id in active or pod.state is PodState.SUCCEEDED:
            leaf = leaf_of(workload, pod)
            found[leaf] = found.get(leaf, 0) + 1
    return found


def _is_satisfied(group: Group, counts: Mapping[str, int]) -> bool:
    if not group.groups:
        return counts.get(group.name, 0) >= group.minimum
    return sum(_is_satisfied(child, counts) for child in group.groups) >= group.minimum


def _is_sound(group: Group, counts: Mapping[str, int]) -> bool:
    if not any(counts.get(leaf) for leaf in leaves_of(group)):
        return True
    return _is_satisfied(group, counts) and all(_is_sound(child, counts) for child in group.groups)


def _choices(group: Group, counts: Mapping[str, int], pods: Mapping[str, Sequence[Pod]]) -> list[list[Pod]]:
    is_full = _is_satisfied(group, counts)
    if not group.groups:
        missing = 1 if is_full else group.minimum - counts.get(group.name, 0)
        waiting = pods.get(group.name, ())
        return [list(waiting[:missing])] if len(waiting) >= missing else []
    ordered = sorted(group.groups, key=lambda child: _group_key(child, counts))
    if is_full:
        grown = [choice for child in ordered for choice in _choices(child, counts, pods)]
        return grown[:MOST_CHOICES]
    missing = group.minimum - sum(_is_satisfied(child, counts) for child in group.groups)
    open_children = [child for child in ordered if not _is_satisfied(child, counts)]
    offers = [offer for child in open_children if (offer := _choices(child, counts, pods))]
    found = (
        [pod for part in parts for pod in part]
        for selected in combinations(offers, missing)
        for parts in islice(product(*selected), MOST_CHOICES)
    )
    return list(islice(found, MOST_CHOICES))


def _group_key(group: Group, counts: Mapping[str, int]) -> tuple[bool, bool, int, str]:
    """Groups below their minimum first; then those that must run before those that may; the least filled; name."""
    return (_is_satisfied(group, counts), group.minimum == 0, _filled(group, counts), group.name)


def _filled(group: Group, counts: Mapping[str, int]) -> int:
    if not _is_satisfied(group, counts):
        return 0
    held = sum(counts.get(leaf, 0) for leaf in leaves_of(group))
    return 1000 * held // max(1, least_pods(group))


def _surplus(group: Group, counts: Mapping[str, int], pods: Mapping[str, Sequence[Pod]]) -> list[Pod] | None:
    """The first pods to give up without breaking a minimum that holds; None if there are none."""
    if not group.groups:
        held = pods.get(group.name, ())
        is_over = bool(held) and counts.get(group.name, 0) > group.minimum
        return [held[-1]] if is_over else None
    ordered = sorted(group.groups, key=lambda child: _group_key(child, counts), reverse=True)
    if sum(_is_satisfied(child, counts) for child in group.groups) >= group.minimum:
        for child in ordered:
            broken = list(_held(child, pods)) if not _is_satisfied(child, counts) else []
            if broken:
                return broken
    for child in ordered:
        found = _surplus(child, counts, pods)
        if found is not None:
            return found
    spare = [child for child in ordered if _is_satisfied(child, counts) and _held(child, pods)]
    if spare and sum(_is_satisfied(child, counts) for child in group.groups) > group.minimum:
        return _held(spare[0], pods)
    return None


def _held(group: Group, pods: Mapping[str, Sequence[Pod]]) -> list[Pod]:
    return [pod for leaf in leaves_of(group) for pod in pods.get(leaf, ())]


def pending_of(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods that wait, in the order in which they start."""
    return tuple(sorted((pod for pod in pods if pod.state is PodState.PENDING), key=task_key))
