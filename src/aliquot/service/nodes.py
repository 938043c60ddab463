"""Nodes and devices: what there is, who holds it, and what takes nothing new."""

from collections.abc import Callable, Sequence

from aliquot.core import errors
from aliquot.core.model import Device, Node
from aliquot.service import access, audit, find, mirror, paging, ports, records, views
from aliquot.wire import base
from aliquot.wire import nodes as shapes

_NODES = paging.Listable(filters=("pool",), sorts={"id": "id"}, order=("id",))
_DEVICES = paging.Listable(filters=("node", "model"), sorts={"node": "node", "index": "index"}, order=("node",))


class Nodes:
    """The use cases of nodes, devices and cordons."""

    def __init__(
        self,
        store: ports.Store,
        cluster: ports.Cluster,
        seen: mirror.Mirror,
        *,
        clock: ports.Clock,
        ids: ports.Ids,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._mirror = seen
        self._clock = clock
        self._journal = audit.Journal(clock, ids)

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.NodeView]:
        """The nodes. Filters: pool. Sort: id."""
        access.check(actor, "list", "node")
        paging.check(request, _NODES)
        pool = request.filters.get("pool")
        nodes = [node for node in await self._cluster.nodes() if pool is None or node.pool == pool]
        nodes.sort(key=lambda node: node.id, reverse="-id" in request.sort)
        pods = (await self._mirror.look()).pods_by_node
        return paging.part(nodes, request, lambda node: views.node(node, pods.get(node.id, ())))

    async def get(self, actor: access.Actor, ref: str) -> shapes.NodeView:
        """One node by its id."""
        access.check(actor, "get", "node")
        nodes = {node.id: node for node in await self._cluster.nodes()}
        if ref not in nodes:
            raise errors.NotFound(f"there is no node {ref!r}", field="node", valid=find.near_names(ref, sorted(nodes)))
        return views.node(nodes[ref], (await self._mirror.look()).pods_by_node.get(ref, ()))

    async def devices(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.DeviceView]:
        """The devices with their holders. Filters: node, model. Sort: node, index."""
        access.check(actor, "list", "device")
        paging.check(request, _DEVICES)
        nodes = await self._cluster.nodes()
        use = (await self._cluster.facts()).use
        sight = await self._mirror.look()

        def show(found: tuple[Node, Device]) -> shapes.DeviceView:
            node, device = found
            return views.device(views.Place(node.id, device), _holders(sight, *found), use.get(device.id))

        return paging.part(_devices(nodes, request), request, show)

    async def cordon(self, actor: access.Actor, target: str) -> shapes.Cordon:
        """Nothing new starts there. `target`: a node's id, a device's UUID, its index (one node), or node/index."""
        access.check(actor, "cordon", "device")
        noun, id, name = _resolve(await self._cluster.nodes(), target)
        row = records.CordonRow(id, actor.name, self._clock.now())

        def work(tx: ports.Transaction) -> records.CordonRow:
            before = tx.cordons.get(id)
            if before is not None:
                return before
            tx.cordons.put(row)
            noted = audit.Noted("cordoned", f"was cordoned by {actor.name}: nothing new starts there", name)
            self._journal.record(tx, actor, change=audit.Change("cordon", noun, id), noted=noted)
            return row

        found = await self._write(work)
        return shapes.Cordon(target=found.id, actor=found.actor, since=found.since)

    async def uncordon(self, actor: access.Actor, target: str) -> None:
        """It takes work again. Raises NotFound if it was not cordoned."""
        access.check(actor, "uncordon", "device")
        nodes = await self._cluster.nodes()
        # A device that is gone can still be cordoned, and is named by its UUID then.
        is_kept = await self._store.read(lambda tx: tx.cordons.get(target) is not None)
        noun, id, name = ("device", target, target) if is_kept else _resolve(nodes, target)
        if any(node.id == id for node in nodes):
            noun = "node"

        def work(tx: ports.Transaction) -> None:
            if tx.cordons.get(id) is None:
                kept = sorted(row.id for row in tx.cordons.find())
                raise errors.NotFound(f"{name} is not cordoned", field="target", valid=kept)
            tx.cordons.delete(id)
            noted = audit.Noted("uncordoned", f"takes work again, says {actor.name}", name)
            self._journal.record(tx, actor, change=audit.Change("uncordon", noun, id), noted=noted)

        await self._write(work)

    async def _write(self, work: Callable[[ports.Transaction], ports.Result]) -> ports.Result:
        result = await self._store.write(work)
        self._cluster.wake()
        return result


def _holders(sight: mirror.Sight, node: Node, device: Device) -> list[shapes.DeviceHolder]:
    found: list[shapes.DeviceHolder] = []
    for pod in sight.pods_by_node.get(node.id, ()):
        if any(share.device == device.id for share in pod.shares):
            row = sight.workloads.get(pod.workload)
            project = "" if row is None else sight.name(row.project)
            found.append(views.holder(pod, device.id, row, project=project))
    return found


def _devices(nodes: Sequence[Node], request: paging.ListRequest) -> list[tuple[Node, Device]]:
    """The devices that match, in the order that is asked for, else by node and index."""
    node, model = request.filters.get("node"), request.filters.get("model")
    found = [
        (one, device)
        for one in sorted(nodes, key=lambda one: one.id)
        if node is None or one.id == node
        for device in sorted(one.devices, key=lambda device: device.index)
        if model is None or model.lower() in device.model.lower()
    ]
    for name in reversed(request.sort):
        is_down = name.startswith("-")
        if name.removeprefix("-") == "node":
            found.sort(key=lambda pair: pair[0].id, reverse=is_down)
        else:
            found.sort(key=lambda pair: pair[1].index, reverse=is_down)
    return found


def _resolve(nodes: Sequence[Node], target: str) -> tuple[str, str, str]:
    """What a target is: its noun, its id and its name. Raises NotFound with what there is."""
    named: dict[str, tuple[str, str, str]] = {}
    for node in nodes:
        for device in node.devices:
            name = f"{node.id}/{device.index}"
            found = ("device", device.id, name)
            named |= {name: found, device.id: found}
            if len(nodes) == 1:
                named.setdefault(str(device.index), found)
    named |= {node.id: ("node", node.id, node.id) for node in nodes}
    if target in named:
        return named[target]
    valid = find.near_names(target, [name for name in named if not name.isdigit()], most=16)
    raise errors.NotFound(f"there is no node or device {target!r}", field="target", valid=valid)
