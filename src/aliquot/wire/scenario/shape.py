"""A scenario as values: a cluster at one instant, a policy, what happens then, and what must come out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from aliquot.core.model import Policy, Snapshot


class Mode(StrEnum):
    """What is looked at: the plan of one cycle, or the world once nothing changes any more."""

    SETTLE = "settle"
    ONE_CYCLE = "one-cycle"


class OnEvict(StrEnum):
    """What becomes of an evicted pod: it is pending again, or gone."""

    REQUEUE = "requeue"
    DELETE = "delete"


class Status(StrEnum):
    """What has become of a pod."""

    RUNNING = "running"
    BOUND = "bound"
    NOMINATED = "nominated"
    EVICTED = "evicted"
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RELEASING = "releasing"
    STUCK_RELEASING = "stuck-releasing"


@dataclass(frozen=True, slots=True)
class Expected:
    """What must have become of a pod, or of every pod of a workload. None: anything will do."""

    status: Status | None = None
    nodes: tuple[str, ...] | None = None
    milli_gpus: int | None = None
    """Of a workload, the sum over its pods."""


@dataclass(frozen=True, slots=True)
class ExpectedNode:
    """How many devices of a node nobody holds, and how many are held by pods that are told to end."""

    idle_milli: int | None = None
    releasing_milli: int | None = None


@dataclass(frozen=True, slots=True)
class ExpectedEviction:
    """For whom a pod is evicted, and by which rule. None: anything will do."""

    beneficiary: str | None = None
    rule: str | None = None
    says: str | None = None
    """A part of the sentence that made it legal."""


@dataclass(frozen=True, slots=True)
class ExpectedReason:
    """Why a workload waits. None: anything will do."""

    code: str | None = None
    says: str | None = None
    """A part of its sentence."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Some of the numbers that prove it, as they are printed."""
    blockers: tuple[str, ...] | None = None
    """The workloads that are in its way, in any order."""
    position: int | None = None


@dataclass(frozen=True, slots=True)
class ExpectedSuggestion:
    """The smallest change that would start a workload: its kind (`none`: there is no such change), a part of what is
    said of it (or of why there is none). None: anything will do."""

    kind: str | None = None
    says: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectedPromise:
    """When a promise falls due and expires, from the first instant on. None: at any time."""

    due: timedelta | None = None
    expires: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come out."""

    workloads: Mapping[str, Expected] = field(default_factory=dict)
    pods: Mapping[str, Expected] = field(default_factory=dict)
    nodes: Mapping[str, ExpectedNode] = field(default_factory=dict)
    same_device: tuple[tuple[str, ...], ...] = ()
    other_device: tuple[tuple[str, ...], ...] = ()
    at_most: Mapping[str, int] = field(default_factory=dict)
    """The most decisions over all cycles, by what they do: `bind`, `evict`, `nominate`."""
    at_least: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, ExpectedReason] = field(default_factory=dict)
    """Why a workload waits in the last cycle."""
    promises: Mapping[str, ExpectedPromise | None] = field(default_factory=dict)
    """What a workload is promised in the last cycle. None: nothing."""
    evictions: Mapping[str, ExpectedEviction] = field(default_factory=dict)
    """By pod, what is said of its eviction, in any cycle."""
    suggestions: Mapping[str, ExpectedSuggestion] = field(default_factory=dict)
    """The change that would start a workload that waits in the last cycle."""
    is_cut_off: bool | None = None
    """Whether the budget of steps ended a cycle."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What becomes of a node. None: as it was."""

    is_cordoned: bool | None = None
    is_drained: bool | None = None
    is_ready: bool | None = None


@dataclass(frozen=True, slots=True)
class QueueChange:
    """What becomes of a queue. None: as it was."""

    is_held: bool | None = None
    is_drained: bool | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """At an instant, so long after the first: changes from outside, then a cycle, or cycles until nothing changes."""

    at: timedelta
    ended: Mapping[str, Status] = field(default_factory=dict)
    """Pods that end by themselves, well or badly."""
    submitted: tuple[str, ...] = ()
    """Workloads that begin to wait only now."""
    removed: tuple[str, ...] = ()
    """Workloads that are deleted, with what they hold."""
    nodes: Mapping[str, NodeChange] = field(default_factory=dict)
    queues: Mapping[str, QueueChange] = field(default_factory=dict)
    expect: Expectation = Expectation()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. The snapshot has all workloads; those that a step submits do not wait before."""

    name: str
    now: datetime
    snapshot: Snapshot
    policy: Policy
    mode: Mode = Mode.SETTLE
    max_cycles: int = 10
    on_evict: OnEvict = OnEvict.REQUEUE
    steps: tuple[Step, ...] = (Step(timedelta()),)
    expect: Expectation = Expectation()
