"""What a cycle decides: ordered Bind, Evict, Nominate and Wait. Nothing else leaves `core.schedule`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from aliquot.core.model import Amounts, Place


class Rule(StrEnum):
    """By which rule a pod was evicted. The first four make room for another workload, the rest serve none."""

    RECLAIM = "reclaim"
    PREEMPT = "preempt"
    CONSOLIDATE = "consolidate"
    TIME_SLICE = "time-slice"
    STALE_GANG = "stale-gang"
    DRAIN = "drain"


class Code(StrEnum):
    """Why a workload waits. Stable: programs and docs rely on these."""

    NO_SUCH_QUEUE = "no-such-queue"
    QUEUE_LIMIT = "queue-limit"
    NON_PREEMPTIBLE_OVER_QUOTA = "non-preemptible-over-quota"
    OVER_FAIR_SHARE = "over-fair-share"
    LARGER_THAN_ANY_NODE = "larger-than-any-node"
    LARGER_THAN_POOL = "larger-than-pool"
    NO_DEVICE_FITS = "no-device-fits"
    DEVICE_IN_USE = "device-in-use"
    FRAGMENTED = "fragmented"
    NO_FREE_DEVICE = "no-free-device"
    NO_FREE_CPU = "no-free-cpu"
    NO_FREE_MEMORY = "no-free-memory"
    GANG_INCOMPLETE = "gang-incomplete"
    WAITING_FOR_RELEASE = "waiting-for-release"
    POOL_EMPTY = "pool-empty"
    NODE_UNAVAILABLE = "node-unavailable"
    BEHIND = "behind"
    BACKING_OFF = "backing-off"
    BUDGET = "budget"
    QUEUE_HELD = "queue-held"
    TOPOLOGY = "topology"
    TAINT = "taint"
    SELECTOR = "selector"
    AFFINITY = "affinity"
    SHARING_MODE = "sharing-mode"
    NO_FREE_RESOURCE = "no-free-resource"
    UNMET_DEPENDENCY = "unmet-dependency"
    PREEMPTION_DELAY = "preemption-delay"
    PROTECTED_MIN_RUNTIME = "protected-min-runtime"


@dataclass(frozen=True, slots=True)
class Blocker:
    """Who holds what this workload needs: a workload (id and name), a foreign process, or a promise."""

    workload: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a workload waits: a code, one sentence for people, the numbers that prove it, and who is in the way."""

    code: Code
    message: str
    numbers: Mapping[str, int | str] = field(default_factory=dict)
    blockers: tuple[Blocker, ...] = ()


@dataclass(frozen=True, slots=True)
class Bind:
    """Start this pod here, now."""

    workload: str
    place: Place


@dataclass(frozen=True, slots=True)
class Evict:
    """End this pod so that `beneficiary` gets room. `explanation` and the amounts go into the receipt."""

    workload: str
    pod: str
    beneficiary: str
    """The workload that gets the room; "" if it is told to end for none."""
    rule: Rule
    explanation: str
    """One sentence with the numbers that made it legal."""
    rejected: tuple[str, ...] = ()
    """What was tried first and would not have done, a sentence each."""


@dataclass(frozen=True, slots=True)
class Nominate:
    """Promise these places (all pending pods of the workload) until they are free."""

    workload: str
    places: tuple[Place, ...]
    waits_for: tuple[str, ...]
    due: datetime
    expires: datetime
    may_evict: bool = True


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now, and why. `position`: 1-based place in the order in which its pool is served."""

    workload: str
    reason: Reason
    position: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The output of one cycle.

    `fair_share`, `held` and `asked` are per pool and queue id, for the page and the reasons; `steps` is what the search
    used and `is_cut_off` says that the budget ended it (then waits with code `budget` say what was left undone).
    """

    binds: tuple[Bind, ...] = ()
    evicts: tuple[Evict, ...] = ()
    nominates: tuple[Nominate, ...] = ()
    waits: tuple[Wait, ...] = ()
    fair_share: Mapping[tuple[str, str], Amounts] = field(default_factory=dict)
    held: Mapping[tuple[str, str], Amounts] = field(default_factory=dict)
    asked: Mapping[tuple[str, str], Amounts] = field(default_factory=dict)
    steps: int = 0
    step_budget: int = 0
    is_cut_off: bool = False
