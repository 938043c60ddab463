"""One machine as a cluster: the Cluster port over the store, the devices and the runner.

Promises: an intent is stored before its effect, so that a crash at any point is made good by looking again: what was
bound and never started is started, what runs is found, nothing runs twice. It chooses nothing; `core.schedule` does.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from aliquot.core.errors import AliquotError
from aliquot.core.model import DEFAULT_POOL, Claim, Device, Node, Queue, Snapshot
from aliquot.core.plan import Plan
from aliquot.local import bookkeeping, devices, host, metering, reconcile, starting, watchdog
from aliquot.local.folders import Folders
from aliquot.local.launch import Observation
from aliquot.local.runner import Runner
from aliquot.service import demand
from aliquot.service.ports import Clock, ClusterFacts, Store, Transaction
from aliquot.service.records import CordonRow, DeviceRow, EventRow, PodRow, QueueRow, WorkloadRow
from aliquot.wire.workloads import PodPhase

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Config:
    """What an administrator may set. Sizes in bytes."""

    node: str
    person: starting.Person
    limits: str
    """How limits on CPU and memory are enforced here, in words."""
    least_free_bytes: int = 256 * 2**20
    """With less room on the disk of the data folder nothing new starts: the ledger must always find room."""
    reading_interval: timedelta = timedelta(seconds=2)
    """How often the driver is asked."""


class LocalCluster:
    """This machine. `snapshot` and `apply` are called by one loop, never at the same time."""

    def __init__(
        self, store: Store, clock: Clock, *, runner: Runner, found: devices.Devices, folders: Folders, config: Config
    ) -> None:
        self._store = store
        self._clock = clock
        self._runner = runner
        self._devices = found
        self._folders = folders
        self._config = config
        self._host = host.read()
        self._watchdog = watchdog.Watchdog()
        self._meter = metering.Meter()
        self._withheld: dict[str, str | None] = {}
        self._woken = asyncio.Event()
        self._reading: devices.Reading | None = None
        self._read_at: datetime | None = None
        self._snapshot = Snapshot()
        self._demands = demand.Demands()
        self._is_accepting = True
        self._refused: set[str] = set()

    async def snapshot(self) -> Snapshot:
        """What is. First takes in what happened, starts what was bound before a crash, and ends what is to end."""
        seen = await asyncio.to_thread(self._runner.observe)
        await self._read_devices()
        turns = await self._take_in(seen)
        nodes = await self.nodes()
        queues, promised = await self._store.write(lambda tx: (self._queues(tx, nodes), tx.promises.find()))
        self._snapshot = Snapshot(
            nodes=tuple(nodes),
            queues=queues,
            workloads=self._demands.of((turn.row, turn.pods) for turn in turns),
            promises=demand.promises(promised, [turn.row for turn in turns]),
        )
        return self._snapshot

    async def apply(self, plan: Plan) -> None:
        """Store the plan, then carry it out."""
        pen = bookkeeping.Pen(self._clock.now(), free_port)
        snapshot = self._snapshot
        await self._store.write(lambda tx: bookkeeping.write_plan(tx, plan, snapshot, pen))
        touched = {bind.workload for bind in plan.binds} | {evict.workload for evict in plan.evicts}
        if touched:
            await self._take_in(await asyncio.to_thread(self._runner.observe), only=touched)

    async def changed(self, timeout: timedelta) -> None:
        """Return when a pod changed, someone stored something, or the time is over."""
        try:
            await asyncio.wait_for(self._woken.wait(), timeout.total_seconds())
        except TimeoutError:
            return
        finally:
            self._woken.clear()

    def wake(self) -> None:
        """Make `changed` return."""
        self._woken.set()

    async def nodes(self) -> Sequence[Node]:
        """This machine, with cordons."""
        cordons, held = await self._store.read(lambda tx: (frozenset(row.id for row in tx.cordons.find()), _held(tx)))
        remembered = await self._store.read(lambda tx: tuple(tx.devices.find()))
        reading = (self._reading or devices.Reading()).keeping(remembered, held)
        node = Node(
            id=self._config.node,
            milli_cpus=self._host.milli_cpus,
            memory_bytes=self._host.memory_bytes,
            devices=tuple(_with_cordon(device, cordons) for device in reading.devices),
            is_ready=self._is_accepting,
            is_cordoned=self._config.node in cordons,
            trouble=self._trouble(),
        )
        return (node,)

    async def facts(self) -> ClusterFacts:
        """What this machine says of itself."""
        notice = None if self._is_accepting else f"nothing new starts: {self._trouble()}"
        reading = self._reading or devices.Reading()
        return ClusterFacts(
            node=self._config.node,
            description=self._devices.describe(),
            limits=self._config.limits,
            is_accepting=self._is_accepting,
            notice=notice or ("; ".join(reading.problems) or None),
            use=reading.use,
        )

    def _trouble(self) -> str:
        if self._is_accepting:
            return ""
        return f"less than {self._config.least_free_bytes >> 20} MiB are free below {self._folders.data}"

    async def _take_in(
        self, seen: Mapping[str, Observation], only: Iterable[str] | None = None
    ) -> tuple[reconcile.Turn, ...]:
        """Store what happened (to some workloads `only`), then do what is to be done."""
        now = self._clock.now()

        def look(tx: Transaction) -> tuple[reconcile.Turn, ...]:
            rows = bookkeeping.open_rows(tx) if only is None else bookkeeping.rows_of(tx, only)
            turns = bookkeeping.look_over(tx, rows, seen, now=now)
            bookkeeping.write_turns(tx, turns)
            return turns

        turns = await self._store.write(look)
        for turn in turns:
            try:
                await self._carry_out(turn)
            except (AliquotError, OSError) as error:
                # The trouble of one workload must not keep the others waiting.
                log.warning("a workload is in trouble; the next look tries again", id=turn.row.id, why=str(error))
        return turns

    async def _carry_out(self, turn: reconcile.Turn) -> None:
        for pod in turn.ends:
            await asyncio.to_thread(self._runner.end, pod.id, grace=turn.row.grace)
        for pod in turn.starts:
            await self._start(turn.row, pod)
        if turn.erases:
            await self._erase(turn.row)

    async def _start(self, row: WorkloadRow, pod: PodRow) -> None:
        """Start an intent. One that cannot start now (a full disk) is tried again with the next look."""
        project = await self._store.read(lambda tx: tx.queues.get(row.project))
        name = project.name if project is not None else row.project
        launch = starting.launch(row, pod, name, folders=self._folders, person=self._config.person)
        try:
            await asyncio.to_thread(starting.prepare, row, self._folders)
            await asyncio.to_thread(self._runner.start, launch)
        except (AliquotError, OSError) as error:
            if pod.id not in self._refused:
                log.warning("a pod could not be started; it is tried again", pod=pod.id, why=str(error))
            self._refused.add(pod.id)
        else:
            self._refused.discard(pod.id)

    async def _erase(self, row: WorkloadRow) -> None:
        """Remove the folders and logs of a workload that is over, then say so. Repeated if it is cut off."""
        pods = await self._store.read(lambda tx: tuple(tx.pods.find(workload=row.id)))
        for pod in pods:
            await asyncio.to_thread(self._runner.forget, pod.id)
        await asyncio.to_thread(self._folders.erase, row.id)
        now = self._clock.now()

        def mark(tx: Transaction) -> None:
            current = tx.workloads.get(row.id)
            if current is not None and current.deleted is None:
                tx.workloads.put(replace(current, deleted=now, is_deleting=True))
                tx.events.put(
                    EventRow(now, "workload", row.id, row.name, "deleted", "its folder and logs are gone", row.project)
                )

        await self._store.write(mark)

    async def _read_devices(self) -> None:
        now = self._clock.now()
        free = await asyncio.to_thread(host.free_bytes, self._folders.data)
        self._is_accepting = free >= self._config.least_free_bytes
        if self._read_at is not None and now - self._read_at < self._config.reading_interval:
            return
        owned: dict[int, str] = {}
        if not self._devices.is_simulated:
            owned = await asyncio.to_thread(self._runner.owners)
        self._reading, self._read_at = await asyncio.to_thread(self._devices.read, owned=owned), now
        await self._remember(self._reading)
        if self._reading.use or self._reading.processes:
            await self._watch(self._reading)

    async def _remember(self, reading: devices.Reading) -> None:
        """Keep the devices in mind, so that one that is held cannot vanish; tell of what became of them."""
        rows = [
            DeviceRow(device.id, self._config.node, device.index, device.model, device.memory_mib, device.is_simulated)
            for device in reading.devices
        ]
        known = await self._store.read(lambda tx: {row.id: row for row in tx.devices.find()})
        new = [row for row in rows if known.get(row.id) != row]
        changed = [device for device in reading.devices if self._withheld.get(device.id) != device.withheld]
        if new or changed:
            await self._store.write(lambda tx: self._tell(tx, new, changed, notes=reading.notes))
        # Only once it is stored: what could not be told is told by the next reading.
        self._withheld = {device.id: device.withheld for device in reading.devices}

    def _tell(
        self, tx: Transaction, new: Sequence[DeviceRow], changed: Sequence[Device], *, notes: Mapping[str, str]
    ) -> None:
        now = self._clock.now()
        for row in new:
            tx.devices.put(row)
        for device in changed:
            name, why = f"{self._config.node}/{device.index}", notes.get(device.id, "it takes new work")
            tx.events.put(EventRow(now, "device", device.id, name, device.withheld or "offered", why))
            if device.withheld == "xid" and tx.cordons.get(device.id) is None:
                # The driver may forget what it told; a server that is started again must not offer the device.
                tx.cordons.put(CordonRow(device.id, "aliquot", now))

    async def _watch(self, reading: devices.Reading) -> None:
        """Meter what is used; end (or only tell of) pods that use more of a device than their share."""
        living = await self._store.read(lambda tx: {pod.id: pod for pod in tx.pods.find(phase=PodPhase.RUNNING)})
        held = {pod.id: pod.shares for pod in living.values()}
        self._meter.observe(held, reading.use, now=self._clock.now())
        used, findings = self._meter.take(), self._watchdog.observe(held, reading)
        if used or findings:
            await self._store.write(lambda tx: self._note(tx, used, [(living[f.over.pod], f) for f in findings]))
        for finding in findings:
            if finding.action == "end":
                await asyncio.to_thread(self._runner.end, finding.over.pod, grace=timedelta(0))

    def _note(
        self, tx: Transaction, used: Mapping[str, int], findings: Sequence[tuple[PodRow, watchdog.Finding]]
    ) -> None:
        for id, milli_seconds in used.items():
            entry = tx.ledger.get(id)
            if entry is not None:
                tx.ledger.put(replace(entry, used_milli_seconds=(entry.used_milli_seconds or 0) + milli_seconds))
        for pod, finding in findings:
            row = tx.workloads.get(pod.workload)
            if row is not None:
                now = self._clock.now()
                event = EventRow(now, "workload", row.id, row.name, "over-use", finding.sentence, row.project)
                tx.events.put(event)

    def _queues(self, tx: Transaction, nodes: Sequence[Node]) -> tuple[Queue, ...]:
        """The queue tree. Quotas that follow the machine are brought in step with what it has."""
        milli = 1000 * sum(len(node.devices) for node in nodes)
        rows = []
        for row in tx.queues.find():
            current = _following(row, milli) if row.follows_machine else row
            rows.append(current if current == row else tx.queues.put(current))
        return tuple(Queue(row.id, row.name, row.created, row.department, row.terms) for row in rows)


def free_port(taken: frozenset[int]) -> int:
    """A loopback port that nobody listens on now and that no other pod was given."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port


def _held(tx: Transaction) -> frozenset[str]:
    living = (pod for phase in (PodPhase.BOUND, PodPhase.RUNNING, PodPhase.ENDING) for pod in tx.pods.find(phase=phase))
    return frozenset(share.device for pod in living for share in pod.shares)


def _with_cordon(device: Device, cordons: frozenset[str]) -> Device:
    return devices.withhold(device, "cordoned") if device.id in cordons else device


def _following(row: QueueRow, milli: int) -> QueueRow:
    terms = dict(row.terms)
    pool = terms.get(DEFAULT_POOL)
    claim = Claim(quota=milli) if pool is None else replace(pool.gpu, quota=milli)
    if pool is None or pool.gpu == claim:
        return row
    terms[DEFAULT_POOL] = replace(pool, gpu=claim)
    return replace(row, terms=terms)
