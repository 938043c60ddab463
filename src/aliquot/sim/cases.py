"""What `aliquot simulate` replays: a trace in a cluster of its own, or a scenario as it is written.

Promises: what is wrong with the options, the trace or the nodes is said before anything is replayed (`InvalidInput`).
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from aliquot.core.errors import InvalidInput
from aliquot.core.model import Node, PodRequest, PodState, Policy, Queue, Workload
from aliquot.sim import intake, nodes, traces
from aliquot.sim.intake import BEGIN, DISCIPLINES, Dropped, Intake, Wear
from aliquot.sim.replay import Course
from aliquot.sim.script import Job
from aliquot.sim.traces import Trace
from aliquot.wire import simulations as shapes
from aliquot.wire.scenario import reader
from aliquot.wire.scenario.shape import Scenario

POLICY = "fifo-greedy"
"""The product's own way of serving a queue."""
AS_WRITTEN = "as-written"
"""The policy of a scenario and the orders of its queues."""
STRICT = "fifo"


class Case(Protocol):
    """Something to replay under several policies."""

    @property
    def facts(self) -> shapes.TraceFacts:
        """What it is. `dropped` is known once it was replayed."""

    @property
    def nodes(self) -> Sequence[Node]:
        """Where it runs."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The names that `course` knows; the first is taken where none is asked for."""

    @property
    def dropped(self) -> Sequence[Dropped]:
        """What could never start."""

    def asked(self) -> Counter[PodRequest]:
        """How often each request comes."""

    def count_queues(self) -> int:
        """How many queues hold jobs."""

    def course(self, policy: str) -> Course:
        """All of it, from the beginning."""


def read(request: shapes.Request) -> Case:
    """The case that is asked for."""
    if request.format == "scenario":
        return ScenarioCase(_scenario(request), request)
    if request.nodes is None:
        raise InvalidInput(f"{nodes.FIELD} is missing: where does the trace run?", field=nodes.FIELD, valid=nodes.VALID)
    return TraceCase(traces.read(Path(request.trace), request.format), nodes.read(request.nodes), request)


class TraceCase:
    """A trace."""

    def __init__(self, trace: Trace, where: tuple[Node, ...], request: shapes.Request) -> None:
        if request.first_jobs is not None:
            trace = dataclasses.replace(trace, jobs=trace.jobs[: request.first_jobs])
        self.nodes = where
        self.policies = (POLICY, *(name for name in DISCIPLINES if name != POLICY))
        self._trace = trace
        self._request = request
        self._wear = Wear(request.checkpoint_every, request.release_takes)
        self._how = request.queues or intake.ONE
        self._intake = self._taken_in(POLICY)

    @property
    def facts(self) -> shapes.TraceFacts:
        jobs, dropped = len(self._trace.jobs), len(self._intake.dropped)
        return shapes.TraceFacts(name=self._trace.name, format=self._request.format, jobs=jobs, dropped=dropped)

    @property
    def dropped(self) -> Sequence[Dropped]:
        return self._intake.dropped

    def asked(self) -> Counter[PodRequest]:
        return self._intake.asked()

    def count_queues(self) -> int:
        return leaves(self._intake.queues)

    def course(self, policy: str) -> Course:
        self._intake = self._taken_in(policy)
        rules = _with(Policy(release_grace=max(Policy().release_grace, self._wear.release_takes)), self._request)
        return Course(
            self.nodes,
            self._intake.queues,
            rules,
            self._intake.jobs(),
            is_strict=policy == STRICT,
            is_crowded=True,
        )

    def _taken_in(self, policy: str) -> Intake:
        queues = intake.queues_of(self._trace, self._how, self.nodes, DISCIPLINES[policy])
        return Intake(self._trace, self.nodes, queues, self._wear)


class ScenarioCase:
    """A scenario: its cluster, what runs there, and its workloads at the times when they were made. A stated run time
    is taken for the run time; what states none runs for ever. Its expectations are not looked at."""

    def __init__(self, scenario: Scenario, request: shapes.Request) -> None:
        for option, value in (("--nodes", request.nodes), ("--queues", request.queues)):
            if value is not None:
                raise InvalidInput(f"{option}: a scenario has its own; leave it out", field=option)
        self.policies = (AS_WRITTEN, *DISCIPLINES)
        self.dropped: Sequence[Dropped] = ()
        self._scenario = scenario
        self._request = request

    @property
    def facts(self) -> shapes.TraceFacts:
        jobs = len(self._scenario.snapshot.workloads)
        return shapes.TraceFacts(name=self._scenario.name, format="scenario", jobs=jobs, dropped=0)

    @property
    def nodes(self) -> Sequence[Node]:
        return self._scenario.snapshot.nodes

    def asked(self) -> Counter[PodRequest]:
        return Counter(pod.request for workload in self._scenario.snapshot.workloads for pod in workload.pods)

    def count_queues(self) -> int:
        return leaves(self._scenario.snapshot.queues)

    def course(self, policy: str) -> Course:
        snapshot, rules = self._scenario.snapshot, _with(self._scenario.policy, self._request)
        shift = BEGIN - self._scenario.now
        moved = [_shifted(workload, shift) for workload in snapshot.workloads]
        standing = tuple(one for one in moved if any(pod.state is not PodState.PENDING for pod in one.pods))
        return Course(
            nodes=snapshot.nodes,
            queues=tuple(_served(queue, policy) for queue in snapshot.queues),
            policy=rules,
            jobs=_arrivals([one for one in moved if one not in standing], self._request),
            is_strict=policy == STRICT,
            facts=dataclasses.replace(snapshot, workloads=standing, promises=()),
            run_times={one.id: one.max_run_time for one in standing if one.max_run_time is not None},
        )


def leaves(queues: Sequence[Queue]) -> int:
    """How many queues have none below them."""
    return len(queues) - len({queue.parent for queue in queues} - {None})


def _scenario(request: shapes.Request) -> Scenario:
    try:
        content = Path(request.trace).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{request.trace}: cannot be read: {error.strerror}", field="--trace") from error
    return reader.read(content, Path(request.trace).name)


def _with(policy: Policy, request: shapes.Request) -> Policy:
    """The rules with what the options say."""
    if request.placement is not None:
        policy = dataclasses.replace(policy, gpu_placement=request.placement)
    if request.quantum is not None:
        policy = dataclasses.replace(policy, service_quantum=request.quantum)
    return policy


def _served(queue: Queue, policy: str) -> Queue:
    if policy == AS_WRITTEN:
        return queue
    return dataclasses.replace(queue, order=DISCIPLINES[policy].order)


def _shifted(workload: Workload, shift: timedelta) -> Workload:
    """The same on the clock of the replay."""

    def moved(instant: datetime | None) -> datetime | None:
        return None if instant is None else instant + shift

    return dataclasses.replace(
        workload,
        created=workload.created + shift,
        started=moved(workload.started),
        not_before=moved(workload.not_before),
        saved=moved(workload.saved),
    )


def _arrivals(workloads: Sequence[Workload], request: shapes.Request) -> Iterator[tuple[datetime, Job]]:
    for workload in sorted(workloads, key=lambda one: (one.created, one.id)):
        job = Job(
            workload,
            run_time=workload.max_run_time,
            checkpoint_every=intake.step_of(request.checkpoint_every),
            release_takes=request.release_takes,
        )
        yield max(BEGIN, workload.created), job
