"""What is unfinished, and what it holds, kept in memory: a page must not read 10,000 rows to count them.

Promises: what `look` returns is what one read of the whole store would have, at some moment since it was asked; only
what was written since the last look is read; nobody can change what others were given.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from aliquot.core import lifecycle
from aliquot.core.model import Node
from aliquot.service import ports, records, views, waits
from aliquot.service import queues as tree
from aliquot.service.queues import Standings
from aliquot.service.waits import Waits

WAITING = frozenset({lifecycle.Phase.PENDING})
RUNNING = lifecycle.ACTIVE | lifecycle.ENDING
"""Phases of workloads that hold something."""


@dataclass(frozen=True)
class Sight:
    """What is unfinished at one moment."""

    commit: int = 0
    workloads: Mapping[str, records.WorkloadRow] = field(default_factory=dict)
    pods: Mapping[str, records.PodRow] = field(default_factory=dict)
    """Those that hold their place."""
    promises: Mapping[str, records.PromiseRow] = field(default_factory=dict)
    queues: Mapping[str, records.QueueRow] = field(default_factory=dict)
    waits: Waits = field(default_factory=Waits)
    standings: Standings = field(default_factory=dict)

    @cached_property
    def held(self) -> Mapping[str, int]:
        """Thousandths that are held, by device; a device of which nothing is held is not in it."""
        found: dict[str, int] = {}
        for _, device, milli in self.holdings():
            found[device] = found.get(device, 0) + milli
        return found

    @cached_property
    def pods_by_node(self) -> Mapping[str, Sequence[records.PodRow]]:
        """The pods of each node that has any."""
        found: dict[str, list[records.PodRow]] = {}
        for pod in self.pods.values():
            found.setdefault(pod.node, []).append(pod)
        return found

    def holdings(self) -> Iterator[tuple[records.PodRow, str, int]]:
        """Each share that is held: its pod, its device, its thousandths."""
        for pod in self.pods.values():
            for share in pod.shares:
                yield pod, share.device, share.milli

    def name(self, queue: str | None) -> str:
        """The name of a project or department."""
        row = self.queues.get(queue or "")
        return (queue or "") if row is None else row.name

    def department(self, project: str) -> str:
        """The id of the department of a project; "" if the project is gone."""
        row = self.queues.get(project)
        return "" if row is None or row.department is None else row.department


class Mirror:
    """Keeps what is unfinished. One for all who ask."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._sight: Sight | None = None

    async def look(self) -> Sight:
        """What is unfinished now."""
        async with self._lock:
            before = self._sight
            touched = None if before is None else self._store.touched(before.commit)
            if before is None or touched is None:
                commit = self._store.newest().commit
                self._sight = await self._store.read(lambda tx: _read(tx, commit))
            elif touched.commit != before.commit:
                fresh, old = touched, before
                self._sight = await self._store.read(lambda tx: _renew(tx, old, fresh))
            assert self._sight is not None, "it was read just now"
            return self._sight


def asked_milli(row: records.WorkloadRow, device_mib: int) -> int:
    """What all replicas of a workload ask for, in thousandths; by memory, of a device of so many MiB."""
    gpu = row.request.gpu
    if gpu is None:
        return 0
    milli = gpu.milli if gpu.milli is not None else min(1000, -(-1000 * (gpu.mib or 0) // max(device_mib, 1)))
    return row.definition.replicas * gpu.devices * milli


def device_mib(nodes: Sequence[Node]) -> int:
    """The memory of the largest device, which a request by memory is told as a part of."""
    return max((device.memory_mib for node in nodes for device in node.devices), default=0)


def _read(tx: ports.Transaction, commit: int) -> Sight:
    return Sight(
        commit=commit,
        workloads={row.id: row for row in tx.workloads.find(finished=None, deleted=None)},
        pods={row.id: row for row in tx.pods.find(ports.Where("phase", "in", views.OPEN))},
        promises={row.id: row for row in tx.promises.find()},
        queues={row.id: row for row in tx.queues.find()},
        waits=waits.read(tx),
        standings=tree.standings(tx),
    )


def _renew(tx: ports.Transaction, before: Sight, touched: ports.Touched) -> Sight:
    workloads, pods = before.workloads, before.pods
    if touched.of("workloads"):
        workloads = {id: row for id, row in before.workloads.items() if id not in touched.of("workloads")}
        for row in tx.workloads.find(ports.Where("id", "in", touched.of("workloads"))):
            if row.finished is None and row.deleted is None:
                workloads[row.id] = row
    if touched.of("pods"):
        pods = {id: pod for id, pod in before.pods.items() if id not in touched.of("pods")}
        for pod in tx.pods.find(ports.Where("id", "in", touched.of("pods"))):
            if pod.phase in views.OPEN:
                pods[pod.id] = pod
    seen = replace(before, commit=touched.commit, workloads=workloads, pods=pods)
    if touched.of("promises"):
        seen = replace(seen, promises={row.id: row for row in tx.promises.find()})
    if touched.of("queues"):
        seen = replace(seen, queues={row.id: row for row in tx.queues.find()})
    if touched.of("facts"):
        seen = replace(seen, waits=waits.read(tx), standings=tree.standings(tx))
    return seen
