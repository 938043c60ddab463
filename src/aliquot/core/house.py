"""The nodes and queues of a snapshot, which stay while work comes and goes: which changes of them a kept world can take
in where it stands.

Those are other terms of a queue, a hold, a name; and a node or a device that takes work or no longer does. After any
other change (a node is there or gone, offers more or less, has other labels) the world is built anew.
"""

from collections.abc import Sequence
from dataclasses import replace

from aliquot.core.model import Device, Node, Queue, Snapshot


def is_alike(before: Snapshot, after: Snapshot) -> bool:
    """Whether a world of the one can become a world of the other where it stands."""
    return (
        before.topologies == after.topologies
        and _is_same_tree(before.queues, after.queues)
        and len(before.nodes) == len(after.nodes)
        and all(_bare(was) == _bare(node) for was, node in _other(before.nodes, after.nodes))
    )


def other_queues(before: Snapshot, after: Snapshot) -> list[Queue]:
    """The queues that changed, as they are now."""
    if before.queues is after.queues:
        return []
    return [queue for was, queue in zip(before.queues, after.queues, strict=True) if was != queue]


def other_nodes(before: Snapshot, after: Snapshot) -> list[Node]:
    """The nodes that changed, as they are now."""
    return [node for _, node in _other(before.nodes, after.nodes)]


def emptied(snapshot: Snapshot, *, pool: str, whole: Sequence[str] = ("node", "device-in-use", "withheld")) -> Snapshot:
    """The pool with nothing in it. `whole` says what counts as there although nothing may start on it now: nodes that
    are cordoned or not ready, devices in use by others (and what others hold of them), devices withheld otherwise."""
    nodes = tuple(_whole_node(node, whole) for node in snapshot.nodes if node.pool == pool)
    return replace(snapshot, nodes=nodes, workloads=(), promises=())


def _is_same_tree(before: Sequence[Queue], after: Sequence[Queue]) -> bool:
    if before is after:
        return True
    return [(one.id, one.parent, one.order) for one in before] == [(one.id, one.parent, one.order) for one in after]


def _other(before: Sequence[Node], after: Sequence[Node]) -> list[tuple[Node, Node]]:
    if before is after:
        return []
    return [(was, node) for was, node in zip(before, after, strict=True) if was is not node and was != node]


def _bare(node: Node) -> Node:
    """What a node is, whether it takes work or not."""
    devices = tuple(_offered(device) for device in node.devices)
    return replace(node, devices=devices, is_ready=True, is_cordoned=False, is_drained=False, trouble="")


def _offered(device: Device) -> Device:
    return device if device.withheld is None else replace(device, withheld=None)


def _whole_node(node: Node, whole: Sequence[str]) -> Node:
    devices = tuple(_whole_device(device, whole) for device in node.devices)
    if "node" in whole:
        return replace(node, devices=devices, is_ready=True, is_cordoned=False, is_drained=False)
    return replace(node, devices=devices)


def _whole_device(device: Device, whole: Sequence[str]) -> Device:
    withheld, memory = device.withheld, device.memory_mib
    if "device-in-use" in whole:
        is_reduced = withheld is None
        memory += sum(use.mib for use in device.foreign) if is_reduced else 0
        withheld = None if withheld == "device-in-use" else withheld
    if "withheld" in whole and withheld != "device-in-use":
        withheld = None
    return replace(device, withheld=withheld, memory_mib=memory)
