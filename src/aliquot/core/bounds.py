"""Sound "no"s by counting: what is refused here cannot be placed in any way; what is not may still find no place.

Rules about which pods may be near each other are left out: they only make it harder.
"""

from collections.abc import Iterable, Sequence

from aliquot.core import rooms
from aliquot.core.model import WHOLE_DEVICE_MILLI, PodRequest
from aliquot.core.placement import Placer
from aliquot.core.rooms import NodeRoom, View
from aliquot.core.snapshot import Pool


def is_too_much(placer: Placer, pool: Pool, requests: Sequence[PodRequest], view: View = "now") -> bool:
    """Whether pods with these requests cannot all have a place: too many of one kind, or more of something in all than
    all nodes have free together."""
    world = placer.world
    kinds: dict[int, int] = {}
    for request in requests:
        kind = world.kind_of(request)
        kinds[kind] = kinds.get(kind, 0) + 1
    if any(placer.count(pool, kind, view) < pods for kind, pods in sorted(kinds.items())):
        return True
    asked = _asked(requests)
    free = _free(pool.usable, asked, view)
    free["mib"] -= _least_of_whole(pool.usable, requests)
    return any(amount > free[name] for name, amount in asked.items())


def _asked(requests: Iterable[PodRequest]) -> dict[str, int]:
    """What pods ask for together, by name: what is not asked is left out."""
    total: dict[str, int] = {}
    for request in requests:
        gpu = request.gpu
        parts = [("cpu", request.milli_cpus), ("memory", request.memory_bytes), ("pods", 1)]
        parts += rooms.others_of(request)
        if gpu is not None and gpu.profile is None:
            parts.append(("compute", gpu.devices * (WHOLE_DEVICE_MILLI if gpu.is_whole else gpu.compute)))
            parts.append(("mib", gpu.devices * (gpu.mib or 0)))
        for name, amount in parts:
            if amount:
                total[name] = total.get(name, 0) + amount
    return total


def _least_of_whole(nodes: Iterable[NodeRoom], requests: Iterable[PodRequest]) -> int:
    """The least memory that is left to no share, as whole devices take all of theirs."""
    whole = sum(one.gpu.devices for one in requests if one.gpu is not None and one.gpu.is_whole)
    if not whole:
        return 0
    sizes = sorted(room.device.memory_mib for node in nodes for room in node.devices if room.is_usable)
    return sum(sizes[:whole])


def _free(nodes: Iterable[NodeRoom], names: Iterable[str], view: View) -> dict[str, int]:
    """What all nodes have of this together."""
    others = [name for name in names if name not in ("cpu", "memory", "pods", "compute", "mib")]
    total = dict.fromkeys(("cpu", "memory", "pods", "compute", "mib", *others), 0)
    for node in nodes:
        for index, name in enumerate(("cpu", "memory", "pods")):
            total[name] += max(0, node.free(index, view))
        for name in others:
            total[name] += max(0, node.free_other(name, view))
        for room in node.devices if node.is_usable else ():
            mib, milli = room.free(view)
            total["compute"] += max(0, milli) if room.is_usable else 0
            total["mib"] += max(0, mib) if room.is_usable else 0
    return total
