"""What is done inside a workload: a program beside it, its own terminal, its files.

Promises: each of these leaves an audit record before it begins.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from aliquot.core import errors
from aliquot.service import access, audit, find, logs, ports, records
from aliquot.wire import workloads as shapes


@dataclass(frozen=True, slots=True)
class Target:
    """Which pod: the workload (id or name), the project's name where names are ambiguous, the replica."""

    ref: str
    project: str | None = None
    index: int = 0


class Terminals:
    """The use cases of exec, attach and file copies. All raise NotFound, or Conflict if the pod does not run."""

    def __init__(self, store: ports.Store, pods: ports.Pods, *, clock: ports.Clock, ids: ports.Ids) -> None:
        self._store = store
        self._pods = pods
        self._journal = audit.Journal(clock, ids)

    async def exec(self, actor: access.Actor, target: Target, *, request: ports.ExecRequest) -> ports.Terminal:
        """Run a program beside the pod."""
        pod = await self._enter(actor, target, "exec", detail=" ".join(request.argv)[:1000])
        return await self._pods.exec(pod.id, request)

    async def attach(self, actor: access.Actor, target: Target) -> ports.Terminal:
        """The pod's own input and output."""
        pod = await self._enter(actor, target, "attach", detail="")
        return await self._pods.attach(pod.id)

    async def read_files(self, actor: access.Actor, target: Target, *, path: str) -> AsyncIterator[bytes]:
        """A tar stream of what is at `path`, also when the pod has ended. Await it, then iterate: a refusal comes
        before the first byte."""
        pod = await self._enter(actor, target, "read-files", detail=path)
        stream = self._pods.read_archive(pod.id, path)
        try:
            first = await anext(stream)
        except StopAsyncIteration:
            first = b""
        return _resumed(first, stream)

    async def write_files(self, actor: access.Actor, target: Target, *, path: str, data: AsyncIterator[bytes]) -> None:
        """Unpack a tar stream into the folder `path`."""
        pod = await self._enter(actor, target, "write-files", detail=path)
        await self._pods.write_archive(pod.id, path, data)

    async def _enter(self, actor: access.Actor, target: Target, verb: str, *, detail: str) -> records.PodRow:
        access.check(actor, verb, "workload")

        def work(tx: ports.Transaction) -> records.PodRow:
            row = find.workload(tx, target.ref, project=target.project)
            logs.check_index(row, target.index)
            pods = tx.pods.find(workload=row.id, index=target.index)
            pod = max(pods, key=lambda pod: pod.attempt, default=None)
            if pod is None or (verb != "read-files" and pod.phase is not shapes.PodPhase.RUNNING):
                raise errors.Conflict(
                    f"replica {target.index} of {row.name} does not run: it is {row.phase}", code="not-running"
                )
            self._journal.record(tx, actor, change=audit.Change(verb, "workload", row.id, detail=detail))
            return pod

        return await self._store.write(work)


async def _resumed(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for chunk in rest:
        yield chunk
