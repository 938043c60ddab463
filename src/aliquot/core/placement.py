"""Where pods go: which node is best for a pod, and how the pods of a gang go together.

A gang is placed whole or not at all, its groups inside the domains they ask for. How good a node is says
`aliquot.core.scores`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from aliquot.core import fitting, gang, quota, rooms, scores, topology
from aliquot.core.asks import Ask
from aliquot.core.fitting import Order
from aliquot.core.model import Group, Near, Place, Pod, PodRequest, Policy
from aliquot.core.rooms import Holding, NodeRoom, Slot, Vector, View
from aliquot.core.scores import Scores
from aliquot.core.snapshot import Pool, World

Rows = NDArray[np.intp]
"""Nodes of a pool by their rows; as an argument None is all of them."""

_MOST_DOMAINS = 16
"""In so many domains pods that are drawn to each other are tried."""


@dataclass(slots=True)
class Placer:
    """Places gangs in a world and remembers which shapes found no place since room last grew."""

    world: World
    policy: Policy = field(default_factory=Policy)
    placed: Callable[[str], Sequence[Holding]] = field(default=lambda id: ())
    """The places of a workload that were bound in this cycle, or are promised."""
    scores: Scores = field(init=False)
    _refused: dict[tuple[object, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The scores are those of this world and policy."""
        self.scores = Scores(self.world, self.policy)

    def place(self, ask: Ask, view: View) -> list[Holding] | None:
        """Places for all pods of the ask, within the limits of its queue; the world is left as it was."""
        world = self.world
        is_sure = not ask.alternatives and not any(one.gpu and one.gpu.mib for one in ask.requests)
        if is_sure and self.excess(ask, ask.amounts, view) is not None:
            return None
        key = (ask.shape, view)
        if self._refused.get(key) == world.growth:
            return None
        is_found = False
        for pods in (ask.pods, *ask.alternatives):
            for order in self._orders(ask.pool, pods):
                mark = world.mark()
                holdings = self._place_all(ask, pods, view, order)
                world.rollback(mark)
                is_found = is_found or holdings is not None
                if holdings is None:
                    continue
                charge = rooms.charge_of(holdings)
                tried = ask if pods is ask.pods else replace(ask, pods=pods)
                if (is_sure and charge == ask.amounts) or self.excess(tried, charge, view) is None:
                    return holdings
        if not is_found:
            self._refused[key] = world.growth
        return None

    def has_room(self, ask: Ask, view: View) -> bool:
        """Whether there is room for all pods of the ask, whatever the terms of its queue."""
        for pods in (ask.pods, *ask.alternatives):
            for order in self._orders(ask.pool, pods):
                mark = self.world.mark()
                is_found = self._place_all(ask, pods, view, order) is not None
                self.world.rollback(mark)
                if is_found:
                    return True
        return False

    def place_alone(self, ask: Ask, view: View, rows: Rows | None = None) -> list[Holding] | None:
        """Places for the pods of the ask, whatever the terms of its queue and where the rest of its gang is."""
        mark = self.world.mark()
        for order in self._orders(ask.pool, ask.pods):
            holdings = self._place_pods(ask, ask.pods, view, order=order, rows=rows, is_last=True)
            self.world.rollback(mark)
            if holdings is not None:
                return holdings
        return None

    def fits_on(self, node: NodeRoom, request: PodRequest, view: View) -> bool:
        """Whether one pod fits on this node, if neither taint nor selector keeps it off."""
        return fitting.fit(node, request, view) is not None and self.scores.is_welcome(node, request, view)

    def may_fit(self, ask: Ask, view: View) -> bool:
        """A sound "no": False only if the pods cannot all fit, by counting each kind of them alone."""
        if ask.alternatives:
            return True
        pool = self.world.pools[ask.pool]
        return all(self.count(pool, kind, view) >= pods for kind, pods in ask.kinds)

    def could_ever_fit(self, ask: Ask) -> bool:
        """A sound "no": False only if the pods could not all fit even if nothing ran on the nodes that take pods."""
        if ask.alternatives:
            return True
        pool = self.world.pools[ask.pool]
        return all(int(self.scores.empty_counts(pool, kind).sum()) >= pods for kind, pods in ask.kinds)

    def is_full(self, ask: Ask, views: Sequence[View]) -> bool:
        """Whether this shape was found to have no room in any of these views since room last grew."""
        return all(self._refused.get((ask.shape, view)) == self.world.growth for view in views)

    def count(self, pool: Pool, kind: int, view: View, rows: Rows | None = None) -> int:
        """How many pods of a kind fit, looking at each node alone."""
        return self.scores.count(pool, kind, view, rows)

    def excess(self, ask: Ask, amounts: Vector, view: View) -> quota.Excess | None:
        """The term of its queue, or of one above, that these amounts would pass."""
        accounts = self.world.accounts_of(ask.pool, ask.workload.queue)
        counting = "later" if view == "later" else "now"
        over = quota.over_limit(accounts, amounts, counting=counting)
        if over is not None or ask.workload.is_preemptible:
            return over
        return quota.over_quota(accounts, self.fixed_of(ask, amounts), counting=counting)

    def fixed_of(self, ask: Ask, amounts: Vector) -> Vector:
        """What of these amounts is not preemptible. Of semi-preemptible work: by how much its core becomes larger, if
        that is not all of the ask, or other pods than those that run come first."""
        workload = ask.workload
        if workload.is_preemptible:
            return (0, 0, 0)
        if not workload.is_semi_preemptible:
            return amounts
        placed = [one.pod for one in self.places_of(ask.id)]
        before, after = (
            [pod for unit in gang.units(workload, pods) if unit.is_core for pod in unit.pods]
            for pods in (placed, [*placed, *ask.pods])
        )
        if len(after) - len(before) == len(ask.pods):
            return amounts
        was, will = self.world.ask_of((ask.pool,), before), self.world.ask_of((ask.pool,), after)
        return (max(0, will[0] - was[0]), max(0, will[1] - was[1]), max(0, will[2] - was[2]))

    def stay(self, ask: Ask, places: Sequence[Place], view: View) -> list[Holding] | None:
        """These very places, if they are free; the world is left as it was."""
        world = self.world
        pods = {pod.id: pod for pod in ask.workload.pods}
        mark = world.mark()
        holdings: list[Holding] = []
        for place in places:
            world.steps += 1
            pod = pods[place.pod]
            holding = world.holding(ask.workload, pod, place, is_fixed=self._is_fixed(ask))
            if not self.can_hold(holding, view):
                break
            _take(world, holding, view)
            holdings.append(holding)
        world.rollback(mark)
        if len(holdings) < len(places) or self.excess(ask, rooms.charge_of(holdings), view) is not None:
            return None
        return holdings if self.keeps_near(ask, holdings) else None

    def keeps_near(self, ask: Ask, holdings: Sequence[Holding]) -> bool:
        """Whether with these places each group of the gang that has to be in one domain is in one."""
        workload = ask.workload
        if not _is_bound(workload.root):
            return True
        domains = self.world.pools[ask.pool].domains
        rows: dict[str, set[int]] = {}
        for one in (*self.world.running_of(ask.id), *holdings):
            if one.node is not None:
                rows.setdefault(gang.leaf_of(workload, one.pod), set()).add(one.node.row)

        def is_together(group: Group, near: Near, level: str) -> bool:
            taken = set().union(*(rows.get(leaf, set()) for leaf in gang.leaves_of(group)))
            return any(taken <= set(members) for members in domains.at(near.topology, level).values())

        return all(
            is_together(group, group.near, group.near.required)
            for group in _groups_of(workload.root)
            if group.near is not None and group.near.required is not None
        )

    def can_hold(self, holding: Holding, view: View) -> bool:
        """Whether a pod could have this very place."""
        if not fitting.can_hold(holding, view):
            return False
        return holding.node is None or self.scores.is_welcome(holding.node, holding.pod.request, view)

    def best(
        self, pool: Pool, request: PodRequest, view: View, *, order: Order = "tight", rows: Rows | None = None
    ) -> tuple[NodeRoom, list[Slot]] | None:
        """The best node for one pod, with its slots there."""
        self.world.steps += 1
        if not pool.nodes or (rows is not None and not len(rows)):
            return None
        values = self.scores.of(pool, request, view, order)
        row = int(values.argmin()) if rows is None else int(rows[values[rows].argmin()])
        if values[row] == scores.NO_ROOM:
            return None
        node = pool.nodes[row]
        device = self.scores.device_for(node, request) if order == "tight" else None
        if device is not None and request.gpu is not None:
            slot = fitting.slot_on(node.devices[device], request.gpu, view)
            if slot is not None:
                return node, [slot]
        slots = fitting.fit(node, request, view, order=order)
        return None if slots is None else (node, slots)

    def at(self, ask: Ask, pod: Pod, *, node: NodeRoom, slots: Sequence[Slot]) -> Holding:
        """What a pod of the ask takes at a place."""
        request = pod.request
        return Holding(
            workload=ask.workload,
            pod=pod,
            node=node,
            slots=tuple(slots),
            room=(request.milli_cpus, request.memory_bytes, 1),
            charge=(sum(slot.milli for slot in slots), request.milli_cpus, request.memory_bytes),
            accounts=self.world.accounts_of(ask.pool, ask.workload.queue),
            other=rooms.others_of(request),
            is_fixed=self._is_fixed(ask),
        )

    def places_of(self, id: str) -> list[Holding]:
        """Where the pods of a workload are, or will be."""
        return [*self.world.running_of(id), *self.placed(id)]

    def domains_of(self, ask: Ask) -> list[Rows | None]:
        """The sets of nodes in which all pods of an ask have to be, by what could be free there: None is all nodes."""
        near = ask.workload.root.near
        if near is None or near.required is None:
            return [None]
        pool = self.world.pools[ask.pool]
        sets: list[Rows] = [np.array(rows, np.intp) for rows in pool.domains.at(near.topology, near.required).values()]
        running = {one.node.row for one in self.places_of(ask.id) if one.node is not None}
        able = [
            rows
            for rows in sets
            if running <= set(rows.tolist())
            and all(int(self.scores.empty_counts(pool, kind)[rows].sum()) >= pods for kind, pods in ask.kinds)
        ]
        able.sort(key=lambda rows: (-self._free_in(pool, rows), int(rows[0])))
        return [*able]

    def _free_in(self, pool: Pool, rows: Rows) -> int:
        return sum(room.part("later") for row in rows.tolist() for room in pool.nodes[row].devices)

    def _orders(self, pool: str, pods: Sequence[Pod]) -> tuple[Order, ...]:
        is_spread = self.scores.strategy(pool) == "spread"
        return fitting.orders_of([pod.request for pod in pods], is_spread=is_spread)

    def _is_fixed(self, ask: Ask) -> bool:
        workload = ask.workload
        return not workload.is_preemptible and (ask.is_core or not workload.is_semi_preemptible)

    # Gangs.

    def _place_all(self, ask: Ask, pods: Sequence[Pod], view: View, order: Order) -> list[Holding] | None:
        """Places for all pods, taken in the world; the caller rolls back."""
        if any(pod.unmet for pod in pods):
            return None
        workload = ask.workload
        if workload.gang is None and workload.near is None:
            return self._place_drawn(ask, pods, view, order)
        if not self.may_fit_pods(ask, pods, view):
            return None
        return _Gang(self, ask, pods, view, order).place()

    def _place_drawn(self, ask: Ask, pods: Sequence[Pod], view: View, order: Order) -> list[Holding] | None:
        """Where the first pod goes decides about those that are drawn to it: if they find no room there, all go where
        there is room for them together."""
        mark = self.world.mark()
        found = self._place_pods(ask, pods, view, order=order, rows=None, is_last=True)
        if found is not None or len(pods) < 2:
            return found
        self.world.rollback(mark)  # What the first try took must not count as taken.
        for rows in self._drawn_together(self.world.pools[ask.pool], pods, view):
            found = self._place_pods(ask, pods, view, order=order, rows=rows, is_last=True)
            if found is not None:
                return found
            self.world.rollback(mark)
        return None

    def _drawn_together(self, pool: Pool, pods: Sequence[Pod], view: View) -> list[Rows]:
        """The sets of nodes with equal labels of those by which some of the pods are drawn to others, and with room
        for as many: those with the least room first."""
        keys = sorted({term.topology_key for pod in pods for term in pod.request.affinity})
        kinds = {self.world.kind_of(pod.request) for pod in pods}
        found: list[tuple[int, str, str, Rows]] = []
        for key in keys:
            domains: dict[str, list[int]] = {}
            for node in pool.usable:
                if key in node.node.labels:
                    domains.setdefault(node.node.labels[key], []).append(node.row)
            for name, members in domains.items():
                rows = np.array(members, np.intp)
                room = sum(self.count(pool, kind, view, rows) for kind in kinds)
                if room >= len(pods):
                    found.append((room, key, name, rows))
        found.sort(key=lambda one: one[:3])
        return [one[3] for one in found[:_MOST_DOMAINS]]

    def may_fit_pods(self, ask: Ask, pods: Sequence[Pod], view: View, rows: Rows | None = None) -> bool:
        """The sound "no" of `may_fit` for some pods and some nodes."""
        kinds: dict[int, int] = {}
        for pod in pods:
            kind = self.world.kind_of(pod.request)
            kinds[kind] = kinds.get(kind, 0) + 1
        pool = self.world.pools[ask.pool]
        return all(self.count(pool, kind, view, rows) >= wanted for kind, wanted in sorted(kinds.items()))

    def _place_pods(
        self, ask: Ask, pods: Sequence[Pod], view: View, *, order: Order, rows: Rows | None, is_last: bool = False
    ) -> list[Holding] | None:
        """Places for these pods, taken in the world; if nothing is placed after them, that of the last pod is not."""
        pool = self.world.pools[ask.pool]
        holdings: list[Holding] = []
        left = self._hardest_first(ask.pool, pods, view) if len(pods) > 1 else pods
        drawn: list[Pod] = []
        while left:
            for pod in left:
                found = self.best(pool, pod.request, view, order=order, rows=rows)
                if found is None and not pod.request.affinity:
                    return None
                if found is None:
                    drawn.append(pod)
                    continue
                holding = self.at(ask, pod, node=found[0], slots=found[1])
                holdings.append(holding)
                if not is_last or len(holdings) < len(pods):
                    _take(self.world, holding, view)
            if len(drawn) == len(left):
                return None
            left, drawn = drawn, []  # They may be drawn to those that have a place now.
        return sorted(holdings, key=lambda one: gang.task_key(one.pod)) if len(pods) > 1 else holdings

    def _hardest_first(self, pool: str, pods: Sequence[Pod], view: View) -> list[Pod]:
        """Of unlike pods those of which the fewest fit first, then the largest."""
        kinds = {pod.id: self.world.kind_of(pod.request) for pod in pods}
        if len(set(kinds.values())) == 1:
            return sorted(pods, key=gang.task_key)
        fit = {kind: self.count(self.world.pools[pool], kind, view) for kind in sorted(set(kinds.values()))}
        return sorted(pods, key=lambda pod: (fit[kinds[pod.id]], size_key(pod.request), *gang.task_key(pod)))


class _Gang:
    """One attempt to place a gang whose groups ask to be near each other."""

    def __init__(self, placer: Placer, ask: Ask, pods: Sequence[Pod], view: View, order: Order) -> None:
        self._placer, self._ask, self._view, self._order = placer, ask, view, order
        self._world = placer.world
        self._pool = placer.world.pools[ask.pool]
        self._pods: dict[str, list[Pod]] = {}
        for pod in pods:
            self._pods.setdefault(gang.leaf_of(ask.workload, pod), []).append(pod)

    def place(self) -> list[Holding] | None:
        """Places for all pods, taken in the world; the caller rolls back."""
        holdings = self._place(self._ask.workload.root, None)
        return None if holdings is None else sorted(holdings, key=lambda one: gang.task_key(one.pod))

    def _place(self, group: Group, rows: Rows | None) -> list[Holding] | None:
        pods = [pod for leaf in gang.leaves_of(group) for pod in self._pods.get(leaf, ())]
        for within in self._candidates(group, pods, rows):
            mark = self._world.mark()
            found = self._place_in(group, pods, within)
            if found is not None:
                return found
            self._world.rollback(mark)
        return None

    def _place_in(self, group: Group, pods: Sequence[Pod], rows: Rows | None) -> list[Holding] | None:
        if not group.groups:
            if group.near is not None and group.near.preferred is not None:
                return self._place_spanning(group.near, pods, rows)
            return self._placer._place_pods(self._ask, pods, self._view, order=self._order, rows=rows)
        children = [child for child in group.groups if any(self._pods.get(leaf) for leaf in gang.leaves_of(child))]
        for ordered in self._sequences(children):
            mark = self._world.mark()
            found = self._place_one_by_one(ordered, rows)
            if found is not None:
                return found
            self._world.rollback(mark)
        return None

    def _place_one_by_one(self, groups: Sequence[Group], rows: Rows | None) -> list[Holding] | None:
        found: list[Holding] = []
        for group in groups:
            placed = self._place(group, rows)
            if placed is None:
                return None
            found += placed
        return found

    def _sequences(self, groups: Sequence[Group]) -> list[list[Group]]:
        """What is hardest to place first: the largest; or those that have to be in one domain, as others may take the
        only one that would do."""
        by_size = sorted(groups, key=lambda one: (-self._weight(one), one.name))
        bound_first = sorted(by_size, key=lambda one: not _is_bound(one))
        return [by_size] if bound_first == by_size else [by_size, bound_first]

    def _weight(self, group: Group) -> int:
        """The largest first: what is hardest to place."""
        pods = [pod for leaf in gang.leaves_of(group) for pod in self._pods.get(leaf, ())]
        return sum(self._world.ask_of((self._pool.name,), pods))

    def _candidates(self, group: Group, pods: Sequence[Pod], rows: Rows | None) -> Iterable[Rows | None]:
        """The sets of nodes to try, one after the other: narrow domains before wide ones, full before empty ones."""
        near = group.near
        if near is None:
            yield rows
            return
        running = self._rows_of_running(group)
        if near.required is not None and running:
            rows = self._around(near.topology, near.required, running, rows)
        for level in self._pool.domains.levels_from(near.topology, preferred=near.preferred, required=near.required):
            if level is None:
                yield rows
            else:
                yield from self._domains(near, level, pods, rows=rows, running=running)

    def _domains(
        self, near: Near, level: str, pods: Sequence[Pod], *, rows: Rows | None, running: set[int]
    ) -> Iterable[Rows]:
        """The domains of a level that may hold the pods: first where pods of the gang are already, then the fullest."""
        found: list[tuple[bool, int, tuple[str, ...], Rows]] = []
        kind = self._world.kind_of(pods[0].request)
        for domain, members in self._pool.domains.at(near.topology, level).items():
            inside = _inside(members, rows)
            if not len(inside) or not self._placer.may_fit_pods(self._ask, pods, self._view, inside):
                continue
            is_new = not running & set(members)
            found.append((is_new, self._placer.count(self._pool, kind, self._view, inside), domain, inside))
        found.sort(key=lambda one: one[:3])
        for *_, inside in found:
            yield inside

    def _around(self, topology: str, level: str, running: set[int], rows: Rows | None) -> Rows:
        """The nodes of the domain in which all of its pods are that run already; none if there is no such domain."""
        for members in self._pool.domains.at(topology, level).values():
            if running <= set(members):
                return _inside(members, rows)
        return np.array([], np.intp)

    def _rows_of_running(self, group: Group) -> set[int]:
        """Where the other pods of a group are, or will be."""
        leaves = set(gang.leaves_of(group))
        own = {pod.id for pods in self._pods.values() for pod in pods}
        return {
            one.node.row
            for one in self._placer.places_of(self._ask.id)
            if one.node is not None and one.pod.id not in own and gang.leaf_of(self._ask.workload, one.pod) in leaves
        }

    def _place_spanning(self, near: Near, pods: Sequence[Pod], rows: Rows | None) -> list[Holding] | None:
        """In as few domains of the preferred level as can be: the fullest that holds all that is left, else the one
        that holds most of it."""
        assert near.preferred is not None
        domains = self._pool.domains.at(near.topology, near.preferred)
        left = self._placer._hardest_first(self._pool.name, pods, self._view)
        found: list[Holding] = []
        tried: set[tuple[str, ...]] = set()
        while left:
            chosen = self._next_domain(domains, left, rows=rows, tried=tried)
            if chosen is None:
                break
            tried.add(chosen[0])
            left, placed = self._fill(left, chosen[1])
            found += placed
        if not left:
            return found
        rest = self._placer._place_pods(self._ask, left, self._view, order=self._order, rows=rows)
        return None if rest is None else [*found, *rest]

    def _next_domain(
        self,
        domains: Mapping[topology.Domain, Sequence[int]],
        left: Sequence[Pod],
        *,
        rows: Rows | None,
        tried: set[tuple[str, ...]],
    ) -> tuple[tuple[str, ...], Rows] | None:
        kind = self._world.kind_of(left[0].request)
        best: tuple[tuple[bool, int], tuple[str, ...], Rows] | None = None
        for domain, members in domains.items():
            if domain in tried:
                continue
            inside = _inside(members, rows)
            fitting_pods = self._placer.count(self._pool, kind, self._view, inside) if len(inside) else 0
            if not fitting_pods:
                continue
            is_enough = fitting_pods >= len(left)
            key = (not is_enough, fitting_pods if is_enough else -fitting_pods)
            if best is None or (key, domain) < (best[0], best[1]):
                best = (key, domain, inside)
        return None if best is None else (best[1], best[2])

    def _fill(self, pods: Sequence[Pod], rows: Rows) -> tuple[list[Pod], list[Holding]]:
        """Place as many as fit there; the rest is given back."""
        left: list[Pod] = []
        found: list[Holding] = []
        for pod in pods:
            placed = self._placer._place_pods(self._ask, [pod], self._view, order=self._order, rows=rows)
            if placed is None:
                left.append(pod)
            else:
                found += placed
        return left, found


def _is_bound(group: Group) -> bool:
    """Whether it, or a group of it, has to be in one domain."""
    is_own = group.near is not None and group.near.required is not None
    return is_own or any(_is_bound(child) for child in group.groups)


def _groups_of(group: Group) -> Iterator[Group]:
    """The group and all within it."""
    yield group
    for child in group.groups:
        yield from _groups_of(child)


def _inside(members: Sequence[int], rows: Rows | None) -> Rows:
    found: Rows = np.array(members, np.intp)
    return found if rows is None else found[np.isin(found, rows)]


def _take(world: World, holding: Holding, view: View) -> None:
    if view == "later":
        world.promise(holding)
    else:
        world.hold(holding)


def size_key(request: PodRequest) -> tuple[int, ...]:
    """Larger pods are placed first."""
    gpu = request.gpu
    shares = (0, 0, 0) if gpu is None else (-gpu.devices, -(gpu.milli or 0), -(gpu.mib or 0))
    return (*shares, -request.milli_cpus, -request.memory_bytes)
