"""What came out of a scenario, as values and as the line of JSON that a run prints."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core.model import WHOLE_DEVICE_MILLI, Place
from aliquot.core.plan import Reason
from aliquot.wire.scenario.shape import Status


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a cycle. What it does says which fields are set."""

    do: str
    """`bind`, `evict`, `nominate` or `wait`."""
    pod: str | None = None
    workload: str | None = None
    place: Place | None = None
    beneficiary: str | None = None
    rule: str | None = None
    reason: Reason | None = None
    position: int | None = None
    """Of who waits, its place in line."""
    explanation: str | None = None
    """Of who is evicted, the sentence that made it legal."""


@dataclass(frozen=True, slots=True)
class PodEnd:
    """What has become of a pod. `place`: what it holds, or is promised."""

    status: Status
    place: Place | None = None

    @property
    def milli_gpus(self) -> int:
        """What it holds of devices."""
        return milli_of(self.place)

    @property
    def devices(self) -> frozenset[str]:
        """The devices that it holds."""
        return frozenset(share.device for share in self.place.shares) if self.place else frozenset()


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """What of the devices of a node nobody holds, and what is held by pods alone that are told to end."""

    idle_milli: int
    releasing_milli: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """The decisions of one cycle, and whether its budget ended it."""

    decisions: tuple[Decision, ...]
    is_cut_off: bool = False
    promises: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """By workload, when its promise falls due and expires."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out."""

    scenario: str
    cycles: tuple[Cycle, ...]
    pods: Mapping[str, PodEnd]
    nodes: Mapping[str, NodeEnd]
    suggestions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The kind of change that would start a workload (`none`: there is none), and what is said of it, for those of
    which it was asked."""


def milli_of(place: Place | None) -> int:
    """What a place holds of devices."""
    return sum(share.milli for share in place.shares) if place else 0


def to_json(outcome: Outcome) -> str:
    """The line of JSON."""
    return json.dumps(
        {
            "scenario": outcome.scenario,
            "cycles": [{"decisions": [_decision(one) for one in cycle.decisions]} for cycle in outcome.cycles],
            "final": {
                "pods": {name: {"status": str(end.status), **_place(end.place)} for name, end in outcome.pods.items()},
                "nodes": {
                    name: {
                        "idleGpus": end.idle_milli / WHOLE_DEVICE_MILLI,
                        "releasingGpus": end.releasing_milli / WHOLE_DEVICE_MILLI,
                    }
                    for name, end in outcome.nodes.items()
                },
            },
        },
        ensure_ascii=False,
    )


def _decision(one: Decision) -> dict[str, object]:
    match one.do:
        case "evict":
            return {"do": one.do, "pod": one.pod, "for": one.beneficiary, "rule": one.rule}
        case "wait":
            assert one.reason is not None
            reason = {"code": str(one.reason.code), "message": one.reason.message}
            return {"do": one.do, "workload": one.workload, "reason": reason}
        case _:
            return {"do": one.do, "pod": one.pod, **_place(one.place)}


def _place(place: Place | None) -> dict[str, object]:
    return {
        "node": place.node if place else None,
        "devices": [share.device for share in place.shares] if place else [],
        "gpus": milli_of(place) / WHOLE_DEVICE_MILLI,
    }
