"""Usage: GPU time by workload and by project, as sums over the ledger; kept when the work is gone.

Promises: exact to the millisecond of a thousandth of a device before it is cut to whole seconds; open entries count up
to now; what was not measured is None, never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from aliquot.core import errors
from aliquot.service import access, find, paging, ports, records
from aliquot.wire import base
from aliquot.wire import records as shapes
from aliquot.wire import series as series_shapes

LISTABLE = paging.Listable(
    filters=("project", "name", "q"), sorts={"created": "created", "name": "name"}, order=("-created",)
)
_MICROSECOND = timedelta(microseconds=1)
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
        """GPU hours over time, by project or department."""
        access.check(actor, "list", "usage")
        raise errors.Unavailable("usage over time is not built yet")

    async def by_project(
        self, actor: access.Actor, *, start: datetime | None = None, end: datetime | None = None
    ) -> base.Page[shapes.Usage]:
        """Every project, by name, on one page; deleted ones too, as far as they used something."""
        access.check(actor, "list", "usage")
        now = self._clock.now()

        def work(tx: ports.Transaction) -> base.Page[shapes.Usage]:
            items = [_of_project(tx, row.id, row.name, now=now) for row in tx.queues.find(find.level("project"))]
            for event in tx.events.find(noun="project", code="deleted"):
                gone = _of_project(tx, event.subject, event.subject_name, now=now)
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


def _of_project(tx: ports.Transaction, id: str, name: str, *, now: datetime) -> shapes.Usage:
    found = add_up(tx.ledger.find(project=id), now)
    ran = sum((_ran(workload, now) for workload in tx.workloads.find(project=id)), timedelta(0))
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


def _ran(row: records.WorkloadRow, now: datetime) -> timedelta:
    return row.ran if row.running_since is None else row.ran + max(now - row.running_since, timedelta(0))
