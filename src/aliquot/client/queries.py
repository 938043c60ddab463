"""What lists can be asked for, as keyword arguments. The server refuses a name it does not know."""

from datetime import datetime
from typing import TypedDict


class ListQuery(TypedDict, total=False):
    """Every list. `sort`: fields, separated by commas, `-` before one for descending; `cursor`: `next` of a page."""

    limit: int | None
    cursor: str | None
    sort: str | None


class WorkloadFilter(TypedDict, total=False):
    """Which workloads. Where several values are possible they are separated by commas; `label`: `key=value`."""

    project: str | None
    department: str | None
    phase: str | None
    kind: str | None
    name: str | None
    actor: str | None
    q: str | None
    label: list[str] | None


class WorkloadQuery(WorkloadFilter, ListQuery, total=False):
    """A list of workloads. `q`: a part of the name or of the project's, or the id."""


class QueueQuery(TypedDict, total=False):
    """Who waits."""

    project: str | None
    department: str | None
    pool: str | None
    limit: int | None
    cursor: str | None
    sort: str | None


class NamedQuery(ListQuery, total=False):
    """Departments. `name`: the whole name; `q`: a part of it."""

    name: str | None
    q: str | None


class ProjectQuery(NamedQuery, total=False):
    """Projects, of a department where one is named."""

    department: str | None


class UsageQuery(NamedQuery, total=False):
    """Usage of workloads."""

    project: str | None


class NodeQuery(ListQuery, total=False):
    """Nodes."""

    pool: str | None


class DeviceQuery(ListQuery, total=False):
    """Devices."""

    node: str | None
    model: str | None


class Between(TypedDict, total=False):
    """From when to when; instants with a zone."""

    start: datetime | None
    end: datetime | None


class SeriesQuery(Between, total=False):
    """Figures over time. `by`: none, department, project or pool; `name`: of these, one alone."""

    by: str | None
    name: str | None
    points: int | None


class UsageSeriesQuery(Between, total=False):
    """GPU hours over time. `by`: project or department; `step`: hour or day."""

    by: str | None
    step: str | None


class EventFilter(TypedDict, total=False):
    """Events, in a list or a stream. `after`: a sequence."""

    noun: str | None
    subject: str | None
    name: str | None
    project: str | None
    code: str | None
    after: int | None


class EventQuery(EventFilter, ListQuery, total=False):
    """A list of events."""


class ReceiptQuery(ListQuery, total=False):
    """Receipts of evictions."""

    workload: str | None
    project: str | None
    beneficiary: str | None
    rule: str | None


class AuditQuery(ListQuery, total=False):
    """Audit records."""

    actor: str | None
    verb: str | None
    noun: str | None
    subject: str | None
    outcome: str | None


class PodQuery(TypedDict, total=False):
    """A replica. `index`: which, from 0; `project`: whose, where names are ambiguous."""

    project: str | None
    index: int | None


class LogQuery(PodQuery, total=False):
    """A part of one pod's output. `offset`: bytes, negative: lines from the end."""

    attempt: int | None
    offset: int | None
    limit: int | None


class TextQuery(PodQuery, total=False):
    """One pod's output as text. `timestamps`: each line begins with its time."""

    attempt: int | None
    timestamps: bool | None


class FollowQuery(PodQuery, total=False):
    """What to follow. `index` left out: all replicas; `tail`: begin with so many lines; `after`: a cursor."""

    tail: int | None
    after: str | None


class ExecQuery(PodQuery, total=False):
    """How a program is run beside a replica: with a terminal of its own, of this size, or without."""

    terminal: bool
    rows: int
    columns: int
