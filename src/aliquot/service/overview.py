"""The overview: how the GPUs do, who waits for what, and what is broken."""

from aliquot.core import errors
from aliquot.service import access, ports, server
from aliquot.wire import overview as shapes


class Overview:
    """The use case of the overview."""

    def __init__(
        self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, facts: server.ServerFacts
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._facts = facts

    async def get(self, actor: access.Actor) -> shapes.Overview:
        """Everything at once."""
        access.check(actor, "get", "overview")
        raise errors.Unavailable("the overview is not built yet")
