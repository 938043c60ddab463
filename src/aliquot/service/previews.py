"""Previews: what a change of terms, or of a workload, would do. By the engine on an overlay; nothing is changed.

Promises: both sides, with the change and without it, are followed cycle by cycle until nothing moves any more, as if
what is told to end ended at once, and only what differs between them is shown.
"""

import asyncio
from dataclasses import replace

from aliquot.core import change as changes
from aliquot.core import errors, lifecycle
from aliquot.core.model import Amounts, Policy, Snapshot
from aliquot.service import access, ahead, demand, find, intake, look, ports, questions, queues, records
from aliquot.wire import projects as project_shapes
from aliquot.wire import queue as shapes
from aliquot.wire import workloads as workload_shapes

_CHANGEABLE = frozenset({lifecycle.Phase.PENDING, lifecycle.Phase.SUSPENDED})


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
        snapshot = await look.snapshot(self._store, self._cluster)
        overlay = [changes.SetTerms(row.id, pool, row.terms[pool]) for pool in change.pools]
        after = changes.overlay(snapshot, overlay)
        now = self._clock.now()
        plans = ahead.planner(self._policy)
        without = await asyncio.to_thread(ahead.follow, snapshot, plans, now=now)
        with_it = await asyncio.to_thread(ahead.follow, after, plans, now=now)
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
        snapshot = await look.snapshot(self._store, self._cluster)
        if all(one.id != row.id for one in snapshot.workloads):  # It is suspended: as if it were resumed.
            row = replace(row, phase=lifecycle.Phase.PENDING)
        wanted = demand.demand(row, ())
        return await questions.would_do(snapshot, wanted, policy=self._policy, now=self._clock.now())


def _difference(
    tx: ports.Transaction, snapshot: Snapshot, without: ahead.Course, *, with_it: ahead.Course
) -> shapes.QueuePreview:
    names = {one.id: one.name for one in snapshot.queues}
    departments = {one.parent for one in snapshot.queues}

    def milli(course: ahead.Course, of: tuple[str, str]) -> int:
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
