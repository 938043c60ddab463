"""Usage: GPU time by workload and by project, as sums over the ledger; kept when the work is gone.

Promises: exact to the millisecond of a thousandth of a device before it is cut to whole seconds; open entries count up
to now; what was not measured is None, never 0.
"""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from aliquot.core import errors
from aliquot.core.model import WHOLE_DEVICE_MILLI
from aliquot.service import access, find, paging, ports, records
from aliquot.wire import base
from aliquot.wire import records as shapes
from aliquot.wire import series as series_shapes

LISTABLE = paging.Listable(
    filters=("project", "name", "q"), sorts={"created": "created", "name": "name"}, order=("-created",)
)
MOST_STEPS = 2000
_MICROSECOND = timedelta(microseconds=1)
_HOUR = timedelta(hours=1)
_EVER = datetime(1970, 1, 1, tzinfo=UTC)
# From thousandths of a device times microseconds, and from thousandths of a GPU second, to GPU seconds.
_MILLI_MICRO, _MILLI = 1_000_000_000, 1000


class Usage:
    """The use cases of usage."""

    def __init__(self, store: ports.Store, clock: ports.Clock) -> None:
        self._store = store
        self._clock = clock

    async def by_workload(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.Usage]:
        """Newest workload first, deleted ones too. Filters: project, name, q. Open entries count up to now."""
        access.check(actor, "list", "usage")
        paging.check(request, LISTABLE)
        now = self._clock.now()

        def work(tx: ports.Transaction) -> base.Page[shapes.Usage]:
            where = [_condition(tx, name, value) for name, value in request.filters.items()]
            rows, part = tx.workloads.page(paging.query(request, LISTABLE, where))
            entries: dict[str, list[records.LedgerRow]] = {row.id: [] for row in rows}
            for entry in tx.ledger.find(ports.Where("workload", "in", list(entries))):
                entries[entry.workload].append(entry)
            names = {id: find.queue_name(tx, id) for id in {row.project for row in rows}}
            items = [_of_workload(row, entries[row.id], names[row.project], now=now) for row in rows]
            return base.Page(items=items, total=part.total, next=part.next)

        return await self._store.read(work)

    async def series(self, actor: access.Actor, request: "SeriesRequest") -> series_shapes.UsageSeries:
        """GPU hours over time, by project or department. What was used is spread evenly over each entry. Raises
        InvalidInput for a time that ends before it begins or has too many steps."""
        access.check(actor, "list", "usage")
        now = self._clock.now()
        times, end = _steps(request, now)

        def work(tx: ports.Transaction) -> series_shapes.UsageSeries:
            names = _names_by_project(tx, request.by)
            lines: dict[str, _Line] = {}
            for entry in _overlapping(tx, times[0], end):
                name = names.get(entry.project) or find.queue_name(tx, entry.project)
                line = lines.setdefault(name, _Line(times, end))
                line.add(entry, now)
            shown = [line.shown(name) for name, line in sorted(lines.items())]
            return series_shapes.UsageSeries(step=request.step, start=times[0], end=end, times=times, lines=shown)

        return await self._store.read(work)

    async def by_project(
        self, actor: access.Actor, *, start: datetime | None = None, end: datetime | None = None
    ) -> base.Page[shapes.Usage]:
        """Every project, by name, on one page; deleted ones too, as far as they used something. Between two instants,
        only what lies between them counts, and run time is that of pods that held a device."""
        access.check(actor, "list", "usage")
        now = self._clock.now()
        window = None if start is None and end is None else (start or _EVER, min(end or now, now))

        def work(tx: ports.Transaction) -> base.Page[shapes.Usage]:
            items = [
                _of_project(tx, row.id, row.name, window, now=now) for row in tx.queues.find(find.level("project"))
            ]
            for event in tx.events.find(noun="project", code="deleted"):
                gone = _of_project(tx, event.subject, event.subject_name, window, now=now)
                items += [gone] if gone.run_seconds or gone.allocated_gpu_seconds else []
            items.sort(key=lambda one: (one.name, one.subject))
            return base.Page(items=items, total=len(items))

        return await self._store.read(work)


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """Which GPU hours. `start` None: a week before the end; `end` None: now."""

    by: Literal["project", "department"] = "project"
    step: Literal["hour", "day"] = "day"
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """What some entries add up to."""

    allocated: int
    used: int | None
    first: datetime | None
    last: datetime | None


class _Line:
    """GPU hours of one name, step by step."""

    def __init__(self, times: Sequence[datetime], end: datetime) -> None:
        self._edges = [*times, end]
        self._allocated = [0.0] * len(times)
        self._used: list[float | None] = [None] * len(times)

    def add(self, entry: records.LedgerRow, now: datetime) -> None:
        """Its part in each step."""
        start, end = entry.opened, max(entry.closed or now, entry.opened)
        whole = (end - start) / _HOUR
        first = max(0, bisect.bisect_right(self._edges, start) - 1)
        for step in range(first, len(self._allocated)):
            if self._edges[step] >= end:
                return
            hours = (min(end, self._edges[step + 1]) - max(start, self._edges[step])) / _HOUR
            if hours <= 0:
                continue
            self._allocated[step] += hours * entry.milli / WHOLE_DEVICE_MILLI
            if entry.used_milli_seconds is not None:
                used = entry.used_milli_seconds / WHOLE_DEVICE_MILLI / _HOUR.total_seconds()
                self._used[step] = (self._used[step] or 0.0) + used * hours / whole

    def shown(self, name: str) -> series_shapes.UsageLine:
        """On the wire."""
        used = [None if value is None else round(value, 6) for value in self._used]
        return series_shapes.UsageLine(
            name=name, allocated_gpu_hours=[round(value, 6) for value in self._allocated], used_gpu_hours=used
        )


def _steps(request: SeriesRequest, now: datetime) -> tuple[list[datetime], datetime]:
    """The beginning of each step, in UTC, and the end of the last."""
    end = (request.end or now).astimezone(UTC)
    start = (request.start or end - timedelta(days=7)).astimezone(UTC)
    if start >= end:
        raise errors.InvalidInput("from: must be before `to`", field="from", valid=("an earlier time than `to`",))
    span = timedelta(hours=1) if request.step == "hour" else timedelta(days=1)
    first = start.replace(minute=0, second=0, microsecond=0)
    first = first if request.step == "hour" else first.replace(hour=0)
    count = -((first - end) // span)
    if count > MOST_STEPS:
        message = f"step: from {start:%Y-%m-%d} to {end:%Y-%m-%d} are {count} steps of an {request.step}"
        raise errors.InvalidInput(message, field="step", valid=(f"at most {MOST_STEPS} steps", "day"))
    return [first + step * span for step in range(count)], end


def _names_by_project(tx: ports.Transaction, by: str) -> dict[str, str]:
    """By id of a project its name, or that of its department; of a project that is gone nothing."""
    rows = {row.id: row for row in tx.queues.find()}
    if by == "project":
        return {id: row.name for id, row in rows.items()}
    return {id: rows[row.department].name for id, row in rows.items() if row.department in rows}


def _overlapping(tx: ports.Transaction, start: datetime, end: datetime) -> list[records.LedgerRow]:
    before = ports.Where("opened", "lt", end)
    return [
        *tx.ledger.find(before, ports.Where("closed", "is", None)),
        *tx.ledger.find(before, ports.Where("closed", "gt", start)),
    ]


def add_up(entries: Sequence[records.LedgerRow], now: datetime) -> Sum:
    """GPU seconds of these entries. Cut once, after the sum, so that many short ones do not vanish."""
    ends = [max(entry.closed or now, entry.opened) for entry in entries]
    allocated = sum(
        entry.milli * ((end - entry.opened) // _MICROSECOND) for entry, end in zip(entries, ends, strict=True)
    )
    measured = [entry.used_milli_seconds for entry in entries if entry.used_milli_seconds is not None]
    return Sum(
        allocated=allocated // _MILLI_MICRO,
        used=sum(measured) // _MILLI if measured else None,
        first=min((entry.opened for entry in entries), default=None),
        last=max(ends, default=None),
    )


def _condition(tx: ports.Transaction, name: str, value: str) -> ports.Where:
    if name == "project":
        return ports.Where("project", "eq", find.queue(tx, value, noun="project", field="project").id)
    return ports.Where("name", "contains" if name == "q" else "eq", value)


def _of_workload(
    row: records.WorkloadRow, entries: Sequence[records.LedgerRow], project: str, *, now: datetime
) -> shapes.Usage:
    found = add_up(entries, now)
    return shapes.Usage(
        subject=row.id,
        name=row.name,
        project=project,
        allocated_gpu_seconds=found.allocated,
        used_gpu_seconds=found.used,
        run_seconds=int(_ran(row, now).total_seconds()),
        first=found.first or row.first_started,
        last=found.last or row.finished,
    )


def _of_project(
    tx: ports.Transaction, id: str, name: str, window: tuple[datetime, datetime] | None, *, now: datetime
) -> shapes.Usage:
    entries: Sequence[records.LedgerRow] = tx.ledger.find(project=id)
    if window is None:
        ran = sum((_ran(workload, now) for workload in tx.workloads.find(project=id)), timedelta(0))
    else:
        entries = [part for entry in entries if (part := _within(entry, *window)) is not None]
        spans = {entry.pod: (entry.closed or now) - entry.opened for entry in entries}
        ran = sum(spans.values(), timedelta(0))
    found = add_up(entries, now)
    return shapes.Usage(
        subject=id,
        name=name,
        project=name,
        allocated_gpu_seconds=found.allocated,
        used_gpu_seconds=found.used,
        run_seconds=int(ran.total_seconds()),
        first=found.first,
        last=found.last,
    )


def _within(entry: records.LedgerRow, start: datetime, end: datetime) -> records.LedgerRow | None:
    """The part of an entry between two instants, with its part of what was used; None if there is none."""
    closed = entry.closed or end
    opened, shut = max(entry.opened, start), min(closed, end)
    if shut <= opened:
        return None
    used = entry.used_milli_seconds
    if used is not None:
        used = int(used * ((shut - opened) / (closed - entry.opened)))
    return replace(entry, opened=opened, closed=shut, used_milli_seconds=used)


def _ran(row: records.WorkloadRow, now: datetime) -> timedelta:
    return row.ran if row.running_since is None else row.ran + max(now - row.running_since, timedelta(0))
