"""Gangs in the plainest way: which groups are whole, and whether pods find places together, by trying all.

Nothing of the engine is used. A search that would take too long says so (`TooHard`) instead of an answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations

from aliquot.core.model import Group, Near, Node, Pod, PodState, Workload
from tests.laws.room import Hold, Room

STEPS = 20_000
"""Places looked at in one search; a few milliseconds."""


class TooHard(Exception):
    """The search was given up."""


def leaves(group: Group) -> list[Group]:
    """The groups below that hold pods."""
    return [group] if not group.groups else [leaf for one in group.groups for leaf in leaves(one)]


def groups_of(group: Group) -> Iterator[Group]:
    """It and all below it."""
    yield group
    for one in group.groups:
        yield from groups_of(one)


def pods_in(workload: Workload, group: Group) -> list[Pod]:
    """The pods of a group, in the order in which they come."""
    if workload.gang is None:
        found = list(workload.pods)
    else:
        names = {leaf.name for leaf in leaves(group)}
        found = [pod for pod in workload.pods if pod.group in names]
    return sorted(found, key=lambda pod: (-pod.priority, pod.index, pod.id))


def is_up(workload: Workload, group: Group, running: frozenset[str]) -> bool:
    """Whether a group has its minimum when these pods run."""
    if group.groups:
        return sum(is_up(workload, one, running) for one in group.groups) >= group.minimum
    return sum(pod.id in running for pod in pods_in(workload, group)) >= group.minimum


def broken_groups(workload: Workload, running: frozenset[str]) -> list[str]:
    """The groups of which some pod runs though they are below their minimum; "" is the whole."""
    return [
        group.name
        for group in groups_of(workload.root)
        if any(pod.id in running and pod.state is not PodState.SUCCEEDED for pod in pods_in(workload, group))
        and not is_up(workload, group, running)
    ]


def standing(workload: Workload, *, without: Iterable[str] = ()) -> frozenset[str]:
    """The pods that count for its minimum: those that run, and those that ended well."""
    gone = set(without)
    counted = {PodState.RUNNING, PodState.SUCCEEDED}
    return frozenset(pod.id for pod in workload.pods if pod.state in counted and pod.id not in gone)


def chunks(workload: Workload, *, without: Iterable[str] = ()) -> list[list[Pod]]:
    """The sets of pending pods any of which would be its next step: what is missing to its minimum, else one more."""
    running = standing(workload, without=without)
    if not is_up(workload, workload.root, running):
        return [one for one in _to_minimum(workload, workload.root, running) if one]
    return [one for one in _to_grow(workload, workload.root, running) if one]


def _pending(workload: Workload, group: Group) -> list[Pod]:
    return [pod for pod in pods_in(workload, group) if pod.state is PodState.PENDING]


def _to_minimum(workload: Workload, group: Group, running: frozenset[str]) -> list[list[Pod]]:
    if not group.groups:
        missing = max(0, group.minimum - sum(pod.id in running for pod in pods_in(workload, group)))
        waiting = _pending(workload, group)
        return _of_kinds(workload, waiting, missing) if missing <= len(waiting) else []
    rest = [one for one in group.groups if not is_up(workload, one, running)]
    found: list[list[Pod]] = []
    for more in combinations(rest, max(0, group.minimum - len(group.groups) + len(rest))):
        options: list[list[Pod]] = [[]]
        for one in more:
            options = [[*left, *right] for left in options for right in _to_minimum(workload, one, running)]
        found += options
    return found


def _of_kinds(workload: Workload, waiting: list[Pod], wanted: int) -> list[list[Pod]]:
    """The first of those that wait; where a gang without a tree has unlike pods, each kind before the others."""
    found = [waiting[:wanted]]
    if workload.gang is not None or wanted >= len(waiting):
        return found
    for kind in dict.fromkeys(pod.request for pod in waiting):
        first = [pod for pod in waiting if pod.request == kind]
        rest = [pod for pod in waiting if pod.request != kind]
        option = sorted([*first, *rest][:wanted], key=waiting.index)
        found += [option] if option not in found else []
    return found


def _to_grow(workload: Workload, group: Group, running: frozenset[str]) -> list[list[Pod]]:
    if not group.groups:
        waiting = _pending(workload, group)
        return _of_kinds(workload, waiting, 1) if waiting else []
    found: list[list[Pod]] = []
    for one in group.groups:
        if is_up(workload, one, running):
            found += _to_grow(workload, one, running)
        else:
            found += _to_minimum(workload, one, running)
    return found


class _Search:
    """Places for pods of one workload, tried one after the other."""

    def __init__(self, rooms: Sequence[Room], workload: Workload, steps: int) -> None:
        self.rooms = rooms
        self.room = room = rooms[0]
        self.workload = workload
        self.steps = steps
        self.nodes = sorted(room.nodes.values(), key=lambda node: node.id)
        self.near = [
            (group.near, frozenset(pod.id for pod in pods_in(workload, group)))
            for group in groups_of(workload.root)
            if group.near is not None and group.near.required is not None
        ]

    def place(self, pods: Sequence[Pod], least: int) -> list[Hold] | None:
        """Places for these pods, the first on a node from `least` on; the room is as before afterwards."""
        if not pods:
            return []
        pod, rest = pods[0], pods[1:]
        for index in range(least, len(self.nodes)):
            node = self.nodes[index]
            if not all(room.takes(node, self.workload, pod) for room in self.rooms) or not self._stays_near(node, pod):
                continue
            is_alike = bool(rest) and (rest[0].request, rest[0].group) == (pod.request, pod.group)
            found = self._place_on(node, pod, rest=rest, least=index if is_alike and not pod.request.is_social else 0)
            if found is not None:
                return found
        return None

    def _place_on(self, node: Node, pod: Pod, *, rest: Sequence[Pod], least: int) -> list[Hold] | None:
        for shares in self.room.choices(node, pod.request):
            self.steps -= 1
            if self.steps < 0:
                raise TooHard
            if not all(room.grants(node, pod.request, shares) for room in self.rooms[1:]):
                continue
            hold = Hold(self.workload, pod, node.id, shares)
            for room in self.rooms:
                room.add(hold)
            try:
                found = self.place(rest, least)
            finally:
                for room in self.rooms:
                    room.remove(hold)
            if found is not None:
                return [hold, *found]
        return None

    def _stays_near(self, node: Node, pod: Pod) -> bool:
        return all(self._is_in(near, node, members) for near, members in self.near if pod.id in members)

    def _is_in(self, near: Near, node: Node, members: frozenset[str]) -> bool:
        level = near.required or ""
        here = self.room.domain(near.topology, level, node.id)
        if here is None:
            return False
        others = [hold for hold in self.room.holds() if hold.pod.id in members]
        others = [hold for hold in others if hold.pod.state is not PodState.RELEASING]
        return all(self.room.domain(near.topology, level, hold.node) == here for hold in others)


def place(
    room: Room, workload: Workload, pods: Sequence[Pod], *, also: Room | None = None, steps: int = STEPS
) -> list[Hold] | None:
    """Places for these pods together, whatever else they need of their queue; None if there are none. `also`: they must
    be free there too (what is free now must be when promises are kept)."""
    rooms = (room,) if also is None else (room, also)
    orders: list[Sequence[Pod]] = [pods]
    if len({pod.request for pod in pods}) > 1 and any(pod.request.affinity for pod in pods) and len(pods) < 5:
        orders = [*permutations(pods)]  # One may have to be there before another is drawn to it.
    for order in orders:
        found = _Search(rooms, workload, steps).place(order, 0)
        if found is not None:
            return found
    return None


def strays(room: Room, workload: Workload) -> list[str]:
    """The groups whose pods had to stay in one domain and do not."""
    found = []
    for group in groups_of(workload.root):
        if group.near is None or group.near.required is None:
            continue
        members = {pod.id for pod in pods_in(workload, group)}
        holds = [hold for hold in room.holds() if hold.pod.id in members and hold.pod.state is not PodState.RELEASING]
        domains = {room.domain(group.near.topology, group.near.required, hold.node) for hold in holds}
        if len(domains) > 1 or None in domains:
            found.append(group.name)
    return found
