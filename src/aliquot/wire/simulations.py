"""What is asked of a simulation and what it reports. Numbers of time are seconds; parts are fractions of 1."""

from datetime import timedelta
from typing import Literal

from pydantic import Field

from aliquot.wire.base import Shape

Format = Literal["openb", "itp", "muri", "philly", "shockwave", "scenario"]
FORMATS: tuple[Format, ...] = ("openb", "itp", "muri", "philly", "shockwave", "scenario")
Placement = Literal["fragmentation", "pack", "spread"]
PLACEMENTS: tuple[Placement, ...] = ("fragmentation", "pack", "spread")
FORMAT: Literal["aliquot-simulation/1"] = "aliquot-simulation/1"


class Request(Shape):
    """What to replay, where, and by which rules."""

    trace: str
    format: Format
    nodes: str | None = None
    policies: tuple[str, ...] = ()
    placement: Placement | None = None
    queues: str | None = None
    first_jobs: int | None = Field(None, description="Only so many jobs. None: all.")
    checkpoint_every: timedelta | None = Field(timedelta(), description="Zero: always. None: never.")
    release_takes: timedelta = timedelta()
    quantum: timedelta | None = None


class Progress(Shape):
    """How far a replay is: of all jobs so many have ended, so many wait, after so much time of the trace."""

    policy: str
    jobs: int
    ended: int
    waiting: int
    elapsed: timedelta


class Spread(Shape):
    """How a number is spread over jobs."""

    mean: float
    p50: float
    p90: float
    p99: float
    most: float


class Evictions(Shape):
    """What was ended to make room."""

    pods: int
    workloads: int
    jobs: int = Field(description="Jobs that were evicted at least once.")
    by_rule: dict[str, int] = Field(description="Pods by the rule that evicted them.")
    lost_seconds: float = Field(description="Run time since the last checkpoints, lost by evictions.")


class QueueOverTime(Shape):
    """What a queue held and what was its fair share, as parts of all devices."""

    name: str
    held_mean: float | None
    share_mean: float | None
    held: list[float | None]
    share: list[float | None]


class OverTime(Shape):
    """Means of equal steps, from the first job on; null where there is none. Fragmentation: what is idle and of no use
    to the usual jobs of the trace, as a part of all devices and of the idle ones. Fairness: Jain's index of what the
    queues hold of their fair shares."""

    step_seconds: float
    allocation: list[float | None]
    waiting: list[float | None]
    fragmentation: list[float | None]
    fragmentation_of_idle: list[float | None]
    fairness: list[float | None]
    queues: list[QueueOverTime]


class Run(Shape):
    """What came of the trace under one policy. The spreads are over the jobs that ended."""

    policy: str
    placement: str
    ended: int
    running: int = Field(description="Jobs that run for ever, by what the trace says.")
    waiting: int = Field(description="Jobs that wait at the end, for something that never ends.")
    makespan_seconds: float
    to_start: Spread | None = Field(description="From a job's arrival to its first start.")
    waited: Spread | None = Field(description="All the time without its devices.")
    completion: Spread | None = Field(description="From a job's arrival to its end (JCT).")
    allocation: float | None
    fragmentation: float | None
    fragmentation_of_idle: float | None
    fairness: float | None = Field(description="Jain's index; null with one queue.")
    evictions: Evictions
    cycles: int
    cut_off_cycles: int
    waited_percentiles: list[float] = Field(description="0 to 100, for charts.")
    completion_percentiles: list[float]
    over_time: OverTime


class Dropped(Shape):
    """A job that nothing in the cluster could ever start, and why."""

    job: str
    why: str


class TraceFacts(Shape):
    """What was replayed."""

    name: str
    format: Format
    jobs: int
    dropped: int


class ClusterFacts(Shape):
    """Where."""

    nodes: int
    devices: int
    models: dict[str, int]
    queues: int


class Simulation(Shape):
    """A trace under one policy or several."""

    format: Literal["aliquot-simulation/1"] = FORMAT
    trace: TraceFacts
    cluster: ClusterFacts
    runs: list[Run]
    dropped: list[Dropped] = Field(description="The first of them.")
