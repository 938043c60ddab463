"""Other ways of placing pods, to measure ours beside: those of the FGD paper, as its simulator has them.

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC 2023. A rule gives each node a score, a whole number; the highest wins, of equals the first in the order of
the nodes. Promises: with the same arrivals the mean allocation is that of the published runs within their spread.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aliquot.core.model import WHOLE_DEVICE_MILLI, Node, PodRequest

Numbers = NDArray[np.int64]
Rows = NDArray[np.intp]

_MOST_CPU = 128_000
"""Milli-CPU of the largest node: what the rules of the paper divide by. The same for milli-GPU."""
_MOST_GPU = 8_000
COVERED = 0.95
"""Typical are the most frequent requests that make up so much of all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pod asks for. `suits`: whether a node of each model may take it, by the model's number."""

    milli_cpus: int
    memory_bytes: int
    devices: int
    milli: int
    suits: tuple[bool, ...]

    @property
    def size(self) -> int:
        """Milli-GPU in all."""
        return self.devices * self.milli

    @property
    def is_share(self) -> bool:
        """Whether it takes a part of one device."""
        return self.devices == 1 and self.milli < WHOLE_DEVICE_MILLI


class Room:
    """What is left of all nodes, in their order: milli-CPU and bytes (N,), milli-GPU of each device (N, D)."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        most = max((len(node.devices) for node in nodes), default=0)
        self.models = tuple(sorted({device.model for node in nodes for device in node.devices} | {""}))
        self.cpus = np.array([node.milli_cpus for node in nodes], np.int64)
        self.memory = np.array([node.memory_bytes for node in nodes], np.int64)
        self.devices = np.array([len(node.devices) for node in nodes], np.int64)
        self.free = np.where(np.arange(max(1, most)) < self.devices[:, None], WHOLE_DEVICE_MILLI, 0)
        names = [node.devices[0].model if node.devices else "" for node in nodes]
        self.model = np.array([self.models.index(name) for name in names], np.int64)
        self.tags = np.zeros(len(nodes), np.int64)
        """A bit for each class of pods that a node has taken: shares, one device, two devices, and so on."""

    def wanted(self, request: PodRequest) -> Wanted:
        """A request, as far as these rules look at it."""
        gpu = request.gpu
        suits = tuple(gpu is None or not gpu.models or model in gpu.models for model in self.models)
        devices, milli = (0, 0) if gpu is None else (gpu.devices, gpu.milli or 0)
        return Wanted(request.milli_cpus, request.memory_bytes, devices, milli, suits)

    def fits(self, wanted: Wanted, rows: Rows) -> NDArray[np.bool_]:
        """Which of these nodes can take the pod."""
        able = (self.cpus[rows] >= wanted.milli_cpus) & (self.memory[rows] >= wanted.memory_bytes)
        if not wanted.devices:
            return able
        enough = (self.free[rows] >= wanted.milli).sum(axis=1) >= wanted.devices
        found: NDArray[np.bool_] = able & enough & np.array(wanted.suits)[self.model[rows]]
        return found

    def take(self, wanted: Wanted, row: int, device: int) -> None:
        """The pod goes there: a share on this device, whole devices on the first that are free."""
        self.cpus[row] -= wanted.milli_cpus
        self.memory[row] -= wanted.memory_bytes
        if wanted.is_share:
            self.free[row, device] -= wanted.milli
        else:
            self.free[row, np.flatnonzero(self.free[row] >= WHOLE_DEVICE_MILLI)[: wanted.devices]] = 0
        if wanted.devices:
            self.tags[row] |= _tag(wanted)


Score = Callable[[Room, Wanted, Rows], Numbers]
"""The scores of nodes on which the pod fits."""


class Placements:
    """Places pods one after the other by one rule, and keeps the scores of nodes that have not changed."""

    def __init__(self, nodes: Sequence[Node], rule: "Rule", rng: random.Random) -> None:
        self.room = Room(nodes)
        self._rule = rule
        self._rng = rng
        self._known: dict[PodRequest, tuple[Wanted, Numbers, int]] = {}
        self._log: list[int] = []

    def place(self, request: PodRequest) -> bool:
        """Whether there was room for a pod, which is taken then."""
        wanted, scores = self._scores(request)
        row = self._rule.choose(scores, self._rng)
        if row is None:
            return False
        device = self._rule.device(self.room, wanted, row, self._rng) if wanted.is_share else 0
        self.room.take(wanted, row, device)
        self._log.append(row)
        return True

    def _scores(self, request: PodRequest) -> tuple[Wanted, Numbers]:
        room = self.room
        if request in self._known:
            wanted, scores, seen = self._known[request]
            rows = np.array(sorted(set(self._log[seen:])), np.intp)
        else:
            wanted, scores = room.wanted(request), np.empty(len(room.cpus), np.int64)
            rows = np.arange(len(room.cpus))
        if len(rows):
            able = rows[room.fits(wanted, rows)]
            scores[rows] = -1
            if len(able):
                scores[able] = self._rule.score(room, wanted, able)
        self._known[request] = (wanted, scores, len(self._log))
        return wanted, scores


class Rule:
    """A score and, for a share, the tightest device that fits. Kinds of rules differ in how they choose."""

    def __init__(self, score: Score) -> None:
        self.score = score

    def choose(self, scores: Numbers, rng: random.Random) -> int | None:
        """The node with the highest score; -1 is where the pod does not fit."""
        row = int(scores.argmax())
        return None if scores[row] < 0 else row

    def device(self, room: Room, wanted: Wanted, row: int, rng: random.Random) -> int:
        """The device for a share."""
        return int(_tightest(room.free[row : row + 1], wanted.milli)[0])


class BestFit(Rule):
    """Least left of CPU and GPU. Its scores are stretched to 0 to 100 over the nodes that fit."""

    def __init__(self) -> None:
        super().__init__(_fullness)

    def choose(self, scores: Numbers, rng: random.Random) -> int | None:
        able = scores >= 0
        if not able.any():
            return None
        least, most = int(scores[able].min()), int(scores.max())
        stretched = (scores - least) * 100 // max(1, most - least)
        return int(np.where(able, stretched, -1).argmax())


class Random(Rule):
    """Any node that fits, and any device there."""

    def __init__(self) -> None:
        super().__init__(_indifferent)

    def choose(self, scores: Numbers, rng: random.Random) -> int | None:
        able = np.flatnonzero(scores >= 0)
        return None if not len(able) else int(rng.choice(able))

    def device(self, room: Room, wanted: Wanted, row: int, rng: random.Random) -> int:
        return int(rng.choice(np.flatnonzero(room.free[row] >= wanted.milli)))


class Descent(Rule):
    """Fragmentation gradient descent (FGD): where the expected fragmentation grows least, by a coarse score."""

    def __init__(self, asked: Mapping[PodRequest, int], room: Room) -> None:
        """`asked`: how often each request comes."""
        super().__init__(self._gain)
        counted: dict[Wanted, int] = {}
        for request, count in asked.items():
            wanted = room.wanted(PodRequest(gpu=request.gpu, milli_cpus=request.milli_cpus))
            counted[wanted] = counted.get(wanted, 0) + count
        order = sorted(counted, key=lambda one: (-counted[one], one.milli_cpus, one.devices, one.milli, one.suits))
        covered = np.cumsum([counted[one] for one in order])
        typical = order[: int(np.searchsorted(covered, COVERED * sum(counted.values()))) + 1]
        self._parts = np.array([counted[one] for one in typical]) / covered[len(typical) - 1]
        self._cpus = np.array([one.milli_cpus for one in typical])
        self._devices = np.array([one.devices for one in typical])
        self._milli = np.array([one.milli for one in typical])
        self._suits = np.array([one.suits for one in typical]).T

    def fragmentation(self, free: Numbers, cpus: Numbers, model: Numbers) -> NDArray[np.float64]:
        """The expected milli-GPU of nodes that are idle and of no use."""
        is_enough = free[:, :, None] >= self._milli
        able = (is_enough.sum(axis=1) >= self._devices) & (cpus[:, None] >= self._cpus) & self._suits[model]
        rests = np.where(is_enough, 0, free[:, :, None]).sum(axis=1)
        lost = np.where(able & (self._devices > 0), rests, free.sum(axis=1)[:, None])
        found: NDArray[np.float64] = lost @ self._parts
        return found

    def device(self, room: Room, wanted: Wanted, row: int, rng: random.Random) -> int:
        return int(self._gains(room, wanted, np.array([row]))[0].argmax())

    def _gain(self, room: Room, wanted: Wanted, rows: Rows) -> Numbers:
        if wanted.is_share:
            found: Numbers = self._gains(room, wanted, rows).max(axis=1)
            return found
        free, cpus = room.free[rows], room.cpus[rows]
        whole = free >= WHOLE_DEVICE_MILLI
        taken = whole & (np.cumsum(whole, axis=1) <= wanted.devices)
        after = self.fragmentation(np.where(taken, 0, free), cpus - wanted.milli_cpus, room.model[rows])
        return _coarse(self.fragmentation(free, cpus, room.model[rows]) - after)

    def _gains(self, room: Room, wanted: Wanted, rows: Rows) -> Numbers:
        """For a share, the score of each device, (N, D); -1 where it does not fit."""
        free, cpus, model = room.free[rows], room.cpus[rows], room.model[rows]
        before = self.fragmentation(free, cpus, model)
        found = np.full(free.shape, -1, np.int64)
        at, device = np.nonzero(free >= wanted.milli)
        after = free[at]
        after[np.arange(len(at)), device] -= wanted.milli
        found[at, device] = _coarse(before[at] - self.fragmentation(after, cpus[at] - wanted.milli_cpus, model[at]))
        return found


NAMES = ("random", "dot-product", "clustering", "packing", "best-fit", "fgd")


def rule_of(name: str, nodes: Sequence[Node], asked: Mapping[PodRequest, int]) -> Rule:
    """The rule of this name, for these nodes; `asked` is how often each request comes."""
    match name:
        case "random":
            return Random()
        case "dot-product":
            return Rule(_apartness)
        case "clustering":
            return Rule(_kinship)
        case "packing":
            return Rule(_packing)
        case "best-fit":
            return BestFit()
        case "fgd":
            return Descent(asked, Room(nodes))
    raise ValueError(f"no rule is called {name}; there are {', '.join(NAMES)}")


def _indifferent(room: Room, wanted: Wanted, rows: Rows) -> Numbers:
    return np.zeros(len(rows), np.int64)


def _fullness(room: Room, wanted: Wanted, rows: Rows) -> Numbers:
    cpu = (room.cpus[rows] - wanted.milli_cpus) / _MOST_CPU
    gpu = (room.free[rows].sum(axis=1) - wanted.size) / _MOST_GPU
    return _whole(100 * (1 - 0.5 * cpu - 0.5 * gpu))


def _apartness(room: Room, wanted: Wanted, rows: Rows) -> Numbers:
    """The smaller the dot product of what is left and what is asked, the better."""
    cpu = room.cpus[rows] / _MOST_CPU * wanted.milli_cpus / _MOST_CPU
    gpu = room.free[rows].sum(axis=1) / _MOST_GPU * wanted.size / _MOST_GPU
    return _whole(100 * (1 - (cpu + gpu) / 2))


def _packing(room: Room, wanted: Wanted, rows: Rows) -> Numbers:
    """Devices in use first, then free devices of nodes in use, then free nodes."""
    if not wanted.devices:
        return np.zeros(len(rows), np.int64)
    free = room.free[rows]
    whole = (free == WHOLE_DEVICE_MILLI).sum(axis=1)
    if wanted.is_share:
        left = free[np.arange(len(rows)), _tightest(free, wanted.milli)]
        opened = (left == WHOLE_DEVICE_MILLI).astype(np.int64)
    else:
        left, opened = np.zeros(len(rows), np.int64), np.full(len(rows), wanted.devices)
    on_used = np.maximum(100 - left * 100 // WHOLE_DEVICE_MILLI // 10, 50)
    on_free = np.maximum(50 - opened, 33)
    found: Numbers = np.where(opened > 0, on_free, on_used)
    return np.where(whole == room.devices[rows], np.maximum(33 - whole, whole), found)


def _kinship(room: Room, wanted: Wanted, rows: Rows) -> Numbers:
    """Nodes that host only pods of the same class first, then those that host some, then empty ones."""
    if not wanted.devices:
        return np.zeros(len(rows), np.int64)
    tag, tags = _tag(wanted), room.tags[rows]
    base = 25 * (_MOST_GPU - room.free[rows].sum(axis=1)) // _MOST_GPU
    found: Numbers = base + np.where(tags == tag, 75, np.where(tags & tag, 50, np.where(tags == 0, 25, 0)))
    return found


def _tag(wanted: Wanted) -> int:
    return 1 if wanted.is_share else 1 << wanted.devices


def _tightest(free: Numbers, milli: int) -> Rows:
    """Of each node the device with least left on which a share fits, the first of equals."""
    found: Rows = np.where(free >= milli, free, WHOLE_DEVICE_MILLI + 1).argmin(axis=1)
    return found


def _whole(scores: NDArray[np.float64]) -> Numbers:
    return scores.astype(np.int64)


def _coarse(gains: NDArray[np.float64]) -> Numbers:
    """The sigmoid of the paper's simulator, in whole hundredths. They make nearly equal nodes equal, so that the first
    in order is filled first; on that much of its result rests."""
    return _whole(100 / (1 + np.exp(-gains / WHOLE_DEVICE_MILLI)))
