"""Previews: what a change of terms, or of a workload, would do. By the engine on an overlay; nothing is changed.

Promises: both sides, with the change and without it, are followed cycle by cycle until nothing moves any more, as if
what is told to end ended at once, and only what differs between them is shown.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from aliquot.core import change as changes
from aliquot.core import errors, lifecycle, schedule
from aliquot.core.model import Amounts, Place, Pod, PodState, Policy, Promise, Snapshot, Workload
from aliquot.core.plan import Plan
from aliquot.service import access, demand, find, intake, ports, questions, queues, records
from aliquot.wire import projects as project_shapes
from aliquot.wire import queue as shapes
from aliquot.wire import workloads as workload_shapes

_CHANGEABLE = frozenset({lifecycle.Phase.PENDING, lifecycle.Phase.SUSPENDED})
MOST_CYCLES = 6
"""A preview looks no further ahead: what follows then is said to follow."""


class Previews:
    """The use cases of previews."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, policy: Policy) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._policy = policy

    async def queue(
        self, actor: access.Actor, ref: str, change: project_shapes.QueueUpdate, *, noun: str
    ) -> shapes.QueuePreview:
        """What other terms of a project or department (`noun`) would do. Raises as the change itself would."""
        access.check(actor, "update", noun)

        def work(tx: ports.Transaction) -> records.QueueRow:
            return queues.changed(find.queue(tx, ref, noun=noun), change)

        row = await self._store.read(work)
        snapshot = await self._cluster.snapshot()
        overlay = [changes.SetTerms(row.id, pool, row.terms[pool]) for pool in change.pools]
        after = changes.overlay(snapshot, overlay)
        now = self._clock.now()
        without = await asyncio.to_thread(_follow, snapshot, self._policy, now=now)
        with_it = await asyncio.to_thread(_follow, after, self._policy, now=now)
        return await self._store.read(lambda tx: _difference(tx, snapshot, without, with_it=with_it))

    async def workload(
        self, actor: access.Actor, ref: str, change: workload_shapes.WorkloadUpdate, *, project: str | None = None
    ) -> workload_shapes.DryRun:
        """What another definition of a workload that waits would do. Raises Conflict for one that does not wait."""
        access.check(actor, "update", "workload")

        def work(tx: ports.Transaction) -> records.WorkloadRow:
            row = find.workload(tx, ref, project=project)
            if row.phase not in _CHANGEABLE:
                raise errors.Conflict(f"{row.name} is {row.phase}: it does not wait for a place", code="not-waiting")
            return intake.with_changes(row, change)

        row = await self._store.read(work)
        snapshot = await self._cluster.snapshot()
        if all(one.id != row.id for one in snapshot.workloads):  # It is suspended: as if it were resumed.
            row = replace(row, phase=lifecycle.Phase.PENDING)
        wanted = demand.demand(row, ())
        return await questions.would_do(snapshot, wanted, policy=self._policy, now=self._clock.now())


@dataclass(slots=True)
class _Course:
    """What happens, cycle after cycle."""

    starts: dict[str, list[Place]] = field(default_factory=dict)
    evicts: dict[str, str] = field(default_factory=dict)
    """By workload, for whom."""
    shares: Mapping[tuple[str, str], Amounts] = field(default_factory=dict)
    waits: int = 0
    is_complete: bool = False


def _difference(
    tx: ports.Transaction, snapshot: Snapshot, without: _Course, *, with_it: _Course
) -> shapes.QueuePreview:
    names = {one.id: one.name for one in snapshot.queues}
    departments = {one.parent for one in snapshot.queues}

    def milli(course: _Course, of: tuple[str, str]) -> int:
        return course.shares.get(of, Amounts()).milli_gpus

    return shapes.QueuePreview(
        starts=[
            shapes.PreviewedStart(**_about(tx, id), places=questions.places(snapshot, places))
            for id, places in with_it.starts.items()
            if id not in without.starts
        ],
        evicts=[
            shapes.PreviewedEviction(**_about(tx, id), for_name=_about(tx, by)["name"] if by else None)
            for id, by in with_it.evicts.items()
            if id not in without.evicts
        ],
        fair_shares=[
            shapes.PreviewedShare(
                queue=names[queue],
                is_department=queue in departments,
                pool=pool,
                before_milli_gpus=milli(without, (pool, queue)),
                after_milli_gpus=milli(with_it, (pool, queue)),
            )
            for pool, queue in sorted(with_it.shares)
            if milli(without, (pool, queue)) != milli(with_it, (pool, queue))
        ],
        waits_before=without.waits,
        waits_after=with_it.waits,
        is_complete=without.is_complete and with_it.is_complete,
    )


def _about(tx: ports.Transaction, id: str) -> dict[str, str]:
    """A workload as previews name it."""
    row = tx.workloads.get(id)
    assert row is not None, "a row of a workload stays, whatever becomes of it"
    gpu, replicas = row.definition.gpu or "0", row.definition.replicas
    return {
        "workload": id,
        "name": row.name,
        "project": find.queue_name(tx, row.project),
        "gpu": f"{replicas} × {gpu}" if replicas > 1 else gpu,
    }


def _follow(snapshot: Snapshot, policy: Policy, *, now: datetime) -> _Course:
    """Cycle after cycle, until nothing starts or ends. Who starts and is evicted again has done neither."""
    course = _Course()
    for turn in range(MOST_CYCLES):
        plan = schedule.schedule(snapshot, policy, now)
        if turn == 0:
            course.shares = plan.fair_share
        course.waits = len(plan.waits)
        if not plan.binds and not plan.evicts:
            course.is_complete = True
            return course
        for evict in plan.evicts:
            if course.starts.pop(evict.workload, None) is None:
                course.evicts[evict.workload] = evict.beneficiary
        for bind in plan.binds:
            if course.evicts.pop(bind.workload, None) is None:
                course.starts.setdefault(bind.workload, []).append(bind.place)
        snapshot = _after(snapshot, plan, now)
    return course


def _after(snapshot: Snapshot, plan: Plan, now: datetime) -> Snapshot:
    """The snapshot when the plan is done and what it told to end has ended."""
    places = {bind.place.pod: bind.place for bind in plan.binds}
    ended = {evict.pod for evict in plan.evicts}
    made = {one.workload: one for one in snapshot.promises}
    promises = tuple(
        Promise(
            workload=one.workload,
            places=one.places,
            made=made[one.workload].made if one.workload in made else now,
            due=one.due,
            expires=one.expires,
            waits_for=one.waits_for,
            may_evict=one.may_evict,
        )
        for one in plan.nominates
    )
    touched = {bind.workload for bind in plan.binds} | {evict.workload for evict in plan.evicts}
    workloads = tuple(_moved(one, places, ended, now=now) if one.id in touched else one for one in snapshot.workloads)
    return replace(snapshot, workloads=workloads, promises=promises)


def _moved(workload: Workload, places: Mapping[str, Place], ended: Iterable[str], *, now: datetime) -> Workload:
    gone = set(ended)

    def pod_after(pod: Pod) -> Pod:
        if pod.id in places:
            place = places[pod.id]
            return replace(pod, state=PodState.RUNNING, node=place.node, shares=place.shares)
        if pod.id in gone:
            return replace(pod, state=PodState.PENDING, node=None, shares=(), release_due=None)
        return pod

    pods = tuple(map(pod_after, workload.pods))
    runs = any(pod.state is PodState.RUNNING for pod in pods)
    return replace(workload, pods=pods, started=(workload.started or now) if runs else None)
