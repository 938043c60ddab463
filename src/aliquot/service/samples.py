"""Samples: what is held, used and waited for at one moment, and how they are kept for months in little room.

Promises: a sample is the mean over the step that begins at its time; a time without a server has no samples; what was
not measured is None and takes no part in a mean. Kept are steps of ten seconds for a day, of a minute for eight days
and of ten minutes for 400 days: a few megabytes a month for a machine.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta

from aliquot.core.model import DEFAULT_POOL, Node
from aliquot.service import mirror, ports, records
from aliquot.wire.nodes import DeviceUse

KEPT: Mapping[int, timedelta] = {10: timedelta(days=1), 60: timedelta(days=8), 600: timedelta(days=400)}
"""By the seconds of a step, how long it is kept."""
FINEST, *COARSER = KEPT
KINDS = ("cluster", "pool", "department", "project")
WHOLE = "cluster"
"""The one line of the kind `cluster`."""
_REMOVED_AT_ONCE = 500
"""Twice as many as become too old in ten minutes."""

Values = tuple[float | None, ...]
"""One line at one time, as `Sample` has them."""
Taken = Mapping[str, Mapping[str, Values]]
"""By kind and line."""


@dataclass(slots=True)
class Sample:
    """One line at one moment; GPUs in thousandths. `capacity` of a project or department is its quota."""

    allocated: float = 0
    capacity: float | None = None
    used: float | None = None
    waiting: float = 0
    waiting_milli: float = 0
    running: float = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held or wanted: then it is not kept."""
        return not (self.allocated or self.waiting or self.running)


FIELDS = tuple(Sample.__dataclass_fields__)
NOTHING: Values = astuple(Sample())


def measure(sight: mirror.Sight, nodes: Sequence[Node], use: Mapping[str, DeviceUse]) -> Taken:
    """The cluster, each pool, department and project as they are now."""
    pools = {node.id: node.pool for node in nodes}
    lines: dict[tuple[str, str], Sample] = defaultdict(Sample)
    lines["cluster", WHOLE].capacity = 0
    for node in nodes:
        for key in (("cluster", WHOLE), ("pool", node.pool)):
            lines[key].capacity = (lines[key].capacity or 0) + 1000 * len(node.devices)
    for row in sight.queues.values():
        quotas = [terms.gpu.quota for terms in row.terms.values()]
        kind = "department" if row.department is None else "project"
        lines[kind, row.id].capacity = None if None in quotas else sum(one for one in quotas if one is not None)
    _add_holdings(lines, sight, pools, use=use)
    device_mib = mirror.device_mib(nodes)
    for workload in sight.workloads.values():
        asked = mirror.asked_milli(workload, device_mib)
        for key in _lines_of(sight, workload.project, DEFAULT_POOL):
            line = lines[key]
            if workload.phase in mirror.WAITING:
                line.waiting += 1
                line.waiting_milli += asked
            elif workload.phase in mirror.RUNNING:
                line.running += 1
    return _by_kind(lines)


def write(tx: ports.Transaction, taken: Taken, now: datetime) -> None:
    """Keep what was measured, sum up what is complete, and remove what is too old."""
    time = floor(now, FINEST)
    where = (ports.Where("grain", "eq", FINEST), ports.Where("kind", "eq", "cluster"), ports.Where("time", "lt", time))
    last, _ = tx.samples.page(ports.Query(where, ("-time",), limit=1))
    _put(tx, FINEST, time, taken)
    finer = FINEST
    for grain in COARSER:
        # The last sample may be of before a restart: what it belongs to is complete, too.
        if last and floor(last[0].time, grain) < floor(time, grain):
            _sum_up(tx, finer, grain, floor(last[0].time, grain))
            if grain == COARSER[-1]:
                _remove_old(tx, now)
        finer = grain


def find(
    tx: ports.Transaction, kind: str, grain: int, start: datetime, *, end: datetime
) -> Sequence[records.SampleRow]:
    """The samples of a kind and grain between two times, the oldest first."""
    bounds = (ports.Where("time", "ge", start), ports.Where("time", "lt", end))
    return sorted(tx.samples.find(*bounds, kind=kind, grain=grain), key=lambda row: row.time)


def floor(time: datetime, grain: int) -> datetime:
    """The beginning of the step that a time is in."""
    return time - (time - datetime.min.replace(tzinfo=UTC)) % timedelta(seconds=grain)


def mean(samples: Iterable[tuple[Values, float]]) -> Values:
    """The mean of one line's values, each with its weight."""
    columns: list[list[tuple[float, float]]] = [[] for _ in FIELDS]
    for values, weight in samples:
        for column, value in zip(columns, values, strict=True):
            if value is not None:
                column.append((value, weight))
    return tuple(_mean(column) for column in columns)


def values_in(row: records.SampleRow, line: str) -> Values:
    """A line's values in a sample. One that is not in it held and wanted nothing, and used nothing if use is known."""
    found = row.values.get(line)
    if found is not None:
        return tuple(found)
    is_measured = any(values[FIELDS.index("used")] is not None for values in row.values.values())
    return astuple(Sample(used=0 if is_measured else None))


def _add_holdings(
    lines: dict[tuple[str, str], Sample],
    sight: mirror.Sight,
    pools: Mapping[str, str],
    *,
    use: Mapping[str, DeviceUse],
) -> None:
    """What is held, and its part of what is used: of a shared device each share's part of what is held of it."""
    held = sight.held
    for pod, device, milli in sight.holdings():
        row = sight.workloads.get(pod.workload)
        busy = use[device].utilisation_percent if device in use else None
        for key in _lines_of(sight, "" if row is None else row.project, pools.get(pod.node, DEFAULT_POOL)):
            line = lines[key]
            line.allocated += milli
            if busy is not None:
                line.used = (line.used or 0) + 10 * busy * milli / held[device]
    if any(one.utilisation_percent is not None for one in use.values()):
        for line in lines.values():
            line.used = line.used or 0


def _lines_of(sight: mirror.Sight, project: str, pool: str) -> tuple[tuple[str, str], ...]:
    if not project:
        return (("cluster", WHOLE), ("pool", pool))
    department = sight.department(project)
    return (("cluster", WHOLE), ("pool", pool), ("department", department), ("project", project))


def _by_kind(lines: Mapping[tuple[str, str], Sample]) -> Taken:
    found: dict[str, dict[str, Values]] = {kind: {} for kind in KINDS}
    for (kind, name), line in sorted(lines.items()):
        if kind in {"cluster", "pool"} or not line.is_empty:
            found[kind][name] = tuple(None if value is None else round(value, 2) for value in astuple(line))
    return found


def _put(tx: ports.Transaction, grain: int, time: datetime, taken: Taken) -> None:
    for kind, values in taken.items():
        id = f"{grain}/{kind}/{int(time.timestamp())}"
        tx.samples.put(records.SampleRow(id, grain, kind, time, values))


def _sum_up(tx: ports.Transaction, finer: int, grain: int, time: datetime) -> None:
    taken: dict[str, dict[str, Values]] = {}
    for kind in KINDS:
        rows = find(tx, kind, finer, time, end=time + timedelta(seconds=grain))
        names = sorted({name for row in rows for name in row.values})
        taken[kind] = {name: mean([(values_in(row, name), 1) for row in rows]) for name in names}
    _put(tx, grain, time, taken)


def _remove_old(tx: ports.Transaction, now: datetime) -> None:
    for grain, span in KEPT.items():
        where = (ports.Where("grain", "eq", grain), ports.Where("time", "lt", now - span))
        rows, _ = tx.samples.page(ports.Query(where, ("time",), limit=_REMOVED_AT_ONCE))
        for row in rows:
            tx.samples.delete(row.id)


def _mean(column: Sequence[tuple[float, float]]) -> float | None:
    weight = sum(weight for _, weight in column)
    return round(sum(value * weight for value, weight in column) / weight, 2) if weight else None
