"""The words of reasons: what is too large, what is short, who holds it, and what keeps a pod off."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aliquot.core import constraints, fitting, quota, rooms, wording
from aliquot.core.asks import Ask
from aliquot.core.cycle import Cycle
from aliquot.core.model import RESOURCES, Device, GpuRequest, Group, Node, Pod, PodRequest
from aliquot.core.placement import Placer
from aliquot.core.plan import Blocker, Code, Reason
from aliquot.core.rooms import Account, Holding, NodeRoom, Vector
from aliquot.core.snapshot import Pool, World

_SHORT_OF = {Code.NO_FREE_CPU: 1, Code.NO_FREE_MEMORY: 2}


def alone(request: PodRequest) -> PodRequest:
    """The request, whatever other pods are where."""
    return replace(request, affinity=(), anti_affinity=(), spread=(), labels=())


def fits_empty(placer: Placer, ask: Ask, requests: Sequence[PodRequest]) -> bool:
    """Whether pods with these requests fit a world with nothing in it, whatever the queue's terms."""
    pods = tuple(Pod(id=str(index), index=index, request=alone(request)) for index, request in enumerate(requests))
    return placer.place_alone(placer.world.make_ask(ask.workload, ask.pool, pods, is_core=True), "now") is not None


def kept_off(request: PodRequest, refusals: Sequence[tuple[str, Node]]) -> Reason:
    """No node lets pods with this request in."""
    tainted = sorted({constraints.describe(node, request) for refused, node in refusals if refused == "taint"})
    if tainted:
        return Reason(
            Code.TAINT,
            f"it does not tolerate what keeps pods off the nodes it may use: {'; '.join(tainted[:3])}",
            {"nodes": len(refusals)},
        )
    wanted = sorted({constraints.describe(node, request) for _, node in refusals})
    return Reason(Code.SELECTOR, f"no node is one that it asks for: {'; '.join(wanted[:3])}", {"nodes": len(refusals)})


def has_required(group: Group) -> bool:
    """Whether it has to be in one domain of some topology, as a whole or in part."""
    return (group.near is not None and group.near.required is not None) or any(
        has_required(child) for child in group.groups
    )


def required_level(group: Group) -> str:
    """The level that it, or the first group of it that has one, has to share."""
    if group.near is not None and group.near.required is not None:
        return group.near.required
    return next((required_level(child) for child in group.groups if has_required(child)), "")


def _other_mode(request: PodRequest, nodes: Sequence[NodeRoom]) -> Reason | None:
    """There is room, but on devices that are shared in another way than it requires."""
    gpu = request.gpu
    if gpu is None or gpu.sharing is None or not gpu.is_sharing_required:
        return None
    loose = replace(request, gpu=replace(gpu, is_sharing_required=False))
    able = [node for node in nodes if fitting.fit(node, loose, "now") is not None]
    if not able:
        return None
    return Reason(
        Code.SHARING_MODE,
        f"it requires {gpu.sharing}; every GPU with room for it is shared in another way",
        {"nodes": len(able)},
    )


def _unwelcome(ask: Ask, nodes: Sequence[NodeRoom]) -> Reason:
    """There is room for a pod, but not where the others of its gang, or other pods, let it be."""
    if has_required(ask.workload.root):
        level = required_level(ask.workload.root)
        return Reason(
            Code.TOPOLOGY,
            f"its pods must share one {level}; no {level} has room for them now",
            {"level": level, "pods": len(ask.pods)},
        )
    return Reason(
        Code.AFFINITY,
        f"{wording.plural(len(nodes), 'node')} with room {'are' if len(nodes) > 1 else 'is'} closed to it by the rules "
        "about which pods may be near each other",
        {"nodes": len(nodes)},
    )


def shortage(placer: Placer, ask: Ask, pool: Pool) -> Reason:
    """What there is too little of just now."""
    world = placer.world
    count = len(ask.requests)
    able = count_fitting(world, placer, ask)
    if able == count and (has_required(ask.workload.root) or any(one.is_social for one in ask.requests)):
        return _unwelcome(ask, pool.usable)
    if count > 1 and able > 0:
        return Reason(
            Code.GANG_INCOMPLETE,
            f"it starts its {count} pods at once or not at all; {able} would fit now",
            {"pods": count, "fitting": able},
        )
    request = ask.requests[0]
    nodes = [node for node in pool.usable if constraints.refusal(node.node, request) is None]
    if request.gpu is not None and not any(fitting.fit_devices(node, request.gpu, "now") for node in _open(nodes)):
        return _other_mode(request, nodes) or _short_of_devices(request.gpu, nodes)
    for code, index in _SHORT_OF.items():
        resource = RESOURCES[index]
        asked = (request.milli_cpus, request.memory_bytes)[index - 1]
        free, best = max((max(0, _free(node, index - 1)), node.node.id) for node in nodes)
        if asked > free:
            return Reason(
                code,
                f"needs {wording.amount(resource, asked)} on one node; the most that is free is "
                f"{wording.amount(resource, free)} on {best}",
                {"asked": asked, "free": free},
            )
    for name, amount in rooms.others_of(request):
        most_free, on = max((node.free_other(name, "now"), node.node.id) for node in nodes)
        if amount > most_free:
            return Reason(
                Code.NO_FREE_RESOURCE,
                f"needs {amount} of {name} on one node; the most that is free is {max(0, most_free)} on {on}",
                {"resource": name, "asked": amount, "free": max(0, most_free)},
            )
    with_room = [node for node in nodes if fitting.fit(node, request, "now") is not None]
    if with_room:
        return _unwelcome(ask, with_room)
    fullest = [node for node in nodes if _free(node, 2) > 0]
    if not fullest:
        most = max((node.node.max_pods, node.node.id) for node in nodes)
        return Reason(
            Code.NODE_UNAVAILABLE,
            f"every node that could take it runs as many pods as it may ({most[0]} on {most[1]})",
            {"maxPods": most[0]},
        )
    return Reason(
        Code.FRAGMENTED,
        "no one node has all that it needs free together, though each part is free somewhere",
        {"nodes": len(nodes)},
    )


def larger_than_any_node(request: PodRequest, pool: Pool) -> Reason:
    """Which amount of one pod is too large for every node of the pool, even when empty."""
    found = None if request.gpu is None else _larger_than_any_device(request.gpu, pool)
    asked = [
        ("cpu", request.milli_cpus, max(node.node.milli_cpus for node in pool.nodes)),
        ("memory", request.memory_bytes, max(node.node.memory_bytes for node in pool.nodes)),
    ]
    asked += [
        (name, amount, max(node.node.resources.get(name, 0) for node in pool.nodes))
        for name, amount in request.resources
    ]
    for name, amount, largest in asked:
        if found is None and amount > largest:
            found = Reason(
                Code.LARGER_THAN_ANY_NODE,
                f"needs {_said(name, amount)} on one node; the largest node of pool {pool.name} has "
                f"{_said(name, largest)}",
                {"resource": name, "asked": amount, "largest": largest},
            )
    return found or Reason(
        Code.LARGER_THAN_ANY_NODE,
        f"no one node of pool {pool.name} has all that a pod of it needs, even when empty",
        {"nodes": len(pool.nodes)},
    )


def _larger_than_any_device(gpu: GpuRequest, pool: Pool) -> Reason | None:
    """The same for what it asks of GPUs."""
    most = max(len(node.devices) for node in pool.nodes)
    if gpu.devices > most:
        return Reason(
            Code.LARGER_THAN_ANY_NODE,
            f"needs {wording.plural(gpu.devices, 'GPU')} on one node; the largest node of pool {pool.name} has {most}",
            {"resource": "gpu", "asked": gpu.devices, "largest": most},
        )
    devices = [room.device for node in pool.nodes for room in node.devices]
    able = [device for device in devices if constraints.suits(device, gpu)]
    if not able:
        return Reason(
            Code.LARGER_THAN_ANY_NODE,
            f"needs {wording.gpu(gpu)}; {_unsuited(gpu, devices)} of pool {pool.name}",
            {"resource": "gpu", "devices": len(devices), "suited": 0},
        )
    offered = max(device.memory_mib for device in able)
    if gpu.mib is not None and gpu.mib > offered:
        return Reason(
            Code.NO_DEVICE_FITS,
            f"needs {wording.gpu(gpu)}; the largest GPU of pool {pool.name} offers {offered} MiB",
            {"resource": "gpu", "asked": gpu.mib, "largest": offered},
        )
    return None


def _unsuited(gpu: GpuRequest, devices: Sequence[Device]) -> str:
    """What no device is, as the end of a sentence; the name of the pool follows."""
    if gpu.models and not any(device.model in gpu.models for device in devices):
        there = wording.names(sorted({device.model for device in devices}))
        return f"it accepts only {' or '.join(gpu.models)}, and there are {there} in the nodes"
    if gpu.profile is not None:
        return "there is no GPU for such an instance in the nodes"
    if gpu.min_device_mib:
        return f"no GPU with {gpu.min_device_mib} MiB or more that it may use is in the nodes"
    return "only MIG instances are offered by the nodes"


def _said(name: str, amount: int) -> str:
    """An amount of any resource."""
    if name == "cpu":
        return wording.amount("cpu", amount)
    return wording.amount("memory", amount) if name == "memory" else f"{amount} of {name}"


def over(code: Code, excess: quota.Excess, noun: str, what: str) -> Reason:
    """A term of a queue that would be passed."""
    kind = "project" if excess.account.is_leaf else "department"
    amount = wording.amount
    return Reason(
        code,
        f"{kind} {excess.account.queue.name} holds {amount(excess.resource, excess.held)}{what}, this asks "
        f"{amount(excess.resource, excess.asked)}, and the {noun} is {amount(excess.resource, excess.bound)}",
        {
            "queue": excess.account.queue.name,
            "resource": excess.resource,
            "held": excess.held,
            "asked": excess.asked,
            noun: excess.bound,
        },
    )


def _short_of_devices(gpu: GpuRequest, nodes: Sequence[NodeRoom]) -> Reason:
    """No node has the devices that one pod asks for free now."""
    free = sum(room.part("now") for node in _open(nodes) for room in node.devices)
    slots = [
        (sum(fitting.slot_on(room, gpu, "now") is not None for room in node.devices), node.node.id)
        for node in _open(nodes) or nodes[:1]
    ]
    best, best_node = max(slots, key=lambda one: one[0])
    total = sum(count for count, _ in slots)
    there = sum(room.is_usable for node in nodes for room in node.devices)
    needs = f"needs {wording.gpu(gpu)}"
    numbers = {"asked": gpu.devices, "largestFree": best, "free": total, "freeMilli": free}
    if total >= gpu.devices:
        return Reason(
            Code.FRAGMENTED, f"{needs} on one node; the most that is free on one is {best}, on {best_node}", numbers
        )
    if gpu.is_whole and free >= 1000 * gpu.devices:
        return Reason(
            Code.FRAGMENTED,
            f"{needs}; {total or 'none'} of {there} {_is(total)} wholly free, what is free lies in pieces of "
            f"{wording.amount('gpu', free)} together",
            numbers,
        )
    if gpu.is_whole or free == 0:
        return Reason(Code.NO_FREE_DEVICE, f"{needs}; {total or 'none'} of {there} {_is(total)} free", numbers)
    if gpu.profile is not None:
        return Reason(
            Code.NO_DEVICE_FITS, f"{needs}; no GPU has the memory slices for it free, one after the other", numbers
        )
    room = max(
        (room for node in nodes for room in node.devices if room.is_usable),
        key=lambda room: room.free("now"),
    )
    return Reason(
        Code.NO_DEVICE_FITS,
        f"{needs}; the best single GPU, {room.device.id}, has {max(0, room.free('now')[0])} of its "
        f"{room.device.memory_mib} MiB free",
        numbers | {"bestFreeMib": max(0, room.free("now")[0])},
    )


def count_fitting(world: World, placer: Placer, ask: Ask) -> int:
    """How many of its pods would find a place now."""
    mark = world.mark()
    count = 0
    for pod in ask.pods:
        found = placer.best(world.pools[ask.pool], pod.request, "now")
        if found is None:
            break
        world.hold(placer.at(ask, pod, node=found[0], slots=found[1]))
        count += 1
    world.rollback(mark)
    return count


def _open(nodes: Sequence[NodeRoom]) -> list[NodeRoom]:
    """The nodes with some memory of a device left: on no other is there room for a share."""
    return [node for node in nodes if any(room.idle_mib > 0 and room.future_mib > 0 for room in node.devices)]


def _free(node: NodeRoom, index: int) -> int:
    return min(node.idle[index], node.future[index])


@dataclass(frozen=True, slots=True)
class Held:
    """Who holds some of a resource in a pool: how many, the oldest of them, and by queue, of those that may be
    evicted, the accounts in which it counts."""

    count: int
    blockers: tuple[Blocker, ...]
    preemptible: Mapping[str, Sequence[Account]]


def held(cycle: Cycle, pool: Pool, index: int, *, most: int) -> Held:
    """Who holds some of a resource in a pool, as the cycle leaves it; `most` so many are named."""
    world = cycle.world
    queues = [world.held_by(pool.name, queue) for queue in world.holder_queues(pool.name)]
    running = [found.holding(index) for found in queues if found is not None]
    ending: dict[str, list[Holding]] = {}
    for one in world.releasing():
        ending.setdefault(one.workload.id, []).append(one)
    others = [
        group
        for group in (*ending.values(), *cycle.bound.values())
        if group[0].node is not None
        and group[0].node.node.pool == pool.name
        and any(holding.charge[index] for holding in group)
    ]
    oldest = [entry.running for entries in running for entry in entries[:most]] + others
    oldest.sort(key=lambda group: (group[0].workload.created, group[0].workload.id))
    movable = [next((one.running for one in entries if one.workload.is_preemptible), None) for entries in running]
    movable += [group for group in others if group[0].workload.is_preemptible]
    preemptible = {group[0].workload.queue: group[0].accounts for group in movable if group is not None}
    return Held(
        sum(len(entries) for entries in running) + len(others),
        tuple(blocker(group, index) for group in oldest[:most]),
        preemptible,
    )


def blocker(holdings: Sequence[Holding], index: int) -> Blocker:
    """A workload that holds some of what is short."""
    workload, resource = holdings[0].workload, RESOURCES[index]
    total = sum(holding.charge[index] for holding in holdings)
    return Blocker(workload.id, f"{workload.name} holds {wording.amount(resource, total)}")


def numbers(prefix: str, amounts: Vector) -> dict[str, int | str]:
    """Amounts as numbers of a reason."""
    names = {"gpu": "MilliGpus", "cpu": "MilliCpus", "memory": "MemoryBytes"}
    return {prefix + names[resource]: amounts[index] for index, resource in enumerate(RESOURCES) if amounts[index]}


def _is(count: int) -> str:
    return "are" if count > 1 else "is"


def state(node: NodeRoom) -> str:
    """Why nothing new starts on a node."""
    if node.node.is_ready:
        return "drained" if node.node.is_drained else "cordoned"
    return f"not ready: {node.node.trouble}" if node.node.trouble else "not ready"
