"""Sound "no"s by counting: what is refused here cannot be placed in any way; what is not may still find no place.

Rules about which pods may be near each other are left out: they only make it harder.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from aliquot.core import gang, rooms
from aliquot.core.asks import Ask
from aliquot.core.model import WHOLE_DEVICE_MILLI, Group, Pod, PodRequest
from aliquot.core.placement import Placer, Rows
from aliquot.core.rooms import NodeRoom, View
from aliquot.core.snapshot import Pool


def is_too_far_apart(placer: Placer, ask: Ask, pods: Sequence[Pod], group: Group) -> bool:
    """Whether a group of a gang, or one in it, has to be in one domain, and each is too small for these pods of it."""
    leaves = set(gang.leaves_of(group))
    own = [pod for pod in pods if gang.leaf_of(ask.workload, pod) in leaves]
    near = group.near
    if own and near is not None and near.required is not None:
        pool = placer.world.pools[ask.pool]
        requests = [pod.request for pod in own]
        domains = pool.domains.at(near.topology, near.required).values()
        if all(is_too_much(placer, pool, requests, rows=np.array(rows, np.intp)) for rows in domains):
            return True
    return any(is_too_far_apart(placer, ask, pods, child) for child in group.groups)


def is_too_much(
    placer: Placer, pool: Pool, requests: Sequence[PodRequest], view: View = "now", *, rows: Rows | None = None
) -> bool:
    """Whether pods with these requests cannot all have a place: too many of one kind, or more of something in all than
    all nodes, or those in these rows, have free together."""
    world = placer.world
    kinds: dict[int, int] = {}
    for request in requests:
        kind = world.kind_of(request)
        kinds[kind] = kinds.get(kind, 0) + 1
    if any(placer.count(pool, kind, view, rows) < pods for kind, pods in sorted(kinds.items())):
        return True
    asked = _asked(requests)
    nodes = pool.usable if rows is None else _in_rows(pool, rows)
    free = _free(nodes, asked, view)
    free["mib"] -= _least_of_whole(nodes, requests)
    return any(amount > free[name] for name, amount in asked.items())


def _in_rows(pool: Pool, rows: Rows) -> list[NodeRoom]:
    return [node for row in rows.tolist() if (node := pool.nodes[row]).is_usable]


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
