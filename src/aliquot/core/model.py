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


class Sharing(StrEnum):
    """How the pods on one device take turns: one after the other in time, or at once on parts of its processors."""

    TIME_SLICING = "time-slicing"
    SM_SHARING = "sm-sharing"


class Preemptibility(StrEnum):
    """Whether it gives way: never, above its minimum, or always."""

    NON_PREEMPTIBLE = "non-preemptible"
    SEMI_PREEMPTIBLE = "semi-preemptible"
    PREEMPTIBLE = "preemptible"


class QueueOrder(StrEnum):
    """Who of equal priority is served first in a queue: who waits longest, who has had the least GPU time, or who asks
    for most, so that small work fills the gaps that large work leaves."""

    WAITING_TIME = "waiting-time"
    LEAST_ATTAINED_SERVICE = "least-attained-service"
    LARGEST_FIRST = "largest-first"


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
class MigProfile:
    """A MIG instance that a device may be cut into: its name (`1g.10gb`), its compute and memory slices, what it
    offers, and the memory slices at which it may begin.

    Source of the placements: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
    """

    name: str
    compute_slices: int
    memory_slices: int
    memory_mib: int
    starts: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, or one fixed MIG instance of it (`instance` set).

    `memory_mib` is what it offers to pods: its memory less what the driver keeps, and less what foreign processes hold
    where it is offered with less. A device that offers nothing says why in `withheld`.
    """

    id: str
    index: int
    model: str
    memory_mib: int
    is_simulated: bool = False
    guarantee: Guarantee = Guarantee.NONE
    withheld: str | None = None
    """A code why nothing new may start here: `device-in-use`, `cordoned`, `lost`, `xid`, `not-offered`."""
    foreign: tuple[ForeignUse, ...] = ()
    sharing: Sharing | None = None
    """The only sharing mode that its pool allows; None: its first sharer decides."""
    instance: MigProfile | None = None
    """Set if this is a MIG instance: it goes as a whole, to pods that ask for this profile."""
    profiles: tuple[MigProfile, ...] = ()
    """Set if it is in MIG mode: the instances that can be made on it. Nothing else runs there."""
    slices: int = 7
    """Compute slices of the whole device, of which an instance is charged its part."""


@dataclass(frozen=True, slots=True)
class Taint:
    """Keeps pods off a node that do not tolerate it. Effects as in Kubernetes; PreferNoSchedule is a preference."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """Lets a pod onto nodes with a taint. key "" is every key; value None is every value; effect None is each."""

    key: str = ""
    value: str | None = None
    effect: str | None = None


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
    is_drained: bool = False
    """Nothing new starts on it, and what runs there is told to end."""
    trouble: str = ""
    """Why it is not ready, as the end of a sentence."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    resources: Mapping[str, int] = field(default_factory=dict)
    """Any other countable resource by its name: ephemeral storage, hugepages, network devices."""
    foreign: Amounts = Amounts()
    """What pods of other schedulers hold here: neither free nor anyone's to divide."""
    foreign_pods: int = 0
    has_anonymous_devices: bool = False
    """Its own agent chooses the device: the devices here are slots, equal and without an identity before the start."""


@dataclass(frozen=True, slots=True)
class Topology:
    """Where nodes stand to each other: node label keys from the widest domain to the narrowest. A domain is the
    combination of the labels from the widest level down to its own; a node that lacks one is in no domain."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """Pods stay in one domain of a level: `required` or they wait, `preferred` in as few as can be."""

    topology: str
    required: str | None = None
    preferred: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A part of a gang: `minimum` of its groups (inner) or of the pods that name it (leaf) run, or none does."""

    name: str
    minimum: int
    groups: tuple["Group", ...] = ()
    near: Near | None = None


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
    is_held: bool = False
    """Nothing new starts in it, or below it."""
    is_drained: bool = False
    """Nothing new starts, and what runs is told to end."""
    order: QueueOrder = QueueOrder.WAITING_TIME
    hold_after: timedelta | None = None
    """Its head is promised the next room, without evictions, once it has waited this long."""
    preempt_min_runtime: timedelta | None = None
    """What runs is safe from preemption inside its queue for so long. None: as the queue above says."""
    reclaim_min_runtime: timedelta | None = None
    """The same for reclaim by other queues."""
    evictions_left: int | None = None
    """How many more pods of it may be evicted for others today. None: no limit."""
    usage: Mapping[str, "Usage"] = field(default_factory=dict)
    """By pool, its decayed use; missing is none."""

    def terms_in(self, pool: str) -> PoolTerms:
        """The terms that hold in a pool."""
        return self.terms.get(pool, PoolTerms())


@dataclass(frozen=True, slots=True)
class Usage:
    """Decayed use of a pool by a queue, in whole millionths of what the pool offered."""

    gpu: int = 0
    cpu: int = 0
    memory: int = 0

    def of(self, resource: ResourceName) -> int:
        """The use of one resource."""
        if resource == "gpu":
            return self.gpu
        return self.cpu if resource == "cpu" else self.memory


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """`devices` shares, each on a device of its own, each a portion (`milli`, 1000 = whole), `mib` of memory, or a MIG
    instance (`profile`). Exactly one of the three is set."""

    devices: int = 1
    milli: int | None = WHOLE_DEVICE_MILLI
    mib: int | None = None
    profile: str | None = None
    compute_milli: int | None = None
    """Compute of a share apart from its memory. None: a portion asks for as much of both, a request by memory for
    none. The larger of memory and compute is charged."""
    memory_limit_mib: int | None = None
    compute_limit_milli: int | None = None
    """What may be borrowed while it is idle. Nothing is placed by a limit."""
    sharing: Sharing | None = None
    is_sharing_required: bool = False
    """The sharing mode that it prefers, or requires."""
    models: tuple[str, ...] = ()
    """Only devices of one of these models. Empty: any."""
    min_device_mib: int = 0
    """Only devices with at least this much memory."""

    @property
    def is_whole(self) -> bool:
        """Whether every share is a whole device."""
        return self.milli == WHOLE_DEVICE_MILLI

    @property
    def compute(self) -> int:
        """Milli-GPU of compute that each share takes."""
        return (self.milli or 0) if self.compute_milli is None else self.compute_milli


@dataclass(frozen=True, slots=True)
class Affinity:
    """Pods with these labels, in the same namespace, as far as a node label's value reaches."""

    labels: tuple[tuple[str, str], ...]
    topology_key: str


@dataclass(frozen=True, slots=True)
class Spread:
    """Pods with these labels differ between the values of a node label by at most `max_skew`."""

    labels: tuple[tuple[str, str], ...]
    topology_key: str
    max_skew: int = 1


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What one pod asks for, and where it may go. No GPU is `gpu=None`. Equal requests have equal answers."""

    gpu: GpuRequest | None = None
    milli_cpus: int = 0
    memory_bytes: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    """Amounts of other resources, by name."""
    nodes: tuple[str, ...] | None = None
    """Only on these nodes. None: on any."""
    node_labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Only where each of these node labels has one of the values: selectors, affinity, and the zones of volumes."""
    tolerations: tuple[Toleration, ...] = ()
    namespace: str = "default"
    labels: tuple[tuple[str, str], ...] = ()
    affinity: tuple[Affinity, ...] = ()
    anti_affinity: tuple[Affinity, ...] = ()
    spread: tuple[Spread, ...] = ()
    host_ports: tuple[int, ...] = ()

    @property
    def is_social(self) -> bool:
        """Whether it matters what other pods are where."""
        return bool(self.affinity or self.anti_affinity or self.spread)


@dataclass(frozen=True, slots=True)
class Share:
    """What a pod holds of one device: `milli` is charged to the quota, `mib` is what fits on the device."""

    device: str
    milli: int
    mib: int
    start: int | None = None
    """The first memory slice of a MIG instance that is made for it."""
    sharing: Sharing | None = None
    """The sharing mode that it is in, if it is not time-slicing."""


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
    group: str = ""
    """The leaf of its gang's tree that it belongs to."""
    priority: int = 0
    """Which pods of a workload come first: the higher."""
    is_stuck: bool = False
    """It is RELEASING, and does not end: nobody may count on its place."""
    unmet: str = ""
    """What keeps it off every node that is not computed here (a volume that is not there), as a sentence."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a person submitted, as the scheduler sees it. Finished and suspended ones are not in a snapshot.

    It is a gang: at least `min_pods` of its pods hold places after a cycle that binds any. With a tree (`gang`) the
    minimum of every group that runs holds too.
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
    """It is ended after so long; as a stated run time it may fill gaps before a promise falls due."""
    gang: Group | None = None
    """The tree of its groups. None: one group of all its pods, of which `min_pods` run."""
    near: Near | None = None
    """Where its pods stay together, if it has no tree of its own."""
    is_semi_preemptible: bool = False
    """Not preemptible up to its minimum, preemptible above it (`is_preemptible` is False then)."""
    never_preempts: bool = False
    """It never evicts, whatever its priority."""
    preemption_delay: timedelta = timedelta()
    """It waits this long before it may evict others."""
    stale_for: timedelta | None = None
    """Its gang has been below its minimum for this long."""
    stale_grace: timedelta | None = None
    """How long its gang may stay below its minimum. None: as the policy says; negative: for ever."""
    fallback_pools: tuple[str, ...] = ()
    """Pools that are tried in turn after `pool`."""
    attained_milli_seconds: int = 0
    """GPU time that it has had so far, in milli-GPU seconds."""
    saved: datetime | None = None
    """Its last checkpoint. None: all since its start would be lost."""

    @property
    def root(self) -> Group:
        """The tree of its groups."""
        return Group("", self.min_pods, near=self.near) if self.gang is None else self.gang

    @property
    def preemptibility(self) -> Preemptibility:
        """Whether it gives way."""
        if self.is_preemptible:
            return Preemptibility.PREEMPTIBLE
        return Preemptibility.SEMI_PREEMPTIBLE if self.is_semi_preemptible else Preemptibility.NON_PREEMPTIBLE


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
class Budget:
    """A disruption budget: of these pods at most `allowed` may be evicted now."""

    name: str
    pods: frozenset[str]
    allowed: int


@dataclass(frozen=True, slots=True)
class Asked:
    """How often pods with this request were asked for lately: what placement expects to come again."""

    request: PodRequest
    count: int


PlacementStrategy = Literal["fragmentation", "pack", "spread"]
ActionName = Literal["allocate", "consolidate", "reclaim", "preempt", "stale-gang"]
ACTION_NAMES: tuple[ActionName, ...] = ("allocate", "consolidate", "reclaim", "preempt", "stale-gang")


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules' parameters. `step_budget` bounds the search of one cycle; a step is one node looked at for one pod."""

    step_budget: int = 2_000_000
    release_grace: timedelta = timedelta(seconds=30)
    gpu_placement: PlacementStrategy = "fragmentation"
    cpu_placement: Literal["pack", "spread"] = "pack"
    placement_by_pool: Mapping[str, PlacementStrategy] = field(default_factory=dict)
    """A pool's own way of placing work that uses GPUs."""
    actions: tuple[ActionName, ...] = ACTION_NAMES
    max_consolidation_victims: int | None = 16
    stale_grace: timedelta = timedelta(seconds=60)
    usage_weight: tuple[int, int] = (0, 1)
    """How much past use lowers a claim on what is left over: k as a ratio of whole numbers."""
    service_quantum: timedelta = timedelta(minutes=10)
    """How long work runs at least before it gives its turn to work of an earlier class (least attained service)."""
    service_threshold: int = 3_600_000
    """Milli-GPU seconds of service up to which work is of the first class; it doubles from class to class."""
    service_classes: int = 12


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One cluster at one instant. The order of the tuples never matters; ties are broken by values and ids.

    Cordons, withheld devices and promises are part of it, so that a plan needs nothing else but policy and `now`.
    """

    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    workloads: tuple[Workload, ...] = ()
    promises: tuple[Promise, ...] = ()
    topologies: tuple[Topology, ...] = ()
    budgets: tuple[Budget, ...] = ()
    recent: tuple[Asked, ...] = ()
    """What was asked lately, besides what is here. It tells placement which room will be wanted."""
