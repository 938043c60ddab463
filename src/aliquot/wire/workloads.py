"""Workloads on the wire: what is submitted, what is changed, what is shown."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from aliquot.core.lifecycle import Phase
from aliquot.core.model import Guarantee
from aliquot.core.plan import Code, Rule
from aliquot.wire.base import Amount, Name, Shape

MAX_REPLICAS = 1000
Text = Annotated[str, StringConstraints(max_length=131_072)]
"""One argument or value: the kernel takes no longer one (MAX_ARG_STRLEN)."""


class Kind(StrEnum):
    """A workspace is interactive and not preemptible by default; a training runs to its end and is."""

    WORKSPACE = "workspace"
    TRAINING = "training"


class Definition(Shape):
    """What a person submits, as JSON or as a YAML file. Exactly one of `command` and `script` is given."""

    name: Name | None = Field(None, description="Unique among the unfinished of the project; made up if left out.")
    project: Name = "default"
    kind: Kind = Kind.TRAINING
    command: list[Text] | None = Field(None, min_length=1, description="The program and its arguments; no shell.")
    script: Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)] | None = Field(
        None, description="The text of a script; run by its #! line, else by /bin/sh."
    )
    environment: dict[Annotated[str, StringConstraints(pattern=r"^[^=\x00]+$", max_length=1024)], Text] = Field(
        default_factory=dict, description="Added to a clean one; `ALIQUOT_*` and `CUDA_VISIBLE_DEVICES` are ours."
    )
    working_directory: str | None = Field(None, description="Absolute; left out: a folder of its own.")
    replicas: int = Field(1, ge=1, le=MAX_REPLICAS, description="Pods that start all together or not at all.")
    gpu: Amount | None = Field(None, description="Per pod: `1`, `0.5`, `20Gi`, `2x0.5`; left out: none.")
    cpu: Amount | None = Field(None, description="Cores per pod: `2`, `500m`; left out: not limited, not counted.")
    memory: Amount | None = Field(None, description="Per pod: `8Gi`; left out: not limited, not counted.")
    priority: int | str | None = Field(None, description="0 to 1000, or very-low, low, medium, high, very-high.")
    preemptible: bool | None = None
    max_run_time: str | None = Field(None, description="`2h`, `90s`; summed over all attempts.")
    retries: int = Field(0, ge=0, le=100, description="Restarts after a failure; an eviction spends none.")
    retry_back_off: str = Field("10s", description="Before the first retry; doubles each time, up to an hour.")
    grace_period: str = Field("30s", description="Time between TERM and KILL when it is ended.")
    ttl_after_finish: str | None = Field(None, description="Deleted this long after its end, folder and logs too.")
    stdin: Literal["none", "pipe", "terminal"] = "none"
    labels: dict[str, Annotated[str, StringConstraints(max_length=256)]] = Field(default_factory=dict)


class WorkloadUpdate(Shape):
    """A change to a workload that waits or is suspended (of one that runs: priority alone). What is left out stays."""

    gpu: Amount | None = None
    cpu: Amount | None = None
    memory: Amount | None = None
    replicas: int | None = Field(None, ge=1, le=MAX_REPLICAS)
    priority: int | str | None = None
    preemptible: bool | None = None


class Blocker(Shape):
    """Who is in the way: a workload, if it is one, and words for people."""

    workload: str | None
    description: str


class Suggestion(Shape):
    """The smallest change that starts a waiting workload, computed by trying it in the engine."""

    description: str
    command: str | None = Field(None, description="The same as a command line, where there is one.")
    who_can: Literal["owner", "project", "administrator"]
    outcome: Literal["starts", "starts-after-evictions"]
    evicts: list[str] = Field(default_factory=list, description="Names of the workloads that would be evicted.")
    operation: Literal["updateWorkload", "updateProject", "updateDepartment", "stopWorkload", "uncordon"]
    target: str = Field(description="Name or id of what is changed.")
    body: dict[str, object] = Field(default_factory=dict, description="The body for `operation`.")


class Reason(Shape):
    """Why a workload waits."""

    code: Code
    message: str
    numbers: dict[str, int | str] = Field(default_factory=dict)
    blockers: list[Blocker] = Field(default_factory=list)
    position: int | None = None
    suggestion: Suggestion | None = None
    no_suggestion_because: str | None = None


class Share(Shape):
    """What a pod holds of a device."""

    device: str
    index: int
    model: str
    milli_gpus: int
    mib: int
    guarantee: Guarantee
    is_simulated: bool


class PodPhase(StrEnum):
    """BOUND: the intent is stored, nothing may run yet. ENDING: told to end. ENDED: gone, its place is free."""

    BOUND = "bound"
    RUNNING = "running"
    ENDING = "ending"
    ENDED = "ended"


class PodView(Shape):
    """One process group of one attempt."""

    id: str
    index: int
    attempt: int
    phase: PodPhase
    node: str
    shares: list[Share]
    pid: int | None = None
    port: int | None = None
    bound: AwareDatetime
    started: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    exit_kind: str | None = Field(
        None, description="exited, signalled, out-of-memory, unknown, not-started, or lost (the machine restarted)."
    )
    exit_message: str | None = None
    limits: str | None = Field(None, description="How CPU and memory limits are enforced, in words.")


class WorkloadView(Shape):
    """A workload as it is now."""

    id: str
    name: str
    project: str
    department: str
    kind: Kind
    phase: Phase
    gpu: str
    cpu: str | None
    memory: str | None
    replicas: int
    priority: int
    preemptible: bool
    actor: str
    created: AwareDatetime
    waiting_since: AwareDatetime | None = None
    started: AwareDatetime | None = Field(None, description="Start of the first attempt.")
    finished: AwareDatetime | None = None
    attempt: int = Field(description="How many times it was given a place.")
    failures: int = Field(description="Retries spent.")
    evictions: int
    ran_seconds: int = Field(description="Run time summed over attempts.")
    outcome: str | None = Field(
        None, description="completed, failed, out-of-memory, time-limit, exit-unknown, not-started or stopped."
    )
    exit_code: int | None = None
    exit_signal: int | None = None
    reason: Reason | None = Field(None, description="Why it waits, from the last cycle; without a suggestion.")
    not_before: AwareDatetime | None = None
    url: str | None = Field(None, description="Where its port is reached, once it runs.")
    devices: list[str] = Field(default_factory=list, description="What it holds now, `node/index`.")
    guarantee: Guarantee | None = None
    is_simulated: bool = False
    labels: dict[str, str] = Field(default_factory=dict)


class WorkloadDetail(WorkloadView):
    """A workload with its definition and all its pods, the oldest first."""

    definition: Definition
    pods: list[PodView]
    checkpoint_directory: str


class WorkloadCounts(Shape):
    """How many workloads match, by phase; a phase that none is in is left out."""

    total: int
    phases: dict[Phase, int]


class DryRun(Shape):
    """What submitting, or changing, would do now. Nothing is created or changed."""

    outcome: Literal["starts", "starts-after-evictions", "waits"]
    places: list[str] = Field(default_factory=list, description="`node/index` of the devices it would get.")
    evicts: list[str] = Field(default_factory=list, description="Names of the workloads that would be evicted.")
    reason: Reason | None = None


class Receipt(Shape):
    """What an eviction left behind."""

    id: str
    workload: str
    workload_name: str
    project: str
    pod: str
    beneficiary: str | None
    beneficiary_name: str | None
    rule: Rule | Literal["machine-restarted", "device-lost"]
    explanation: str
    rejected: list[str]
    evicted: AwareDatetime
    ran_seconds: int = Field(description="How long this attempt had run: the most that is lost since a checkpoint.")
    milli_gpus: int


class LogLine(Shape):
    """A line of output. `offset` is the place of its first byte in all that the pod ever wrote; it never goes back."""

    offset: int
    time: AwareDatetime
    stream: Literal["stdout", "stderr", "marker"]
    text: str
    pod: str
    index: int
    is_partial: bool = Field(False, description="The next line of the same stream goes on where this one stops.")


class LogChunk(Shape):
    """Some lines of one pod, and where to go on. `is_complete`: the pod ended and there is no more."""

    lines: list[LogLine]
    next_offset: int
    is_complete: bool
