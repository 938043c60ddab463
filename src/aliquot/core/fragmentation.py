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

All numbers are whole; nodes are looked at together, as arrays: `cpus` (N,) in milli-CPU, `free` (N, D) in milli-GPU per
device (0 where a node has fewer), `models` (N,) as numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aliquot.core.model import WHOLE_DEVICE_MILLI, PodRequest

Numbers = NDArray[np.int64]

STRANDED = 8
MOST_SHAPES = 128
_WEIGHTS = 1 << 20
"""What all weights add up to."""
_FLOOR = 20_000
"""Milli-GPU of usable room below which room does not become dearer still."""


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

    def rows(self, which: NDArray[np.intp]) -> "Nodes":
        """Some of them."""
        return Nodes(self.cpus[which], self.free[which], self.models[which])


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
        """`asked`: how often each shape was asked for. `models`: their names by number."""
        gpus = [one for one in asked if one.devices]
        ordered = sorted(gpus, key=lambda one: (-asked[one], one.milli_cpus, one.devices, one.milli, one.models))
        self.shapes = tuple(ordered[:MOST_SHAPES])
        self._cpus = np.array([max(1, one.milli_cpus) for one in self.shapes], np.int64)
        self._devices = np.array([one.devices for one in self.shapes], np.int64)
        self._milli = np.array([max(1, one.milli) for one in self.shapes], np.int64)
        names = {name: number for number, name in enumerate(models)}
        self._suits = np.array(
            [[not one.models or name in one.models for one in self.shapes] for name in names], np.bool_
        ).reshape(len(names), len(self.shapes))
        in_all = self._usable(nodes, self._fits(nodes)).sum(axis=0)
        self.weights = self._weigh([asked[one] for one in self.shapes], [int(one) for one in in_all])

    def cost(self, nodes: Nodes) -> Numbers:
        """What nodes cost as they are, (N,)."""
        fits = self._fits(nodes)
        stranded = self._stranded(nodes, fits)
        found: Numbers = (STRANDED * stranded - self._usable(nodes, fits)) @ self.weights
        return found

    def raise_of(self, nodes: Nodes, shape: Shape) -> tuple[Numbers, NDArray[np.intp]]:
        """By how much a pod raises the cost of each node, (N,), and the device that a share should take there, (N,).

        Whole devices are those that are wholly free, the first first; a share takes the device where it costs least,
        of equals the fullest. Only meaningful where the pod fits.
        """
        before = self.cost(nodes)
        cpus = nodes.cpus - shape.milli_cpus
        count, devices = nodes.free.shape
        if not shape.devices:
            return self.cost(Nodes(cpus, nodes.free, nodes.models)) - before, np.zeros(count, np.intp)
        if shape.milli == WHOLE_DEVICE_MILLI:
            whole = nodes.free == WHOLE_DEVICE_MILLI
            taken = whole & (np.cumsum(whole, axis=1) <= shape.devices)
            after = self.cost(Nodes(cpus, np.where(taken, 0, nodes.free), nodes.models))
            return after - before, np.zeros(count, np.intp)
        best = np.full(count, np.iinfo(np.int64).max)
        chosen, left = np.zeros(count, np.intp), np.full(count, np.iinfo(np.int64).max)
        for device in range(devices):
            able = nodes.free[:, device] >= shape.milli
            if not able.any():
                continue
            free = nodes.free.copy()
            free[:, device] -= shape.milli
            cost = self.cost(Nodes(cpus, np.maximum(free, 0), nodes.models)) - before
            is_better = able & ((cost < best) | ((cost == best) & (free[:, device] < left)))
            best = np.where(is_better, cost, best)
            left = np.where(is_better, free[:, device], left)
            chosen = np.where(is_better, device, chosen)
        return best, chosen

    def _weigh(self, asked: Sequence[int], usable: Sequence[int]) -> Numbers:
        """Weights as whole numbers that add up to about _WEIGHTS, exact in any order."""
        sizes = [int(one) for one in self._devices * self._milli]
        scale = 10**12
        raw = [
            one * scale * 10**6 // (size * (room + _FLOOR))
            for one, size, room in zip(asked, sizes, usable, strict=True)
        ]
        total = max(1, sum(raw))
        return np.array([one * _WEIGHTS // total for one in raw], np.int64)

    def _fits(self, nodes: Nodes) -> Numbers:
        """How many pods of each shape alone fit each node, (N, M)."""
        free = nodes.free[:, :, None]
        by_device = (free // self._milli).sum(axis=1) // self._devices
        by_cpu = np.maximum(nodes.cpus, 0)[:, None] // self._cpus
        found: Numbers = np.where(self._suits[nodes.models], np.minimum(by_device, by_cpu), 0)
        return found

    def _usable(self, nodes: Nodes, fits: Numbers) -> Numbers:
        found: Numbers = fits * (self._devices * self._milli)
        return found

    def _stranded(self, nodes: Nodes, fits: Numbers) -> Numbers:
        free = nodes.free[:, :, None]
        rests = np.where(free < self._milli, free, 0).sum(axis=1)
        found: Numbers = np.where(fits > 0, rests, nodes.free.sum(axis=1)[:, None])
        return found
