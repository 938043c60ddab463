"""Figures over time as lines of a chart, from the samples that are kept (`aliquot.service.samples`).

Promises: a value is the mean over its step; a step in which no server ran, or in which it was not measured, is None and
is never made up from its neighbours. The finest samples that are still kept and are not finer than a step are read,
and for what is not summed up yet the finer ones.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from aliquot.core import errors
from aliquot.service import access, find, ports, records, samples
from aliquot.wire import series as shapes

HOUR = timedelta(hours=1)
LONGEST = samples.KEPT[max(samples.KEPT)]
"""Nothing older is kept."""
_FIELDS = {
    shapes.Metric.ALLOCATED: "allocated",
    shapes.Metric.USED: "used",
    shapes.Metric.CAPACITY: "capacity",
    shapes.Metric.WAITING: "waiting",
    shapes.Metric.WAITING_GPUS: "waiting_milli",
    shapes.Metric.RUNNING: "running",
}
_COUNTED = frozenset({shapes.Metric.WAITING, shapes.Metric.RUNNING})
"""Metrics that count workloads; the others count thousandths of GPUs."""
_Steps = Mapping[int, Sequence[records.SampleRow]]


@dataclass(frozen=True, slots=True)
class Request:
    """Which figures. `start` None: an hour before `end`; `end` None: now. `name`: one line alone."""

    metric: shapes.Metric
    by: shapes.By = shapes.By.NONE
    start: datetime | None = None
    end: datetime | None = None
    points: int = 300
    name: str | None = None


@dataclass(frozen=True, slots=True)
class _Axis:
    """The steps of a chart, and the grain of the samples that fill them."""

    start: datetime
    seconds: int
    count: int
    grain: int

    @property
    def end(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds * self.count)

    def times(self) -> list[datetime]:
        return [self.start + timedelta(seconds=self.seconds * place) for place in range(self.count)]


class Series:
    """The use cases of series."""

    def __init__(self, store: ports.Store, *, clock: ports.Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, actor: access.Actor, request: Request) -> shapes.Series:
        """One metric over time."""
        access.check(actor, "get", "series")
        now = self._clock.now()
        axis = _axis(request, now)

        def work(tx: ports.Transaction) -> shapes.Series:
            wanted = _wanted(tx, request)
            cluster = _steps(tx, "cluster", axis, now=now)
            kind = "cluster" if request.by is shapes.By.NONE else str(request.by)
            rows = cluster if kind == "cluster" else _steps(tx, kind, axis, now=now)
            lines = [
                shapes.SeriesLine(name=_name(tx, kind, line), values=values)
                for line, values in _means(rows, axis, request.metric, only=wanted).items()
            ]
            whole = _means(cluster, axis, shapes.Metric.CAPACITY, only=samples.WHOLE)
            capacity = whole.get(samples.WHOLE, [None] * axis.count)
            return _series(request, axis, lines, capacity=capacity)

        return await self._store.read(work)


def _series(
    request: Request, axis: _Axis, lines: Sequence[shapes.SeriesLine], *, capacity: list[float | None]
) -> shapes.Series:
    return shapes.Series(
        metric=request.metric,
        unit="workloads" if request.metric in _COUNTED else "GPU",
        start=axis.start,
        end=axis.end,
        step_seconds=axis.seconds,
        times=axis.times(),
        lines=sorted(lines, key=lambda line: line.name),
        capacity=capacity,
    )


def _axis(request: Request, now: datetime) -> _Axis:
    end = now if request.end is None else request.end
    start = end - HOUR if request.start is None else request.start
    if start >= end:
        raise errors.InvalidInput("from: it must be before `to`", field="from", valid=("an instant before `to`",))
    if end - start > LONGEST:
        days = LONGEST.days
        raise errors.InvalidInput(f"from: at most {days} days are kept", field="from", valid=(f"at most {days} days",))
    asked = max(1, -(-int((end - start).total_seconds()) // request.points))
    grain = max((one for one in samples.KEPT if one <= asked), default=samples.FINEST)
    # Samples that are gone already are in the coarser ones.
    grain = next((one for one in samples.KEPT if one >= grain and now - start <= samples.KEPT[one]), max(samples.KEPT))
    seconds = grain * -(-asked // grain)
    # Steps begin at multiples of their length, so that those of the past are the same when the chart is asked for
    # again. So the first one begins a little before what was asked for, and there may be one too many.
    while (count := -(-(end - samples.floor(start, seconds)) // timedelta(seconds=seconds))) > request.points:
        seconds += grain
    return _Axis(samples.floor(start, seconds), seconds, count, grain)


def _steps(tx: ports.Transaction, kind: str, axis: _Axis, *, now: datetime) -> _Steps:
    """The samples of each step, by its place."""
    found: dict[int, list[records.SampleRow]] = defaultdict(list)
    start = axis.start
    for grain in sorted((one for one in samples.KEPT if one <= axis.grain), reverse=True):
        rows = samples.find(tx, kind, grain, start, end=axis.end)
        for row in rows:
            found[int((row.time - axis.start).total_seconds()) // axis.seconds].append(row)
        # What is not summed up yet: from the end of the last one on, at most since two steps of it ago.
        last = rows[-1].time + timedelta(seconds=grain) if rows else start
        start = max(last, samples.floor(now, grain) - timedelta(seconds=grain), start)
    return found


def _means(steps: _Steps, axis: _Axis, metric: shapes.Metric, *, only: str | None) -> dict[str, list[float | None]]:
    """The mean of each line in each step; `only`: of this line alone. In one pass, as there may be a million values.

    A line that is not in a sample held and wanted nothing then, and used nothing if anything was measured.
    """
    place = samples.FIELDS.index(_FIELDS[metric])
    scale = 1 if metric in _COUNTED else 1000
    names = sorted({line for rows in steps.values() for row in rows for line in row.values})
    found: dict[str, list[float | None]] = {line: [None] * axis.count for line in names if only is None or line == only}
    for step, rows in steps.items():
        sums: dict[str, float] = defaultdict(float)
        weights: dict[str, float] = defaultdict(float)
        for line, value, grain in ((line, one[place], row.grain) for row in rows for line, one in row.values.items()):
            if value is not None:
                sums[line] += value * grain
                weights[line] += grain
        # For so many seconds a line that is not in a sample was 0.
        known = sum(row.grain for row in rows if _is_known(row, place, metric))
        for line, values in found.items():
            weight = weights[line] if metric is shapes.Metric.CAPACITY else known
            values[step] = round(sums[line] / weight / scale, 4) if weight else None
    return found


def _is_known(row: records.SampleRow, place: int, metric: shapes.Metric) -> bool:
    if metric is not shapes.Metric.USED:
        return True
    return any(values[place] is not None for values in row.values.values())


def _wanted(tx: ports.Transaction, request: Request) -> str | None:
    """The line that is asked for alone. Raises InvalidInput for a name that is not there."""
    if request.name is None or request.by is shapes.By.POOL:
        return request.name
    if request.by is shapes.By.NONE:
        valid = [str(one) for one in shapes.By if one is not shapes.By.NONE]
        raise errors.InvalidInput("name: it names a line of `by`, which is none", field="by", valid=valid)
    return find.queue(tx, request.name, noun=str(request.by), field="name").id


def _name(tx: ports.Transaction, kind: str, line: str) -> str:
    return line if kind in {"cluster", "pool"} else find.queue_name(tx, line)
