"""The server itself: its status."""

from dataclasses import dataclass
from datetime import datetime

from aliquot.core import lifecycle
from aliquot.core.model import Guarantee
from aliquot.service import access, ports, records, views
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

    async def session(self, actor: access.Actor, cookie: str | None) -> shapes.Session:
        """Who asks, and until when. `cookie`: the secret of the session by which it was asked, if it was."""
        access.check(actor, "get", "session")
        row = None
        if cookie is not None:
            key = access.digest(cookie)
            row = await self._store.read(lambda tx: tx.credentials.get(key))
        expires = row.expires if row is not None and row.kind == "session" else None
        return shapes.Session(actor=actor.name, expires=expires, version=self._facts.version)

    async def status(self, actor: access.Actor) -> shapes.Status:
        """What `aliquot status` shows."""
        access.check(actor, "get", "status")
        said = await self._cluster.facts()
        devices = [device for node in await self._cluster.nodes() for device in node.devices]
        running, waiting = await self._store.read(_count)
        facts = self._facts
        return shapes.Status(
            version=facts.version,
            url=facts.url,
            pid=facts.pid,
            data_directory=facts.data_directory,
            started=facts.started,
            cluster=records.DEFAULT_CLUSTER,
            node=said.node,
            devices=shapes.DeviceSummary(
                count=len(devices),
                models=sorted({device.model for device in devices}),
                is_simulated=any(device.is_simulated for device in devices),
                guarantee=views.weakest([device.guarantee for device in devices]) or Guarantee.NONE,
                description=said.description,
            ),
            limits=said.limits,
            user=facts.user,
            running=running,
            waiting=waiting,
            is_accepting=said.is_accepting,
            notice=said.notice,
        )


def _count(tx: ports.Transaction) -> tuple[int, int]:
    active = tuple(lifecycle.ACTIVE | lifecycle.ENDING)
    running = tx.workloads.count(ports.Where("phase", "in", active))
    return running, tx.workloads.count(phase=lifecycle.Phase.PENDING)
