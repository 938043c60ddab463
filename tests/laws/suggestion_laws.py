"""Laws of suggestions: what is suggested works, and something is wherever trying out all kinds of change finds one."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from aliquot.core import change, explain, schedule
from aliquot.core.change import Change
from aliquot.core.model import RESOURCES, Claim, GpuRequest, Pod, PodState, PoolTerms, ResourceName, Workload
from aliquot.core.plan import Code, Plan
from tests.laws import amounts
from tests.laws.case import Case

WORKS = "every-suggestion-works"
GIVEN = "one-is-suggested-where-one-works"
BY_ITSELF = frozenset({Code.BACKING_OFF, Code.WAITING_FOR_RELEASE, Code.NO_SUCH_QUEUE, Code.QUEUE_HELD, Code.BUDGET})
"""What ends without a change, or that nobody who asks can change."""


def suggestions_work_and_are_given(case: Case) -> int:
    """For one of those who wait, another in each world."""
    waiting = sorted(one.workload for one in case.plan.waits)
    if not waiting:
        return 0
    id = random.Random(case.world.seed).choice(waiting)
    told = explain.explain(case.before, id, policy=case.policy, now=case.now)
    return judge_told(case, id, told)


def judge_told(case: Case, id: str, told: explain.Explanation) -> int:
    """Whether this is all that can be told to a workload that waits."""
    wait = next(one for one in case.plan.waits if one.workload == id)
    if told.reason != wait.reason:
        raise case.broken(WORKS, f"explain says of {id} {told.reason}, the plan {wait.reason}")
    if told.suggestion is not None:
        _refuse_idle(case, id, told.suggestion)
        return 1
    if not told.no_suggestion_because:
        raise case.broken(GIVEN, f"nothing is suggested to {id}, and nothing said instead")
    if wait.reason.code in BY_ITSELF or any(one.workload == id for one in case.plan.nominates):
        return 0
    found = next((one for one in every_change(case, id) if starts(case, id, [one])), None)
    if found is not None:
        raise case.broken(GIVEN, f"nothing is suggested to {id} ({wait.reason.code}), but {found} starts it")
    return 1


def _refuse_idle(case: Case, id: str, suggestion: explain.Suggestion) -> None:
    plan = _plan_after(case, [suggestion.change])
    if not _is_served(plan, id):
        raise case.broken(WORKS, f"{suggestion.description} does not start {id}")
    evicted = {one.workload for one in plan.evicts if one.beneficiary == id}
    if set(suggestion.evicts) != evicted:
        raise case.broken(WORKS, f"{suggestion.description} would evict {sorted(evicted)}, not {suggestion.evicts}")


def starts(case: Case, id: str, changes: list[Change]) -> bool:
    """Whether these changes start a workload in the same cycle, or promise it room."""
    return _is_served(_plan_after(case, changes), id)


def _plan_after(case: Case, changes: list[Change]) -> Plan:
    return schedule.schedule(change.overlay(case.before, changes), case.policy, case.now)


def _is_served(plan: Plan, id: str) -> bool:
    return id in {one.workload for one in plan.binds} | {one.workload for one in plan.nominates}


# All kinds, by a few of each.


def every_change(case: Case, id: str) -> Iterator[Change]:
    """A few changes of every kind that the rules name, each alone."""
    workload = case.workloads[id]
    pending = [pod for pod in workload.pods if pod.state is PodState.PENDING]
    if len({pod.request for pod in pending}) == 1:
        yield from _smaller(id, pending)
    yield from _elsewhere(case, workload)
    for priority in sorted({one.priority + 1 for one in case.before.workloads if one.queue == workload.queue}):
        if priority > workload.priority:
            yield change.SetPriority(id, priority)
    yield from _terms(case, workload)


def _smaller(id: str, pending: list[Pod]) -> Iterator[Change]:
    gpu = pending[0].request.gpu
    if gpu is None:
        return
    for devices in range(1, gpu.devices):
        yield change.SetGpu(id, replace(gpu, devices=devices))
    if gpu.mib is not None:
        yield from (change.SetGpu(id, replace(gpu, mib=mib)) for mib in (1, gpu.mib // 2) if 0 < mib < gpu.mib)
    if gpu.milli is not None:
        yield from (change.SetGpu(id, _portion(gpu, milli)) for milli in (1, 250, 500) if milli < gpu.milli)


def _portion(gpu: GpuRequest, milli: int) -> GpuRequest:
    return replace(gpu, milli=milli)


def _elsewhere(case: Case, workload: Workload) -> Iterator[Change]:
    if all(pod.node is None for pod in workload.pods):
        for pool in sorted({node.pool for node in case.before.nodes} - {workload.pool}):
            yield change.SetPool(workload.id, pool)


def _terms(case: Case, workload: Workload) -> Iterator[Change]:
    """Each quota and limit of its project and of those above, taken away."""
    for queue in amounts.chain(case.before, workload.queue):
        terms = queue.terms_in(workload.pool)
        for name in RESOURCES:
            claim = terms.of(name)
            if claim.limit is not None:
                yield change.SetTerms(queue.id, workload.pool, _with(terms, name, replace(claim, limit=10**18)))
            if claim.quota is not None:
                yield change.SetTerms(queue.id, workload.pool, _with(terms, name, replace(claim, quota=10**15)))


def _with(terms: PoolTerms, name: ResourceName, claim: Claim) -> PoolTerms:
    if name == "gpu":
        return replace(terms, gpu=claim)
    return replace(terms, cpu=claim) if name == "cpu" else replace(terms, memory=claim)


LAWS: tuple[Callable[[Case], int], ...] = (suggestions_work_and_are_given,)
