"""Nodes and devices: what there is, who holds it, and what takes nothing new."""

from collections.abc import Callable, Sequence

from aliquot.core import errors
from aliquot.core.model import Node
from aliquot.service import access, audit, find, paging, ports, records, views
from aliquot.wire import base
from aliquot.wire import nodes as shapes

_NODES = paging.Listable(filters=("pool",), sorts={"id": "id"}, order=("id",))
_DEVICES = paging.Listable(filters=("node", "model"), sorts={"node": "node", "index": "index"}, order=("node",))


class Nodes:
    """The use cases of nodes, devices and cordons."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, ids: ports.Ids) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._journal = audit.Journal(clock, ids)

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.NodeView]:
        """The nodes. Filters: pool. Sort: id."""
        access.check(actor, "list", "node")
        paging.check(request, _NODES)
        pool = request.filters.get("pool")
        nodes = [node for node in await self._cluster.nodes() if pool is None or node.pool == pool]
        nodes = sorted(nodes, key=lambda node: node.id, reverse="-id" in request.sort)
        held = await self._store.read(_held)
        return paging.part([views.node(node, held) for node in nodes], request)

    async def get(self, actor: access.Actor, ref: str) -> shapes.NodeView:
        """One node by its id."""
        access.check(actor, "get", "node")
        nodes = {node.id: node for node in await self._cluster.nodes()}
        if ref not in nodes:
            raise errors.NotFound(f"there is no node {ref!r}", field="node", valid=find.near_names(ref, sorted(nodes)))
        return views.node(nodes[ref], await self._store.read(_held))

    async def devices(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.DeviceView]:
        """The devices with their holders. Filters: node, model. Sort: node, index."""
        access.check(actor, "list", "device")
        paging.check(request, _DEVICES)
        nodes = await self._cluster.nodes()
        use = (await self._cluster.facts()).use
        now = self._clock.now()

        def work(tx: ports.Transaction) -> tuple[views.Held, views.Book]:
            return _held(tx), views.read_book(tx, nodes, now=now)

        held, book = await self._store.read(work)
        wanted = [place for place in _ordered(nodes, request) if _matches(place, request)]
        return paging.part([views.device(place, held, book, use=use.get(place.device.id)) for place in wanted], request)

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


def _held(tx: ports.Transaction) -> views.Held:
    pods = tx.pods.find(ports.Where("phase", "in", views.OPEN))
    rows = tx.workloads.find(ports.Where("id", "in", {pod.workload for pod in pods}))
    return views.Held(pods, {row.id: row for row in rows})


def _ordered(nodes: Sequence[Node], request: paging.ListRequest) -> list[views.Place]:
    places = [views.Place(node.id, device) for node in nodes for device in node.devices]
    places.sort(key=lambda place: (place.node, place.device.index))
    for name in reversed(request.sort):
        by_node = name.removeprefix("-") == "node"
        places.sort(key=lambda place: place.node if by_node else "", reverse=name == "-node")
        if not by_node:
            places.sort(key=lambda place: place.device.index, reverse=name.startswith("-"))
    return places


def _matches(place: views.Place, request: paging.ListRequest) -> bool:
    node, model = request.filters.get("node"), request.filters.get("model")
    return (node is None or place.node == node) and (model is None or model.lower() in place.device.model.lower())


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
