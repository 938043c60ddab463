"""Whether a reason is true, judged from the snapshot and what the plan started, without anything of the engine."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction

from aliquot.core.model import PodRequest, PodState, Snapshot, Workload
from aliquot.core.plan import Code, Reason
from tests.sim import rooms
from tests.sim.rooms import RESOURCES, Hold, Room

ROUNDING = 3


@dataclass
class Facts:
    """The world as a cycle leaves it."""

    before: Snapshot
    held: list[Hold]
    """What holds places now: what runs, what ends, what was started."""
    later: list[Hold]
    """What will hold places when what ends has ended: promises included, the evicted not."""
    promised: set[str]
    is_moved: bool
    """Promised room became free in this cycle after others had been looked at: the next cycle gives it out."""
    shares: Callable[[], dict[str, dict[str, Fraction]]]
    _now: Room | None = None
    _levels: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)

    def levels(self, name: str, holds: list[Hold]) -> dict[str, dict[str, int]]:
        """What queues hold by these pods, counted once for each name."""
        if name not in self._levels:
            self._levels[name] = rooms.levels(self.before, holds)
        return self._levels[name]

    def now(self) -> Room:
        """What can be taken now: neither held nor promised."""
        if self._now is None:
            self._now = self._free()
        return self._now

    def _free(self) -> Room:
        room, later = Room(self.before, self.held), Room(self.before, self.later)
        for id, left in room.free_mib.items():
            room.free_mib[id] = min(left, later.free_mib[id])
            room.free_milli[id] = min(room.free_milli[id], later.free_milli[id])
        for id, node_room in room.free_node.items():
            room.free_node[id] = {name: min(left, later.free_node[id][name]) for name, left in node_room.items()}
        return room


def judge_reason(facts: Facts, workload: Workload, reason: Reason, now: datetime) -> str | None:
    """None if the reason is true, else what is the case instead."""
    requests = [pod.request for pod in workload.pods if pod.state is PodState.PENDING]
    known = {one.id for one in facts.before.workloads}
    if any(blocker.workload not in known for blocker in reason.blockers if blocker.workload is not None):
        return "a blocker is not there"
    if workload.id in facts.promised:
        return None if reason.code is Code.WAITING_FOR_RELEASE else "it has a promise"
    if reason.code is Code.BACKING_OFF:
        return None if workload.not_before is not None and workload.not_before > now else "nothing holds it back"
    if reason.code is Code.NO_SUCH_QUEUE:
        leaves = {one.id for one in facts.before.queues} - {one.parent for one in facts.before.queues}
        return "its project is there" if workload.queue in leaves else None
    if any(pod.state is PodState.RELEASING for pod in workload.pods):
        return None if reason.code is Code.WAITING_FOR_RELEASE else "pods of its own are ending"
    over_limit, over_quota = _over(facts, workload, rooms.limit), _over(facts, workload, rooms.quota)
    room = facts.now()
    is_startable = not over_limit and (workload.is_preemptible or not over_quota) and room.fits(requests)
    if is_startable and not facts.is_moved:
        return "it could start now"
    return _JUDGES[reason.code](facts, workload, requests) if reason.code in _JUDGES else None


def _over(facts: Facts, workload: Workload, bound: object) -> bool:
    """Whether it would pass a bound of a queue; by the quota only what is not preemptible counts. What is promised
    counts like what is held."""
    assert callable(bound)
    promised = [hold for hold in facts.later if hold.workload.id in facts.promised]
    here = {hold.pod.id for hold in facts.held}
    holds = facts.held + [hold for hold in promised if hold.pod.id not in here]
    if bound is rooms.quota:
        holds = [hold for hold in holds if not hold.workload.is_preemptible]
    name = "fixed" if bound is rooms.quota else "all"
    levels, asked = facts.levels(name, holds), rooms.ask(facts.before, workload)
    return any(
        bound(queue, name) is not None and asked[name] and levels[queue.id][name] + asked[name] > bound(queue, name)
        for queue in rooms.chain(facts.before, workload.queue)
        for name in RESOURCES
    )


def _whole(snapshot: Snapshot) -> Snapshot:
    """The nodes as if nothing were kept back."""
    nodes = [
        replace(
            node,
            is_ready=True,
            is_cordoned=False,
            devices=tuple(replace(device, withheld=None) for device in node.devices),
        )
        for node in snapshot.nodes
    ]
    return replace(snapshot, nodes=tuple(nodes))


def _limit(facts: Facts, workload: Workload, _: list[PodRequest]) -> str | None:
    return None if _over(facts, workload, rooms.limit) else "no limit would be passed"


def _quota(facts: Facts, workload: Workload, _: list[PodRequest]) -> str | None:
    if workload.is_preemptible:
        return "it is preemptible"
    return None if _over(facts, workload, rooms.quota) else "no quota would be passed"


def _larger_than_node(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    return "a node could hold it" if Room(_whole(facts.before), []).fits(requests[:1]) else None


def _larger_than_pool(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    return "the pool could hold it" if Room(_whole(facts.before), []).fits(requests) else None


def _unavailable(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    if Room(facts.before, []).fits(requests):
        return "what takes work could hold it"
    return None if Room(_whole(facts.before), []).fits(requests) else "nothing that is there could hold it"


def _no_device(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    gpu_only = replace(requests[0], milli_cpus=0, memory_bytes=0)
    return "a node has such devices free" if facts.now().fits([gpu_only]) else None


def _fragmented(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    room, gpu = facts.now(), requests[0].gpu
    if room.fits(requests[:1]):
        return "a pod of it fits"
    if gpu is None or room.fits([replace(requests[0], milli_cpus=0, memory_bytes=0)]):
        return None
    free = sum(max(0, left) for left in room.free_milli.values())
    slots = sum(room.slots(device, requests[0]) for node in facts.before.nodes for device in node.devices)
    return None if slots >= gpu.devices or free >= gpu.devices * (gpu.milli or 0) else "too little is free in all"


def _gang(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    if len(requests) < 2:
        return "it is one pod"
    return None if facts.now().fits(requests[:1]) else "not one of its pods fits"


def _behind(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    unpromised = [hold for hold in facts.later if hold.workload.id not in facts.promised]
    is_held_back = Room(facts.before, facts.held).fits(requests) or Room(facts.before, unpromised).fits(requests)
    return None if is_held_back else "it would not fit without the promises either"


def _release(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
    return None if Room(facts.before, facts.later).fits(requests) else "it will not fit when what ends has ended"


def _over_share(facts: Facts, workload: Workload, _: list[PodRequest]) -> str | None:
    levels, asked = facts.levels("later", facts.later), rooms.ask(facts.before, workload)
    is_over = any(
        asked[name] and levels[queue.id][name] + asked[name] > facts.shares()[queue.id][name] - ROUNDING
        for queue in rooms.chain(facts.before, workload.queue)
        for name in RESOURCES
    )
    return None if is_over else "it stays within its fair share"


def _short_of(resource: str) -> Callable[[Facts, Workload, list[PodRequest]], str | None]:
    def judge(facts: Facts, _: Workload, requests: list[PodRequest]) -> str | None:
        asked = requests[0].milli_cpus if resource == "cpu" else requests[0].memory_bytes
        usable = [node.id for node in facts.before.nodes if node.is_ready and not node.is_cordoned]
        free = max((facts.now().free_node[id][resource] for id in usable), default=0)
        return None if asked > free else "one node has that much free"

    return judge


_JUDGES: dict[Code, Callable[[Facts, Workload, list[PodRequest]], str | None]] = {
    Code.QUEUE_LIMIT: _limit,
    Code.NON_PREEMPTIBLE_OVER_QUOTA: _quota,
    Code.LARGER_THAN_ANY_NODE: _larger_than_node,
    Code.LARGER_THAN_POOL: _larger_than_pool,
    Code.NODE_UNAVAILABLE: _unavailable,
    Code.DEVICE_IN_USE: _unavailable,
    Code.NO_FREE_DEVICE: _no_device,
    Code.NO_DEVICE_FITS: _no_device,
    Code.FRAGMENTED: _fragmented,
    Code.GANG_INCOMPLETE: _gang,
    Code.BEHIND: _behind,
    Code.WAITING_FOR_RELEASE: _release,
    Code.OVER_FAIR_SHARE: _over_share,
    Code.NO_FREE_CPU: _short_of("cpu"),
    Code.NO_FREE_MEMORY: _short_of("memory"),
}
