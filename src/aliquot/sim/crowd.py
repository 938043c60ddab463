"""Those who wait in a simulated cluster, those who are alike together and in the order in which they are served.

Promises: only those are left out who could not start now whatever happened: of work that is alike in every way but its
age, more than there is room for. Where there are several queues, what each asks for in all stays at least what the
cluster has, so that no share changes by it either (`tests/sim/test_replay.py` holds outcomes with and without equal).
"""

import bisect
from collections.abc import Iterator, Sequence
from datetime import datetime

from aliquot.core.model import WHOLE_DEVICE_MILLI, Amounts, Node, PodRequest, Workload

Likeness = tuple[str, int, tuple[PodRequest, ...]]
Place = tuple[int, datetime, str]


class Crowd:
    """Who waits."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[Likeness, Place]] = {}
        self._alike: dict[Likeness, list[Place]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, id: str) -> bool:
        return id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def add(self, workload: Workload, turn: int) -> None:
        """One more waits; `turn` is its class where work takes turns."""
        self.discard(workload.id)
        likeness = (workload.queue, workload.priority, tuple(pod.request for pod in workload.pods))
        place = (turn, workload.created, workload.id)
        self._places[workload.id] = (likeness, place)
        bisect.insort(self._alike.setdefault(likeness, []), place)

    def discard(self, id: str) -> None:
        """It does not wait, or not any more."""
        found = self._places.pop(id, None)
        if found is None:
            return
        likeness, place = found
        line = self._alike[likeness]
        del line[bisect.bisect_left(line, place)]
        if not line:
            del self._alike[likeness]

    def first_turn(self, queue: str) -> int | None:
        """The earliest class of those who wait in a queue."""
        return min((line[0][0] for likeness, line in self._alike.items() if likeness[0] == queue), default=None)

    def heads(self) -> set[str]:
        """The first of each queue."""
        first: dict[str, tuple[int, Place]] = {}
        for (queue, priority, _), line in self._alike.items():
            key = (-priority, line[0])
            if queue not in first or key < first[queue]:
                first[queue] = key
        return {place[2] for _, place in first.values()}

    def front(self, capacity: Amounts) -> set[str]:
        """Of those who are alike, as many as ask for all that the nodes have."""
        return {place[2] for likeness, line in self._alike.items() for place in line[: _most(likeness[2], capacity)]}

    def front_of_one(self, idle: Amounts) -> set[str]:
        """The same where nobody can take from anybody, because there is one queue that is served by age: of those who
        are alike, as many as what is idle could hold."""
        return {place[2] for likeness, line in self._alike.items() for place in line[: _fitting(likeness[2], idle)]}

    def twin(self) -> "Crowd":
        """The same again, which goes its own way."""
        other = Crowd()
        other._places = dict(self._places)
        other._alike = {likeness: list(line) for likeness, line in self._alike.items()}
        return other


def capacity_of(nodes: Sequence[Node]) -> Amounts:
    """What nodes have together."""
    return Amounts(
        sum(len(node.devices) for node in nodes) * WHOLE_DEVICE_MILLI,
        sum(node.milli_cpus for node in nodes),
        sum(node.memory_bytes for node in nodes),
    )


def _most(requests: tuple[PodRequest, ...], capacity: Amounts) -> int | None:
    """How many of these ask for all that there is, of each resource that they ask for; None: there is no telling."""
    return max((there // asked + 1 for asked, there in _both(requests, capacity)), default=None)


def _fitting(requests: tuple[PodRequest, ...], idle: Amounts) -> int | None:
    """No fewer of these than fit, and one more, which says that the next does not; None: there is no telling."""
    return min((max(0, there) // asked + 1 for asked, there in _both(requests, idle)), default=None)


def _both(requests: tuple[PodRequest, ...], amounts: Amounts) -> list[tuple[int, int]]:
    """Of each resource that is asked for, how much, and how much there is."""
    pairs = (
        (sum(_milli(one) for one in requests), amounts.milli_gpus),
        (sum(one.milli_cpus for one in requests), amounts.milli_cpus),
        (sum(one.memory_bytes for one in requests), amounts.memory_bytes),
    )
    return [(asked, there) for asked, there in pairs if asked]


def _milli(request: PodRequest) -> int:
    """By memory, or a MIG instance: unknown here, but certainly no less than a thousandth."""
    gpu = request.gpu
    return 0 if gpu is None else gpu.devices * (gpu.milli or 1)
