"""Events: what happened, as a list and as a stream that can be resumed."""

from collections.abc import AsyncIterator, Mapping

from aliquot.service import access, paging, ports
from aliquot.wire import base
from aliquot.wire import records as shapes


class Events:
    """The use cases of events."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.Event]:
        """Newest first. Filters: noun, subject, name, project, code, after (a sequence)."""
        raise NotImplementedError

    async def follow(
        self, actor: access.Actor, after: int | None, *, filters: Mapping[str, str] | None = None
    ) -> AsyncIterator[shapes.Event]:
        """Every event after a sequence (None: only new ones), for ever. Filters as of `list`, less `after`."""
        raise NotImplementedError
        yield
