"""The device map: all devices in columns, small and quick enough to draw 100,000 of them."""

from aliquot.core import errors
from aliquot.service import access, ports
from aliquot.wire import nodes as shapes


class DeviceMap:
    """The use case of the device map."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock

    async def get(self, actor: access.Actor) -> shapes.DeviceMap:
        """All devices."""
        access.check(actor, "list", "device")
        raise errors.Unavailable("the device map is not built yet")
