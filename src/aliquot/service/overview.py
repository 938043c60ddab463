"""The overview: how the GPUs do, who waits for what, and what is broken.

Promises: one look at what is kept in memory, so that it costs the same tenth of a second however often it is asked
for; what is not measured is None, never 0.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from aliquot.core import lifecycle
from aliquot.core.model import Device, Node
from aliquot.service import access, loop, mirror, ports, queues, records, server, watch
from aliquot.wire import overview as shapes

LATE = timedelta(seconds=30)
"""A scheduler that has not turned for so long is in trouble: it turns at least every two seconds."""
_BROKEN = frozenset({"lost", "xid"})


@dataclass(frozen=True, slots=True)
class _Scene:
    """All that an overview is made from."""

    now: datetime
    nodes: Sequence[Node]
    sight: mirror.Sight
    said: ports.ClusterFacts


class Overview:
    """The use case of the overview."""

    def __init__(
        self,
        seen: mirror.Mirror,
        cluster: ports.Cluster,
        watching: watch.Watch,
        *,
        clock: ports.Clock,
        facts: server.ServerFacts,
        pulse: loop.Pulse,
    ) -> None:
        self._mirror = seen
        self._cluster = cluster
        self._watch = watching
        self._clock = clock
        self._facts = facts
        self._pulse = pulse

    async def get(self, actor: access.Actor) -> shapes.Overview:
        """Everything at once."""
        access.check(actor, "get", "overview")
        scene = _Scene(
            now=self._clock.now(),
            nodes=await self._cluster.nodes(),
            sight=await self._mirror.look(),
            said=await self._cluster.facts(),
        )
        return await asyncio.to_thread(self._show, scene)

    def _show(self, scene: _Scene) -> shapes.Overview:
        pulse, said = self._pulse, scene.said
        devices, nodes = _devices(scene), _nodes(scene.nodes)
        took = pulse.took.total_seconds()
        return shapes.Overview(
            time=scene.now,
            cluster=records.DEFAULT_CLUSTER,
            version=self._facts.version,
            is_accepting=said.is_accepting,
            notice=said.notice,
            devices=devices,
            nodes=nodes,
            phases=dict(sorted(Counter(str(row.phase) for row in scene.sight.workloads.values()).items())),
            waiting=_waiting(scene),
            idle=[_idle(one, scene) for one in self._watch.idle(scene.now)],
            departments=_departments(scene.sight),
            health=[*self._health(scene), _device_health(scene.nodes), _node_health(nodes)],
            last_cycle=None if pulse.began is None else shapes.LastCycle(at=pulse.began, seconds=round(took, 4)),
        )

    def _health(self, scene: _Scene) -> Iterator[shapes.Finding]:
        faults = self._watch.ledger_faults
        if faults:
            yield shapes.Finding(name="ledger", status="bad", message=f"the ledger does not add up: {faults[0]}")
        elif faults is None:
            yield shapes.Finding(name="ledger", status="good", message="the ledger was not looked at yet")
        else:
            yield shapes.Finding(name="ledger", status="good", message="the ledger adds up")
        if scene.said.is_accepting:
            yield shapes.Finding(name="disk", status="good", message="there is room on the disk")
        else:
            yield shapes.Finding(name="disk", status="bad", message=scene.said.notice or "nothing new starts")
        yield self._scheduler(scene.now)

    def _scheduler(self, now: datetime) -> shapes.Finding:
        pulse = self._pulse
        if pulse.fault is not None:
            return shapes.Finding(name="scheduler", status="bad", message=f"the last cycle failed: {pulse.fault}")
        if pulse.began is None:
            return shapes.Finding(name="scheduler", status="warning", message="no cycle is over yet")
        silent = now - pulse.began - pulse.took
        if silent > LATE:
            message = f"the last cycle was {int(silent.total_seconds())} s ago"
            return shapes.Finding(name="scheduler", status="bad", message=message)
        message = f"a cycle takes {pulse.took.total_seconds():.2g} s"
        return shapes.Finding(name="scheduler", status="good", message=message)


def _devices(scene: _Scene) -> shapes.DeviceTotals:
    held, use = scene.sight.held, scene.said.use
    count = free = withheld = 0
    is_simulated = False
    for node in scene.nodes:
        is_open = node.is_ready and not node.is_cordoned
        count += len(node.devices)
        for device in node.devices:
            is_simulated = is_simulated or device.is_simulated
            if not is_open or device.withheld is not None:
                withheld += 1
            elif device.id not in held:
                free += 1
    measured = [one.utilisation_percent for one in use.values() if one.utilisation_percent is not None]
    return shapes.DeviceTotals(
        count=count,
        free=free,
        held_milli_gpus=sum(held.values()),
        used_milli_gpus=10 * sum(measured) if measured else None,
        measured=len(measured),
        withheld=withheld,
        is_simulated=is_simulated,
        description=scene.said.description,
    )


def _nodes(nodes: Sequence[Node]) -> shapes.NodeTotals:
    return shapes.NodeTotals(
        count=len(nodes),
        not_ready=sum(not node.is_ready for node in nodes),
        cordoned=sum(node.is_cordoned for node in nodes),
    )


def _waiting(scene: _Scene) -> list[shapes.WaitingGroup]:
    device_mib = mirror.device_mib(scene.nodes)
    groups: dict[str, list[records.WorkloadRow]] = defaultdict(list)
    for row in scene.sight.workloads.values():
        reason = scene.sight.waits.reason(row.id) if row.phase is lifecycle.Phase.PENDING else None
        if reason is not None:
            groups[reason.code].append(row)
    shown = [_group(rows, scene.sight, device_mib) for rows in groups.values()]
    return sorted(shown, key=lambda one: (-one.milli_gpus, -one.workloads, one.code))


def _group(rows: Sequence[records.WorkloadRow], sight: mirror.Sight, device_mib: int) -> shapes.WaitingGroup:
    oldest = min(rows, key=lambda row: (row.waiting_since, row.id))
    reason = sight.waits.reason(oldest.id)
    assert reason is not None, "it is in a group by its reason"
    return shapes.WaitingGroup(
        code=reason.code,
        workloads=len(rows),
        milli_gpus=sum(mirror.asked_milli(row, device_mib) for row in rows),
        oldest=oldest.waiting_since,
        example=shapes.WaitingExample(
            id=oldest.id, name=oldest.name, project=sight.name(oldest.project), message=reason.message
        ),
    )


def _idle(found: watch.Idle, scene: _Scene) -> shapes.IdleHolding:
    row = scene.sight.workloads.get(found.workload)
    return shapes.IdleHolding(
        workload=found.workload,
        workload_name=found.workload if row is None else row.name,
        project="" if row is None else scene.sight.name(row.project),
        milli_gpus=found.milli_gpus,
        device=found.device,
        since=found.since,
        utilisation_percent=found.utilisation_percent,
    )


def _departments(sight: mirror.Sight) -> list[shapes.DepartmentTotals]:
    waiting: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for row in sight.workloads.values():
        if row.phase in mirror.WAITING:
            waiting[sight.department(row.project)] += 1
        elif row.phase in mirror.RUNNING:
            running[sight.department(row.project)] += 1
    rows = sorted((row for row in sight.queues.values() if row.department is None), key=lambda row: row.name)
    return [
        shapes.DepartmentTotals(
            name=row.name,
            quota_milli_gpus=_quota(row),
            held_milli_gpus=_counted(sight.standings, row.id, "held"),
            fair_share_milli_gpus=_counted(sight.standings, row.id, "fair_share"),
            asked_milli_gpus=_counted(sight.standings, row.id, "asked"),
            waiting=waiting[row.id],
            running=running[row.id],
        )
        for row in rows
    ]


def _quota(row: records.QueueRow) -> int | None:
    quotas = [terms.gpu.quota for terms in row.terms.values()]
    return None if None in quotas else sum(quota for quota in quotas if quota is not None)


def _counted(standings: queues.Standings, queue: str, what: str) -> int:
    return sum(pool.get(queue, {}).get(what, {}).get("gpu", 0) for pool in standings.values())


def _device_health(nodes: Sequence[Node]) -> shapes.Finding:
    withheld = Counter(device.withheld for device in _all(nodes) if device.withheld is not None)
    if not withheld:
        return shapes.Finding(name="devices", status="good", message="all devices take work")
    said = ", ".join(f"{count} {code}" for code, count in sorted(withheld.items()))
    is_broken = any(code in _BROKEN for code in withheld)
    return shapes.Finding(name="devices", status="bad" if is_broken else "warning", message=f"withheld: {said}")


def _node_health(totals: shapes.NodeTotals) -> shapes.Finding:
    if totals.not_ready:
        message = f"{totals.not_ready} of {totals.count} nodes are not ready"
        return shapes.Finding(name="nodes", status="bad", message=message)
    if totals.cordoned:
        message = f"{totals.cordoned} of {totals.count} nodes are cordoned"
        return shapes.Finding(name="nodes", status="warning", message=message)
    return shapes.Finding(name="nodes", status="good", message="all nodes take work")


def _all(nodes: Sequence[Node]) -> Iterator[Device]:
    for node in nodes:
        yield from node.devices
