"""How much a place costs those who come next: the measure by which `fragmentation` chooses among nodes.

What is expected is a list of shapes (CPU, GPUs, their models) with how often each was asked. For a node and a shape,
in milli-GPU: `stranded` is what is idle there and of no use to the shape, as Weng et al. define it ("Beware of
Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023, section 4):
all of it if not even one such pod fits, else the rests of devices that are too small for it. `usable` is what pods of
this shape alone could take of the node. The cost of a node is the sum over the shapes of

    weight · (STRANDED · stranded - usable)        weight = asked / (size of the shape · what is usable in all nodes)

and the cost of a place is by how much it raises that of its node. The weight makes room dear that few nodes have and
many want. STRANDED and the exponents of the weight were found by trying them on the 17 workloads of the openb traces,
on each of which the mean allocation is above that of the paper's own measure (`make bench-openb`).

All numbers are whole, so that the answer is the same on every machine. Nodes are looked at together, as arrays: `cpus`
(N,) in milli-CPU, `free` (N, D) in milli-GPU per device (0 where a node has fewer), `models` (N,) as numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aliquot.core.model import WHOLE_DEVICE_MILLI, PodRequest

Numbers = NDArray[np.int64]
Milli = NDArray[np.int32]
"""Of one node: never more than a few hundred thousand, and half as long to go through."""

STRANDED = 8
MOST_SHAPES = 128
_WEIGHTS = 1 << 20
"""What all weights add up to."""
_FLOOR = 20_000
"""Milli-GPU of usable room below which room does not become dearer still."""
_BLOCK = 1 << 20
"""Numbers that are worked on at once, so that memory stays small for any cluster."""
_MOST = 1 << 20
"""More pods than any node holds."""
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Shape:
    """What pods ask for, as far as it is expected: whole devices, or a share of one."""

    milli_cpus: int
    devices: int
    milli: int
    models: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Milli-GPU in all."""
        return self.devices * self.milli


@dataclass(frozen=True, slots=True)
class Nodes:
    """What is left of some nodes."""

    cpus: Numbers
    free: Numbers
    models: Numbers

    def rows(self, which: NDArray[np.intp] | slice) -> "Nodes":
        """Some of them."""
        return Nodes(self.cpus[which], self.free[which], self.models[which])


@dataclass(frozen=True, slots=True)
class _Tally:
    """What the devices of nodes hold for each shape, looking at devices alone: so many shares, and milli-GPU in rests
    that are too small for one, (N, M) each; and what is idle in all, (N,)."""

    shares: Milli
    rests: Milli
    idle: Milli


def shape_of(request: PodRequest) -> Shape | None:
    """The shape of a request; None if it asks for GPU otherwise than by number or by portion of one device."""
    gpu = request.gpu
    if gpu is None:
        return Shape(request.milli_cpus, 0, 0)
    if gpu.milli is None or (gpu.devices > 1 and not gpu.is_whole):
        return None
    return Shape(request.milli_cpus, gpu.devices, gpu.milli, tuple(sorted(gpu.models)))


class Expected:
    """The shapes that are expected, with what each weighs."""

    def __init__(self, asked: Mapping[Shape, int], models: Sequence[str], nodes: Nodes) -> None:
        """`asked`: how often each shape was asked for. `models`: their names by number. `nodes`: all that are used."""
        gpus = [one for one in asked if one.devices]
        ordered = sorted(gpus, key=lambda one: (-asked[one], one.milli_cpus, one.devices, one.milli, one.models))
        self.shapes = tuple(ordered[:MOST_SHAPES])
        self._cpus = np.array([max(1, one.milli_cpus) for one in self.shapes], np.int64)
        self._devices = np.array([one.devices for one in self.shapes], np.int32)
        self._several = np.flatnonzero(self._devices > 1)
        milli = np.array([max(1, one.milli) for one in self.shapes], np.int32)
        self._sizes = self._devices * milli
        self._suits = np.array(
            [[not one.models or name in one.models for one in self.shapes] for name in models], np.bool_
        ).reshape(len(models), len(self.shapes))
        # What a device with so much free holds of each shape, and what is left of it that is too small for one.
        levels = np.arange(WHOLE_DEVICE_MILLI + 1, dtype=np.int32)[:, None]
        self._shares_at = levels // milli
        self._rests_at = np.where(levels < milli, levels, 0)
        usable = [int(one) for one in self.usable(nodes).sum(axis=0)]
        self.weights = self._weigh([asked[one] for one in self.shapes], usable)
        self._exact = self.weights.astype(np.float64)

    def usable(self, nodes: Nodes) -> Numbers:
        """Milli-GPU that pods of each shape alone could take of each node, (N, M)."""
        found: Numbers = self._fits(self._by_cpu(nodes), self._tally(nodes.free)).astype(np.int64) * self._sizes
        return found

    def stranded(self, nodes: Nodes) -> Numbers:
        """Milli-GPU that are idle on each node and of no use to each shape, (N, M)."""
        tally = self._tally(nodes.free)
        found: Numbers = _stranded(self._fits(self._by_cpu(nodes), tally), tally).astype(np.int64)
        return found

    def cost(self, nodes: Nodes) -> Numbers:
        """What nodes cost as they are, (N,)."""
        return self._cost(self._by_cpu(nodes), self._tally(nodes.free))

    def raise_of(self, nodes: Nodes, shape: Shape) -> tuple[Numbers, NDArray[np.intp]]:
        """By how much a pod raises the cost of each node, (N,), and the device that a share should take there, (N,).

        Whole devices are those that are wholly free, the first first; a share takes the device where it costs least,
        of equals the fullest, then the first. Only meaningful where the pod fits.
        """
        count, devices = nodes.free.shape
        step = max(1, _BLOCK // max(1, devices * len(self.shapes)))
        costs, chosen = np.empty(count, np.int64), np.zeros(count, np.intp)
        for begin in range(0, count, step):
            block = slice(begin, begin + step)
            costs[block], chosen[block] = self._raise_of(nodes.rows(block), shape)
        return costs, chosen

    def _raise_of(self, nodes: Nodes, shape: Shape) -> tuple[Numbers, NDArray[np.intp]]:
        tally = self._tally(nodes.free)
        before = self._cost(self._by_cpu(nodes), tally)
        by_cpu = self._by_cpu(Nodes(nodes.cpus - shape.milli_cpus, nodes.free, nodes.models))
        first = np.zeros(len(before), np.intp)
        if not shape.devices:
            return self._cost(by_cpu, tally) - before, first
        if shape.milli == WHOLE_DEVICE_MILLI:
            whole = nodes.free == WHOLE_DEVICE_MILLI
            taken = whole & (np.cumsum(whole, axis=1) <= shape.devices)
            return self._cost(by_cpu, self._tally(np.where(taken, 0, nodes.free))) - before, first
        rows, columns = np.nonzero((nodes.free >= shape.milli) & ~_is_repeated(nodes.free))
        then = nodes.free[rows, columns]
        costs = self._cost(by_cpu[rows], self._with_share(tally, rows, then, shape.milli)) - before[rows]
        order = np.lexsort((columns, then, costs, rows))
        best = order[np.flatnonzero(np.diff(rows[order], prepend=-1))]
        found, chosen = np.full(len(before), _NEVER, np.int64), first
        found[rows[best]], chosen[rows[best]] = costs[best], columns[best]
        return found, chosen

    def _with_share(self, tally: _Tally, rows: NDArray[np.intp], then: Numbers, milli: int) -> _Tally:
        """What nodes hold once a share is taken of a device of which `then` was free."""
        shares, rests = tally.shares[rows], tally.rests[rows]
        shares += self._shares_at[then - milli]
        shares -= self._shares_at[then]
        rests += self._rests_at[then - milli]
        rests -= self._rests_at[then]
        return _Tally(shares, rests, tally.idle[rows] - np.int32(milli))

    def _weigh(self, asked: Sequence[int], usable: Sequence[int]) -> Numbers:
        """Weights as whole numbers that add up to about _WEIGHTS, exact in any order."""
        sizes = [int(one) for one in self._sizes]
        scale = 10**18
        raw = [one * scale // (size * (room + _FLOOR)) for one, size, room in zip(asked, sizes, usable, strict=True)]
        total = max(1, sum(raw))
        return np.array([one * _WEIGHTS // total for one in raw], np.int64)

    def _tally(self, free: Numbers) -> _Tally:
        free = np.clip(free, 0, WHOLE_DEVICE_MILLI)
        shares, rests = self._shares_at[free[:, 0]], self._rests_at[free[:, 0]]
        for column in range(1, free.shape[1]):
            shares += self._shares_at[free[:, column]]
            rests += self._rests_at[free[:, column]]
        return _Tally(shares, rests, free.sum(axis=1).astype(np.int32))

    def _cost(self, by_cpu: Milli, tally: _Tally) -> Numbers:
        fits = self._fits(by_cpu, tally)
        each = _stranded(fits, tally)
        each *= STRANDED
        fits *= self._sizes
        each -= fits
        # Sums of whole numbers below 2**53 are exact in floats too, and much faster.
        found: Numbers = (each.astype(np.float64) @ self._exact).astype(np.int64)
        return found

    def _by_cpu(self, nodes: Nodes) -> Milli:
        """How many pods of each shape the CPU of each node suffices for, none where the model is wrong, (N, M)."""
        most = np.minimum(np.maximum(nodes.cpus, 0)[:, None] // self._cpus, _MOST)
        found: Milli = (most * self._suits[nodes.models]).astype(np.int32)
        return found

    def _fits(self, by_cpu: Milli, tally: _Tally) -> Milli:
        """How many pods of each shape alone fit each node, (N, M)."""
        fits = tally.shares.copy()
        if len(self._several):
            fits[:, self._several] //= self._devices[self._several]
        found: Milli = np.minimum(fits, by_cpu, out=fits)
        return found


def _stranded(fits: Milli, tally: _Tally) -> Milli:
    found: Milli = np.where(fits > 0, tally.rests, tally.idle[:, None])
    return found


def _is_repeated(free: Numbers) -> NDArray[np.bool_]:
    """Where a device has as much free as an earlier one of the same node."""
    earlier = np.tri(free.shape[1], k=-1, dtype=np.bool_)
    found: NDArray[np.bool_] = ((free[:, :, None] == free[:, None, :]) & earlier).any(axis=2)
    return found
