"""The life of a workload as spans that follow each other, from what was stored of it."""

from aliquot.core import errors
from aliquot.service import access, ports
from aliquot.wire import timelines as shapes


class Timelines:
    """The use case of timelines."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock

    async def get(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.Timeline:
        """From its submission to now."""
        access.check(actor, "get", "workload")
        raise errors.Unavailable("timelines are not built yet")
