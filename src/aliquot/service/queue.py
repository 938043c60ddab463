"""The line of those who wait: in which order, for what, and until when where that can be known.

(The tree of departments and projects, each of which is a queue to the scheduler, is in `aliquot.service.queues`.)
"""

from aliquot.core import errors
from aliquot.service import access, paging, ports
from aliquot.wire import base
from aliquot.wire import queue as shapes


class Queue:
    """The use case of the queue."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.QueueEntry]:
        """Who waits, the first in line first. Filters: project, department, pool."""
        access.check(actor, "list", "workload")
        raise errors.Unavailable("the queue is not built yet")
