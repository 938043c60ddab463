"""What can happen in a simulated cluster from outside: jobs come, people stop them, quotas change, machines fail.

Promises: plain values only, so that a script can be written in a test, made from a seed, or read from a trace.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from aliquot.core.model import Queue, Workload


@dataclass(frozen=True, slots=True)
class Job:
    """A workload and how its programs would behave. Its pods are pending; `created` is set when it is submitted."""

    workload: Workload
    run_time: timedelta | None = None
    """How long it has to run in all; None runs until somebody ends it."""
    checkpoint_every: timedelta | None = None
    """What it has done is kept in steps of this length when it is evicted; None: it begins anew."""
    release_takes: timedelta = timedelta(seconds=10)
    """How long its processes take to end once they are told to."""


@dataclass(frozen=True, slots=True)
class Submit:
    """A person submits a job."""

    job: Job


@dataclass(frozen=True, slots=True)
class Stop:
    """A person stops a workload; nothing happens if it has ended already."""

    workload: str


@dataclass(frozen=True, slots=True)
class SetQueue:
    """An administrator makes or changes a queue."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class Cordon:
    """An administrator keeps new work from a node. What runs there goes on."""

    node: str


@dataclass(frozen=True, slots=True)
class Uncordon:
    """An administrator gives a node back."""

    node: str


@dataclass(frozen=True, slots=True)
class Withhold:
    """A device is not offered any more, for a reason code of `core.model.Device.withheld`. `lost` and `xid` end what
    runs on it; the other reasons leave it alone."""

    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A device is offered again."""

    device: str


Happening = Submit | Stop | SetQueue | Cordon | Uncordon | Withhold | Offer


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at an instant."""

    at: datetime
    what: Happening


@dataclass(frozen=True, slots=True)
class Script:
    """Where a simulation begins and what happens to it, in the order of time."""

    start: datetime
    events: tuple[Event, ...] = ()
