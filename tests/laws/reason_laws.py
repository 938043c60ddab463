"""Laws of reasons: what is said is the case, judged from the snapshot and from what the plan starts and promises."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from aliquot.core.model import (
    RESOURCES,
    Claim,
    Group,
    Node,
    Pod,
    PodRequest,
    PodState,
    ResourceName,
    Snapshot,
    Workload,
)
from aliquot.core.plan import Code, Wait
from tests.laws import amounts, gangs, room
from tests.laws.amounts_laws import ROUNDING
from tests.laws.case import Case
from tests.laws.gangs import TooHard
from tests.laws.room import Hold, Room

LAW = "every-reason-is-true"
OWN = frozenset({Code.NO_SUCH_QUEUE, Code.BACKING_OFF, Code.QUEUE_HELD, Code.UNMET_DEPENDENCY, Code.BUDGET})
"""Codes that say why it was not even tried."""


def every_reason_is_true(case: Case) -> int:
    """Who waits has a reason that is the case; and no single pod waits that could start."""
    facts = Facts(case)
    for wait in case.plan.waits:
        fault = _fault(facts, wait)
        if fault is not None:
            said = f"{wait.reason.code}: {wait.reason.message!r}"
            raise case.broken(LAW, f"{wait.workload} waits: {said}, but {fault}")
    return len(case.plan.waits)


@dataclass
class Facts:
    """The world as the cycle leaves it."""

    case: Case

    @cached_property
    def held(self) -> Room:
        """What holds places now."""
        return Room(self.case.before, self.case.now_held)

    @cached_property
    def later(self) -> Room:
        """What will hold places when what ends has ended and what is promised has begun."""
        return Room(self.case.before, self.case.later_held)

    @cached_property
    def unpromised(self) -> Room:
        """The same without the promises."""
        promised = {hold.pod.id for hold in self.case.promised}
        return Room(self.case.before, [hold for hold in self.case.later_held if hold.pod.id not in promised])

    @cached_property
    def counted(self) -> list[Hold]:
        """What counts for the terms of a queue: what holds a place, and what is promised one."""
        here = {hold.pod.id for hold in self.case.now_held}
        return [*self.case.now_held, *(hold for hold in self.case.promised if hold.pod.id not in here)]

    def after(self, workload: Workload) -> Workload:
        """The workload as it is after the cycle. What runs stays in its pool."""
        found = next(one for one in self.case.after.workloads if one.id == workload.id)
        if all(pod.node is None for pod in found.pods):
            return found
        return replace(found, pool=_first_pool(self, workload), fallback_pools=())

    def fits(self, workload: Workload, pods: list[Pod], rooms: tuple[Room, ...]) -> bool | None:
        """Whether pods fit in all of these rooms, whatever the terms; None if that is too hard to say."""
        try:
            also = rooms[1] if len(rooms) > 1 else None
            return gangs.place(rooms[0], workload, pods, also=also) is not None
        except TooHard:
            return None


def _fault(facts: Facts, wait: Wait) -> str | None:
    case, code = facts.case, wait.reason.code
    workload = case.workloads[wait.workload]
    for blocker in wait.reason.blockers:
        if blocker.workload is not None and blocker.workload not in case.workloads:
            return f"{blocker} is not there"
    if any(hold.workload.id == workload.id for hold in case.promised):
        may_say = {Code.WAITING_FOR_RELEASE, *([Code.BUDGET] if case.plan.is_cut_off else [])}
        return None if code in may_say else "it has a promise"
    if code in OWN:
        return _fault_of_own(facts, workload, code)
    if any(pod.state is PodState.RELEASING for pod in workload.pods):
        return None if code is Code.WAITING_FOR_RELEASE else "pods of its own are ending"
    if any(pod.id in case.evicted for pod in workload.pods):
        return None  # What keeps the rest of it waiting is as true as that these have to end first.
    options = gangs.chunks(facts.after(workload))
    if not options:
        return None if code is Code.GANG_INCOMPLETE else "its gang lacks pods"
    if "allocate" not in case.policy.actions:
        return None  # Nobody was to start: whatever is said is about a cycle that there was not.
    if any(_could_start(facts, workload, pods) for pods in options) and not case.plan.is_cut_off:
        return "it could start now"
    faults = [_JUDGES[code](facts, workload, pods) for pods in options]
    return faults[0] if all(faults) else None


def _fault_of_own(facts: Facts, workload: Workload, code: Code) -> str | None:
    case = facts.case
    if code is Code.NO_SUCH_QUEUE:
        return "its project is there" if amounts.is_project(case.before, workload.queue) else None
    if code is Code.BACKING_OFF:
        is_off = workload.not_before is not None and workload.not_before > case.now
        return None if is_off else "nothing holds it back"
    if code is Code.QUEUE_HELD:
        chain = amounts.chain(case.before, workload.queue)
        return None if any(one.is_held or one.is_drained for one in chain) else "no queue is held"
    if code is Code.UNMET_DEPENDENCY:
        return None if any(pod.unmet for pod in workload.pods) else "nothing is unmet"
    return None if case.plan.is_cut_off else "the cycle was not cut off"


def _could_start(facts: Facts, workload: Workload, pods: list[Pod]) -> bool:
    """Whether a single pod fits now, and its queue may have it."""
    if len(pods) != 1:
        return False
    chain = amounts.chain(facts.case.before, workload.queue)
    if any(one.is_held or one.is_drained for one in chain) or not amounts.is_project(facts.case.before, workload.queue):
        return False
    if workload.not_before is not None and workload.not_before > facts.case.now:
        return False
    try:
        found = gangs.place(facts.held, facts.after(workload), pods, also=facts.later)
    except TooHard:
        return False
    if found is None:
        return False
    pool = facts.case.pool_of[found[0].node]
    charge = amounts.add(amounts.zero(), *(amounts.charge(hold) for hold in found))
    over_limit = _over(facts, workload, pool, charge, lambda claim: claim.limit)
    # A request by memory may be charged less on another device: then nothing is said.
    if over_limit is not None:
        return False
    return _over_quota(facts, workload, pool, pods, charge=charge) is None


def _over(
    facts: Facts,
    workload: Workload,
    pool: str,
    asked: amounts.Vector,
    bound: Callable[[Claim], int | None],
    holds: list[Hold] | None = None,
) -> str | None:
    levels = amounts.levels(facts.case.before, facts.counted if holds is None else holds, pool)
    for queue in amounts.chain(facts.case.before, workload.queue):
        for name in RESOURCES:
            most = bound(amounts.claim(queue, pool, name))
            if most is not None and asked[name] and levels[queue.id][name] + asked[name] > most:
                return f"{queue.id} {name}"
    return None


def _over_quota(
    facts: Facts, workload: Workload, pool: str, pods: list[Pod], *, charge: amounts.Vector | None = None
) -> str | None:
    """By how much what is not preemptible grows counts: of semi-preemptible work the first pods are not. `charge`: what
    the pods cost, where that is known."""
    if workload.is_preemptible:
        return None
    before = facts.counted
    after = [*before, *(Hold(workload, pod, "", ()) for pod in pods)]
    was = [hold for hold in before if amounts.is_fixed(hold, before)]
    will = {hold.pod.id for hold in after if amounts.is_fixed(hold, after)}
    if not gangs.is_up(workload, workload.root, gangs.standing(facts.after(workload))):
        will |= {pod.id for pod in pods}  # What it lacks to its minimum, be that by the pods or by a tree of groups.
    new = [pod for pod in pods if pod.id in will]
    asked = amounts.asked(facts.case.before, replace(workload, pool=pool, fallback_pools=()), pool, new)
    more = asked if charge is None or new != pods else charge
    less = amounts.add(amounts.zero(), *(amounts.charge(hold) for hold in was if hold.pod.id not in will))
    grown = {name: max(0, more[name] - less[name]) for name in RESOURCES}
    return _over(facts, workload, pool, grown, lambda claim: claim.quota, was)


# Code by code. `pods`: what it waits for next.

Judge = Callable[[Facts, Workload, list[Pod]], str | None]


def _first_pool(facts: Facts, workload: Workload) -> str:
    """Where it runs, else the first that it asks for."""
    for hold in (*facts.case.running, *facts.case.bound, *facts.case.releasing):
        if hold.workload.id == workload.id:
            return facts.case.pool_of.get(hold.node, workload.pool)
    return workload.pool


def _pool_empty(facts: Facts, workload: Workload, _: list[Pod]) -> str | None:
    pool = _first_pool(facts, workload)
    return "there are nodes in its pool" if pool in facts.case.pool_of.values() else None


def _limit(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    """What moves counts at both of its places until it is gone from the first."""
    pool = _first_pool(facts, workload)
    asked = amounts.asked(facts.case.before, replace(workload, pool=pool, fallback_pools=()), pool, pods)
    both = [*facts.case.now_held, *facts.case.promised]
    found = _over(facts, workload, pool, asked, lambda claim: claim.limit, both)
    return None if found is not None else "no limit would be passed"


def _quota(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    pool = _first_pool(facts, workload)
    return None if _over_quota(facts, workload, pool, pods) is not None else "no quota would be passed"


def _whole(facts: Facts, workload: Workload, *, has_all: bool) -> Room:
    """Its first pool with nothing in it; `has_all`: as if nothing were kept back either."""
    pool = _first_pool(facts, workload)
    nodes = tuple(_whole_node(node) if has_all else node for node in facts.case.before.nodes if node.pool == pool)
    return Room(Snapshot(nodes=nodes, topologies=facts.case.before.topologies))


def _whole_node(node: Node) -> Node:
    devices = tuple(
        replace(one, withheld=None, memory_mib=one.memory_mib + sum(use.mib for use in one.foreign))
        for one in node.devices
    )
    return replace(node, is_ready=True, is_cordoned=False, is_drained=False, devices=devices)


def _plain(workload: Workload, pods: list[Pod], *, keeps_near: bool = False) -> tuple[Workload, list[Pod]]:
    """The same without its wishes about other pods, and about domains."""
    bare = [replace(pod, request=_unsocial(pod.request)) for pod in pods]
    if keeps_near:
        return replace(workload, pods=tuple(bare)), bare
    ids = {pod.id for pod in pods}
    return replace(workload, gang=Group("", len(ids)), near=None, pods=tuple(bare)), bare


def _unsocial(request: PodRequest) -> PodRequest:
    return replace(request, affinity=(), anti_affinity=(), spread=())


def _larger_than_node(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    empty = _whole(facts, workload, has_all=True)
    plain, bare = _plain(workload, pods)
    if all(facts.fits(plain, [pod], (empty,)) is not False for pod in bare):
        return "each pod of it fits on a node of the pool if that is empty"
    return None


def _larger_than_pool(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    plain, bare = _plain(workload, pods)
    fits = facts.fits(plain, bare, (_whole(facts, workload, has_all=True),))
    return "the pool could hold it" if fits else None


def _unavailable(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    """Of all pods together, or of one of them."""
    faults = [_unavailable_to(facts, workload, some) for some in (pods, *([pod] for pod in pods))]
    return faults[0] if all(faults) else None


def _unavailable_to(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    plain, bare = _plain(workload, pods)
    if facts.fits(plain, bare, (_whole(facts, workload, has_all=False),)):
        nodes = [node for node in _whole(facts, workload, has_all=False).nodes.values() if room.is_usable(node)]
        nodes = [node for node in nodes if any(room.is_chosen(node, pod.request) for pod in pods)]
        is_full = all(min(facts.held.left_of(one)["pods"], facts.later.left_of(one)["pods"]) < 1 for one in nodes)
        return None if is_full else "what takes work could hold it"
    fits = facts.fits(plain, bare, (_whole(facts, workload, has_all=True),))
    return "nothing that is there could hold it" if fits is False else None


def _closed(effect: str) -> Judge:
    def judge(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
        nodes = [node for node in facts.case.before.nodes if node.pool == _first_pool(facts, workload)]
        if all(any(room.is_chosen(node, pod.request) for node in nodes) for pod in pods):
            return "a node lets each of its pods in"
        is_selected = [node for node in nodes for pod in pods if room.is_selected(node, pod.request)]
        tainted = [
            node
            for node in nodes
            for pod in pods
            if not room.is_chosen(node, replace(pod.request, nodes=None, node_labels=()))
        ]
        if effect == "taint":
            return None if tainted else "no taint keeps it off"
        return None if len(is_selected) < len(nodes) * len(pods) else "every node is one that it selects"

    return judge


def _topology(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    required = [one for one in gangs.groups_of(workload.root) if one.near is not None and one.near.required is not None]
    if not required:
        return "it requires no domain"
    return "it fits together" if _fits_now(facts, workload, pods) else None


def _affinity(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    if _fits_now(facts, workload, pods):
        return "other pods let it in"
    others = any(hold.pod.request.is_social for hold in facts.counted)
    return None if others or any(pod.request.is_social for pod in pods) else "no pod has a rule about others"


def _no_room(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    """Its pods do not fit now."""
    return "it has room" if _fits_now(facts, workload, pods) else None


def _fits_now(facts: Facts, workload: Workload, pods: list[Pod]) -> bool:
    """Whether there is room for it in the first of its pools, or in another where its queue may have that, too."""
    after = facts.after(workload)
    for pool in (after.pool, *after.fallback_pools):
        here = replace(after, pool=pool, fallback_pools=())
        if not facts.fits(here, pods, (facts.held, facts.later)):
            continue
        asked = amounts.asked(facts.case.before, here, pool, pods)
        is_over = _over(facts, workload, pool, asked, lambda claim: claim.limit) or _over_quota(
            facts, workload, pool, pods
        )
        if pool == after.pool or not is_over:
            return True
    return False


def _no_device(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    """Devices are short for some pod of it in its first pool, whatever else is."""
    found = _no_room(facts, workload, pods)
    if found:
        return found
    asking = [pod for pod in pods if pod.request.gpu is not None]
    fits = [_has_devices(facts, workload, pod) for pod in asking]
    return "for each pod of it a node has such devices free" if all(fits) else None


def _has_devices(facts: Facts, workload: Workload, pod: Pod) -> bool:
    plain, one = _plain(workload, [replace(pod, request=PodRequest(pod.request.gpu))])
    chosen = {node.id for node in facts.case.before.nodes if room.is_chosen(node, pod.request)}
    nodes = tuple(replace(node, taints=(), max_pods=10_000) for node in facts.case.before.nodes if node.id in chosen)
    here = Snapshot(nodes=nodes)
    rooms = tuple(Room(here, [hold for hold in of.holds() if hold.node in chosen]) for of in (facts.held, facts.later))
    plain = replace(plain, pool=_first_pool(facts, workload), fallback_pools=())
    return bool(facts.fits(plain, one, rooms))


def _fragmented(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    return _no_room(facts, workload, pods)


def _short_of(name: ResourceName) -> Judge:
    def judge(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
        pool = _first_pool(facts, workload)
        nodes = [one for one in facts.case.before.nodes if one.pool == pool]
        nodes = [one for one in nodes if room.is_usable(one)]
        asked = pods[0].request.milli_cpus if name == "cpu" else pods[0].request.memory_bytes
        chosen = [one for one in nodes if room.is_chosen(one, pods[0].request)]
        free = [min(facts.held.left_of(one)[name], facts.later.left_of(one)[name]) for one in chosen]
        return None if asked > max(free, default=0) else "one node has that much free"

    return judge


def _short_of_others(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    if not any(pod.request.resources or pod.request.host_ports for pod in pods):
        return "it asks for no other resource"
    return _no_room(facts, workload, pods)


def _gang(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    if len(pods) < 2:
        return "it waits for one pod"
    return _no_room(facts, workload, pods)


def _release(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    fits = facts.fits(facts.after(workload), pods, (facts.later,))
    return "it will not fit when what ends has ended" if fits is False else None


def _behind(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    if not facts.case.promised:
        return "nothing is promised"
    fits = [facts.fits(facts.after(workload), pods, (one,)) for one in (facts.held, facts.unpromised)]
    return "it would not fit without the promises either" if fits == [False, False] else None


def _over_share(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    pool = _first_pool(facts, workload)
    asked = amounts.asked(facts.case.before, replace(workload, pool=pool, fallback_pools=()), pool, pods)
    levels = amounts.levels(facts.case.before, facts.case.later_held, pool)
    share = facts.case.dues[pool].share
    is_over = any(
        asked[name] and levels[queue.id][name] + asked[name] > share[queue.id][name] - ROUNDING
        for queue in amounts.chain(facts.case.before, workload.queue)
        for name in RESOURCES
    )
    return None if is_over else "it stays within its fair share"


def _delayed(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    if workload.created + workload.preemption_delay <= facts.case.now:
        return "its delay is over"
    return _no_room(facts, workload, pods)


def _protected(facts: Facts, workload: Workload, pods: list[Pod]) -> str | None:
    def is_protected(hold: Hold) -> bool:
        is_same = hold.workload.queue == workload.queue
        for queue in amounts.chain(facts.case.before, hold.workload.queue):
            span = queue.preempt_min_runtime if is_same else queue.reclaim_min_runtime
            if span is not None:
                return hold.workload.started is not None and facts.case.now < hold.workload.started + span
        return False

    if not any(is_protected(hold) for hold in facts.case.running):
        return "nothing that runs is protected"
    return _no_room(facts, workload, pods)


_JUDGES: dict[Code, Judge] = {
    Code.POOL_EMPTY: _pool_empty,
    Code.QUEUE_LIMIT: _limit,
    Code.NON_PREEMPTIBLE_OVER_QUOTA: _quota,
    Code.LARGER_THAN_ANY_NODE: _larger_than_node,
    Code.LARGER_THAN_POOL: _larger_than_pool,
    Code.NODE_UNAVAILABLE: _unavailable,
    Code.DEVICE_IN_USE: _unavailable,
    Code.TAINT: _closed("taint"),
    Code.SELECTOR: _closed("selector"),
    Code.TOPOLOGY: _topology,
    Code.AFFINITY: _affinity,
    Code.SHARING_MODE: _no_device,
    Code.NO_FREE_DEVICE: _no_device,
    Code.NO_DEVICE_FITS: _no_device,
    Code.FRAGMENTED: _fragmented,
    Code.GANG_INCOMPLETE: _gang,
    Code.NO_FREE_CPU: _short_of("cpu"),
    Code.NO_FREE_MEMORY: _short_of("memory"),
    Code.NO_FREE_RESOURCE: _short_of_others,
    Code.WAITING_FOR_RELEASE: _release,
    Code.BEHIND: _behind,
    Code.OVER_FAIR_SHARE: _over_share,
    Code.PREEMPTION_DELAY: _delayed,
    Code.PROTECTED_MIN_RUNTIME: _protected,
}

LAWS: tuple[Callable[[Case], int], ...] = (every_reason_is_true,)
