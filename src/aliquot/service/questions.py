"""What only the engine can answer: why does it wait, what would help, what if it were submitted.

Promises: every answer is of the production scheduler on a snapshot, whose plan is not applied; it is computed in a
thread, so that nobody else waits for it.
"""

import asyncio
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from aliquot.core import change, errors, explain, plan, quantities, schedule
from aliquot.core.model import RESOURCES, Place, Policy, Queue, Snapshot, Workload
from aliquot.service import records, terms
from aliquot.wire import workloads as shapes

POSSIBLE = frozenset(
    {
        change.SetGpu,
        change.SetCpu,
        change.SetMemory,
        change.SetReplicas,
        change.SetPriority,
        change.SetPreemptible,
        change.SetTerms,
        change.UncordonNode,
        change.OfferDevice,
        change.RemoveWorkload,
    }
)
"""The changes for which there is an operation."""


async def why(snapshot: Snapshot, row: records.WorkloadRow, *, policy: Policy, now: datetime) -> shapes.Reason:
    """Why a pending workload waits, and the smallest change that would start it."""
    explanation = await asyncio.to_thread(_explain, snapshot, row.id, policy=policy, now=now)
    if explanation.reason is None:
        raise errors.Conflict(f"{row.name} does not wait any more: the next cycle starts it", code="not-waiting")
    return show(snapshot, explanation)


async def would_do(snapshot: Snapshot, workload: Workload, *, policy: Policy, now: datetime) -> shapes.DryRun:
    """What a cycle would do if this workload were there too."""
    return await asyncio.to_thread(_would_do, snapshot, workload, policy, now=now)


def show(snapshot: Snapshot, explanation: explain.Explanation) -> shapes.Reason:
    """An explanation as people see it. Only what waits has a reason."""
    reason = explanation.reason
    assert reason is not None, "only what waits has a reason"
    suggestion = explanation.suggestion
    return shapes.Reason(
        code=reason.code,
        message=reason.message,
        numbers=dict(reason.numbers),
        blockers=[_blocker(blocker) for blocker in reason.blockers],
        position=explanation.position,
        suggestion=None if suggestion is None else _suggestion(snapshot, suggestion),
        no_suggestion_because=explanation.no_suggestion_because,
    )


def _explain(snapshot: Snapshot, id: str, *, policy: Policy, now: datetime) -> explain.Explanation:
    try:
        return explain.explain(snapshot, id, policy=policy, now=now, kinds=POSSIBLE)
    except errors.NotFound as error:
        # It was pending a moment ago; between two reads it changed.
        raise errors.Conflict("it does not wait any more", code="not-waiting") from error


def _would_do(snapshot: Snapshot, workload: Workload, policy: Policy, *, now: datetime) -> shapes.DryRun:
    with_it = change.overlay(snapshot, [change.AddWorkload(workload)])
    made = schedule.schedule(with_it, policy, now)
    evicts = sorted({_name(snapshot, one.workload) for one in made.evicts if one.beneficiary == workload.id})
    bound = [one.place for one in made.binds if one.workload == workload.id]
    promised = [place for one in made.nominates if one.workload == workload.id for place in one.places]
    found = places(snapshot, bound or promised)
    if bound:
        return shapes.DryRun(outcome="starts-after-evictions" if evicts else "starts", places=found, evicts=evicts)
    explanation = explain.explain(with_it, workload.id, policy=policy, now=now, kinds=POSSIBLE)
    reason = None if explanation.reason is None else show(with_it, explanation)
    if promised and evicts:
        return shapes.DryRun(outcome="starts-after-evictions", places=found, evicts=evicts, reason=reason)
    return shapes.DryRun(outcome="waits", places=found, evicts=evicts, reason=reason)


def places(snapshot: Snapshot, taken: Iterable[Place]) -> list[str]:
    """`node/index` of every device, or the node of a pod that has none."""
    indices = {device.id: device.index for node in snapshot.nodes for device in node.devices}
    names: list[str] = []
    for place in taken:
        names += [f"{place.node}/{indices[share.device]}" for share in place.shares] or [place.node]
    return names


def _blocker(blocker: plan.Blocker) -> shapes.Blocker:
    return shapes.Blocker(workload=blocker.workload, description=blocker.description)


@dataclass(frozen=True, slots=True)
class _Operation:
    """A change as an operation of the API, and as a command line."""

    operation: str
    target: str
    body: dict[str, object]
    command: tuple[str, ...]


def _suggestion(snapshot: Snapshot, suggestion: explain.Suggestion) -> shapes.Suggestion:
    done = _operation(snapshot, suggestion.change)
    return shapes.Suggestion(
        description=suggestion.description,
        command=shlex.join(("aliquot", *done.command)),
        who_can=suggestion.who_can,
        outcome=suggestion.outcome,
        evicts=[_name(snapshot, id) for id in suggestion.evicts],
        operation=done.operation,
        target=done.target,
        body=done.body,
    )


def _operation(snapshot: Snapshot, changed: change.Change) -> _Operation:
    match changed:
        case change.RemoveWorkload(id):
            return _Operation("stopWorkload", id, {}, ("stop", *_named(snapshot, id)))
        case change.OfferDevice(id):
            return _Operation("uncordon", id, {}, ("nodes", "uncordon", id))
        case change.UncordonNode(id):
            return _Operation("uncordon", id, {}, ("nodes", "uncordon", id))
        case change.SetTerms(id, pool, after):
            queue = next(one for one in snapshot.queues if one.id == id)
            return _set_terms(queue, pool, change.SetTerms(id, pool, after))
    return _update(snapshot, changed)


def _update(snapshot: Snapshot, changed: change.Change) -> _Operation:
    match changed:
        case change.SetGpu(id, gpu):
            body: dict[str, object] = {"gpu": quantities.format_gpu(gpu)}
        case change.SetCpu(id, amount):
            body = {"cpu": terms.show_amount(amount, "cpu")}
        case change.SetMemory(id, amount):
            body = {"memory": terms.show_amount(amount, "memory")}
        case change.SetReplicas(id, count):
            body = {"replicas": count}
        case change.SetPriority(id, priority):
            body = {"priority": priority}
        case change.SetPreemptible(id, is_preemptible):
            body = {"preemptible": is_preemptible}
            option = "--preemptible" if is_preemptible else "--not-preemptible"
            return _Operation("updateWorkload", id, body, ("update", *_named(snapshot, id), option))
        case _:
            raise NotImplementedError(f"no operation does {changed}")
    ((name, value),) = body.items()
    return _Operation("updateWorkload", id, body, ("update", *_named(snapshot, id), f"--{name}", str(value)))


def _set_terms(queue: Queue, pool: str, changed: change.SetTerms) -> _Operation:
    noun = "department" if queue.parent is None else "project"
    before = queue.terms_in(pool)
    body: dict[str, object] = {}
    options: list[str] = []
    for resource in RESOURCES:
        old, new = before.of(resource), changed.terms.of(resource)
        if old == new:
            continue
        body[resource] = terms.show_claim(new, resource).model_dump(by_alias=True)
        for part, was, now in (("quota", old.quota, new.quota), ("limit", old.limit, new.limit)):
            if was != now and now is not None:
                options += [f"--{resource}-{part}", terms.show_amount(now, resource)]
    command = (f"{noun}s", "update", queue.name, "--pool", pool, *options)
    return _Operation(f"update{noun.title()}", queue.name, {"pools": {pool: body}}, command)


def _named(snapshot: Snapshot, id: str) -> tuple[str, ...]:
    """How a command line names a workload: by its name and, where another one has it too, by its project."""
    workload = next(one for one in snapshot.workloads if one.id == id)
    if sum(one.name == workload.name for one in snapshot.workloads) == 1:
        return (workload.name,)
    project = next((one.name for one in snapshot.queues if one.id == workload.queue), workload.queue)
    return (workload.name, "--project", project)


def _name(snapshot: Snapshot, id: str) -> str:
    return next((one.name for one in snapshot.workloads if one.id == id), id)
