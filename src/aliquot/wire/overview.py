"""The overview on the wire: how the GPUs do, who waits for what, and what is broken, in one answer."""

from typing import Literal

from pydantic import AwareDatetime, Field

from aliquot.core.plan import Code
from aliquot.wire.base import Shape


class DeviceTotals(Shape):
    """All devices together."""

    count: int
    free: int = Field(description="Devices of which nothing is held and that take new work.")
    held_milli_gpus: int
    used_milli_gpus: int | None = Field(None, description="Measured use. None: nothing is measured.")
    measured: int = Field(description="Devices whose use is measured.")
    withheld: int = Field(description="Devices that take nothing new.")
    is_simulated: bool
    description: str


class NodeTotals(Shape):
    """All nodes together."""

    count: int
    not_ready: int
    cordoned: int


class WaitingExample(Shape):
    """The workload of a group that has waited longest."""

    id: str
    name: str
    project: str
    message: str


class WaitingGroup(Shape):
    """The workloads that wait for one kind of reason."""

    code: Code
    workloads: int
    milli_gpus: int = Field(description="What they ask for together.")
    oldest: AwareDatetime = Field(description="Since when the first of them waits.")
    example: WaitingExample


class IdleHolding(Shape):
    """A device that a workload holds and, as measured, does not use."""

    workload: str
    workload_name: str
    project: str
    milli_gpus: int
    device: str = Field(description="`node/index`.")
    since: AwareDatetime
    utilisation_percent: int


class DepartmentTotals(Shape):
    """A department, over all pools."""

    name: str
    quota_milli_gpus: int | None = Field(None, description="None: unlimited.")
    held_milli_gpus: int
    fair_share_milli_gpus: int
    asked_milli_gpus: int = Field(description="Held and waiting together.")
    waiting: int
    running: int


class Finding(Shape):
    """How one part of the server does, in a sentence."""

    name: Literal["ledger", "disk", "scheduler", "devices", "nodes"]
    status: Literal["good", "warning", "bad"]
    message: str


class LastCycle(Shape):
    """The scheduler's last cycle."""

    at: AwareDatetime
    seconds: float


class Overview(Shape):
    """Everything at once."""

    time: AwareDatetime
    cluster: str
    version: str
    is_accepting: bool
    notice: str | None = None
    devices: DeviceTotals
    nodes: NodeTotals
    phases: dict[str, int] = Field(description="How many workloads are in each phase that any is in.")
    waiting: list[WaitingGroup] = Field(description="Those that ask for most come first.")
    idle: list[IdleHolding] = Field(description="Held, and used less than 5 % for over 10 minutes; the largest first.")
    departments: list[DepartmentTotals]
    health: list[Finding]
    last_cycle: LastCycle | None = Field(None, description="None: before the first.")
