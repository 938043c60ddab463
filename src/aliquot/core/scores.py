"""How good each node is for a pod, and how many pods fit on it: one number per node and kind of request.

Nodes are compared by, the most significant first: taints that would rather keep the pod off, an already shared device
for a share, room now before room that is being freed, then as the pool says (`fragmentation`, `pack`, `spread`), CPU
and memory left balanced, id. The numbers are kept from query to query and from cycle to cycle, and brought up to date
by the nodes that changed, so that placing costs little more than finding the smallest number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from aliquot.core import constraints, fitting, fragmentation, rooms
from aliquot.core.fitting import Order
from aliquot.core.fragmentation import Expected, Nodes, Shape
from aliquot.core.model import PlacementStrategy, PodRequest, Policy
from aliquot.core.rooms import NodeRoom, Slot, View
from aliquot.core.snapshot import Pool, World

NO_ROOM = np.iinfo(np.int64).max
_MOST_WASTE = 1 << 23
_MOST_CHARGE = (1 << 18) - 1
_MIDDLE = 1 << 39
"""The cost by fragmentation is a number with a sign of 40 bits."""


@dataclass(slots=True)
class Index:
    """One number per node of a pool, kept by the log of what changed."""

    values: NDArray[np.int64]
    seen: int
    """How far the log was read."""
    total: int = 0
    """Of counts their sum."""


@dataclass(slots=True)
class State:
    """What is left of all nodes of a pool, as `fragmentation` looks at them."""

    nodes: Nodes
    models: tuple[str, ...]
    seen: int
    free: list[int]
    """By row, what is free there in all."""
    total: int = 0
    """What is free in all."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected in a pool, worked out for what was asked and about how much is free."""

    basis: tuple[object, ...]
    expected: Expected
    serial: int


@dataclass(slots=True)
class Scores:
    """The numbers of one world under one policy."""

    world: World
    policy: Policy
    _asked: dict[str, tuple[tuple[Shape, int], ...]] = field(default_factory=dict)

    def strategy(self, pool: str) -> PlacementStrategy:
        """How a pool places work that uses GPUs."""
        return self.policy.placement_by_pool.get(pool, self.policy.gpu_placement)

    def is_welcome(self, node: NodeRoom, request: PodRequest, view: View) -> bool:
        """Whether the pods that are there, or near, allow it."""
        idle, future = self.world.neighbours(node.node.pool)
        if view != "later" and idle.refusal(node.node, request) is not None:
            return False
        return view == "held" or future.refusal(node.node, request) is None

    def _is_social(self, pool: Pool, request: PodRequest) -> bool:
        """Whether other pods have a say: its score is then worked out each time."""
        return request.is_social or (
            bool(request.labels) and any(one.has_terms for one in self.world.neighbours(pool.name))
        )

    def of(self, pool: Pool, request: PodRequest, view: View, order: Order) -> NDArray[np.int64]:
        """How good each node is for a pod: the smaller the better, NO_ROOM where it does not fit."""
        strategy = self.strategy(pool.name)

        def score(node: NodeRoom) -> int:
            return self._score(node, request, view, order=order, strategy=strategy)

        if self._is_social(pool, request):
            return np.array(
                [score(node) if self.is_welcome(node, request, view) else NO_ROOM for node in pool.nodes], np.int64
            )
        is_by_waste = strategy == "fragmentation" and order != "cheap"
        shape = fragmentation.shape_of(request) if is_by_waste else None
        if shape is not None and (expectation := self._expectation(pool)) is not None:
            return self._by_fragmentation(pool, request, view, order=order, wanted=(shape, expectation))
        key = ("score", self.world.kind_of(request), view, order, strategy, self.policy.cpu_placement)
        return _kept(pool, key, score, request)

    def device_for(self, node: NodeRoom, request: PodRequest) -> int | None:
        """On which device of a node a share costs least those who come next; None if that is not known."""
        pool = self.world.pools[node.node.pool]
        if self.strategy(pool.name) != "fragmentation" or request.gpu is None or request.gpu.is_whole:
            return None
        shape, expectation = fragmentation.shape_of(request), self._expectation(pool)
        if shape is None or expectation is None:
            return None
        row = np.array([node.row], np.intp)
        return int(expectation.expected.raise_of(self._state(pool).nodes.rows(row), shape)[1][0])

    def count(self, pool: Pool, kind: int, view: View, rows: NDArray[np.intp] | None = None) -> int:
        """How many pods of a kind fit on these nodes (None: on all), looking at each alone."""
        request = self.world.requests[kind]

        def count(node: NodeRoom) -> int:
            if constraints.refusal(node.node, request) is not None:
                return 0
            return fitting.count(node, request, view)

        if request.anti_affinity or request.spread:
            # Each pod that is placed changes what the next one may do: a node is counted as if only room mattered.
            return sum(count(node) for node in (pool.nodes if rows is None else [pool.nodes[row] for row in rows]))
        index = _index(pool, ("count", kind, view), count, request)
        return index.total if rows is None else int(index.values[rows].sum())

    def empty_counts(self, pool: Pool, kind: int) -> NDArray[np.int64]:
        """How many pods of a kind fit on each node when nothing runs there."""
        request = self.world.requests[kind]

        known: dict[int, int] = {}

        def count(node: NodeRoom) -> int:
            if constraints.refusal(node.node, request) is not None:
                return 0
            if node.kind not in known:
                empty = rooms.node_room(node.node, row=node.row, touched=[])
                known[node.kind] = fitting.count(empty, request, "now")
            return known[node.kind]

        key = ("empty", kind)
        found = pool.indexes.get(key)
        if not isinstance(found, Index):
            found = Index(np.fromiter((count(node) for node in pool.nodes), np.int64, len(pool.nodes)), 0)
            pool.indexes[key] = found
        return found.values

    def free_gpus(self, pool: str) -> int:
        """Milli-GPU of a pool that nobody will hold when all that was told to end is gone."""

        def free(node: NodeRoom) -> int:
            return fitting.tally(node)[0] if node.is_usable else 0

        return int(_kept(self.world.pools[pool], "free", free).sum())

    def _by_fragmentation(
        self, pool: Pool, request: PodRequest, view: View, *, order: Order, wanted: tuple[Shape, Expectation]
    ) -> NDArray[np.int64]:
        """The scores by fragmentation, for all nodes that changed at once."""
        shape, expectation = wanted
        kind = self.world.kind_of(request)

        def frame(node: NodeRoom) -> int:
            return self._frame(node, request, view)

        # Whether it fits does not change with what is expected, and costs more to find out than fragmentation does.
        frames = _kept(pool, ("frame", kind, view), frame, request)
        key = ("fragmentation", kind, view, order, expectation.serial)
        state = self._state(pool)
        index = pool.indexes.get(key)
        if not isinstance(index, Index) or index.seen < pool.forgotten:
            index = Index(np.full(len(pool.nodes), NO_ROOM, np.int64), state.seen)
            pool.indexes[key] = index
            rows = np.arange(len(pool.nodes))
        else:
            rows = np.array(sorted(set(pool.touched[index.seen - pool.forgotten :])), np.intp)
            index.seen = state.seen
        if not len(rows):
            return index.values
        index.values[rows] = NO_ROOM
        able = rows[frames[rows] != NO_ROOM]
        if len(able):
            waste = expectation.expected.raise_of(state.nodes.rows(able), shape)[0]
            waste = np.clip(waste + _MIDDLE, 0, 2 * _MIDDLE - 1)
            head, tail = frames[able] >> 10, frames[able] & 1023
            index.values[able] = (head * (2 * _MIDDLE) + waste) << 10 | tail
        return index.values

    def _frame(self, node: NodeRoom, request: PodRequest, view: View) -> int:
        """What counts more than fragmentation, then 10 bits of what counts less; NO_ROOM if the pod does not fit."""
        if constraints.refusal(node.node, request) is not None or not fitting.has_room(node, request, view):
            return NO_ROOM
        is_late = view == "later" and not fitting.has_room(node, request, "now")
        return (min(constraints.preference(node.node, request), 7) << 1 | is_late) << 10 | _imbalance(node, request)

    def _expectation(self, pool: Pool) -> Expectation | None:
        """What is expected in a pool: what was asked lately, else what waits. Worked out anew when that changes, or
        about a fifth more or less is free."""
        asked = self._asked_in(pool)
        if not asked:
            return None
        state = self._state(pool)
        free = state.total + 1
        level = free.bit_length() * 4 + (free * 4 >> free.bit_length() - 1) - 4
        basis = (asked, level)
        found = pool.indexes.get("expectation")
        if not isinstance(found, Expectation) or found.basis != basis:
            serial = found.serial + 1 if isinstance(found, Expectation) else 0
            for key in [key for key in pool.indexes if isinstance(key, tuple) and key[0] == "fragmentation"]:
                del pool.indexes[key]
            found = Expectation(basis, Expected(dict(asked), state.models, state.nodes), serial)
            pool.indexes["expectation"] = found
        return found

    def _asked_in(self, pool: Pool) -> tuple[tuple[Shape, int], ...]:
        if pool.name not in self._asked:
            snapshot = self.world.snapshot
            counted: dict[Shape, int] = {}
            lately = [(one.request, one.count) for one in snapshot.recent]
            for request, count in lately or self._waiting_in(pool):
                shape = fragmentation.shape_of(request)
                if shape is not None and shape.devices:
                    counted[shape] = counted.get(shape, 0) + count
            ordered = sorted(counted, key=lambda one: (one.milli_cpus, one.devices, one.milli, one.models))
            self._asked[pool.name] = tuple((shape, counted[shape]) for shape in ordered)
        return self._asked[pool.name]

    def _waiting_in(self, pool: Pool) -> list[tuple[PodRequest, int]]:
        """What waits, and how much of it."""
        kinds: dict[int, int] = {}
        for entry in self.world.waiting.values():
            if entry.pool == pool.name:
                for pod in entry.pending:
                    kind = self.world.kind_of(pod.request)
                    kinds[kind] = kinds.get(kind, 0) + 1
        return [(self.world.requests[kind], count) for kind, count in kinds.items()]

    def _state(self, pool: Pool) -> State:
        end = pool.forgotten + len(pool.touched)
        state = pool.indexes.get("state")
        if not isinstance(state, State) or state.seen < pool.forgotten:
            models = sorted({room.device.model for node in pool.nodes for room in node.devices} | {""})
            most = max((len(node.devices) for node in pool.nodes), default=0)
            free = np.zeros((len(pool.nodes), max(1, most)), np.int64)
            numbers = [models.index(node.devices[0].device.model if node.devices else "") for node in pool.nodes]
            nodes = Nodes(np.zeros(len(pool.nodes), np.int64), free, np.array(numbers, np.int64))
            state = State(nodes, tuple(models), end, [0] * len(pool.nodes))
            pool.indexes["state"] = state
            rows = set(range(len(pool.nodes)))
        else:
            rows = set(pool.touched[state.seen - pool.forgotten :])
            state.seen = end
        for row in rows:
            node = pool.nodes[row]
            state.nodes.cpus[row] = node.future[0]
            parts = [room.part("later") for room in node.devices]
            state.nodes.free[row, : len(parts)] = parts
            in_all = sum(parts)
            state.total += in_all - state.free[row]
            state.free[row] = in_all
        return state

    def _score(self, node: NodeRoom, request: PodRequest, view: View, *, order: Order, strategy: str) -> int:
        """Smaller is better; NO_ROOM if it does not fit. Packed into one number, a field after the other."""
        if constraints.refusal(node.node, request) is not None:
            return NO_ROOM
        gpu = request.gpu
        if gpu is not None and node.has_plain_devices and fitting.is_plain_whole(gpu):
            return self._score_whole(node, request, view, strategy=strategy)
        slots = fitting.fit(node, request, view, order=order)
        if slots is None:
            return NO_ROOM
        is_share = request.gpu is not None and not request.gpu.is_whole and request.gpu.profile is None
        opens = sum(not slot.room.sharers for slot in slots) if is_share and strategy != "spread" else 0
        is_late = view == "later" and fitting.fit(node, request, "now", order=order) is None
        charge = sum(slot.milli for slot in slots) if order == "cheap" else 0  # Else a limit may keep it out.
        value = min(charge, _MOST_CHARGE) << 3 | min(constraints.preference(node.node, request), 7)
        value = value << 5 | min(opens, 31)
        value = value << 1 | is_late
        value = value << 24 | self._waste(node, request, slots, strategy=strategy)
        return value << 10 | _imbalance(node, request)

    def _score_whole(self, node: NodeRoom, request: PodRequest, view: View, *, strategy: str) -> int:
        """The same score for whole devices of any kind, the common case, in one pass over the devices."""
        assert request.gpu is not None
        if not node.is_usable or not fitting.has_node_room(node, request, view):
            return NO_ROOM
        free, wholes_now, wholes_later = fitting.tally(node)
        wholes = wholes_later if view == "later" else wholes_now
        if view == "held":
            wholes = sum(room.is_usable and room.is_whole("held") for room in node.devices)
        if wholes < request.gpu.devices:
            return NO_ROOM
        is_late = view == "later" and (
            wholes_now < request.gpu.devices or not fitting.has_node_room(node, request, "now")
        )
        value = min(constraints.preference(node.node, request), 7) << 6 | is_late
        value = value << 24 | (free if strategy != "spread" else _MOST_WASTE - free)
        return value << 10 | _imbalance(node, request)

    def _waste(self, node: NodeRoom, request: PodRequest, slots: Sequence[Slot], *, strategy: str) -> int:
        """By the pool's strategy, from 0 (best) to 2**24."""
        if request.gpu is None:
            # Work without a GPU keeps off the nodes that have some.
            left = min(node.future[0], _MOST_WASTE - 1)
            return (_MOST_WASTE if node.devices else 0) + (
                left if self.policy.cpu_placement == "pack" else _MOST_WASTE - 1 - max(left, 0)
            )
        free = sum(room.part("later") for room in node.devices)
        return free if strategy != "spread" else _MOST_WASTE - free


def _kept(
    pool: Pool, key: object, value_of: Callable[[NodeRoom], int], request: PodRequest | None = None
) -> NDArray[np.int64]:
    return _index(pool, key, value_of, request).values


def _index(pool: Pool, key: object, value_of: Callable[[NodeRoom], int], request: PodRequest | None) -> Index:
    """The values of all nodes, kept from before and brought up to date where room changed."""
    log, end = pool.touched, pool.forgotten + len(pool.touched)
    is_plain = request is None or (request.nodes is None and not request.node_labels)
    index = pool.indexes.get(key)
    if not isinstance(index, Index) or index.seen < pool.forgotten:
        known: dict[int, int] = {}  # Empty nodes of one kind have one value, unless it matters which nodes they are.
        values = np.empty(len(pool.nodes), np.int64)
        for node in pool.nodes:
            if node.used or not is_plain or node.node.taints:
                values[node.row] = value_of(node)
                continue
            if node.kind not in known:
                known[node.kind] = value_of(node)
            values[node.row] = known[node.kind]
        index = pool.indexes[key] = Index(values, end, int(values.sum()))
        return index
    if index.seen < end:
        changed = log[index.seen - pool.forgotten :]
        for row in set(changed) if len(changed) > 1 else changed:
            value = value_of(pool.nodes[row])
            index.total += value - int(index.values[row])
            index.values[row] = value
        index.seen = end
    return index


def _imbalance(node: NodeRoom, request: PodRequest) -> int:
    """How far apart the free parts of CPU and memory would be, in thousandths."""
    cpus, memory = node.node.milli_cpus, node.node.memory_bytes
    if not cpus or not memory:
        return 0
    free_cpus, free_memory = node.future[0] - request.milli_cpus, node.future[1] - request.memory_bytes
    return min(1000, abs(1000 * free_cpus // cpus - 1000 * free_memory // memory))
