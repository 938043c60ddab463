"""Figures over time on the wire. What was not measured, and when no server ran, is null and never interpolated."""

from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from aliquot.wire.base import Shape


class Metric(StrEnum):
    """What is counted: GPUs as numbers of devices, workloads as they are."""

    ALLOCATED = "allocated"
    USED = "used"
    CAPACITY = "capacity"
    WAITING = "waiting"
    WAITING_GPUS = "waitingGpus"
    RUNNING = "running"


class By(StrEnum):
    """One line for the whole cluster, or one for each of these."""

    NONE = "none"
    DEPARTMENT = "department"
    PROJECT = "project"
    POOL = "pool"


class SeriesLine(Shape):
    """One line of a chart: a value for each of the times."""

    name: str
    values: list[float | None]


class Series(Shape):
    """One metric over time. A value is the mean over the step that begins at its time."""

    metric: Metric
    unit: Literal["GPU", "workloads"]
    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime = Field(alias="to")
    step_seconds: int
    times: list[AwareDatetime]
    lines: list[SeriesLine]
    capacity: list[float | None] = Field(description="Devices of the cluster at the same times.")


class UsageLine(Shape):
    """GPU hours of one project or department, a value for each of the times."""

    name: str
    allocated_gpu_hours: list[float]
    used_gpu_hours: list[float | None] = Field(description="None: not measured.")


class UsageSeries(Shape):
    """GPU hours over time, from the ledger: exact for what is allocated, however long ago."""

    step: Literal["hour", "day"]
    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime = Field(alias="to")
    times: list[AwareDatetime] = Field(description="The beginning of each step, in UTC.")
    lines: list[UsageLine]
