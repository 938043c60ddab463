"""Who waits, in order, on the wire; and what a change of terms would do to the order."""

from pydantic import AwareDatetime, Field

from aliquot.wire.base import Shape
from aliquot.wire.workloads import Kind, Reason


class Named(Shape):
    """A workload by its id, its name and its project's name."""

    workload: str
    name: str
    project: str


class StartRange(Shape):
    """Between these two it starts, if what runs keeps to its stated run time and nothing comes before it."""

    earliest: AwareDatetime
    latest: AwareDatetime


class QueueEntry(Shape):
    """A workload that waits, at its place in the line of its pool."""

    position: int | None = Field(description="From 1, in the order in which its pool is served; None: not placed yet.")
    workload: str
    name: str
    project: str
    department: str
    pool: str
    kind: Kind
    gpu: str
    milli_gpus: int = Field(description="What all its replicas ask for together.")
    replicas: int
    priority: int
    waiting_since: AwareDatetime
    reason: Reason | None = None
    promised: list[str] = Field(description="`node/index` of the devices that are being freed for it.")
    expected_start: StartRange | None = None
    expected_unknown_because: str | None = Field(None, description="Why there is no expected start.")
    waits_for: list[Named] = Field(description="Who holds what it waits for.")


class PreviewedStart(Shape):
    """A workload that waits now and would start."""

    workload: str
    name: str
    project: str
    gpu: str
    places: list[str] = Field(description="`node/index` of its devices.")


class PreviewedEviction(Shape):
    """A workload that runs now and would be evicted."""

    workload: str
    name: str
    project: str
    gpu: str
    for_name: str | None = Field(None, description="For whom.")


class PreviewedShare(Shape):
    """A fair share that would be another."""

    queue: str = Field(description="Name of a project or department.")
    is_department: bool
    pool: str
    before_milli_gpus: int
    after_milli_gpus: int


class QueuePreview(Shape):
    """What a change of terms would do, by the scheduler itself; nothing is changed."""

    starts: list[PreviewedStart]
    evicts: list[PreviewedEviction]
    fair_shares: list[PreviewedShare] = Field(description="Only those that would differ.")
    waits_before: int
    waits_after: int
    is_complete: bool = Field(True, description="False: there was more to do than a preview looks at.")
