"""What changed, for a page that stays open: a few messages a second, however much happens."""

from collections.abc import AsyncIterator

from aliquot.core import errors
from aliquot.service import access, ports, server
from aliquot.wire import changes as shapes

Message = shapes.Hello | shapes.Beat | shapes.Changes


class Changes:
    """The stream of changes."""

    def __init__(
        self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, facts: server.ServerFacts
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._facts = facts

    async def follow(self, actor: access.Actor, after: int | None) -> AsyncIterator[Message]:
        """A hello, and then what changes after a sequence (None: only what is new), for ever."""
        access.check(actor, "list", "workload")
        if self._clock:
            raise errors.Unavailable("the stream of changes is not built yet")
        yield shapes.Beat(sequence=after or 0, time=self._clock.now())  # pragma: no cover
