"""What the store keeps, a frozen dataclass for each kind of row. Each row is scoped: tenant and cluster come first.

These are the truth on one machine: organisation, workloads and their pods; and what outlives them: events, receipts,
the ledger, audit records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aliquot.core.lifecycle import Phase
from aliquot.core.model import Place, PodRequest, PoolTerms, Share
from aliquot.core.plan import Code
from aliquot.wire.workloads import Definition, PodPhase

DEFAULT_TENANT = "default"
DEFAULT_CLUSTER = "default"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a row belongs. One tenant and one cluster today, both `default`."""

    tenant: str = DEFAULT_TENANT
    cluster: str = DEFAULT_CLUSTER


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A department (`department` None) or a project. `follows_machine`: its GPU quota is what the machine has."""

    id: str
    name: str
    created: datetime
    department: str | None = None
    terms: Mapping[str, PoolTerms] = field(default_factory=dict)
    follows_machine: bool = False
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class StoredReason:
    """A reason of the last cycle, kept (`aliquot.service.waits`) so that a list needs no new cycle."""

    code: Code
    message: str
    numbers: Mapping[str, int | str] = field(default_factory=dict)
    blockers: tuple[tuple[str | None, str], ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """A workload. `request`, `priority` and the spans are the definition, read once."""

    id: str
    name: str
    project: str
    """Id of the project."""
    definition: Definition
    request: PodRequest
    priority: int
    is_preemptible: bool
    grace: timedelta
    back_off: timedelta
    actor: str
    created: datetime
    waiting_since: datetime
    phase: Phase = Phase.PENDING
    max_run_time: timedelta | None = None
    ttl: timedelta | None = None
    key: str | None = None
    body_hash: str | None = None
    attempt: int = 0
    failures: int = 0
    evictions: int = 0
    ran: timedelta = timedelta(0)
    """Run time of the attempts that are over."""
    running_since: datetime | None = None
    first_started: datetime | None = None
    finished: datetime | None = None
    not_before: datetime | None = None
    outcome: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    is_deleting: bool = False
    """It goes away, with its folder and logs, as soon as it has ended."""
    deleted: datetime | None = None
    """When it went away. The row stays, for usage, receipts and events; no list shows it and no name finds it."""
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class PodRow:
    """One pod of one attempt. The row is written (BOUND) before anything starts: it is the intent."""

    id: str
    workload: str
    index: int
    attempt: int
    node: str
    bound: datetime
    shares: tuple[Share, ...] = ()
    milli_cpus: int = 0
    memory_bytes: int = 0
    phase: PodPhase = PodPhase.BOUND
    port: int | None = None
    pid: int | None = None
    started: datetime | None = None
    ending_since: datetime | None = None
    ended: datetime | None = None
    exit_kind: str | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    exit_message: str | None = None
    limits: str | None = None
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class PromiseRow:
    """A stored Nominate; `id` is the workload's."""

    id: str
    places: tuple[Place, ...]
    made: datetime
    due: datetime
    expires: datetime
    waits_for: tuple[str, ...] = ()
    may_evict: bool = True
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A share of a device from its bind to its release. Open while `closed` is None. Usage is the sum over these."""

    id: str
    workload: str
    project: str
    pod: str
    device: str
    milli: int
    mib: int
    opened: datetime
    closed: datetime | None = None
    used_milli_seconds: int | None = None
    """Measured use of the whole device attributed to this share, in thousandths of a GPU second; None: not measured."""
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """What an eviction left behind."""

    id: str
    workload: str
    workload_name: str
    project: str
    pod: str
    rule: str
    explanation: str
    evicted: datetime
    ran: timedelta
    milli_gpus: int
    beneficiary: str | None = None
    beneficiary_name: str | None = None
    rejected: tuple[str, ...] = ()
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class EventRow:
    """Something that happened. `sequence` is given by the store, and is what streams resume from."""

    time: datetime
    noun: str
    subject: str
    subject_name: str
    code: str
    message: str
    project: str | None = None
    """Id of the project, where there is one."""
    sequence: int = 0
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class AuditRow:
    """Who did what."""

    id: str
    time: datetime
    actor: str
    origin: str
    verb: str
    noun: str
    subject: str
    outcome: str
    detail: str = ""
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class PastReasonRow:
    """Since when a workload waited for a reason of this code, and in which words it was first said."""

    id: str
    workload: str
    since: datetime
    code: Code
    message: str
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class SampleRow:
    """Figures of one time (`aliquot.service.samples`): the mean over `grain` seconds, by line."""

    id: str
    grain: int
    kind: str
    """cluster, pool, department or project: what the lines are."""
    time: datetime
    values: Mapping[str, tuple[float | None, ...]]
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class CordonRow:
    """A node or device (`id`) that takes nothing new."""

    id: str
    actor: str
    since: datetime
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device that was seen, so that one that is held cannot vanish at a restart."""

    id: str
    node: str
    index: int
    model: str
    memory_mib: int
    is_simulated: bool
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class CredentialRow:
    """The SHA-256 (`id`, hex) of a token, a sign-in code or a browser session, and whose it is; never the secret."""

    id: str
    kind: str
    """`token`, `link` or `session`."""
    actor: str
    created: datetime
    expires: datetime | None = None
    scope: Scope = Scope()


@dataclass(frozen=True, slots=True)
class FactRow:
    """A small fact about this store: its id, the boot it last ran in; what the last cycle counted, and why
    each workload waits, as JSON."""

    id: str
    value: str
    scope: Scope = Scope()
