"""What is done inside a running workload: a program beside it, its own terminal, its files."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from aliquot.service import access, ports


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
        self._clock = clock
        self._ids = ids

    async def exec(self, actor: access.Actor, target: Target, *, request: ports.ExecRequest) -> ports.Terminal:
        """Run a program beside the pod."""
        raise NotImplementedError

    async def attach(self, actor: access.Actor, target: Target) -> ports.Terminal:
        """The pod's own input and output."""
        raise NotImplementedError

    async def read_files(self, actor: access.Actor, target: Target, *, path: str) -> AsyncIterator[bytes]:
        """A tar stream of what is at `path`. Await it, then iterate: a refusal comes before the first byte."""
        raise NotImplementedError

    async def write_files(self, actor: access.Actor, target: Target, *, path: str, data: AsyncIterator[bytes]) -> None:
        """Unpack a tar stream into the folder `path`."""
        raise NotImplementedError
