"""What the scheduler looks at: devices, nodes, queues, workloads and their pods, at one instant.

Every amount is a whole number with its unit in the name. Everything is frozen: a cycle works on its own copy
(`aliquot.core.snapshot`) and its only output is a plan (`aliquot.core.plan`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

DEFAULT_POOL = "default"
WHOLE_DEVICE_MILLI = 1000

ResourceName = Literal["gpu", "cpu", "memory"]
RESOURCES: tuple[ResourceName, ...] = ("gpu", "cpu", "memory")
"""The resources that have quota. Their units: milli-GPU, milli-CPU, bytes."""


class Guarantee(StrEnum):
    """How a share of a device (or a limit on CPU and memory) is enforced, from nothing to the hardware itself."""

    NONE = "none"
    ADVISORY = "advisory"
    DETECTED = "detected"
    COOPERATIVE = "cooperative"
    PROCESS = "process"
    KERNEL = "kernel"
    HARDWARE = "hardware"


class PodState(StrEnum):
    """PENDING holds nothing; RUNNING holds its place; RELEASING was told to end, still holds it; the rest are over."""

    PENDING = "pending"
    RUNNING = "running"
    RELEASING = "releasing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Amounts:
    """A vector over RESOURCES: what is asked, held, or allowed."""

    milli_gpus: int = 0
    milli_cpus: int = 0
    memory_bytes: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            self.milli_gpus + other.milli_gpus,
            self.milli_cpus + other.milli_cpus,
            self.memory_bytes + other.memory_bytes,
        )

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            self.milli_gpus - other.milli_gpus,
            self.milli_cpus - other.milli_cpus,
            self.memory_bytes - other.memory_bytes,
        )

    def of(self, resource: ResourceName) -> int:
        """The amount of one resource, in its unit."""
        if resource == "gpu":
            return self.milli_gpus
        return self.milli_cpus if resource == "cpu" else self.memory_bytes


@dataclass(frozen=True, slots=True)
class ForeignUse:
    """A process that Aliquot did not start and that holds memory of a device."""

    pid: int
    user: str
    mib: int


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. `memory_mib` is what it offers to pods: its memory less what the driver keeps, and less what foreign
    processes hold where it is offered with less. A device that offers nothing says why in `withheld`."""

    id: str
    index: int
    model: str
    memory_mib: int
    is_simulated: bool = False
    guarantee: Guarantee = Guarantee.NONE
    withheld: str | None = None
    """A code why nothing new may start here: `device-in-use`, `cordoned`, `lost`, `xid`, `not-offered`."""
    foreign: tuple[ForeignUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. Pods that hold places here are found by their `node`."""

    id: str
    milli_cpus: int
    memory_bytes: int
    devices: tuple[Device, ...] = ()
    pool: str = DEFAULT_POOL
    max_pods: int = 1000
    is_ready: bool = True
    is_cordoned: bool = False
    trouble: str = ""
    """Why it is not ready, as the end of a sentence."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a queue may have of one resource in one pool. quota None is unlimited, limit None is no ceiling."""

    quota: int | None = None
    weight: int = 1
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """A queue's terms in one node pool; `priority`: who is served first from what is left over, higher first."""

    gpu: Claim = field(default_factory=lambda: Claim(quota=0))
    cpu: Claim = field(default_factory=Claim)
    memory: Claim = field(default_factory=Claim)
    priority: int = 100

    def of(self, resource: ResourceName) -> Claim:
        """The claim on one resource."""
        if resource == "gpu":
            return self.gpu
        return self.cpu if resource == "cpu" else self.memory


@dataclass(frozen=True, slots=True)
class Queue:
    """A department (`parent` None) or a project (a leaf: only these hold workloads). A pool that is not in `terms` has
    the terms of a new project: GPU quota 0, CPU and memory unlimited."""

    id: str
    name: str
    created: datetime
    parent: str | None = None
    terms: Mapping[str, PoolTerms] = field(default_factory=dict)

    def terms_in(self, pool: str) -> PoolTerms:
        """The terms that hold in a pool."""
        return self.terms.get(pool, PoolTerms())


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """`devices` shares, each on a device of its own, each either a portion (`milli`, 1000 = whole) or `mib` of memory.

    Exactly one of `milli` and `mib` is set.
    """

    devices: int = 1
    milli: int | None = WHOLE_DEVICE_MILLI
    mib: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every share is a whole device."""
        return self.milli == WHOLE_DEVICE_MILLI


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What one pod asks for. No GPU is `gpu=None`."""

    gpu: GpuRequest | None = None
    milli_cpus: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """What a pod holds of one device: `milli` is charged to the quota, `mib` is what fits on the device."""

    device: str
    milli: int
    mib: int


@dataclass(frozen=True, slots=True)
class Pod:
    """The smallest thing placed. `node` and `shares` are set while it holds a place (RUNNING, RELEASING)."""

    id: str
    index: int
    request: PodRequest
    state: PodState = PodState.PENDING
    node: str | None = None
    shares: tuple[Share, ...] = ()
    release_due: datetime | None = None
    """When a RELEASING pod is gone at the latest."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a person submitted, as the scheduler sees it. Finished and suspended ones are not in a snapshot.

    All its pending pods start together or none: `min_pods` of its pods hold places after a cycle that binds any.
    """

    id: str
    name: str
    queue: str
    created: datetime
    """When it began to wait (submitted, or resumed); an eviction does not change it."""
    pods: tuple[Pod, ...]
    min_pods: int
    priority: int = 50
    is_preemptible: bool = True
    pool: str = DEFAULT_POOL
    started: datetime | None = None
    """Start of the current attempt, if it runs."""
    not_before: datetime | None = None
    """It backs off after a failure until then."""
    max_run_time: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod goes: a node and its shares there."""

    pod: str
    node: str
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """Room that is being freed for a workload (a stored Nominate). Others respect it until it `expires`."""

    workload: str
    places: tuple[Place, ...]
    made: datetime
    due: datetime
    expires: datetime
    waits_for: tuple[str, ...] = ()
    """Ids of the pods whose release it waits for."""
    may_evict: bool = True
    """False after it expired once: it is planned anew without new evictions."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules' parameters. `step_budget` bounds the search of one cycle; a step is one node looked at for one pod."""

    step_budget: int = 2_000_000
    release_grace: timedelta = timedelta(seconds=30)
    gpu_placement: Literal["pack", "spread"] = "pack"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One cluster at one instant. The order of the tuples never matters; ties are broken by values and ids.

    Cordons, withheld devices and promises are part of it, so that a plan needs nothing else but policy and `now`.
    """

    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    workloads: tuple[Workload, ...] = ()
    promises: tuple[Promise, ...] = ()
