"""The cluster of a scenario, from cycle to cycle: what a plan makes of it, and what happens by itself.

Between two cycles a bound pod becomes running, a pod that was evicted or told to end gives up its place and is pending
again (or gone), one that is stuck stays, and promises are kept.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from aliquot.core import gang, mig
from aliquot.core.model import (
    WHOLE_DEVICE_MILLI,
    Budget,
    Device,
    Node,
    Place,
    Pod,
    PodState,
    Promise,
    Queue,
    Snapshot,
    Workload,
)
from aliquot.core.plan import Evict, Nominate, Plan, Rule
from aliquot.wire.scenario.outcome import NodeEnd, PodEnd
from aliquot.wire.scenario.shape import NodeChange, OnEvict, QueueChange, Status, Step

_HOLDS = frozenset({PodState.RUNNING, PodState.RELEASING})
_OVER = frozenset({PodState.SUCCEEDED, PodState.FAILED})
_FOR_OTHERS = frozenset({Rule.RECLAIM, Rule.PREEMPT, Rule.CONSOLIDATE, Rule.TIME_SLICE})


class Stage:
    """The cluster now. `snapshot` is what a cycle sees of it."""

    def __init__(self, first: Snapshot, now: datetime, on_evict: OnEvict) -> None:
        self.now = now
        self._first = first
        self._on_evict = on_evict
        self._workloads = {workload.id: workload for workload in first.workloads}
        self._absent: set[str] = set()
        self._nodes = {node.id: node for node in first.nodes}
        self._queues = {queue.id: queue for queue in first.queues}
        self._promises = {promise.workload: promise for promise in first.promises}
        self._ran_at_first = {pod.id for pod in self._pods() if pod.state is PodState.RUNNING}
        self._gone: dict[str, None] = {}
        self._stale_since: dict[str, datetime] = {}
        self._mark_stale()

    @property
    def snapshot(self) -> Snapshot:
        """What a cycle sees: without what is over, or not there yet."""
        return replace(
            self._first,
            nodes=tuple(self._nodes.values()),
            queues=tuple(self._queues.values()),
            workloads=tuple(self._seen(workload) for workload in self._workloads.values() if self._is_there(workload)),
            promises=tuple(self._promises.values()),
            budgets=tuple(self._left(budget) for budget in self._first.budgets),
        )

    def apply(self, plan: Plan) -> bool:
        """Do what a plan says, and let pass what comes of it; whether anything changed."""
        before = (dict(self._workloads), dict(self._promises), dict(self._queues))
        self._release()
        self._evict(plan.evicts)
        for bind in plan.binds:
            workload = self._workloads[bind.workload]
            runs = any(pod.state in _HOLDS for pod in workload.pods)
            started = workload.started if runs else self.now
            self._put(replace(workload, pods=_with(workload, bind.place.pod, _bound(bind.place)), started=started))
        self._promises = {one.workload: self._promise(one) for one in plan.nominates}
        self._mark_stale()
        return before != (self._workloads, self._promises, self._queues)

    def keep_back(self, workloads: Iterable[str]) -> None:
        """These are not there yet."""
        self._absent.update(workloads)

    def advance(self, now: datetime, step: Step) -> None:
        """Let time pass, then do what happens from outside. Work whose stated run time is over ends."""
        passed, self.now = now - self.now, now
        for workload in tuple(self._workloads.values()):
            held = sum(share.milli for pod in workload.pods if pod.state in _HOLDS for share in pod.shares)
            if passed and held:
                attained = workload.attained_milli_seconds + int(held * (passed / timedelta(seconds=1)))
                self._put(replace(workload, attained_milli_seconds=attained))
            if workload.started and workload.max_run_time and workload.started + workload.max_run_time <= now:
                for pod in workload.pods:
                    self._finish(workload.id, pod.id, PodState.FAILED)
        for younger, workload_id in enumerate(reversed(step.submitted)):
            self._absent.discard(workload_id)
            created = now - younger * timedelta(microseconds=1)
            self._put(replace(self._workloads[workload_id], created=created))
        for workload_id in step.removed:
            self._remove(workload_id)
        for pod_id, status in step.ended.items():
            owner = next(one for one in self._workloads.values() if any(pod.id == pod_id for pod in one.pods))
            self._finish(owner.id, pod_id, PodState(str(status)))
        for name, change in step.nodes.items():
            self._nodes[name] = _changed_node(self._nodes[name], change)
        for name, changed in step.queues.items():
            self._queues[name] = _changed_queue(self._queues[name], changed)
        self._mark_stale()

    def ends_of(self, plan: Plan) -> dict[str, PodEnd]:
        """What has become of each pod by a plan that is not carried out yet."""
        found = self.ends()
        for evict in plan.evicts:
            before = found[evict.pod]
            found[evict.pod] = replace(before, status=Status.EVICTED)
        for bind in plan.binds:
            found[bind.place.pod] = PodEnd(Status.BOUND, bind.place)
        for nominate in plan.nominates:
            for place in nominate.places:
                found[place.pod] = PodEnd(Status.NOMINATED, place)
        return found

    def ends(self) -> dict[str, PodEnd]:
        """What has become of each pod by now."""
        found = {pod.id: PodEnd(_status(pod), _place(pod)) for pod in self._pods()}
        return {**found, **{pod: PodEnd(Status.EVICTED) for pod in self._gone}}

    def nodes_of(self, plan: Plan | None) -> dict[str, NodeEnd]:
        """What is free of each node, with a plan that is not carried out yet or without one."""
        holders: dict[str, list[bool]] = {}
        ending = {evict.pod for evict in plan.evicts} if plan else set[str]()
        for pod in self._pods():
            if pod.state in _HOLDS:
                for share in pod.shares:
                    is_ending = pod.state is PodState.RELEASING or pod.id in ending
                    holders.setdefault(share.device, []).append(is_ending)
        for bind in plan.binds if plan else ():
            for share in bind.place.shares:
                holders.setdefault(share.device, []).append(False)
        return {node.id: _node_end(node.devices, holders) for node in self._nodes.values()}

    def _is_there(self, workload: Workload) -> bool:
        return workload.id not in self._absent and any(pod.state not in _OVER for pod in workload.pods)

    def _seen(self, workload: Workload) -> Workload:
        since = self._stale_since.get(workload.id)
        return workload if since is None else replace(workload, stale_for=self.now - since)

    def _pods(self) -> Iterable[Pod]:
        return (pod for workload in self._workloads.values() for pod in workload.pods)

    def _put(self, workload: Workload) -> None:
        self._workloads[workload.id] = workload

    def _release(self) -> None:
        for workload in tuple(self._workloads.values()):
            for pod in workload.pods:
                if pod.state is PodState.RELEASING and not pod.is_stuck:
                    self._end(workload.id, pod.id)

    def _evict(self, evicts: Iterable[Evict]) -> None:
        for evict in evicts:
            workload = self._workloads[evict.workload]
            queue = self._queues[workload.queue]
            self._end(workload.id, evict.pod)
            if evict.rule in _FOR_OTHERS and queue.evictions_left is not None:
                self._queues[queue.id] = replace(queue, evictions_left=max(0, queue.evictions_left - 1))

    def _end(self, id: str, pod: str) -> None:
        """A pod gives up its place: it is pending again, or gone."""
        workload = self._workloads[id]
        if self._on_evict is OnEvict.DELETE:
            self._gone[pod] = None
            pods = tuple(one for one in workload.pods if one.id != pod)
        else:
            pods = _with(workload, pod, _waiting)
        runs = any(one.state in _HOLDS for one in pods)
        self._put(replace(workload, pods=pods, started=workload.started if runs else None))

    def _finish(self, id: str, pod: str, state: PodState) -> None:
        """A pod that is not over yet ends by itself."""
        workload = self._workloads[id]
        pods = tuple(_over(one, state) if one.id == pod and one.state not in _OVER else one for one in workload.pods)
        self._put(replace(workload, pods=pods))

    def _remove(self, id: str) -> None:
        for pod in self._workloads.pop(id).pods:
            self._gone[pod.id] = None
        self._promises.pop(id, None)

    def _promise(self, one: Nominate) -> Promise:
        before = self._promises.get(one.workload)
        made = before.made if before is not None and before.due == one.due else self.now
        return Promise(one.workload, one.places, made, one.due, one.expires, one.waits_for, one.may_evict)

    def _left(self, budget: Budget) -> Budget:
        """A budget allows as many evictions less as pods of it have lost their place since."""
        missing = self._ran_at_first & budget.pods - {pod.id for pod in self._pods() if pod.state is PodState.RUNNING}
        return replace(budget, allowed=max(0, budget.allowed - len(missing)))

    def _mark_stale(self) -> None:
        """Note since when gangs are below their minimum."""
        for workload in self._workloads.values():
            active = {pod.id for pod in workload.pods if pod.state is PodState.RUNNING}
            if not active or gang.is_satisfied(workload, active):
                self._stale_since.pop(workload.id, None)
            elif workload.id not in self._stale_since:
                self._stale_since[workload.id] = self.now - (workload.stale_for or timedelta())


def _with(workload: Workload, pod: str, change: Callable[[Pod], Pod]) -> tuple[Pod, ...]:
    return tuple(change(one) if one.id == pod else one for one in workload.pods)


def _bound(place: Place) -> Callable[[Pod], Pod]:
    def bind(pod: Pod) -> Pod:
        return replace(pod, state=PodState.RUNNING, node=place.node, shares=place.shares)

    return bind


def _over(pod: Pod, state: PodState) -> Pod:
    return replace(pod, state=state, node=None, shares=(), release_due=None, is_stuck=False)


def _changed_node(node: Node, change: NodeChange) -> Node:
    return replace(
        node,
        is_cordoned=_or(given=change.is_cordoned, before=node.is_cordoned),
        is_drained=_or(given=change.is_drained, before=node.is_drained),
        is_ready=_or(given=change.is_ready, before=node.is_ready),
    )


def _changed_queue(queue: Queue, change: QueueChange) -> Queue:
    return replace(
        queue,
        is_held=_or(given=change.is_held, before=queue.is_held),
        is_drained=_or(given=change.is_drained, before=queue.is_drained),
    )


def _or(*, given: bool | None, before: bool) -> bool:
    return before if given is None else given


def _waiting(pod: Pod) -> Pod:
    return replace(pod, state=PodState.PENDING, node=None, shares=(), release_due=None)


def _status(pod: Pod) -> Status:
    return Status.STUCK_RELEASING if pod.is_stuck else Status(str(pod.state))


def _place(pod: Pod) -> Place | None:
    return Place(pod.id, pod.node, pod.shares) if pod.node is not None else None


def _node_end(devices: Iterable[Device], holders: Mapping[str, list[bool]]) -> NodeEnd:
    idle = releasing = 0
    for device in devices:
        milli = mig.charge(device.instance, device.slices) if device.instance else WHOLE_DEVICE_MILLI
        held = holders.get(device.id)
        if held is None:
            idle += milli if device.withheld is None else 0
        elif all(held):
            releasing += milli
    return NodeEnd(idle, releasing)
