"""Projects: the use cases. What they share with their sibling noun is in `aliquot.service.queues`."""

from aliquot.service import access, paging, ports
from aliquot.wire import base
from aliquot.wire import projects as shapes


class Projects:
    """The use cases of projects. `ref` is a name or an id."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, ids: ports.Ids) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._ids = ids

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.ProjectView]:
        """Filters: name, q."""
        raise NotImplementedError

    async def get(self, actor: access.Actor, ref: str) -> shapes.ProjectView:
        """One, with where it stands. Raises NotFound with near names in `valid`."""
        raise NotImplementedError

    async def create(self, actor: access.Actor, new: shapes.ProjectNew) -> shapes.ProjectView:
        """A new one. Raises Conflict if the name is taken."""
        raise NotImplementedError

    async def update(self, actor: access.Actor, ref: str, change: shapes.QueueUpdate) -> shapes.ProjectView:
        """Change its terms. Setting the GPU quota ends `follows_machine`."""
        raise NotImplementedError

    async def delete(self, actor: access.Actor, ref: str) -> None:
        """Remove it. Raises Conflict while something is in it."""
        raise NotImplementedError
