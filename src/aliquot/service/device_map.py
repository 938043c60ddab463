"""The device map: all devices in columns, small and quick enough to draw 100,000 of them.

Promises: the same `version` means the same map; what is not measured is -1, never 0. What does not change from map to
map (which devices there are, and where) is put into columns once.
"""

import asyncio
import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aliquot.core.model import Node
from aliquot.service import access, mirror, ports
from aliquot.wire import nodes as shapes
from aliquot.wire.nodes import DeviceUse

FREE, HELD, WITHHELD, LOST = range(4)
NOT_MEASURED = -1
RACK_LABELS = ("rack", "topology.kubernetes.io/rack")
"""Labels of nodes that are read as their rack."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which devices there are, and where: of one list of nodes."""

    of: Sequence[Node]
    nodes: list[shapes.MapNode]
    models: list[str]
    model: list[int]
    closed: Sequence[int]
    """FREE, WITHHELD or LOST, before it is known what is held."""
    places: Mapping[str, int]
    """By device, its place in the columns."""


class DeviceMap:
    """The use case of the device map."""

    def __init__(self, seen: mirror.Mirror, cluster: ports.Cluster, *, clock: ports.Clock) -> None:
        self._mirror = seen
        self._cluster = cluster
        self._clock = clock
        self._layout: _Layout | None = None

    async def get(self, actor: access.Actor) -> shapes.DeviceMap:
        """All devices."""
        access.check(actor, "list", "device")
        nodes = await self._cluster.nodes()
        use = (await self._cluster.facts()).use
        sight = await self._mirror.look()
        return await asyncio.to_thread(self._draw, nodes, sight, use)

    def _draw(self, nodes: Sequence[Node], sight: mirror.Sight, use: Mapping[str, DeviceUse]) -> shapes.DeviceMap:
        layout = self._layout
        if layout is None or not _is_same(layout.of, nodes):
            layout = self._layout = _lay_out(nodes)
        held, state = array("i", bytes(4 * len(layout.model))), array("i", layout.closed)
        projects: dict[str, int] = {}
        holders = array("i")
        for place, project, milli in _holders(layout, sight):
            holders.extend((place, projects.setdefault(project, len(projects)), milli))
            held[place] += milli
            if state[place] == FREE:
                state[place] = HELD
        busy = array("i", [NOT_MEASURED]) * len(layout.model)
        for device, one in use.items():
            if device in layout.places and one.utilisation_percent is not None:
                busy[layout.places[device]] = one.utilisation_percent
        names = [sight.name(project) for project in projects]
        columns = (held, busy, state, holders, array("i", layout.model))
        return shapes.DeviceMap.model_construct(
            version=_version(layout, names, columns),
            time=self._clock.now(),
            projects=names,
            models=layout.models,
            nodes=layout.nodes,
            model=layout.model,
            held=held.tolist(),
            use=busy.tolist(),
            state=state.tolist(),
            holders=holders.tolist(),
        )


def _is_same(before: Sequence[Node], after: Sequence[Node]) -> bool:
    return before is after or (
        len(before) == len(after) and all(a is b or a == b for a, b in zip(before, after, strict=True))
    )


def _lay_out(nodes: Sequence[Node]) -> _Layout:
    shown: list[shapes.MapNode] = []
    models: dict[str, int] = {}
    model: list[int] = []
    closed = array("i")
    places: dict[str, int] = {}
    for node in sorted(nodes, key=lambda node: (node.pool, _rack(node) or "", node.id)):
        shown.append(_node(node, first=len(model)))
        is_open = node.is_ready and not node.is_cordoned
        for device in sorted(node.devices, key=lambda device: device.index):
            places[device.id] = len(model)
            model.append(models.setdefault(device.model, len(models)))
            closed.append(LOST if device.withheld == "lost" else FREE if is_open and not device.withheld else WITHHELD)
    return _Layout(nodes, shown, list(models), model, closed, places)


def _node(node: Node, *, first: int) -> shapes.MapNode:
    return shapes.MapNode(
        id=node.id,
        pool=node.pool,
        rack=_rack(node),
        is_ready=node.is_ready,
        is_cordoned=node.is_cordoned,
        first=first,
        count=len(node.devices),
    )


def _rack(node: Node) -> str | None:
    return next((node.labels[label] for label in RACK_LABELS if label in node.labels), None)


def _holders(layout: _Layout, sight: mirror.Sight) -> Iterator[tuple[int, str, int]]:
    """Place, project and thousandths of each share, in the order of the places."""
    found: list[tuple[int, str, int]] = []
    for pod, device, milli in sight.holdings():
        place, row = layout.places.get(device), sight.workloads.get(pod.workload)
        if place is not None:
            found.append((place, "" if row is None else row.project, milli))
    yield from sorted(found)


def _version(layout: _Layout, names: Sequence[str], columns: Sequence["array[int]"]) -> str:
    mark = hashlib.sha256(repr((layout.models, names)).encode())
    mark.update(repr([(one.id, one.pool, one.is_ready, one.is_cordoned, one.first) for one in layout.nodes]).encode())
    for column in columns:
        mark.update(column.tobytes())
    return mark.hexdigest()[:16]
