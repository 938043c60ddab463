"""Nodes and devices: what there is, who holds it, and what takes nothing new."""

from aliquot.service import access, paging, ports
from aliquot.wire import base
from aliquot.wire import nodes as shapes


class Nodes:
    """The use cases of nodes, devices and cordons."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, ids: ports.Ids) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._ids = ids

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.NodeView]:
        """The nodes. Filters: pool."""
        raise NotImplementedError

    async def get(self, actor: access.Actor, ref: str) -> shapes.NodeView:
        """One node by its id."""
        raise NotImplementedError

    async def devices(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.DeviceView]:
        """The devices with their holders. Filters: node, model."""
        raise NotImplementedError

    async def cordon(self, actor: access.Actor, target: str) -> shapes.Cordon:
        """Nothing new starts there. `target`: a node's id, a device's UUID, its index (one node), or node/index."""
        raise NotImplementedError

    async def uncordon(self, actor: access.Actor, target: str) -> None:
        """It takes work again. Raises NotFound if it was not cordoned."""
        raise NotImplementedError
