"""The life of a workload: its phases, what can happen to it, and what follows. One pure function over one table.

Docs print this table (`docs/reference/lifecycle.md` is checked against it). A phase that ends in `-ing` still has
processes or is about to; it leaves when the last of them is gone (GONE).
"""

from enum import StrEnum

from aliquot.core.errors import Conflict


class Phase(StrEnum):
    """Where a workload is in its life."""

    PENDING = "pending"
    """Waits for a place; the plan gives the reason."""
    STARTING = "starting"
    """Has a place; not every process has started."""
    RUNNING = "running"
    EVICTING = "evicting"
    """Is being ended so that another gets its place, or because its machine was lost or is being emptied; will be
    pending again."""
    RESTARTING = "restarting"
    """A replica failed and retries are left: the rest of the gang is being ended; will be pending, backing off."""
    SUSPENDING = "suspending"
    STOPPING = "stopping"
    FAILING = "failing"
    """A replica failed for good, or the time limit passed: the rest is being ended."""
    SUSPENDED = "suspended"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


class Signal(StrEnum):
    """What can happen to a workload."""

    BOUND = "bound"
    STARTED = "started"
    """Every pod's process runs, or has already ended well."""
    SUCCEEDED = "succeeded"
    """Every pod ended with exit code 0."""
    POD_FAILED_RETRY = "pod-failed-retry"
    POD_FAILED_FINAL = "pod-failed-final"
    TIME_LIMIT = "time-limit"
    EVICT = "evict"
    LOST = "lost"
    """The machine (or what ran there) went away without the workload's fault, as by a reboot."""
    SUSPEND = "suspend"
    RESUME = "resume"
    STOP = "stop"
    GONE = "gone"
    """The last process that was being ended is gone."""


FINISHED = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPED})
ENDING = frozenset({Phase.EVICTING, Phase.RESTARTING, Phase.SUSPENDING, Phase.STOPPING, Phase.FAILING})
ACTIVE = frozenset({Phase.STARTING, Phase.RUNNING})

_P, _S = Phase, Signal
TABLE: dict[tuple[Phase, Signal], Phase] = {
    (_P.PENDING, _S.BOUND): _P.STARTING,
    (_P.PENDING, _S.SUSPEND): _P.SUSPENDED,
    (_P.PENDING, _S.STOP): _P.STOPPED,
    (_P.PENDING, _S.TIME_LIMIT): _P.FAILED,
    (_P.SUSPENDED, _S.RESUME): _P.PENDING,
    (_P.SUSPENDED, _S.STOP): _P.STOPPED,
    **{
        (active, signal): after
        for active in (_P.STARTING, _P.RUNNING)
        for signal, after in (
            (_S.SUCCEEDED, _P.SUCCEEDED),
            (_S.POD_FAILED_RETRY, _P.RESTARTING),
            (_S.POD_FAILED_FINAL, _P.FAILING),
            (_S.TIME_LIMIT, _P.FAILING),
            (_S.EVICT, _P.EVICTING),
            (_S.LOST, _P.EVICTING),
            (_S.SUSPEND, _P.SUSPENDING),
            (_S.STOP, _P.STOPPING),
        )
    },
    (_P.STARTING, _S.STARTED): _P.RUNNING,
    (_P.EVICTING, _S.GONE): _P.PENDING,
    (_P.RESTARTING, _S.GONE): _P.PENDING,
    (_P.SUSPENDING, _S.GONE): _P.SUSPENDED,
    (_P.STOPPING, _S.GONE): _P.STOPPED,
    (_P.FAILING, _S.GONE): _P.FAILED,
    # A wish of a person overrides why it is being ended; what fails for good stays failed.
    (_P.EVICTING, _S.SUSPEND): _P.SUSPENDING,
    (_P.RESTARTING, _S.SUSPEND): _P.SUSPENDING,
    (_P.EVICTING, _S.STOP): _P.STOPPING,
    (_P.RESTARTING, _S.STOP): _P.STOPPING,
    (_P.SUSPENDING, _S.STOP): _P.STOPPING,
    (_P.SUSPENDING, _S.RESUME): _P.EVICTING,
    # All pods ended well just before they were told to end: they did finish.
    **{(ending, _S.SUCCEEDED): _P.SUCCEEDED for ending in (_P.EVICTING, _P.SUSPENDING, _P.STOPPING, _P.RESTARTING)},
    # Asking twice is not an error.
    (_P.SUSPENDED, _S.SUSPEND): _P.SUSPENDED,
    (_P.SUSPENDING, _S.SUSPEND): _P.SUSPENDING,
    (_P.STOPPING, _S.STOP): _P.STOPPING,
    (_P.STOPPED, _S.STOP): _P.STOPPED,
    (_P.FAILING, _S.STOP): _P.FAILING,
    **{(phase, _S.RESUME): phase for phase in (_P.PENDING, _P.STARTING, _P.RUNNING)},
}


def follow(phase: Phase, signal: Signal) -> Phase:
    """The phase after `signal`. Raises Conflict, naming the signals that are possible, where there is none."""
    after = TABLE.get((phase, signal))
    if after is None:
        possible = sorted({str(known) for before, known in TABLE if before is phase})
        raise Conflict(f"a workload that is {phase} cannot {_verb(signal)}", valid=possible, code=f"cannot-{signal}")
    return after


def is_possible(phase: Phase, signal: Signal) -> bool:
    """Whether `follow` has an answer."""
    return (phase, signal) in TABLE


def _verb(signal: Signal) -> str:
    return {Signal.SUSPEND: "be suspended", Signal.RESUME: "be resumed", Signal.STOP: "be stopped"}.get(
        signal, f"take the signal {signal}"
    )
