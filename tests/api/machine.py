"""A machine in memory behind the real services and the real API: SQLite in a folder, simulated nodes, pods that answer.

Nothing runs on it by itself: `World.run` gives a workload its pods, as a cycle would have.
"""

import asyncio
import contextlib
import io
import pathlib
import tarfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, TypeVar

from aliquot.api import services
from aliquot.app import clock
from aliquot.core import errors
from aliquot.core.lifecycle import Phase
from aliquot.core.model import Node, Share
from aliquot.db import store as db
from aliquot.service import (
    access,
    audit,
    changes,
    departments,
    device_map,
    events,
    ledger,
    logs,
    loop,
    mirror,
    nodes,
    overview,
    ports,
    previews,
    projects,
    queue,
    queues,
    receipts,
    records,
    series,
    server,
    terminals,
    timelines,
    usage,
    watch,
    workloads,
)
from aliquot.sim import clock as sim_clock
from aliquot.sim import cluster
from aliquot.wire import projects as project_shapes
from aliquot.wire import workloads as shapes
from tests import builders, serving

Result = TypeVar("Result")
EIGHT = (builders.node(),)


class Echo:
    """A program that gives back what it reads, and the size of its window when that changes. It ends with its input."""

    def __init__(self, request: ports.ExecRequest | None = None) -> None:
        self._request = request
        self._output: asyncio.Queue[tuple[Literal["stdout", "stderr"], bytes] | None] = asyncio.Queue()
        self.is_closed = asyncio.Event()
        if request is not None:
            self._output.put_nowait(("stderr", " ".join(request.argv).encode()))

    async def read(self) -> tuple[Literal["stdout", "stderr"], bytes] | None:
        return await self._output.get()

    async def write(self, data: bytes) -> None:
        self._output.put_nowait(("stdout", data) if data else None)

    async def resize(self, rows: int, columns: int) -> None:
        self._output.put_nowait(("stdout", f"{rows}x{columns}".encode()))

    async def wait(self) -> int:
        return 0 if self._request is None else len(self._request.argv)

    async def close(self) -> None:
        self.is_closed.set()


@dataclass
class MemoryPods:
    """The pods' logs, terminals and files."""

    lines: dict[str, list[shapes.LogLine]] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    opened: list[Echo] = field(default_factory=list)
    unpacked: list[tuple[str, str, bytes]] = field(default_factory=list)

    def write(self, pod: str, text: str, *, index: int = 0) -> None:
        """Let a pod write one line."""
        written = self.lines.setdefault(pod, [])
        offset = written[-1].offset + len(written[-1].text) + 1 if written else 0
        now = datetime.now(UTC)
        written.append(shapes.LogLine(offset=offset, time=now, stream="stdout", text=text, pod=pod, index=index))

    async def logs(self, pod: str, *, offset: int, limit: int) -> shapes.LogChunk:
        written = self.lines.get(pod)
        if written is None:
            raise errors.NotFound("no log")
        end = written[-1].offset + len(written[-1].text) + 1 if written else 0
        asked = written[offset:] if offset < 0 else [line for line in written if line.offset >= offset]
        shown = asked[:limit]
        after = asked[limit].offset if len(asked) > limit else end
        is_complete = pod in self.over and after == end
        return shapes.LogChunk(lines=shown, next_offset=after, is_complete=is_complete)

    async def exec(self, pod: str, request: ports.ExecRequest) -> Echo:
        self.opened.append(Echo(request))
        return self.opened[-1]

    async def attach(self, pod: str) -> Echo:
        self.opened.append(Echo())
        return self.opened[-1]

    async def read_archive(self, pod: str, path: str) -> AsyncIterator[bytes]:
        if path == "missing":
            raise errors.NotFound(f"there is no {path}", field="path")
        content = archive({path: b"of " + pod.encode()})
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    async def write_archive(self, pod: str, path: str, data: AsyncIterator[bytes]) -> None:
        self.unpacked.append((pod, path, b"".join([chunk async for chunk in data])))


def archive(files: dict[str, bytes]) -> bytes:
    """A tar file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@dataclass
class World:
    """What is behind the API of a live server, for a test to look at and to change."""

    store: db.SqlStore
    pods: MemoryPods
    services: services.Services

    async def run(self, workload: str, *, attempt: int = 1) -> list[str]:
        """Give a workload its pods: one of each replica, on device 0 of node-1. Returns their ids."""

        def work(tx: ports.Transaction) -> list[str]:
            row = tx.workloads.get(workload)
            assert row is not None
            now = datetime.now(UTC)
            share = Share("node-1-gpu-0", 1, 1)
            rows = [
                records.PodRow(
                    f"{workload}-{attempt}-{index}",
                    workload,
                    index,
                    attempt,
                    node="node-1",
                    bound=now,
                    shares=(share,),
                    phase=shapes.PodPhase.RUNNING,
                    pid=1,
                    started=now,
                )
                for index in range(row.definition.replicas)
            ]
            for pod in rows:
                tx.pods.put(pod)
            tx.workloads.put(replace(row, phase=Phase.RUNNING, attempt=attempt, running_since=now, first_started=now))
            return [pod.id for pod in rows]

        return await self.store.write(work)

    async def finish(self, workload: str) -> None:
        """Let a workload and its pods end well."""

        def work(tx: ports.Transaction) -> None:
            row = tx.workloads.get(workload)
            assert row is not None
            now = datetime.now(UTC)
            for pod in tx.pods.find(workload=workload):
                tx.pods.put(replace(pod, phase=shapes.PodPhase.ENDED, ended=now, exit_kind="exited", exit_code=0))
                self.pods.over.add(pod.id)
            tx.workloads.put(replace(row, phase=Phase.SUCCEEDED, finished=now, outcome="completed", exit_code=0))

        await self.store.write(work)


@dataclass(frozen=True)
class Here:
    """A live server and the world behind it."""

    live: serving.Live
    world: World

    def do(self, work: Callable[[World], Coroutine[object, object, Result]]) -> Result:
        """Run something in the server's event loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work(self.world), self.live.loop).result(serving.GUARD_SECONDS)


@contextlib.contextmanager
def here(
    folder: pathlib.Path,
    *,
    offered: Sequence[Node] = EIGHT,
    facts: server.ServerFacts | None = None,
    most_waiting: int = db.MOST_WAITING,
    port: int = 0,
) -> Iterator[Here]:
    """A live server over a machine with these nodes, whose default project may use them all."""
    worlds: list[World] = []

    @contextlib.asynccontextmanager
    async def build() -> AsyncIterator[services.Services]:
        store = db.open_store(folder / "aliquot.db", most_waiting=most_waiting)
        pods = MemoryPods()
        try:
            built = wire_up(store, pods, offered=offered, facts=facts)
            worlds.append(World(store, pods, built))
            await queues.ensure_default(store, clock=clock.RealClock(), ids=clock.RandomIds())
            await _open_quota(built)
            yield built
        finally:
            store.close()

    with serving.serve(build, port=port) as live:
        yield Here(live, worlds[0])


def wire_up(
    store: db.SqlStore, pods: MemoryPods, *, offered: Sequence[Node], facts: server.ServerFacts | None
) -> services.Services:
    """All services over one store, simulated nodes and pods in memory."""
    times, ids = clock.RealClock(), clock.RandomIds()
    machine = cluster.SimCluster(sim_clock.VirtualClock(builders.NOW), nodes=offered)
    seen = mirror.Mirror(store)
    watching = watch.Watch(store, machine, seen, clock=times)
    facts = facts or server.ServerFacts(
        version="1", url="http://127.0.0.1", pid=1, data_directory="data", user="me", started=times.now()
    )
    return services.Services(
        access=access.Access(store, times, ids),
        audit=audit.Audit(store),
        changes=changes.Changes(store, machine, clock=times, facts=facts),
        departments=departments.Departments(store, machine, clock=times, ids=ids),
        device_map=device_map.DeviceMap(seen, machine, clock=times),
        events=events.Events(store),
        ledger=ledger.Ledger(store),
        logs=logs.Logs(store, pods, clock=times),
        nodes=nodes.Nodes(store, machine, seen, clock=times, ids=ids),
        overview=overview.Overview(seen, machine, watching, clock=times, facts=facts, pulse=loop.Pulse()),
        previews=previews.Previews(store, machine, clock=times, policy=workloads.Config().policy),
        projects=projects.Projects(store, machine, clock=times, ids=ids),
        queue=queue.Queue(store, machine, seen, clock=times, policy=workloads.Config().policy),
        receipts=receipts.Receipts(store),
        series=series.Series(store, clock=times),
        server=server.Server(store, machine, facts=facts),
        terminals=terminals.Terminals(store, pods, clock=times, ids=ids),
        timelines=timelines.Timelines(store, machine, clock=times),
        usage=usage.Usage(store, clock=times),
        workloads=workloads.Workloads(store, machine, clock=times, ids=ids, config=workloads.Config()),
    )


async def _open_quota(built: services.Services) -> None:
    """No bound on GPUs: a cluster would set the quota to what the machine has."""
    change = project_shapes.QueueUpdate.model_validate({"pools": {"default": {"gpu": {"quota": None}}}})
    await built.departments.update(access.LOOP, "default", change)
    await built.projects.update(access.LOOP, "default", change)
