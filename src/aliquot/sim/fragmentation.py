"""How much of the idle GPUs of a cluster the usual work could not use: the measure of the FGD paper (ATC'23).

Promises: the numbers are those of the paper's own simulator to a hundredth (a test holds them to its golden values).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aliquot.core.model import WHOLE_DEVICE_MILLI, Node, PodRequest
from aliquot.sim.occupancy import Held

COVERED = 0.95
"""The usual work is the most frequent requests that make up so much of all."""
_MOST_KNOWN = 200_000


@dataclass(frozen=True, slots=True)
class Usual:
    """A request, and its part of the usual work."""

    request: PodRequest
    part: float


def usual_of(asked: Mapping[PodRequest, int]) -> tuple[Usual, ...]:
    """The most frequent requests, with parts that add up to 1."""
    ordered = sorted(asked.items(), key=lambda one: (-one[1], repr(one[0])))
    total, covered, taken = sum(asked.values()), 0, []
    for request, count in ordered:
        if covered >= COVERED * total:
            break
        covered += count
        taken.append((request, count))
    return tuple(Usual(request, count / covered) for request, count in taken)


class Fragmentation:
    """The measure for one kind of usual work; nodes in equal states are computed once."""

    def __init__(self, usual: Sequence[Usual]) -> None:
        self._usual = tuple(usual)
        self._known: dict[tuple[object, ...], float] = {}

    def of(self, node: Node, held: Held) -> float:
        """The expected milli-GPU of a node that are idle and of no use."""
        left = tuple(
            sorted(
                WHOLE_DEVICE_MILLI - held.milli.get(device.id, 0) for device in node.devices if device.withheld is None
            )
        )
        model = node.devices[0].model if node.devices else ""
        milli_cpus = node.milli_cpus - held.milli_cpus
        key = (left, model, milli_cpus)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = sum(one.part * _lost(left, model, milli_cpus, one.request) for one in self._usual)
            self._known[key] = found
        return found


def _lost(left: tuple[int, ...], model: str, milli_cpus: int, request: PodRequest) -> int:
    idle = sum(left)
    gpu = request.gpu
    if gpu is None or (gpu.models and model not in gpu.models) or milli_cpus < request.milli_cpus:
        return idle
    milli = gpu.milli or WHOLE_DEVICE_MILLI
    fitting = sum(1 for one in left if one >= milli)
    if fitting < gpu.devices:
        return idle
    return sum(one for one in left if one < milli)
