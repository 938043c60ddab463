"""The server itself: its status."""

from dataclasses import dataclass
from datetime import datetime

from aliquot.service import access, ports
from aliquot.wire import records as shapes


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server knows of itself."""

    version: str
    url: str
    pid: int
    data_directory: str
    user: str
    started: datetime


class Server:
    """The use cases of the server."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, facts: ServerFacts) -> None:
        self._store = store
        self._cluster = cluster
        self._facts = facts

    def health(self) -> shapes.Health:
        """The one answer for everyone."""
        return shapes.Health(status="ok", version=self._facts.version)

    async def status(self, actor: access.Actor) -> shapes.Status:
        """What `aliquot status` shows."""
        raise NotImplementedError
