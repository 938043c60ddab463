"""What a search for the smallest change goes through: candidates, on ladders from the smallest to the largest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from aliquot.core import change, wording
from aliquot.core.model import Pod, PodRequest, PodState, Workload
from aliquot.core.trials import Question

WhoCan = Literal["owner", "project", "administrator"]

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change to try. Among those of one kind the one with the least `amount` is the smallest."""

    change: change.Change
    description: str
    who_can: WhoCan
    amount: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class Ladder:
    """Candidates from the smallest change to the largest. On a ladder that is steady, one that works is followed by
    others that work, so that the first is found by halving; any other is tried from its start."""

    length: int
    at: Callable[[int], Candidate]
    is_steady: bool = True


def requests(workload: Workload) -> list[PodRequest]:
    """The different requests of its pods that wait."""
    return list(dict.fromkeys(pod.request for pod in pending(workload)))


def pending(workload: Workload) -> list[Pod]:
    """Its pods that wait."""
    return [pod for pod in workload.pods if pod.state is PodState.PENDING]


def only(about: Question, request: PodRequest) -> PodRequest | None:
    """None if all pods that wait ask for the same."""
    return request if len(requests(about.workload)) > 1 else None


def each(about: Question, request: PodRequest) -> str:
    """Of which pods something is said."""
    if len(requests(about.workload)) > 1:
        groups = sorted({pod.group for pod in pending(about.workload) if pod.request == request and pod.group})
        return f" per pod of {wording.names(groups)}" if groups else " per pod that asks for this"
    return " per replica" if len(about.workload.pods) > 1 else ""


def _none(index: int) -> Candidate:
    raise IndexError(index)  # pragma: no cover - an empty ladder has no steps


NOTHING = Ladder(0, _none)


def exact(amount: int) -> str:
    """Bytes in the largest binary unit that is exact, so that what is typed is what was tried."""
    for suffix, unit in (("Gi", 2**30), ("Mi", MIB), ("Ki", 2**10)):
        if amount >= unit and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)
