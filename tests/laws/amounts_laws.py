"""Laws of room and amounts: nothing is over-used, every place is one that was asked for, no term is passed."""

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import permutations

from aliquot.core.model import RESOURCES, Claim, Device, Node, PodState, Share, Snapshot, Workload
from tests.laws import amounts, gangs, room
from tests.laws.case import Case
from tests.laws.room import Hold, Room

ROUNDING = 4
"""What is due is rounded down to whole units at each level of the tree; the laws know only fractions."""


def nothing_is_overused(case: Case) -> int:
    """No device and no node ever holds more than it has; what is promised fits when it falls due."""
    known = set(Room(case.before, [*case.running, *case.releasing]).overused())
    wrong = [one for one in Room(case.before, case.now_held).overused() if one not in known]
    if wrong:
        raise case.broken("nothing-is-overused", f"more is held than there is: {wrong}")
    for holds in laters(case):
        wrong = [one for one in Room(case.before, holds).overused() if one not in known]
        if wrong:
            raise case.broken("nothing-is-overused", f"more is promised than there will be: {wrong}")
    return len(case.now_held)


def held_at(case: Case, due: datetime) -> list[Hold]:
    """What holds places when the promises that fall due then, or before, are kept: what ends by its stated run time is
    gone, and what a promise waits for."""
    promises = [one for one in case.plan.nominates if one.due <= due]
    gone = {pod for one in promises for pod in one.waits_for} | case.evicted
    taken = {place.pod for one in promises for place in one.places}
    bound = {hold.pod.id for hold in case.bound}
    staying = [*case.running, *case.bound]
    return [
        *(
            hold
            for hold in staying
            if hold.pod.id not in gone and not _ends(case, hold, due, is_new=hold.pod.id in bound)
        ),
        *(hold for hold in case.stuck if hold.pod.id not in gone),
        *(hold for hold in case.promised if hold.pod.id in taken),
    ]


def laters(case: Case) -> list[list[Hold]]:
    """What holds places each time that promises fall due."""
    return [held_at(case, due) for due in sorted({one.due for one in case.plan.nominates})]


def _ends(case: Case, hold: Hold, due: datetime, *, is_new: bool) -> bool:
    span, started = hold.workload.max_run_time, hold.workload.started
    start = case.now if is_new and not _runs(case, hold) else started
    return span is not None and start is not None and start + span <= due


def _runs(case: Case, hold: Hold) -> bool:
    return any(one.workload.id == hold.workload.id for one in case.running)


def places_are_legal(case: Case) -> int:
    """Who starts or is promised a place is pending, and the place is one that it asked for: node, devices, shares."""
    seen: set[str] = set()
    for hold in (*case.bound, *case.promised):
        id = hold.pod.id
        is_moved = id in case.evicted
        if id in seen:
            raise case.broken("places-are-legal", f"{id} gets two places")
        seen.add(id)
        is_kept = hold.pod.state is PodState.RELEASING and hold in case.promised
        if not is_moved and not is_kept and hold.pod.node is not None:
            raise case.broken("places-are-legal", f"{id} gets a place and has one")
        fault = _fault_of_place(case, hold)
        if fault:
            raise case.broken("places-are-legal", f"{id} on {hold.node} with {hold.shares}: {fault}")
    if len(case.bound) != len(case.plan.binds) or len(case.promised) != sum(
        len(one.places) for one in case.plan.nominates
    ):
        raise case.broken("places-are-legal", "a place is for a pod that is not there")
    return len(seen)


def _fault_of_place(case: Case, hold: Hold) -> str | None:
    node = next((one for one in case.before.nodes if one.id == hold.node), None)
    workload, request = hold.workload, hold.pod.request
    if node is None:
        return "there is no such node"
    if not node.is_ready or node.is_cordoned or node.is_drained:
        return "nothing new may start there"
    if node.pool not in (workload.pool, *workload.fallback_pools):
        return "it is in no pool of it"
    if hold.pod.unmet or not room.is_chosen(node, request):
        return "a taint, a selector or something unmet keeps it off"
    if len({share.device for share in hold.shares}) != (request.gpu.devices if request.gpu else 0):
        return "these are not as many devices as it asked for"
    devices = {one.id: one for one in node.devices}
    faults = [_fault_of_share(share, devices.get(share.device), hold) for share in hold.shares]
    return next((one for one in faults if one is not None), None)


def _fault_of_share(share: Share, device: Device | None, hold: Hold) -> str | None:
    gpu = hold.pod.request.gpu
    if device is None or gpu is None:
        return f"{share.device} is not a device there"
    empty = Room(_alone(device))
    options = empty.offers(device, gpu)
    alike = [(one.milli, one.mib, one.start) for one in options]
    if (share.milli, share.mib, share.start) not in alike:
        return f"of {device.id} it would be one of {alike}"
    return None


def _alone(device: Device) -> Snapshot:
    return Snapshot(nodes=(Node("alone", 0, 0, (device,)),))


def neighbours_bear_each_other(case: Case) -> int:
    """Each pod that starts finds its friends near and no foe: in the order of the plan, or some order within a gang."""
    there = Room(case.before, [*case.running, *case.releasing])
    count = 0
    for group in _bound_groups(case):
        if any(hold.pod.request.labels or hold.pod.request.is_social for hold in group):
            count += 1
            if not any(_seats(there, order) for order in permutations(group)):
                named = [(hold.pod.id, hold.node) for hold in group]
                raise case.broken("neighbours-bear-each-other", f"{named} start where others are, or are not, near")
        for hold in group:
            there.add(hold)
    for holds in laters(case):
        _no_foes(case, holds)
    return count


def _bound_groups(case: Case) -> list[list[Hold]]:
    groups: list[list[Hold]] = []
    for hold in case.bound:
        if groups and groups[-1][0].workload.id == hold.workload.id and len(groups[-1]) < 6:
            groups[-1].append(hold)
        else:
            groups.append([hold])
    return groups


def _seats(there: Room, order: Iterable[Hold]) -> bool:
    seated: list[Hold] = []
    is_fine = True
    for hold in order:
        if not there.is_sociable(there.nodes[hold.node], hold.pod.request):
            is_fine = False
            break
        there.add(hold)
        seated.append(hold)
    for hold in seated:
        there.remove(hold)
    return is_fine


def _no_foes(case: Case, holds: list[Hold]) -> None:
    """When all that ends has ended no two that are new to each other are foes."""
    new = {hold.pod.id for hold in (*case.bound, *case.promised)}
    for hold in holds:
        others = Room(case.before, [one for one in holds if one is not hold])
        node = others.nodes.get(hold.node)
        if node is None or hold.pod.id not in new or not hold.pod.request.is_social:
            continue
        terms = hold.pod.request.anti_affinity
        if any(others.meets(node, term, hold.pod.request.namespace) for term in terms):
            raise case.broken("neighbours-bear-each-other", f"{hold.pod.id} would be beside a foe on {hold.node}")


def no_limit_is_passed(case: Case) -> int:
    """No queue holds more than its limit; where the limit was lowered below, it holds no more than before."""
    before = [*case.running, *case.releasing]
    _refuse_over(case, "no-limit-is-passed", before, [case.now_held, *laters(case)], lambda claim: claim.limit)
    return sum(terms.gpu.limit is not None for queue in case.before.queues for terms in queue.terms.values())


def fixed_work_stays_within_quota(case: Case) -> int:
    """Work that is not preemptible uses quota only."""

    def fixed(holds: list[Hold]) -> list[Hold]:
        return [hold for hold in holds if amounts.is_fixed(hold, holds)]

    before = fixed([*case.running, *case.releasing])
    after = [fixed(case.now_held), *(fixed(holds) for holds in laters(case))]
    _refuse_over(case, "fixed-work-stays-within-quota", before, after, lambda claim: claim.quota)
    return len(after[0])


def _refuse_over(
    case: Case, law: str, before: list[Hold], after: Iterable[list[Hold]], bound: Callable[[Claim], int | None]
) -> None:
    """A promise that stood before counts as held before: it waits for its limit to be raised again, or expires."""
    kept = {(one.workload, place) for one in case.before.promises for place in one.places}
    old = [
        hold
        for one in case.plan.nominates
        for hold in room.at_places(
            case.workloads[one.workload], [place for place in one.places if (one.workload, place) in kept]
        )
    ]
    for pool in sorted(set(case.pool_of.values())):
        at_first = amounts.levels(case.before, [*before, *old], pool)
        for levels in [amounts.levels(case.before, holds, pool) for holds in after]:
            _refuse_levels(case, law, pool, levels=(at_first, levels), bound=bound)


def _refuse_levels(
    case: Case,
    law: str,
    pool: str,
    *,
    levels: tuple[dict[str, amounts.Vector], dict[str, amounts.Vector]],
    bound: Callable[[Claim], int | None],
) -> None:
    old, new = levels
    for queue in case.before.queues:
        for name in RESOURCES:
            most = bound(amounts.claim(queue, pool, name))
            held = new[queue.id][name]
            if most is not None and held > max(most, old[queue.id][name]):
                raise case.broken(law, f"{queue.id} would hold {held} {name} of {most} in {pool}")


def gangs_are_whole(case: Case) -> int:
    """A gang starts whole or not at all, in the domains it requires, and none is left below its minimum by a move."""
    for workload in case.workloads.values():
        before = gangs.standing(workload)
        now = {hold.pod.id for hold in case.bound if hold.workload.id == workload.id}
        then = {hold.pod.id for hold in case.promised if hold.workload.id == workload.id}
        staying = gangs.standing(workload, without=case.evicted)
        was_whole = not gangs.broken_groups(workload, before)
        for what, pods in (("starts", staying | now), ("would start", staying | now | then)):
            started = now if what == "starts" else now | then
            wrong = _newly_broken(workload, before, staying, started)
            if wrong and (started or (was_whole and len(staying) < len(before))):
                raise case.broken(
                    "gangs-are-whole", f"{workload.id} {what} with {sorted(pods)}: {wrong} is below its minimum"
                )
        _refuse_strays(case, workload.id, bool(now), bool(then))
    return len({hold.workload.id for hold in case.bound})


def _newly_broken(workload: Workload, before: frozenset[str], staying: frozenset[str], started: set[str]) -> list[str]:
    """The groups below their minimum, but for those that were so before and that the plan leaves alone."""
    old = {
        one.name
        for one in gangs.groups_of(workload.root)
        if one.name in gangs.broken_groups(workload, before)
        and not started & {pod.id for pod in gangs.pods_in(workload, one)}
    }
    return [name for name in gangs.broken_groups(workload, staying | started) if name not in old]


def _refuse_strays(case: Case, id: str, has_bound: bool, has_promised: bool) -> None:  # noqa: FBT001
    workload = case.workloads[id]
    if not has_bound and not has_promised:
        return
    old = gangs.strays(Room(case.before, case.running), workload)
    staying = [hold for hold in case.running if hold.pod.id not in case.evicted]
    wrong = gangs.strays(Room(case.before, [*staying, *case.of(id)]), workload)
    if set(wrong) - set(old):
        places = [(hold.pod.id, hold.node) for hold in case.of(id)]
        raise case.broken("gangs-are-whole", f"{id} at {places}: {wrong} leaves the domain that it requires")
    pools = {case.pool_of.get(hold.node) for hold in case.of(id)}
    if len(pools) > 1:
        raise case.broken("gangs-are-whole", f"{id} is placed in several pools: {sorted(map(str, pools))}")


def shares_are_exact(case: Case) -> int:
    """Children never have more than their parent, and every share is what the rules say, but for rounding."""
    for (pool, id), found in case.plan.fair_share.items():
        children = [one.id for one in case.before.queues if one.parent == id]
        for name in RESOURCES:
            below = [case.plan.fair_share[pool, one].of(name) for one in children]
            if sum(below) > found.of(name):
                raise case.broken("shares-are-exact", f"below {id} are {below} {name} of {found.of(name)} in {pool}")
            exact = case.dues[pool].share[id][name]
            if abs(found.of(name) - exact) > ROUNDING:
                raise case.broken(
                    "shares-are-exact", f"{id} has {found.of(name)} {name} in {pool}, due are {float(exact)}"
                )
    return len(case.plan.fair_share)


def everyone_is_told(case: Case) -> int:
    """Who has pods that neither start nor run is told why, once; positions count from 1."""
    pending = {one.id for one in case.workloads.values() if any(pod.state.value == "pending" for pod in one.pods)}
    bound = {hold.pod.id for hold in case.bound}
    left = {
        one.id
        for one in case.workloads.values()
        if any(pod.state.value == "pending" and pod.id not in bound for pod in one.pods)
    }
    told = [one.workload for one in case.plan.waits]
    if len(set(told)) < len(told):
        raise case.broken("everyone-is-told", f"somebody is told twice: {sorted(told)}")
    moved = {hold.workload.id for hold in case.promised}
    if not left <= set(told) or not set(told) <= pending | moved:
        raise case.broken("everyone-is-told", f"{sorted(left)} wait, reasons are given to {sorted(told)}")
    promised = {one.workload for one in case.plan.nominates} - {one.workload for one in case.plan.evicts}
    if not promised <= set(told):
        raise case.broken("everyone-is-told", f"{sorted(promised - set(told))} have promises and no reason")
    return len(told)


LAWS = (
    nothing_is_overused,
    places_are_legal,
    neighbours_bear_each_other,
    no_limit_is_passed,
    fixed_work_stays_within_quota,
    gangs_are_whole,
    shares_are_exact,
    everyone_is_told,
)
