"""Logs: a part of one pod's output, or all output of a workload as it comes, from attempt to attempt.

Promises: a follower that comes back with the cursor it was given misses no line and sees none twice.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from aliquot.service import access, ports
from aliquot.wire import workloads as shapes


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A part of one pod's lines. `offset`: bytes, negative: lines from the end. `attempt` None: the latest."""

    index: int = 0
    offset: int = 0
    limit: int = 1000
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """What to follow. `index` None: all replicas. `after`: a cursor of an earlier line. `tail`: lines of each pod to
    begin with, None: all of the latest attempt."""

    index: int | None = None
    after: str | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class FollowedLine:
    """A line and the cursor (opaque text, the id of a server-sent event) that goes on after it."""

    line: shapes.LogLine
    cursor: str


class Logs:
    """The use cases of logs."""

    def __init__(self, store: ports.Store, pods: ports.Pods, *, clock: ports.Clock) -> None:
        self._store = store
        self._pods = pods
        self._clock = clock

    async def read(
        self, actor: access.Actor, ref: str, *, request: ReadRequest, project: str | None = None
    ) -> shapes.LogChunk:
        """Some lines of one pod. Nothing yet, while it never had a place."""
        raise NotImplementedError

    async def follow(
        self, actor: access.Actor, ref: str, *, request: FollowRequest, project: str | None = None
    ) -> AsyncIterator[FollowedLine]:
        """Lines as they come, over all attempts, until the workload is finished and read to the end."""
        raise NotImplementedError
        yield
