"""Reads traces: lists of jobs that real clusters ran, as their publishers wrote the files.

Promises: jobs come in the order of their arrival, the first one at time 0; a trace that is wrong anywhere is refused
with file, line and field, whole (`aliquot.sim.lines`); equal requests share one object, so that a million jobs fit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TextIO

from aliquot.core.errors import InvalidInput
from aliquot.core.model import WHOLE_DEVICE_MILLI
from aliquot.sim import lines
from aliquot.sim.lines import Row

Format = Literal["openb", "itp", "muri", "philly", "shockwave"]

MOST_JOBS = 2_000_000
"""What a replay takes: each job needs about 400 bytes."""
MOST_SECONDS = 36_500 * 86_400
MOST_GPUS = 100_000
_MIB = 2**20
_MURI_STARTUP = 1.015
"""The simulator that published the results takes so much more than iterations x iteration time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a job asks for: so many devices in all, each whole or `milli` of it; CPU and memory of the whole job."""

    devices: int
    milli: int = WHOLE_DEVICE_MILLI
    milli_cpus: int = 0
    memory_bytes: int = 0
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job: when it came, how long it runs once it has all that it asks for (None: for ever), and whose it is."""

    name: str
    at: timedelta
    run_time: timedelta | None
    shape: Shape
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """All jobs of a file by arrival."""

    name: str
    jobs: tuple[TraceJob, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """A job as a reader finds it, in seconds of the file's own clock."""

    name: str
    at: float
    seconds: float | None
    shape: Shape
    tenant: str = ""


def read(path: Path, kind: Format) -> Trace:
    """The trace in a file. Raises InvalidInput for what cannot be read."""
    try:
        with lines.open_text(path) as stream:
            return parse(path.name, stream, kind)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}", field="--trace") from error


def parse(name: str, stream: TextIO, kind: Format, *, most: int = MOST_JOBS) -> Trace:
    """The trace in an open file, which errors call `name`."""
    seen: dict[str, int] = {}
    found: list[_Found] = []
    table: lines.Table | None = None
    for row, job in READERS[kind](name, stream):
        table = row.table
        if len(found) == most:
            table.refuse(f"more than {most} jobs; cut the trace into parts", valid=(f"at most {most} lines",))
        if job.name in seen:
            table.refuse(f"the job {job.name!r} is in line {seen[job.name]} already", valid=("names that differ",))
        seen[job.name] = table.line
        found.append(job)
    if table is None:
        raise InvalidInput(f"{name}:2: there is no job in the file", valid=("one line for each job",))
    found.sort(key=lambda job: job.at)  # Those of one instant stay in the order of the file.
    begin = found[0].at
    return Trace(name, tuple(_job(job, begin) for job in found))


def _job(job: _Found, begin: float) -> TraceJob:
    run_time = None if job.seconds is None else timedelta(seconds=job.seconds)
    return TraceJob(job.name, timedelta(seconds=job.at - begin), run_time, job.shape, job.tenant)


class _Shapes:
    """Equal shapes are one object."""

    def __init__(self) -> None:
        self._known: dict[Shape, Shape] = {}

    def of(self, shape: Shape) -> Shape:
        """The object for this shape."""
        return self._known.setdefault(shape, shape)


_Reader = Callable[[str, TextIO], Iterator[tuple[Row, _Found]]]


def _itp(name: str, stream: TextIO) -> Iterator[tuple[Row, _Found]]:
    """ElasticFlow's production traces: seconds; no tenants."""
    shapes = _Shapes()
    for row in _titled(name, stream, "itp"):
        gpus = row.whole("num_gpu", least=1, most=MOST_GPUS)
        yield (
            row,
            _Found(
                _name(row, "job_id"),
                row.number("submission_time", most=MOST_SECONDS),
                row.number("duration", most=MOST_SECONDS),
                shapes.of(Shape(gpus)),
            ),
        )


def _muri(name: str, stream: TextIO) -> Iterator[tuple[Row, _Found]]:
    """Muri's traces: milliseconds. The work of a job is its iterations; `duration` and `priority` are not used, as in
    the simulator that published the results."""
    shapes = _Shapes()
    for row in _titled(name, stream, "muri"):
        iterations = row.number("iterations", most=1e15)
        seconds = iterations * row.number("iteration_time", most=1e12) * _MURI_STARTUP / 1000
        if seconds > MOST_SECONDS:
            row.refuse("iterations", "makes the job longer than a hundred years", most=MOST_SECONDS)
        yield (
            row,
            _Found(
                _name(row, "job_id"),
                row.number("submit_time", most=MOST_SECONDS * 1000) / 1000,
                seconds,
                shapes.of(Shape(row.whole("num_gpu", least=1, most=MOST_GPUS))),
            ),
        )


def _philly(name: str, stream: TextIO) -> Iterator[tuple[Row, _Found]]:
    """Philly as Sia published it: a date, seconds, and a virtual cluster, which is the tenant. Jobs have no names."""
    shapes = _Shapes()
    for row in _titled(name, stream, "philly"):
        tenant = row.text("cluster")
        if not tenant:
            row.table.refuse("cluster: is empty", field="cluster", valid=("the name of a virtual cluster",))
        yield (
            row,
            _Found(
                f"line-{row.table.line}",
                _instant(row, "timestamp"),
                row.number("duration", most=MOST_SECONDS),
                shapes.of(Shape(row.whole("num_gpus", least=1, most=MOST_GPUS))),
                tenant,
            ),
        )


def _shockwave(name: str, stream: TextIO) -> Iterator[tuple[Row, _Found]]:
    """Shockwave's traces: no titles, tabs, seconds. The tenant is the kind of job. Gavel's own have no durations."""
    shapes = _Shapes()
    for row in lines.untitled(name, stream, columns=_SHOCKWAVE):
        yield (
            row,
            _Found(
                f"line-{row.table.line}",
                row.number("arrival", most=MOST_SECONDS),
                row.number("duration", most=MOST_SECONDS),
                shapes.of(Shape(row.whole("scale_factor", least=1, most=MOST_GPUS))),
                row.text("job_type").partition(" ")[0] or "none",
            ),
        )


def _openb(name: str, stream: TextIO) -> Iterator[tuple[Row, _Found]]:
    """Alibaba's pods: shares of one device, or whole ones; models; CPU and memory. Lists without times (`multigpu`):
    a pod each second, which stays. The tenant is the class of service."""
    shapes = _Shapes()
    for row in _titled(name, stream, "openb"):
        devices = row.whole("num_gpu", most=MOST_GPUS)
        milli = row.whole("gpu_milli", most=WHOLE_DEVICE_MILLI)
        if devices and (milli == 0 or (devices > 1 and milli < WHOLE_DEVICE_MILLI)):
            valid = "1 to 1000 of one device" if devices == 1 else "1000 of each of several devices"
            row.table.refuse(f"gpu_milli: {milli} of {devices} devices", field="gpu_milli", valid=(valid,))
        models = tuple(sorted(filter(None, row.text("gpu_spec").split("|")))) if "gpu_spec" in row.columns else ()
        shape = Shape(
            devices,
            milli if devices else WHOLE_DEVICE_MILLI,
            row.whole("cpu_milli", most=10**9),
            row.whole("memory_mib", most=10**9) * _MIB,
            models,
        )
        at, seconds = _times(row)
        tenant = row.text("qos") if "qos" in row.columns else ""
        yield row, _Found(_name(row, "name"), at, seconds, shapes.of(shape), tenant)


def _times(row: Row) -> tuple[float, float | None]:
    if "creation_time" not in row.columns:
        return float(row.table.line - 2), None
    at = row.number("creation_time", most=MOST_SECONDS)
    if "deletion_time" not in row.columns or not row.text("deletion_time"):
        return at, None
    end = row.number("deletion_time", most=MOST_SECONDS)
    has_start = "scheduled_time" in row.columns and row.text("scheduled_time")
    begin = row.number("scheduled_time", most=MOST_SECONDS) if has_start else at
    if end < begin:
        row.table.refuse(
            f"deletion_time: {end:.0f} is before the start of the pod at {begin:.0f}",
            field="deletion_time",
            valid=(f"a number from {begin:.0f} on",),
        )
    return at, end - begin


_COLUMNS: dict[Format, tuple[str, ...]] = {
    "itp": ("job_id", "submission_time", "duration", "num_gpu"),
    "muri": ("job_id", "num_gpu", "submit_time", "iterations", "iteration_time"),
    "philly": ("timestamp", "duration", "num_gpus", "cluster"),
    "openb": ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
}
_SHOCKWAVE = (
    "job_type",
    "command",
    "workdir",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "mode",
    "priority_weight",
    "SLO",
    "duration",
    "arrival",
)
READERS: dict[Format, _Reader] = {
    "openb": _openb,
    "itp": _itp,
    "muri": _muri,
    "philly": _philly,
    "shockwave": _shockwave,
}
FORMATS: Sequence[Format] = tuple(READERS)


def _titled(name: str, stream: TextIO, kind: Format) -> Iterator[Row]:
    """The rows; where the titles are those of another format, the error says which."""
    rows = lines.records(name, stream, needed=_COLUMNS[kind])
    try:
        first = next(rows, None)
    except InvalidInput as error:
        raise _with_guess(error, kind) from error
    if first is not None:
        yield first
        yield from rows


def _with_guess(error: InvalidInput, kind: Format) -> InvalidInput:
    found = {word.strip(" '") for word in error.message.partition("found: ")[2].split(",")}
    fitting = [other for other, columns in _COLUMNS.items() if other != kind and found.issuperset(columns)]
    if not fitting:
        return error
    hint = f"{error.message}; these are the columns of --format {fitting[0]}"
    return InvalidInput(hint, field=error.field, valid=error.valid)


def _name(row: Row, field: str) -> str:
    name = row.text(field)
    if not name:
        row.table.refuse(f"{field}: is empty", field=field, valid=("a name that no other job has",))
    return name


def _instant(row: Row, field: str) -> float:
    text = row.text(field)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        row.table.refuse(
            f"{field}: {text[:60]!r} is not an instant", field=field, valid=("a date and a time: 2017-10-09 07:01:55",)
        )
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
