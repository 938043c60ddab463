"""From what is stored of a workload to what the scheduler sees of it. One mapping, for the loop and for dry runs.

Promises: the ids of pods that are not there yet are deterministic, so that a cycle that is done twice binds the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from aliquot.core import lifecycle
from aliquot.core.model import Pod, PodState, Promise, Workload
from aliquot.service import records
from aliquot.wire import workloads as shapes

# Of a workload: its row, its pods, and what the scheduler saw.
_Known = tuple[records.WorkloadRow, Sequence[records.PodRow], Workload]

UNSEEN = lifecycle.FINISHED | {lifecycle.Phase.SUSPENDED}
"""Phases in which a workload asks for nothing and holds nothing: it is in no snapshot."""
_COMING = frozenset({lifecycle.Phase.PENDING, lifecycle.Phase.EVICTING})
"""Phases in which a promise holds: it waits, or will wait again when the last of its pods is gone."""


def pod_id(workload: str, attempt: int, index: int) -> str:
    """The id of the pod `index` of an attempt; the first attempt is 1."""
    return f"{workload}-{attempt}-{index}"


def demand(row: records.WorkloadRow, pods: Sequence[records.PodRow]) -> Workload:
    """What the scheduler sees of a workload whose phase is not in UNSEEN. `pods` may hold those of other attempts.

    A pending one asks for all its replicas anew. An active one has what it bound. One that is being ended gives back
    what it still holds, all of it RELEASING, and starts nothing until that is gone.
    """
    if row.phase is lifecycle.Phase.PENDING:
        seen = tuple(_waiting(row, index) for index in range(row.definition.replicas))
    else:
        current = sorted((pod for pod in pods if pod.attempt == row.attempt), key=lambda pod: pod.index)
        seen = tuple(_placed(row, pod) for pod in current)
    succeeded = sum(pod.state is PodState.SUCCEEDED for pod in seen)
    return Workload(
        id=row.id,
        name=row.name,
        queue=row.project,
        created=row.waiting_since,
        pods=seen,
        min_pods=row.definition.replicas - succeeded,
        priority=row.priority,
        is_preemptible=row.is_preemptible,
        started=row.running_since,
        not_before=row.not_before,
        max_run_time=None if row.max_run_time is None else max(row.max_run_time - row.ran, _NONE),
    )


_NONE = timedelta(0)


class Demands:
    """What the scheduler sees of all workloads, time after time. Of one that has not changed it sees the same object:
    a world that is kept from cycle to cycle need not look at it again."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def of(self, parts: Iterable[tuple[records.WorkloadRow, Sequence[records.PodRow]]]) -> tuple[Workload, ...]:
        """Those of them that ask for something or hold something."""
        known, self._known = self._known, {}
        for row, pods in parts:
            if row.phase in UNSEEN:
                continue
            before = known.get(row.id)
            is_same = before is not None and (before[0] is row or before[0] == row) and before[1] == pods
            self._known[row.id] = before if before is not None and is_same else (row, pods, demand(row, pods))
        return tuple(seen for _, _, seen in self._known.values())


def promises(rows: Iterable[records.PromiseRow], workloads: Iterable[records.WorkloadRow]) -> tuple[Promise, ...]:
    """The promises that hold. A place is promised to a replica: to its pod that ends, and then to its next one."""
    known = {row.id: row for row in workloads if row.phase in _COMING}
    return tuple(_promise(row, known[row.id]) for row in rows if row.id in known)


def _promise(row: records.PromiseRow, workload: records.WorkloadRow) -> Promise:
    attempt = workload.attempt + (workload.phase is lifecycle.Phase.PENDING)
    places = tuple(
        replace(place, pod=pod_id(row.id, attempt, int(place.pod.rpartition("-")[2]))) for place in row.places
    )
    return Promise(row.id, places, row.made, row.due, row.expires, row.waits_for, row.may_evict)


def _waiting(row: records.WorkloadRow, index: int) -> Pod:
    return Pod(id=pod_id(row.id, row.attempt + 1, index), index=index, request=row.request)


def _placed(row: records.WorkloadRow, pod: records.PodRow) -> Pod:
    if pod.phase is shapes.PodPhase.ENDED and row.phase is lifecycle.Phase.EVICTING:
        # It waits for the others to end; then all of them start anew.
        return Pod(id=pod.id, index=pod.index, request=row.request)
    if pod.phase is shapes.PodPhase.ENDED:
        state = PodState.SUCCEEDED if pod.exit_code == 0 else PodState.FAILED
        return Pod(id=pod.id, index=pod.index, request=row.request, state=state)
    is_ending = pod.phase is shapes.PodPhase.ENDING or row.phase in lifecycle.ENDING
    due = pod.ending_since + row.grace if is_ending and pod.ending_since is not None else None
    return Pod(
        id=pod.id,
        index=pod.index,
        request=row.request,
        state=PodState.RELEASING if is_ending else PodState.RUNNING,
        node=pod.node,
        shares=pod.shares,
        release_due=due,
    )
