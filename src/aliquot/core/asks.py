"""A workload in the world: the places of its pods, what it waits for next, and what of it ends together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aliquot.core import gang, rooms
from aliquot.core.model import Pod, PodRequest, Workload
from aliquot.core.rooms import Holding, Vector


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What a workload waits for next, in one pool: pods that start together or not at all."""

    id: str
    """The id of the workload."""
    workload: Workload
    pool: str
    pods: tuple[Pod, ...]
    requests: tuple[PodRequest, ...]
    kinds: tuple[tuple[int, int], ...]
    """Which requests, as the world numbers them, and how many pods with each."""
    amounts: Vector
    shape: tuple[object, ...]
    """Equal shapes have equal answers to "is there room"."""
    is_core: bool
    """Its gang is below its minimum without these pods."""
    likeness: int
    """Who have the same number are alike in all but how long they have waited: what one finds, the others would."""
    alternatives: tuple[tuple[Pod, ...], ...] = ()
    """Other sets of pods that would do as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """What is evicted at once: one pod, or group, above the minimum of its gang, or all the rest, or a promise."""

    workload: Workload
    holdings: tuple[Holding, ...]
    amounts: Vector
    is_core: bool
    is_promise: bool = False


def unit_of(workload: Workload, holdings: tuple[Holding, ...], *, is_core: bool, is_promise: bool = False) -> Unit:
    """A unit with what it holds in all."""
    amounts = holdings[0].charge if len(holdings) == 1 else rooms.charge_of(holdings)
    return Unit(workload, holdings, amounts, is_core, is_promise)


def units_of(workload: Workload, running: Sequence[Holding]) -> list[Unit]:
    """What of these places ends together, in the order in which it would be given up."""
    by_pod = {one.pod.id: one for one in running}
    return [
        unit_of(workload, tuple(by_pod[pod.id] for pod in unit.pods), is_core=unit.is_core)
        for unit in gang.units(workload, [one.pod for one in running])
    ]


class Units(Protocol):
    """Units, the first to be given up first."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Unit]: ...
    def __getitem__(self, at: int, /) -> Unit: ...


class UnitsInOrder:
    """Units that are put in order when one of them is asked for: of most queues none ever is."""

    def __init__(self, units: list[Unit], sort: Callable[[list[Unit]], None]) -> None:
        self._units, self._sort = units, sort
        self._is_sorted = False

    def __len__(self) -> int:
        return len(self._units)

    def __iter__(self) -> Iterator[Unit]:
        return iter(self._ordered())

    def __getitem__(self, at: int, /) -> Unit:
        return self._ordered()[at]

    def of(self, workload: str) -> list[Unit]:
        """Those of one workload."""
        return [unit for unit in self._units if unit.workload.id == workload]

    def strike(self, units: Iterable[Unit]) -> None:
        """Take these out; those that come first cost nothing."""
        gone = {id(unit) for unit in units}
        while self._units and id(self._units[0]) in gone:
            gone.remove(id(self._units[0]))
            del self._units[0]
        if gone:
            self._units = [unit for unit in self._units if id(unit) not in gone]

    def _ordered(self) -> list[Unit]:
        if not self._is_sorted:
            self._sort(self._units)
            self._is_sorted = True
        return self._units


@dataclass(slots=True, eq=False)
class Entry:
    """A workload in the world: the places of its pods, and the pods that wait."""

    workload: Workload
    pool: str
    """Where it runs; else the first pool that it asks for."""
    running: list[Holding] = field(default_factory=list)
    releasing: list[Holding] = field(default_factory=list)
    pending: tuple[Pod, ...] = ()
    asked: Vector = (0, 0, 0)
    asks: dict[str, Ask | None] = field(default_factory=dict)
    """What it waits for at the start of a cycle, by pool."""
    is_whole: bool = True
    """It runs nothing, or its gang is at its minimum."""
    is_ready: bool = False
    """Nothing of its own keeps it from starting: it lacks no pod, backs off from nothing, and nothing of it ends."""
    units: list[Unit] | None = None
    """What of it ends together, once it was asked for."""


@dataclass(slots=True, eq=False)
class Holders:
    """What runs of a queue in a pool. What is found out about it is kept until it changes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    _ordered: list[Entry] | None = None
    _holding: dict[int, list[Entry]] = field(default_factory=dict)
    _least: int | None = None

    def add(self, entry: Entry) -> None:
        """One more runs."""
        self.entries[entry.workload.id] = entry
        self._forget()

    def remove(self, id: str) -> None:
        """It runs no longer."""
        self.entries.pop(id, None)
        self._forget()

    @property
    def ordered(self) -> list[Entry]:
        """All of it, by id."""
        if self._ordered is None:
            self._ordered = [self.entries[id] for id in sorted(self.entries)]
        return self._ordered

    @property
    def least_priority(self) -> int:
        """The lowest priority among it."""
        if self._least is None:
            self._least = min(entry.workload.priority for entry in self.entries.values())
        return self._least

    def holding(self, resource: int) -> list[Entry]:
        """What of it holds some of a resource, the oldest first."""
        if resource not in self._holding:
            found = [one for one in self.entries.values() if any(held.charge[resource] for held in one.running)]
            self._holding[resource] = sorted(found, key=lambda one: (one.workload.created, one.workload.id))
        return self._holding[resource]

    def _forget(self) -> None:
        self._ordered, self._least = None, None
        self._holding.clear()
