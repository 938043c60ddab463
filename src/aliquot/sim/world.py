"""The state of a simulated cluster and its mechanics: what runs where, what ends when, what is lost by an eviction.

Promises: a device or a node is never given out twice (`IllegalPlan` says so at once), every start and end of a hold is
in the ledger, and nothing depends on the order of a dict or on a real clock.
"""

import copy
import dataclasses
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aliquot.core.model import (
    Device,
    ForeignUse,
    Node,
    Place,
    Pod,
    PodState,
    Promise,
    Queue,
    QueueOrder,
    Snapshot,
    Workload,
)
from aliquot.core.plan import Nominate
from aliquot.sim.crowd import Crowd
from aliquot.sim.occupancy import IllegalPlan, Occupancy
from aliquot.sim.recent import Recent
from aliquot.sim.script import Cordon, Event, Happening, Job, Offer, SetQueue, Stop, Submit, Uncordon, Withhold

_HOLDS = (PodState.RUNNING, PodState.RELEASING)
_ENDS_WORK = frozenset({"lost", "xid"})
_MICRO = 10**6
_STRANGER = ForeignUse(pid=4711, user="stranger", mib=1024)
"""Who uses a device that is withheld as `device-in-use`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger: a pod took (`milli` > 0) or gave back (< 0) a share of a device."""

    at: datetime
    workload: str
    pod: str
    device: str
    milli: int


@dataclass(slots=True)
class Counts:
    """Everything that happened, counted."""

    cycles: int = 0
    evicting_cycles: int = 0
    submitted: int = 0
    started: int = 0
    finished: int = 0
    stopped: int = 0
    evicted_pods: int = 0
    evicted_workloads: int = 0
    lost_workloads: int = 0
    promises: int = 0
    outside_changes: int = 0
    lost_time: timedelta = timedelta(0)
    waits: dict[str, int] = field(default_factory=dict)
    """Waits by reason code, summed over cycles."""


@dataclass(slots=True)
class Task:
    """A job that is not over."""

    job: Job
    workload: Workload
    attempt: int = 0
    saved: timedelta = timedelta(0)
    """Work that survives an eviction."""
    is_ending: bool = False
    """All of it was told to end: what is gone waits until the last pod is gone."""
    is_stopped: bool = False
    gone: dict[str, Pod] = field(default_factory=dict)
    first_start: datetime | None = None
    ran: timedelta = timedelta(0)
    """How long it has run in all, in earlier attempts."""
    evictions: int = 0
    rate: int = 0
    """Milli-GPU that its pods hold."""
    served: int = 0
    """Milli-GPU microseconds until `served_until`."""
    served_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that ran to its end."""

    workload: str
    created: datetime
    first_start: datetime
    end: datetime
    ran: timedelta
    evictions: int


@dataclass(frozen=True, slots=True)
class Turns:
    """When work of a queue that serves the least attained service first passes into its next class, and for how long
    it keeps its turn: as `core.model.Policy` says."""

    quantum: timedelta
    threshold: int
    classes: int

    def number(self, attained: int) -> int:
        """The class, as `core.order` counts them."""
        return min(self.classes - 1, (attained // self.threshold).bit_length())

    def bound(self, attained: int) -> int | None:
        """The milli-GPU seconds at which the next class begins; None in the last one."""
        number = self.number(attained)
        return self.threshold << number if number < self.classes - 1 else None


@dataclass(frozen=True, slots=True)
class _Turn:
    """Due: a task may have passed into its next class, or its turn is over."""

    workload: str
    attempt: int


class World:
    """Nodes, queues, tasks, promises and what is due. `snapshot` shows it; the other methods change it."""

    def __init__(
        self, nodes: Iterable[Node], queues: Iterable[Queue], *, grace: timedelta, turns: Turns | None = None
    ) -> None:
        """`turns`: needed where a queue serves the least attained service first."""
        self.nodes: dict[str, Node] = {node.id: node for node in nodes}
        self.queues: dict[str, Queue] = {queue.id: queue for queue in queues}
        self.tasks: dict[str, Task] = {}
        self._placed: dict[str, Task] = {}
        """Who has no pods that may start."""
        self.waiting = Crowd()
        """Who has pods that may start."""
        self.releasing = 0
        """Pods that were told to end and still hold their places."""
        self.has_stirred = False
        """Whether anything happened that a cycle might answer; whoever runs the cycles sets it back."""
        self.promises: dict[str, Promise] = {}
        self.ledger: list[Entry] = []
        self.is_ledger_kept = True
        self.ended: list[Ended] = []
        """What ran to its end; whoever wants it takes it out."""
        self.counts = Counts()
        self.facts = Snapshot()
        """Topologies, budgets and what was asked before: nothing here changes them."""
        self.recent = Recent()
        self.grace = grace
        self.occupancy = Occupancy()
        self._turns = turns
        self._due: list[tuple[datetime, int, Event | _Turn | tuple[str, int, str | None]]] = []
        self._sequence = 0

    # What is.

    def snapshot(self, shown: Iterable[str] | None = None) -> Snapshot:
        """Everything that a cycle needs; of those who wait only the `shown`, if it is said who."""
        if shown is None:
            seen = [task.workload for task in self.tasks.values()]
        else:
            seen = [task.workload for task in self._placed.values()]
            seen += [self.tasks[id].workload for id in sorted(shown) if id in self.waiting]
        return Snapshot(
            nodes=tuple(self.nodes.values()),
            queues=tuple(self.queues.values()),
            workloads=tuple(seen),
            promises=tuple(self.promises[id] for id in sorted(self.promises)),
            topologies=self.facts.topologies,
            budgets=self.facts.budgets,
            recent=self.facts.recent or self.recent.asked(),
        )

    def next_due(self) -> datetime | None:
        """When the next thing happens by itself."""
        return self._due[0][0] if self._due else None

    def held_by_device(self) -> Mapping[str, int]:
        """Milli-GPU held, by device, from what the pods say (the ledger must agree)."""
        held: dict[str, int] = {}
        for task in self.tasks.values():
            for pod in task.workload.pods:
                for share in pod.shares if pod.state in _HOLDS else ():
                    held[share.device] = held.get(share.device, 0) + share.milli
        return held

    def twin(self) -> "World":
        """The same again, which goes its own way: all that changes is copied."""
        other = copy.copy(self)
        other.nodes, other.queues, other.promises = dict(self.nodes), dict(self.queues), dict(self.promises)
        other.waiting = self.waiting.twin()
        other.tasks = {id: dataclasses.replace(task, gone=dict(task.gone)) for id, task in self.tasks.items()}
        other._placed = {id: other.tasks[id] for id in self._placed}
        other.ledger, other._due = list(self.ledger), list(self._due)
        other.ended, other.occupancy, other.recent = list(self.ended), self.occupancy.twin(), self.recent.twin()
        other.counts = dataclasses.replace(self.counts, waits=dict(self.counts.waits))
        return other

    # What happens.

    def plan_ahead(self, events: Iterable[Event]) -> None:
        """Let these happen when their time comes."""
        for event in events:
            self._push(event.at, event)

    def take_in(self, now: datetime) -> None:
        """Let everything happen that is due."""
        while self._due and self._due[0][0] <= now:
            at, _, what = heapq.heappop(self._due)
            if isinstance(what, Event):
                self.counts.outside_changes += 1
                self.happen(what.what, at)
            elif isinstance(what, _Turn):
                self._turn_over(what, at)
            else:
                self._come_due(*what, at)

    def forget_outside(self) -> None:
        """Nothing more happens from outside and no job ends by itself: only what was told to end is still going."""
        self._due = [entry for entry in self._due if isinstance(entry[2], tuple) and entry[2][2] is not None]
        heapq.heapify(self._due)
        for task in self.tasks.values():
            task.job = dataclasses.replace(task.job, run_time=None)

    def happen(self, what: Happening, now: datetime) -> None:
        """Let one thing happen now."""
        self.has_stirred = True
        match what:
            case Submit(job):
                self.counts.submitted += 1
                workload = dataclasses.replace(job.workload, created=now)
                served = workload.attained_milli_seconds * _MICRO
                self.tasks[workload.id] = Task(job=job, workload=workload, served=served)
                self._file(self.tasks[workload.id])
                for pod in workload.pods:
                    self.recent.add(pod.request)
            case Stop(workload_id):
                if workload_id in self.tasks:
                    self._stop(self.tasks[workload_id], now)
            case SetQueue(queue):
                self.queues[queue.id] = queue
            case Cordon(node_id):
                self.nodes[node_id] = dataclasses.replace(self.nodes[node_id], is_cordoned=True)
            case Uncordon(node_id):
                self.nodes[node_id] = dataclasses.replace(self.nodes[node_id], is_cordoned=False)
            case Offer(device_id):
                self._set_device(device_id, None)
            case Withhold(device_id, reason):
                self._set_device(device_id, reason)
                if reason in _ENDS_WORK:
                    self._lose(device_id, now)

    def adopt(self, job: Job, now: datetime) -> None:
        """Take in a workload as it is: what its pods hold is held, and if it runs it goes on."""
        workload = job.workload
        task = Task(job=job, workload=workload, served=workload.attained_milli_seconds * _MICRO)
        self.tasks[workload.id] = task
        for pod in workload.pods:
            if pod.state in _HOLDS and pod.node is not None:
                self._log(task, pod, now, sign=1)
                self.occupancy.take(pod, self.nodes[pod.node])
                self.releasing += pod.state is PodState.RELEASING
            if pod.state is PodState.RELEASING and not pod.is_stuck:
                self._push(now + min(job.release_takes, self.grace), (workload.id, task.attempt, pod.id))
        if workload.started is not None:
            task.first_start = workload.started
            self._await_end(task, workload.started)
        self._file(task)

    # What a plan does.

    def bind(self, workload_id: str, place: Place, now: datetime) -> None:
        """Start a pod. A pod that runs there already is left alone, so that a plan may be applied twice."""
        task = self._task(workload_id)
        pod = _pod(task, place.pod)
        if (pod.state, pod.node, pod.shares) == (PodState.RUNNING, place.node, place.shares):
            return
        if pod.state is not PodState.PENDING or task.is_ending:
            raise IllegalPlan(f"{pod.id} is {pod.state} and cannot be bound")
        node = self.nodes.get(place.node)
        if node is None:
            raise IllegalPlan(f"there is no node {place.node}")
        placed = dataclasses.replace(pod, state=PodState.RUNNING, node=place.node, shares=place.shares)
        self._set_pod(task, placed)
        self._file(task)
        self._log(task, placed, now, sign=1)
        self.occupancy.take(placed, node)
        if task.workload.started is None and _running(task.workload) >= task.workload.min_pods:
            self._start(task, now)

    def evict(self, workload_id: str, pod_ids: frozenset[str], now: datetime) -> None:
        """Tell these pods to end. Where fewer than the minimum would be left, all of the workload must be told."""
        task = self._task(workload_id)
        running = [pod for pod in task.workload.pods if pod.state is PodState.RUNNING]
        victims = [pod for pod in running if pod.id in pod_ids]
        if not victims:
            return
        left = len(running) - len(victims)
        if 0 < left < task.workload.min_pods:
            raise IllegalPlan(f"{workload_id} would be left with {left} pods of at least {task.workload.min_pods}")
        self.counts.evicted_pods += len(victims)
        if left == 0:
            self.counts.evicted_workloads += 1
            task.evictions += 1
            self._save(task, now)
            task.is_ending = True
        for pod in victims:
            self._release(task, pod, now)

    def keep_promises(self, nominates: Iterable[Nominate], now: datetime) -> None:
        """These are the promises that stand; all others are over."""
        kept = {one.workload: self._promise(one, now) for one in nominates}
        self.counts.promises += sum(
            id not in self.promises or self.promises[id].places != kept[id].places for id in kept
        )
        self.promises = kept

    def _promise(self, nominate: Nominate, now: datetime) -> Promise:
        self._task(nominate.workload)
        before = self.promises.get(nominate.workload)
        is_same = before is not None and (before.places, before.due) == (nominate.places, nominate.due)
        return Promise(
            workload=nominate.workload,
            places=nominate.places,
            made=before.made if before is not None and is_same else now,
            due=nominate.due,
            expires=nominate.expires,
            waits_for=nominate.waits_for,
            may_evict=nominate.may_evict,
        )

    # How it goes on by itself.

    def _come_due(self, workload_id: str, attempt: int, pod_id: str | None, now: datetime) -> None:
        task = self.tasks.get(workload_id)
        if task is None or task.attempt != attempt:
            return
        if pod_id is not None:
            if any(pod.id == pod_id for pod in task.workload.pods):  # It may have been lost with its device before.
                self._pod_gone(task, pod_id, now)
        elif not task.is_ending and task.job.run_time is not None:
            self.counts.outside_changes += 1
            self.counts.finished += 1
            self._remove(task, now, is_done=True)

    def _start(self, task: Task, now: datetime) -> None:
        self.counts.started += 1
        task.workload = dataclasses.replace(task.workload, started=now)
        task.first_start = task.first_start or now
        self._await_end(task, now)

    def _await_end(self, task: Task, now: datetime) -> None:
        if self._is_served_in_turns(task) and self._turns is not None:
            self._push(now + self._turns.quantum, _Turn(task.workload.id, task.attempt))
        if task.job.run_time is not None:
            self._push(now + task.job.run_time - task.saved, (task.workload.id, task.attempt, None))

    def _save(self, task: Task, now: datetime) -> None:
        done = now - (task.workload.started or now)
        step = task.job.checkpoint_every
        kept = done // step * step if step else timedelta(0)
        task.saved += kept
        task.ran += done
        self.counts.lost_time += done - kept

    def _release(self, task: Task, pod: Pod, now: datetime) -> None:
        due = now + self.grace
        self.releasing += 1
        self._set_pod(task, dataclasses.replace(pod, state=PodState.RELEASING, release_due=due))
        gone = now + min(task.job.release_takes, self.grace)
        self._push(gone, (task.workload.id, task.attempt, pod.id))

    def _pod_gone(self, task: Task, pod_id: str, now: datetime) -> None:
        pod = _pod(task, pod_id)
        if pod.state is not PodState.RELEASING:
            return
        self._log(task, pod, now, sign=-1)
        fresh = dataclasses.replace(pod, state=PodState.PENDING, node=None, shares=(), release_due=None)
        if not task.is_ending:
            self._set_pod(task, fresh)
            self._file(task)
            return
        task.gone[pod_id] = fresh
        others = tuple(other for other in task.workload.pods if other.id != pod_id)
        task.workload = dataclasses.replace(task.workload, pods=others)
        if any(other.state in _HOLDS for other in others):
            return
        if task.is_stopped:
            self._remove(task, now)
            return
        pods = sorted((*others, *task.gone.values()), key=lambda pod: pod.index)
        served = task.served // _MICRO
        task.workload = dataclasses.replace(
            task.workload, pods=tuple(pods), started=None, attained_milli_seconds=served
        )
        task.gone, task.is_ending, task.attempt = {}, False, task.attempt + 1
        self._file(task)

    def _stop(self, task: Task, now: datetime) -> None:
        task.is_stopped = True
        self.counts.stopped += 1
        self._end_all(task, now)

    def _end_all(self, task: Task, now: datetime) -> None:
        """Tell all of it to end; what only waits is out of the snapshot until the rest is gone."""
        if not task.is_ending:
            self._save(task, now)
        task.is_ending = True
        waiting = [pod for pod in task.workload.pods if pod.state is PodState.PENDING]
        task.gone.update({pod.id: pod for pod in waiting})
        holding = tuple(pod for pod in task.workload.pods if pod.state in _HOLDS)
        task.workload = dataclasses.replace(task.workload, pods=holding)
        self.promises.pop(task.workload.id, None)
        self._file(task)
        for pod in holding:
            if pod.state is PodState.RUNNING:
                self._release(task, pod, now)
        if not holding:
            self._remove(task, now)

    def _lose(self, device_id: str, now: datetime) -> None:
        for id in sorted(self.tasks):
            task = self.tasks[id]
            hit = [pod for pod in task.workload.pods if any(share.device == device_id for share in pod.shares)]
            if not hit:
                continue
            self.counts.lost_workloads += 1
            self._end_all(task, now)
            for pod in hit:
                self._pod_gone(task, pod.id, now)

    def _remove(self, task: Task, now: datetime, *, is_done: bool = False) -> None:
        workload = task.workload
        if is_done and workload.started is not None:
            ran = task.ran + (now - workload.started)
            first = task.first_start or workload.started
            self.ended.append(Ended(workload.id, workload.created, first, now, ran, task.evictions))
        for pod in workload.pods:
            if pod.state in _HOLDS:
                self._log(task, pod, now, sign=-1)
        del self.tasks[task.workload.id]
        self.waiting.discard(task.workload.id)
        self._placed.pop(task.workload.id, None)
        self.promises.pop(task.workload.id, None)

    # Smaller things.

    def _push(self, at: datetime, what: Event | _Turn | tuple[str, int, str | None]) -> None:
        self._sequence += 1
        heapq.heappush(self._due, (at, self._sequence, what))

    def _task(self, workload_id: str) -> Task:
        task = self.tasks.get(workload_id)
        if task is None:
            raise IllegalPlan(f"there is no workload {workload_id}")
        return task

    def _set_pod(self, task: Task, pod: Pod) -> None:
        pods = tuple(pod if pod.id == other.id else other for other in task.workload.pods)
        task.workload = dataclasses.replace(task.workload, pods=pods)

    def _file(self, task: Task) -> None:
        if any(pod.state is PodState.PENDING for pod in task.workload.pods):
            is_served = self._turns is not None and self._is_served_in_turns(task)
            turn = self._turns.number(task.workload.attained_milli_seconds) if self._turns and is_served else 0
            self.waiting.add(task.workload, turn)
            self._placed.pop(task.workload.id, None)
        else:
            self.waiting.discard(task.workload.id)
            self._placed[task.workload.id] = task

    def _set_device(self, device_id: str, withheld: str | None) -> None:
        for node in list(self.nodes.values()):
            devices = tuple(_with_reason(device, device_id, withheld) for device in node.devices)
            self.nodes[node.id] = dataclasses.replace(node, devices=devices)

    def _log(self, task: Task, pod: Pod, now: datetime, *, sign: int) -> None:
        """A pod takes (1) its place or gives it back (-1): ledger, what is held, and GPU time of its workload."""
        if sign < 0 and pod.node is not None:
            self.has_stirred = True
            self.releasing -= pod.state is PodState.RELEASING
            self.occupancy.give(pod, pod.node)
        self._count_service(task, now)
        task.rate += sign * sum(share.milli for share in pod.shares)
        if sign > 0 and self._is_served_in_turns(task):
            self._await_next_class(task, now)
        if self.is_ledger_kept:
            self.ledger.extend(
                Entry(now, task.workload.id, pod.id, share.device, sign * share.milli) for share in pod.shares
            )

    # Turns.

    def _is_served_in_turns(self, task: Task) -> bool:
        queue = self.queues.get(task.workload.queue)
        return self._turns is not None and queue is not None and queue.order is QueueOrder.LEAST_ATTAINED_SERVICE

    def _count_service(self, task: Task, now: datetime) -> None:
        if task.rate:
            task.served += task.rate * ((now - (task.served_until or now)) // timedelta(microseconds=1))
        task.served_until = now

    def _await_next_class(self, task: Task, now: datetime) -> None:
        bound = None if self._turns is None else self._turns.bound(task.served // _MICRO)
        if bound is not None and task.rate:
            micros = -(-(bound * _MICRO - task.served) // task.rate)
            self._push(now + timedelta(microseconds=micros), _Turn(task.workload.id, task.attempt))

    def _turn_over(self, turn: _Turn, now: datetime) -> None:
        """The snapshot tells the service of what runs only when its class changes, so that all else stays as it is."""
        task = self.tasks.get(turn.workload)
        if task is None or task.attempt != turn.attempt or not task.rate or self._turns is None:
            return
        before = self._turns.bound(task.workload.attained_milli_seconds)
        self._count_service(task, now)
        served = task.served // _MICRO
        if self._turns.bound(served) != before:
            task.workload = dataclasses.replace(task.workload, attained_milli_seconds=served)
            self._await_next_class(task, now)
        first = self.waiting.first_turn(task.workload.queue)
        self.has_stirred |= first is not None and first < self._turns.number(served)


def _pod(task: Task, pod_id: str) -> Pod:
    for pod in task.workload.pods:
        if pod.id == pod_id:
            return pod
    raise IllegalPlan(f"{task.workload.id} has no pod {pod_id}")


def _running(workload: Workload) -> int:
    return sum(pod.state is PodState.RUNNING for pod in workload.pods)


def _with_reason(device: Device, device_id: str, withheld: str | None) -> Device:
    if device.id != device_id:
        return device
    foreign = (_STRANGER,) if withheld == "device-in-use" else ()
    return dataclasses.replace(device, withheld=withheld, foreign=foreign)
