"""Makes of a trace what a cluster takes: queues for those whose jobs it holds, and a workload for each job.

Promises: jobs are made one at a time, so that a long trace needs little memory; a job whose devices no node has
together becomes a gang of pods that fill nodes; what nothing present could ever start is told apart and not submitted.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from aliquot.core import admission
from aliquot.core.errors import InvalidInput
from aliquot.core.model import (
    DEFAULT_POOL,
    WHOLE_DEVICE_MILLI,
    Claim,
    GpuRequest,
    Node,
    Pod,
    PodRequest,
    PoolTerms,
    Queue,
    QueueOrder,
    Snapshot,
    Workload,
)
from aliquot.sim.script import Job
from aliquot.sim.traces import Shape, Trace, TraceJob

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
"""When the first job of every trace comes."""
MOST_QUEUES = 10_000
DEPARTMENT = "/"
NOBODY = "none"
"""The project of jobs that name no tenant."""
ONE, TENANT = "one", "tenant"


@dataclass(frozen=True, slots=True)
class Discipline:
    """How each queue is served."""

    order: QueueOrder


DISCIPLINES: dict[str, Discipline] = {
    "fifo": Discipline(QueueOrder.WAITING_TIME),
    "fifo-greedy": Discipline(QueueOrder.WAITING_TIME),
    "least-attained-service": Discipline(QueueOrder.LEAST_ATTAINED_SERVICE),
}
"""By the names of the literature. `fifo` is `fifo-greedy` with nobody let in but the head of each queue."""


@dataclass(frozen=True, slots=True)
class Wear:
    """What an eviction costs: how often work is saved (zero: always, None: never) and how long it takes to end."""

    checkpoint_every: timedelta | None = timedelta(0)
    release_takes: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A job that nothing present could ever start, and why."""

    job: str
    why: str


class Intake:
    """The jobs of a trace, made for a cluster of these nodes and for the queues of `queues_of`."""

    def __init__(self, trace: Trace, nodes: Sequence[Node], queues: tuple[Queue, ...], wear: Wear) -> None:
        self.trace = trace
        self.nodes = tuple(nodes)
        self.queues = queues
        self.dropped: list[Dropped] = []
        self._wear = wear
        self._projects = tuple(queue.id for queue in queues if queue.parent is not None)
        self._tenants = frozenset(self._projects) & {job.tenant or NOBODY for job in trace.jobs}
        self._requests: dict[Shape, tuple[PodRequest, ...]] = {}
        self._refusals: dict[Shape, str | None] = {}

    def jobs(self) -> Iterator[tuple[datetime, Job]]:
        """Each job with its time, in the order of time; those that can never start are in `dropped` instead."""
        for index, job in enumerate(self.trace.jobs):
            made = self._make(index, job)
            if job.shape not in self._refusals:
                self._refusals[job.shape] = self._refusal(made.workload)
            why = self._refusals[job.shape]
            if why is None:
                yield BEGIN + job.at, made
            else:
                self.dropped.append(Dropped(job.name, why))

    def asked(self) -> Counter[PodRequest]:
        """How often each request comes in the whole trace."""
        shapes = Counter(job.shape for job in self.trace.jobs)
        found: Counter[PodRequest] = Counter()
        for shape, count in shapes.items():
            for request in self._pods_of(shape):
                found[request] += count
        return found

    def _refusal(self, workload: Workload) -> str | None:
        """Why a job could never start here. One pod that a whole node suffices for is seen at a glance."""
        request = workload.pods[0].request
        if len(workload.pods) == 1 and any(_suffices(node, request) for node in self.nodes):
            return None
        refusal = admission.refuse(Snapshot(self.nodes, self.queues), workload)
        return None if refusal is None else refusal.message

    def _make(self, index: int, job: TraceJob) -> Job:
        pods = tuple(Pod(f"{job.name}/{at}", at, request) for at, request in enumerate(self._pods_of(job.shape)))
        tenant = job.tenant or NOBODY
        workload = Workload(
            id=job.name,
            name=job.name,
            queue=tenant if tenant in self._tenants else self._projects[index % len(self._projects)],
            created=BEGIN + job.at,
            pods=pods,
            min_pods=len(pods),
        )
        return Job(
            workload,
            run_time=job.run_time,
            checkpoint_every=step_of(self._wear.checkpoint_every),
            release_takes=self._wear.release_takes,
        )

    def _pods_of(self, shape: Shape) -> tuple[PodRequest, ...]:
        found = self._requests.get(shape)
        if found is None:
            found = self._requests[shape] = _pods_of(shape, self._most_devices(shape))
        return found

    def _most_devices(self, shape: Shape) -> int:
        fitting = [
            len(node.devices)
            for node in self.nodes
            if node.devices and (not shape.models or node.devices[0].model in shape.models)
        ]
        return max(fitting, default=1)


def _suffices(node: Node, request: PodRequest) -> bool:
    gpu = request.gpu
    if node.milli_cpus < request.milli_cpus or node.memory_bytes < request.memory_bytes:
        return False
    if gpu is None:
        return True
    fitting = [device for device in node.devices if not gpu.models or device.model in gpu.models]
    return len(fitting) >= gpu.devices


def step_of(checkpoint_every: timedelta | None) -> timedelta | None:
    """In which steps work is kept: zero is the smallest there is."""
    return timedelta.resolution if checkpoint_every == timedelta(0) else checkpoint_every


def _pods_of(shape: Shape, most: int) -> tuple[PodRequest, ...]:
    """One pod if a node has so many devices; else pods that fill nodes, and one for the rest."""
    whole, rest = divmod(shape.devices, most)
    sizes = [shape.devices] if shape.devices <= most else [most] * whole + [rest] * bool(rest)
    parts = max(1, len(sizes))
    return tuple(
        PodRequest(
            gpu=GpuRequest(devices=size, milli=shape.milli, models=shape.models) if size else None,
            milli_cpus=math.ceil(shape.milli_cpus / parts),
            memory_bytes=math.ceil(shape.memory_bytes / parts),
        )
        for size in sizes
    )


def queues_of(trace: Trace, how: str, nodes: Sequence[Node], discipline: Discipline) -> tuple[Queue, ...]:
    """A department with all there is, and its projects: `one`, one for each `tenant`, or so many as a number says, to
    which jobs are dealt out in turn. Each has an equal part as its quota. Raises InvalidInput."""
    names = _names(trace, how)
    capacity = sum(len(node.devices) for node in nodes) * WHOLE_DEVICE_MILLI
    whole = _queue(DEPARTMENT, capacity, discipline)
    return (whole, *(_queue(name, capacity // len(names), discipline, parent=DEPARTMENT) for name in names))


def _names(trace: Trace, how: str) -> tuple[str, ...]:
    if how == ONE:
        return ("all",)
    if how == TENANT:
        names = tuple(sorted({job.tenant or NOBODY for job in trace.jobs}))
        if names == (NOBODY,):
            _refuse(how, "the jobs of this trace name no tenant")
        return names
    if not how.isascii() or not how.isdigit() or not 1 <= int(how) <= MOST_QUEUES:
        _refuse(how, "is not known")
    width = len(str(int(how) - 1))
    return tuple(f"queue-{index:0{width}}" for index in range(int(how)))


def _refuse(how: str, why: str) -> NoReturn:
    valid = (ONE, TENANT, f"a number from 1 to {MOST_QUEUES}")
    raise InvalidInput(f"--queues: {how[:60]!r}: {why}", field="--queues", valid=valid)


def _queue(name: str, quota: int, discipline: Discipline, *, parent: str | None = None) -> Queue:
    return Queue(
        id=name,
        name=name,
        created=BEGIN,
        parent=parent,
        terms={DEFAULT_POOL: PoolTerms(gpu=Claim(quota=quota))},
        order=discipline.order,
    )
