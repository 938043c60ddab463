"""Previews: what a change of terms, or of a workload, would do. By the engine on an overlay; nothing is changed."""

from aliquot.core import errors
from aliquot.core.model import Policy
from aliquot.service import access, ports
from aliquot.wire import projects as project_shapes
from aliquot.wire import queue as shapes
from aliquot.wire import workloads as workload_shapes


class Previews:
    """The use cases of previews."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, *, clock: ports.Clock, policy: Policy) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._policy = policy

    async def queue(
        self, actor: access.Actor, ref: str, change: project_shapes.QueueUpdate, *, noun: str
    ) -> shapes.QueuePreview:
        """What other terms of a project or department (`noun`) would do."""
        access.check(actor, "update", noun)
        raise errors.Unavailable("previews are not built yet")

    async def workload(
        self, actor: access.Actor, ref: str, change: workload_shapes.WorkloadUpdate, *, project: str | None = None
    ) -> workload_shapes.DryRun:
        """What another definition of a workload that waits would do."""
        access.check(actor, "update", "workload")
        raise errors.Unavailable("previews are not built yet")
