"""What changed, for pages that stay open: a few messages a second, however much happens.

Promises: each change of a row that a list shows is told, whether or not it has an event (a position alone is not); rows
are read and written out once for all who follow; who was away for a moment is told what was missed, and who was away
too long, or cannot keep up, is told to ask for everything anew. A wait that is only said in other words may be told
some seconds late: in a long line a cycle rewords thousands.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

from aliquot.core import errors
from aliquot.core.model import Node
from aliquot.service import access, find, ports, records, server, views, waits
from aliquot.wire import changes as shapes
from aliquot.wire import workloads as workload_shapes

PAUSE = timedelta(milliseconds=250)
"""At most one message in so long."""
BEAT_SECONDS = 5.0
"""After so long without a word a beat says that the server lives."""
LOOK_SECONDS = 2.0
"""How often it is looked whether the use of devices, or what the cluster says of itself, is another."""
MOST_ROWS = 500
REWORDED_AT_ONCE = 100
"""So many rows a message are told only because the words of their reason are others: 400 a second."""
MOST_UNREAD = 40
_NOUNS = {
    "queues": ("department", "project"),
    "cordons": ("device", "node"),
    "devices": ("device",),
    "receipts": ("receipt",),
}
_WORKLOADS = ("workloads", waits.CHANGED)


@dataclass(frozen=True, slots=True)
class Message:
    """What is told: its kind (`hello`, `beat`, `changes`), and its shape as JSON, written out once for all."""

    kind: str
    sequence: int
    text: str


class Changes:
    """The stream of changes."""

    def __init__(
        self,
        store: ports.Store,
        cluster: ports.Cluster,
        *,
        clock: ports.Clock,
        facts: server.ServerFacts,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self._beat_seconds = beat_seconds
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._facts = facts
        self._unread: set[asyncio.Queue[Message | None]] = set()
        """Of each follower what it was not given yet. None: it is over."""
        self._telling: asyncio.Task[None] | None = None
        self._told = ports.Touched(0, 0)
        """The commit up to which all followers were told."""
        self._reworded: dict[str, None] = {}
        self._said: ports.ClusterFacts | None = None

    async def follow(self, actor: access.Actor, after: int | None) -> AsyncIterator[Message]:
        """A hello, and then what changes after a sequence (None: only what is new), for ever."""
        access.check(actor, "list", "workload")
        unread = self._enter()
        try:
            sequence = self._told.sequence if after is None else after
            yield self._hello(sequence)
            if after is not None and (missed := await self._missed(after)) is not None:
                yield missed
            while (message := await self._next(unread, sequence)) is not None:
                sequence = message.sequence
                yield message
        finally:
            await self._leave(unread)

    def _enter(self) -> asyncio.Queue[Message | None]:
        """Listen from here on. The first one sets the telling going."""
        if self._telling is None or self._telling.done():
            self._told = self._store.newest()
            self._reworded.clear()
            self._telling = asyncio.create_task(self._tell())
        unread: asyncio.Queue[Message | None] = asyncio.Queue(MOST_UNREAD)
        self._unread.add(unread)
        return unread

    async def _leave(self, unread: asyncio.Queue[Message | None]) -> None:
        self._unread.discard(unread)
        if self._telling is not None and not self._unread:
            telling, self._telling = self._telling, None
            telling.cancel()
            await asyncio.wait({telling})

    async def _next(self, unread: asyncio.Queue[Message | None], sequence: int) -> Message | None:
        try:
            return await asyncio.wait_for(unread.get(), self._beat_seconds)
        except TimeoutError:
            return _message(shapes.Beat(sequence=sequence, time=self._clock.now()))

    def _hello(self, sequence: int) -> Message:
        facts = self._facts
        return _message(
            shapes.Hello(sequence=sequence, time=self._clock.now(), version=facts.version, started=facts.started)
        )

    async def _missed(self, after: int) -> Message | None:
        """What was written since an event; what is told to all goes on from there or earlier."""
        commit = self._store.commit_before(after)
        touched = None if commit is None else self._store.touched(commit)
        if touched is None:
            return self._reset(self._store.newest().sequence)
        return await self._changes(touched, late=touched.of(waits.REWORDED))

    async def _tell(self) -> None:
        """Tell all who follow, until there are none. If this fails they are let go, so that they come back."""
        news = self._store.changes()
        step = asyncio.ensure_future(_first(news))
        try:
            while True:
                await asyncio.wait({step}, timeout=LOOK_SECONDS)
                if step.done():
                    step.result()
                    step = asyncio.ensure_future(_first(news))
                with contextlib.suppress(errors.Unavailable):  # The store is busy: the next look tells.
                    await self._tell_once()
                while self._reworded:
                    await self._clock.sleep(PAUSE)
                    await self._tell_once()
                await self._clock.sleep(PAUSE)
        finally:
            step.cancel()
            self._send(None)

    async def _tell_once(self) -> None:
        touched = self._store.touched(self._told.commit)
        if touched is None:
            self._told = self._store.newest()
            self._send(self._reset(self._told.sequence))
            return
        self._reworded |= dict.fromkeys(sorted(touched.of(waits.REWORDED)))
        late = frozenset(list(self._reworded)[:REWORDED_AT_ONCE])
        message = await self._changes(touched, late=late, measured=await self._measured())
        # Only now: what could not be read is read by the next look.
        self._told = touched
        for id in late:
            del self._reworded[id]
        if message is not None:
            self._send(message)

    async def _measured(self) -> set[str]:
        """The nouns of which the cluster says something else than before."""
        before, self._said = self._said, await self._cluster.facts()
        if before is None or before == self._said:
            return set()
        is_same = (before.is_accepting, before.notice) == (self._said.is_accepting, self._said.notice)
        return {"device"} if is_same else {"device", "node", "server"}

    async def _changes(
        self, touched: ports.Touched, *, late: frozenset[str], measured: Set[str] = frozenset()
    ) -> Message | None:
        """What was touched as a message, and rows (`late`) of which something else is new; None: nothing is."""
        pods = touched.of("pods")
        ids = late.union(*(touched.of(table) for table in _WORKLOADS))
        if len(ids) > MOST_ROWS or len(pods) > 10 * MOST_ROWS:
            return self._reset(touched.sequence)
        nouns = {noun for table, named in _NOUNS.items() if touched.of(table) for noun in named}
        nouns |= measured | (touched.of("events") - {"workload"})
        if not ids and not pods and not nouns:
            return None
        nodes = await self._cluster.nodes() if ids or pods else ()
        shown, gone = await self._store.read(lambda tx: self._rows(tx, ids, pods, nodes=nodes))
        if len(shown) > MOST_ROWS:
            return self._reset(touched.sequence)
        return _message(
            shapes.Changes(
                sequence=touched.sequence,
                time=self._clock.now(),
                workloads=shown,
                gone_workloads=gone,
                nouns=sorted(nouns),
            )
        )

    def _rows(
        self, tx: ports.Transaction, ids: Set[str], touched_pods: Set[str], *, nodes: Sequence[Node]
    ) -> tuple[list[workload_shapes.WorkloadView], list[str]]:
        """These workloads and those of these pods as they are now, and the ids of those that are gone."""
        ids |= {pod.workload for pod in tx.pods.find(ports.Where("id", "in", touched_pods))}
        rows = {row.id: row for row in tx.workloads.find(ports.Where("id", "in", ids)) if find.is_visible(row)}
        pods: dict[str, list[records.PodRow]] = {id: [] for id in rows}
        found = tx.pods.find(ports.Where("workload", "in", list(rows)), ports.Where("phase", "in", views.OPEN))
        for pod in found:
            pods[pod.workload].append(pod)
        book = views.read_book(tx, nodes, now=self._clock.now(), pods=found)
        shown = [views.workload(row, pods[id], book) for id, row in sorted(rows.items())]
        return shown, sorted(ids - set(rows))

    def _reset(self, sequence: int) -> Message:
        return _message(shapes.Changes(sequence=sequence, time=self._clock.now(), is_reset=True))

    def _send(self, message: Message | None) -> None:
        """Give all a message. One that cannot keep up asks for everything anew instead of what it has not read."""
        for unread in self._unread:
            told = message
            if unread.full():
                while not unread.empty():
                    unread.get_nowait()
                told = None if message is None else self._reset(message.sequence)
            unread.put_nowait(told)


def _message(shape: shapes.Hello | shapes.Beat | shapes.Changes) -> Message:
    return Message(type(shape).__name__.lower(), shape.sequence, shape.model_dump_json(by_alias=True))


async def _first(news: AsyncIterator[int]) -> int:
    return await anext(news)
