"""Usage: GPU time by workload and by project, as sums over the ledger; kept when the work is gone."""

from aliquot.service import access, paging, ports
from aliquot.wire import base
from aliquot.wire import records as shapes


class Usage:
    """The use cases of usage."""

    def __init__(self, store: ports.Store, clock: ports.Clock) -> None:
        self._store = store
        self._clock = clock

    async def by_workload(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.Usage]:
        """Newest workload first. Filters: project, name, q. Open entries count up to now."""
        raise NotImplementedError

    async def by_project(self, actor: access.Actor) -> base.Page[shapes.Usage]:
        """Every project, by name, on one page."""
        raise NotImplementedError
