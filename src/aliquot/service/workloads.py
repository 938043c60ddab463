"""Workloads: submit, look at, change, suspend, resume, stop, delete.

Promises: a submission with a key is done once however often it comes; a wish (suspend, stop, ...) is stored and the
cluster carries it out; every change leaves an event and an audit record in the same transaction.
"""

from dataclasses import dataclass, field

from aliquot.core.model import Policy
from aliquot.service import access, paging, ports
from aliquot.wire import base
from aliquot.wire import workloads as shapes


@dataclass(frozen=True, slots=True)
class Config:
    """How workloads are planned and shown. `data_directory`: where the cluster keeps their folders."""

    policy: Policy = field(default_factory=Policy)
    data_directory: str = ""
    host: str = "127.0.0.1"
    """The host in the URLs of ports."""


class Workloads:
    """The use cases of workloads. `ref` is an id or a name; `project` (a name) says which where names are ambiguous."""

    def __init__(
        self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, ids: ports.Ids, config: Config
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._ids = ids
        self._config = config

    async def submit(
        self, actor: access.Actor, definition: shapes.Definition, *, key: str | None = None
    ) -> tuple[shapes.WorkloadDetail, bool]:
        """Take it in. True: it is new; False: the key was seen with the same body. Raises InvalidInput, Conflict."""
        raise NotImplementedError

    async def dry_run(self, actor: access.Actor, definition: shapes.Definition) -> shapes.DryRun:
        """What submitting would do now."""
        raise NotImplementedError

    async def list(self, actor: access.Actor, request: paging.ListRequest) -> base.Page[shapes.WorkloadView]:
        """Filters: project, department, phase (comma list; `unfinished`, `finished`), kind, name, actor, label.X, q."""
        raise NotImplementedError

    async def get(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """By id; or by name the unfinished one, else the latest. Raises NotFound (near names in `valid`), Conflict."""
        raise NotImplementedError

    async def update(
        self, actor: access.Actor, ref: str, change: shapes.WorkloadUpdate, *, project: str | None = None
    ) -> shapes.WorkloadDetail:
        """Change one that waits or is suspended; of one that runs, the priority alone."""
        raise NotImplementedError

    async def suspend(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """End its processes and free what it holds, until it is resumed."""
        raise NotImplementedError

    async def resume(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """Let it wait for a place again."""
        raise NotImplementedError

    async def stop(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.WorkloadDetail:
        """End it for good."""
        raise NotImplementedError

    async def delete(
        self, actor: access.Actor, ref: str, *, project: str | None = None
    ) -> shapes.WorkloadDetail | None:
        """End it and remove its folder and logs; usage, events and receipts stay. None: it had ended, so it is gone."""
        raise NotImplementedError

    async def reason(self, actor: access.Actor, ref: str, *, project: str | None = None) -> shapes.Reason:
        """Why it waits now, with the smallest change that would start it. Raises Conflict if it does not wait."""
        raise NotImplementedError
