"""The cycles of a scenario: when they run, what happens before each from outside, and what must come out of each."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from aliquot.core.model import PodState, Snapshot
from aliquot.wire.scenario import expectation, fields
from aliquot.wire.scenario.fields import Fields, Version
from aliquot.wire.scenario.shape import NodeChange, QueueChange, Status, Step

STEP = fields.keys("", "at ended submitted removed nodes queues expect")
NODE = fields.keys("", "cordoned drained ready")
QUEUE = fields.keys("", "held drained")
ENDS = (Status.SUCCEEDED, Status.FAILED)


@dataclass(frozen=True, slots=True)
class Stock:
    """What a step may name."""

    snapshot: Snapshot
    known: expectation.Known

    @property
    def queues(self) -> Collection[str]:
        """Names of all queues."""
        return [queue.id for queue in self.snapshot.queues]


def read(top: Fields, stock: Stock, version: Version) -> tuple[Step, ...]:
    """The steps in time; one at once if none is given."""
    found: list[Step] = []
    for data, path in top.items("cycles"):
        one = Fields(data, path, STEP, version)
        at = one.span("at", found[-1].at if found else timedelta())
        if found and at < found[-1].at:
            fields.refuse(one.at("at"), "is before the cycle above it", valid=("instants in order",))
        found.append(_step(one, at, stock, version=version))
    _check_submitted(top, found, stock.snapshot)
    return tuple(found) or (Step(timedelta()),)


def _step(one: Fields, at: timedelta, stock: Stock, *, version: Version) -> Step:
    known = stock.known
    nodes = {name: Fields(data, f"{one.at('nodes')}.{name}", NODE, version) for name, data in one.pairs("nodes")}
    queues = {name: Fields(data, f"{one.at('queues')}.{name}", QUEUE, version) for name, data in one.pairs("queues")}
    for name, change in nodes.items():
        fields.check_name(name, known.nodes, change.path, noun="node")
    for name, change in queues.items():
        fields.check_name(name, stock.queues, change.path, noun="queue")
    ended = {}
    for name, data in one.pairs("ended"):
        path = f"{one.at('ended')}.{name}"
        fields.check_name(name, known.pods, path, noun="pod")
        ended[name] = fields.as_choice(data, ENDS, path)
    return Step(
        at=at,
        ended=ended,
        submitted=_workloads(one, "submitted", known),
        removed=_workloads(one, "removed", known),
        nodes={
            name: NodeChange(_flag(change, "cordoned"), _flag(change, "drained"), _flag(change, "ready"))
            for name, change in nodes.items()
        },
        queues={name: QueueChange(_flag(change, "held"), _flag(change, "drained")) for name, change in queues.items()},
        expect=expectation.read(one, known, version),
    )


def _workloads(one: Fields, key: str, known: expectation.Known) -> tuple[str, ...]:
    names = one.words(key)
    for index, name in enumerate(names):
        fields.check_name(name, known.workloads, f"{one.at(key)}[{index}]", noun="workload")
    return names


def _flag(change: Fields, key: str) -> bool | None:
    return change.flag(key, default=False) if change.has(key) else None


def _check_submitted(top: Fields, steps: Collection[Step], snapshot: Snapshot) -> None:
    """A workload is submitted once, and holds nothing before."""
    holders = {
        workload.id
        for workload in snapshot.workloads
        if any(pod.state is not PodState.PENDING for pod in workload.pods)
    }
    seen: set[str] = set()
    for number, step in enumerate(steps):
        for index, name in enumerate(step.submitted):
            path = f"{top.at('cycles')}[{number}].submitted[{index}]"
            if name in seen:
                fields.refuse(path, f"{name!r} is submitted twice")
            if name in holders:
                fields.refuse(path, f"{name!r} has pods that do not wait", valid=("workloads of pending pods",))
            seen.add(name)
