"""Why a workload waits, and the smallest change that would start it.

Promises: pure; a change that is given was tried in the engine on this very snapshot, and with it the workload is bound
or promised in that cycle; where trying all kinds of change finds one, one is given. Changes that evict nobody come
first, then the order of `_kinds`, then the least amount. What nobody can change, or what ends by itself, says so.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from aliquot.core import change, fairshare, quantities, schedule, shortages
from aliquot.core.errors import NotFound
from aliquot.core.model import (
    RESOURCES,
    WHOLE_DEVICE_MILLI,
    Claim,
    GpuRequest,
    Pod,
    PodRequest,
    PodState,
    Policy,
    PoolTerms,
    Queue,
    ResourceName,
    Snapshot,
    Workload,
)
from aliquot.core.plan import Code, Reason, Wait
from aliquot.core.snapshot import World

WhoCan = Literal["owner", "project", "administrator"]

HIGHEST_PRIORITY = 1000
MIB = 2**20
ROUND_SHARES = (750, 500, 250, 100)
"""Portions that people choose; tried besides the largest that fits."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that starts the workload. `evicts`: the workloads that would lose pods for it, by id."""

    change: change.Change
    description: str
    who_can: WhoCan
    outcome: Literal["starts", "starts-after-evictions"]
    evicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why it waits (None: it does not, it starts in this very cycle), and what would help or why nothing does."""

    reason: Reason | None
    position: int | None = None
    suggestion: Suggestion | None = None
    no_suggestion_because: str | None = None


def explain(taken: Snapshot | World, workload_id: str, *, policy: Policy, now: datetime) -> Explanation:
    """Why this workload waits and the smallest change that starts it. Raises NotFound if it is not in the snapshot.

    A world that is kept from cycle to cycle saves building it; it is left as it was.
    """
    snapshot = taken.snapshot if isinstance(taken, World) else taken
    workload = next((one for one in snapshot.workloads if one.id == workload_id), None)
    if workload is None:
        raise NotFound(f"there is no workload {workload_id!r} here", field="workload")
    world = taken if isinstance(taken, World) else World(snapshot)
    cycle = schedule.decide(world, policy, now)
    wait = schedule.wait_of(cycle, workload_id)
    world.rollback(0)
    if wait is None:
        return Explanation(reason=None)
    known = Explanation(wait.reason, wait.position)
    if (ending := _ends_by_itself(snapshot, workload, wait)) is not None:
        return replace(known, no_suggestion_because=ending)
    search = _Search(snapshot, workload, policy, now, world)
    suggestion = _smallest(search)
    world.sync(snapshot)
    if suggestion is not None:
        return replace(known, suggestion=suggestion)
    return replace(known, no_suggestion_because=_why_none(snapshot, workload, wait.reason))


# The search.


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A change to try. Among those of one kind the one with the least `amount` is the smallest."""

    change: change.Change
    description: str
    who_can: WhoCan
    amount: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class _Ladder:
    """Candidates from the smallest change to the largest. On a ladder that is steady, one that works is followed by
    others that work, so that the first is found by halving; any other is tried from its start."""

    length: int
    at: Callable[[int], _Candidate]
    is_steady: bool = True


@dataclass(slots=True)
class _Search:
    """Tries changes in the engine, each once."""

    snapshot: Snapshot
    workload: Workload
    policy: Policy
    now: datetime
    world: World
    tried: dict[change.Change, tuple[str, ...] | None] = field(default_factory=dict)

    @property
    def request(self) -> PodRequest:
        """What each of its pending pods asks for."""
        return self.pending[0].request

    @property
    def pending(self) -> list[Pod]:
        """Its pods that wait."""
        return [pod for pod in self.workload.pods if pod.state is PodState.PENDING]

    def evicted_by(self, changed: change.Change) -> tuple[str, ...] | None:
        """The workloads that are evicted for it after this change; None if it goes on waiting."""
        if changed not in self.tried:
            self.tried[changed] = self.outcome([changed])
        return self.tried[changed]

    def outcome(self, changes: Sequence[change.Change]) -> tuple[str, ...] | None:
        """The same after several changes."""
        id = self.workload.id
        self.world.sync(change.overlay(self.snapshot, changes))
        cycle = schedule.decide(self.world, self.policy, self.now)
        is_served = id in cycle.bound or id in cycle.promises
        self.world.rollback(0)
        return tuple(sorted({one.workload for one in cycle.evicts if one.beneficiary == id})) if is_served else None


def _smallest(search: _Search) -> Suggestion | None:
    kinds = _kinds(search)
    for may_evict in ("nobody", "others"):
        for ladders in kinds:
            found = [one for ladder in ladders if (one := _first(search, ladder, may_evict)) is not None]
            if found:
                best = min(found, key=lambda one: one.amount)
                evicts = search.evicted_by(best.change) or ()
                return Suggestion(
                    change=best.change,
                    description=best.description,
                    who_can=best.who_can,
                    outcome="starts-after-evictions" if evicts else "starts",
                    evicts=evicts,
                )
    return _stop_one(search)


def _first(search: _Search, ladder: _Ladder, may_evict: str) -> _Candidate | None:
    """The first candidate that starts the workload."""

    def works(index: int) -> bool:
        evicted = search.evicted_by(ladder.at(index).change)
        return evicted is not None and (may_evict == "others" or not evicted)

    if not ladder.is_steady:
        return next((ladder.at(index) for index in range(ladder.length) if works(index)), None)
    if not ladder.length or not works(ladder.length - 1):
        return None
    low, high = 0, ladder.length - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle + 1, high)
    return ladder.at(high)


def _kinds(search: _Search) -> list[list[_Ladder]]:
    """All kinds of change but the end of another workload, in the order in which they are preferred."""
    return [
        [_fewer_gpus(search), _fewer_replicas(search)],
        [_smaller_share(search), _round_share(search)],
        [_less_cpu(search)],
        [_less_memory(search)],
        [_any_model(search), _other_pool(search)],
        [_loosen(search), _open_nodes(search)],
        [_uncordon(search), _release(search)],
        [_higher_priority(search)],
        [_preemptible(search)],
        _terms(search),
    ]


# What the owner can change.


def _fewer_gpus(search: _Search) -> _Ladder:
    gpu = search.request.gpu
    count = 0 if gpu is None else gpu.devices - 1

    def at(index: int) -> _Candidate:
        assert gpu is not None
        fewer = replace(gpu, devices=gpu.devices - 1 - index)
        amount = (index + 1) * len(search.pending) * (gpu.milli or WHOLE_DEVICE_MILLI)
        return _ask_gpu(search, fewer, amount)

    return _Ladder(count, at)


def _fewer_replicas(search: _Search) -> _Ladder:
    total, waiting = len(search.workload.pods), len(search.pending)
    gpu = search.request.gpu
    each = 1 if gpu is None else gpu.devices * (gpu.milli or WHOLE_DEVICE_MILLI)

    def at(index: int) -> _Candidate:
        count = total - 1 - index
        return _Candidate(
            change.SetReplicas(search.workload.id, count),
            f"run {count} {'replica' if count == 1 else 'replicas'} instead of {total}",
            "owner",
            ((index + 1) * each, 1),
        )

    return _Ladder(waiting - 1, at)


def _smaller_share(search: _Search) -> _Ladder:
    gpu = search.request.gpu
    if gpu is None:
        return _Ladder(0, _never)
    size = gpu.milli if gpu.mib is None else gpu.mib

    def at(index: int) -> _Candidate:
        left = (size or 0) - 1 - index
        smaller = replace(gpu, milli=left) if gpu.mib is None else replace(gpu, mib=left)
        return _ask_gpu(search, smaller, index + 1)

    return _Ladder((size or 0) - 1, at)


def _round_share(search: _Search) -> _Ladder:
    gpu = search.request.gpu
    if gpu is None:
        return _Ladder(0, _never)
    size = (gpu.milli if gpu.mib is None else gpu.mib) or 0
    shares = (
        [part for part in ROUND_SHARES if part < size] if gpu.mib is None else [size * 3 // 4, size // 2, size // 4]
    )

    def at(index: int) -> _Candidate:
        left = shares[index]
        smaller = replace(gpu, milli=left) if gpu.mib is None else replace(gpu, mib=left)
        return _ask_gpu(search, smaller, size - left)

    return _Ladder(len(shares), at, is_steady=False)


def _ask_gpu(search: _Search, gpu: GpuRequest, amount: int) -> _Candidate:
    before = quantities.format_gpu(search.request.gpu)
    text = f"ask for {quantities.format_gpu(gpu)} GPU instead of {before}"
    each = " per replica" if len(search.workload.pods) > 1 else ""
    return _Candidate(change.SetGpu(search.workload.id, gpu), text + each, "owner", (amount, 0))


def _less_cpu(search: _Search) -> _Ladder:
    asked = search.request.milli_cpus

    def at(index: int) -> _Candidate:
        left = asked - 1 - index
        text = f"ask for {quantities.format_milli(left)} CPU instead of {quantities.format_milli(asked)}"
        return _Candidate(change.SetCpu(search.workload.id, left), text, "owner", (index + 1,))

    return _Ladder(max(0, asked - 1), at)


def _less_memory(search: _Search) -> _Ladder:
    asked = search.request.memory_bytes

    def at(index: int) -> _Candidate:
        left = (-(-asked // MIB) - 1 - index) * MIB
        text = f"ask for {_exact(left)} of memory instead of {_exact(asked)}"
        return _Candidate(change.SetMemory(search.workload.id, left), text, "owner", (index + 1,))

    return _Ladder(max(0, -(-asked // MIB) - 1), at)


def _higher_priority(search: _Search) -> _Ladder:
    own = search.workload.priority
    others = {one.priority for one in search.snapshot.workloads if one.queue == search.workload.queue}
    steps = sorted(one + 1 for one in others if own <= one < HIGHEST_PRIORITY)

    def at(index: int) -> _Candidate:
        text = f"raise its priority from {own} to {steps[index]}"
        return _Candidate(change.SetPriority(search.workload.id, steps[index]), text, "owner", (steps[index],))

    return _Ladder(len(steps), at, is_steady=False)


def _preemptible(search: _Search) -> _Ladder:
    is_now = search.workload.is_preemptible

    def at(index: int) -> _Candidate:
        text = "make it non-preemptible" if is_now else "make it preemptible: it may then be evicted for others"
        return _Candidate(change.SetPreemptible(search.workload.id, not is_now), text, "owner", (index,))

    return _Ladder(1, at)


def _any_model(search: _Search) -> _Ladder:
    gpu = search.request.gpu
    is_choosy = gpu is not None and bool(gpu.models or gpu.min_device_mib)

    def at(index: int) -> _Candidate:
        assert gpu is not None
        text = "accept any model of GPU"
        return _Candidate(change.SetGpu(search.workload.id, replace(gpu, models=(), min_device_mib=0)), text, "owner")

    return _Ladder(int(is_choosy), at)


def _other_pool(search: _Search) -> _Ladder:
    pools = sorted({node.pool for node in search.snapshot.nodes} - {search.workload.pool})

    def at(index: int) -> _Candidate:
        text = f"submit it to pool {pools[index]} instead of {search.workload.pool}"
        return _Candidate(change.SetPool(search.workload.id, pools[index]), text, "owner", (1, index))

    return _Ladder(len(pools), at, is_steady=False)


def _loosen(search: _Search) -> _Ladder:
    def at(index: int) -> _Candidate:
        text = "prefer that its pods are near each other instead of requiring it"
        return _Candidate(change.LoosenNear(search.workload.id), text, "owner")

    return _Ladder(int(shortages.has_required(search.workload.root)), at)


def _open_nodes(search: _Search) -> _Ladder:
    request = search.request
    is_choosy = request.nodes is not None or bool(request.node_labels)
    is_tainted = any(node.taints for node in search.snapshot.nodes if node.pool == search.workload.pool)

    def at(index: int) -> _Candidate:
        text = "let it use any node of its pool: no selector, and every taint tolerated"
        return _Candidate(change.OpenNodes(search.workload.id), text, "owner", (1,))

    return _Ladder(int(is_choosy or is_tainted), at)


# What an administrator can change.


def _release(search: _Search) -> _Ladder:
    by_id = {queue.id: queue for queue in search.snapshot.queues}
    held = [one for one in fairshare.path_of(search.workload.queue, by_id) if one.is_held or one.is_drained]

    def at(index: int) -> _Candidate:
        text = f"release {held[index].name}"
        return _Candidate(change.ReleaseQueue(held[index].id), text, "administrator")

    return _Ladder(len(held), at, is_steady=False)


def _uncordon(search: _Search) -> _Ladder:
    candidates: list[_Candidate] = []
    for node in sorted(search.snapshot.nodes, key=lambda node: node.id):
        if node.pool != search.workload.pool:
            continue
        for device in node.devices:
            if device.withheld == "cordoned":
                text = f"take the cordon from device {device.index} of {node.id}"
                candidates.append(_Candidate(change.OfferDevice(device.id), text, "administrator"))
        if node.is_cordoned:
            text = f"take the cordon from {node.id}"
            candidates.append(_Candidate(change.UncordonNode(node.id), text, "administrator"))
    return _Ladder(len(candidates), candidates.__getitem__, is_steady=False)


def _terms(search: _Search) -> list[_Ladder]:
    """Each quota and limit on the way from its project up, of what it asks for."""
    by_id = {queue.id: queue for queue in search.snapshot.queues}
    ladders: list[_Ladder] = []
    for rank, resource in enumerate(RESOURCES):
        if not _asks_for(search.request, resource):
            continue
        for queue in fairshare.path_of(search.workload.queue, by_id):
            enough = _enough(search, queue, resource)
            ladders += [_raise(search, queue, resource, part, (rank, enough)) for part in ("limit", "quota")]
    return ladders


def _enough(search: _Search, queue: Queue, resource: ResourceName) -> int:
    """More than any term of this queue need be: all that is there, and all that is held and asked."""
    pool = search.world.pools.get(search.workload.pool)
    account = None if pool is None else pool.accounts.get(queue.id)
    index = RESOURCES.index(resource)
    held = 0 if account is None else account.level[index] + account.releasing[index]
    known = held + (0 if pool is None or queue.id not in pool.asked else pool.asked[queue.id].of(resource))
    nodes = [node for node in search.snapshot.nodes if node.pool == search.workload.pool]
    there = {
        "gpu": sum(WHOLE_DEVICE_MILLI * len(node.devices) for node in nodes),
        "cpu": sum(node.milli_cpus for node in nodes),
        "memory": sum(node.memory_bytes for node in nodes),
    }
    return known + there[resource]


def _raise(search: _Search, queue: Queue, resource: ResourceName, part: str, bound: tuple[int, int]) -> _Ladder:
    """Raising one term; the steps are thousandths, or MiB of memory."""
    rank, enough = bound
    terms = queue.terms_in(search.workload.pool)
    claim = terms.of(resource)
    before = claim.limit if part == "limit" else claim.quota
    if before is None or before >= enough:
        return _Ladder(0, _never)
    unit = MIB if resource == "memory" else 1

    def at(index: int) -> _Candidate:
        after = before + (index + 1) * unit
        raised = replace(claim, limit=after) if part == "limit" else replace(claim, quota=after)
        noun = "department" if any(one.parent == queue.id for one in search.snapshot.queues) else "project"
        name = {"gpu": "GPU", "cpu": "CPU", "memory": "memory"}[resource]
        text = (
            f"raise the {name} {part} of {noun} {queue.name} from {_text(before, resource)} to {_text(after, resource)}"
        )
        changed = change.SetTerms(queue.id, search.workload.pool, _with_claim(terms, resource, raised))
        return _Candidate(changed, text, "administrator", (rank, index))

    return _Ladder(-(-(enough - before) // unit), at)


def _with_claim(terms: PoolTerms, resource: ResourceName, claim: Claim) -> PoolTerms:
    if resource == "gpu":
        return replace(terms, gpu=claim)
    return replace(terms, cpu=claim) if resource == "cpu" else replace(terms, memory=claim)


# The last resort.


def _stop_one(search: _Search) -> Suggestion | None:
    """The end of one other workload: of the same project first, then the least work lost."""
    others = [one for one in search.snapshot.workloads if one.id != search.workload.id]
    if not _starts_without(search, others):
        return None
    for other in sorted(others, key=lambda one: _loss(search, one)):
        stopped = change.RemoveWorkload(other.id)
        evicts = search.evicted_by(stopped)
        if evicts is None:
            continue
        is_near = other.queue == search.workload.queue
        where = "of the same project" if is_near else f"of project {_queue_name(search.snapshot, other.queue)}"
        return Suggestion(
            change=stopped,
            description=f"stop {other.name} ({where})",
            who_can="project" if is_near else "administrator",
            outcome="starts-after-evictions" if evicts else "starts",
            evicts=evicts,
        )
    return None


def _starts_without(search: _Search, others: Iterable[Workload]) -> bool:
    changes = [change.RemoveWorkload(one.id) for one in others]
    return search.outcome(changes) is not None


def _loss(search: _Search, other: Workload) -> tuple[bool, bool, timedelta, str]:
    held = sum(share.milli for pod in other.pods for share in pod.shares)
    ran = search.now - other.started if other.started is not None else timedelta(0)
    holds = any(pod.state is PodState.RUNNING for pod in other.pods)
    return (other.queue != search.workload.queue, not holds, ran * held, other.id)


# What no change mends.


def _ends_by_itself(snapshot: Snapshot, workload: Workload, wait: Wait) -> str | None:
    if wait.reason.code is Code.BACKING_OFF and workload.not_before is not None:
        return f"it tries again by itself at {workload.not_before:%H:%M:%S} ({workload.not_before.tzname()})"
    if wait.reason.code is Code.WAITING_FOR_RELEASE:
        due = wait.reason.numbers.get("due")
        return f"its place is promised and it starts by itself once that is free{f', by {due}' if due else ''}"
    if wait.reason.code is Code.NO_SUCH_QUEUE:
        return f"an administrator has to make the project {workload.queue}, or it has to be submitted to another"
    return None


def _why_none(snapshot: Snapshot, workload: Workload, reason: Reason) -> str:
    if reason.code is Code.DEVICE_IN_USE:
        return f"who runs {_foreign(snapshot, workload.pool)} can end it, or an administrator of the machine"
    if reason.code is Code.POOL_EMPTY:
        return f"an administrator has to bring nodes into pool {workload.pool}: there is none that could take it"
    if reason.code is Code.NODE_UNAVAILABLE:
        return "an administrator has to bring back what is away; taking one cordon away does not start it"
    if reason.code is Code.BUDGET:
        return "the search was ended by its budget and goes on in the next cycle; an administrator can raise the budget"
    return (
        "no smaller request, other priority, single quota or limit starts it, nor does the end of one other workload: "
        "more than one of these would have to change"
    )


def _foreign(snapshot: Snapshot, pool: str) -> str:
    uses = sorted(
        {
            f"process {use.pid} of {use.user}"
            for node in snapshot.nodes
            if node.pool == pool
            for device in node.devices
            for use in device.foreign
        }
    )
    return ", ".join(uses) or "the processes that are not Aliquot's"


# Words.


def _asks_for(request: PodRequest, resource: ResourceName) -> bool:
    if resource == "gpu":
        return request.gpu is not None
    return (request.milli_cpus if resource == "cpu" else request.memory_bytes) > 0


def _text(amount: int, resource: ResourceName) -> str:
    return _exact(amount) if resource == "memory" else quantities.format_milli(amount)


def _exact(amount: int) -> str:
    """Bytes in the largest binary unit that is exact, so that what is typed is what was tried."""
    for suffix, unit in (("Gi", 2**30), ("Mi", MIB), ("Ki", 2**10)):
        if amount >= unit and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)


def _queue_name(snapshot: Snapshot, id: str) -> str:
    return next((queue.name for queue in snapshot.queues if queue.id == id), id)


def _never(index: int) -> _Candidate:
    raise IndexError(index)  # pragma: no cover - an empty ladder has no steps
