"""From rows to the shapes that people see. Pure: everything that a view needs is in its `Book`.

Promises: what a workload holds now is read from its open pods; a device that is gone is still named by what was stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aliquot.core import guarantees, lifecycle, quantities
from aliquot.core.model import Device, Guarantee, Node
from aliquot.core.plan import Rule
from aliquot.service import ports, records, waits
from aliquot.wire import nodes as node_shapes
from aliquot.wire import workloads as shapes

OPEN = (shapes.PodPhase.BOUND, shapes.PodPhase.RUNNING, shapes.PodPhase.ENDING)
"""Phases of pods that hold their place."""
_NOTHING = timedelta(0)
_STRENGTH = {guarantee: strength for strength, guarantee in enumerate(Guarantee)}
_WITHHELD = {
    "device-in-use": "Processes that Aliquot did not start use it.",
    "cordoned": "It was cordoned: what runs there goes on, nothing new starts.",
    "lost": "The driver does not see it any more.",
    "xid": "The driver reported a fault of the device that needs an administrator.",
    "not-offered": "It was not among the devices that the server was started with.",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A device and where it is."""

    node: str
    device: Device

    @property
    def name(self) -> str:
        """`node/index`."""
        return f"{self.node}/{self.device.index}"


@dataclass(frozen=True, slots=True)
class Book:
    """What views look up: queues and devices by id, the instant, and how things are reached."""

    queues: Mapping[str, records.QueueRow]
    names: Mapping[str, str]
    """Names of queues by id, deleted ones included."""
    places: Mapping[str, Place]
    now: datetime
    last: waits.Waits = field(default_factory=waits.Waits)
    """Why each workload waited when the last cycle ended."""
    host: str = "127.0.0.1"
    data_directory: str = ""


def places(tx: ports.Transaction, nodes: Sequence[Node], pods: Sequence[records.PodRow]) -> dict[str, Place]:
    """The devices of these pods by id, with their nodes. No others: there may be a hundred thousand."""
    known = {node.id: node for node in nodes} if pods else {}
    found: dict[str, Place] = {}
    for pod in pods:
        for share in pod.shares:
            if share.device not in found:
                place = _place(tx, known.get(pod.node), share.device)
                found |= {} if place is None else {share.device: place}
    return found


def workload(row: records.WorkloadRow, pods: Sequence[records.PodRow], book: Book) -> shapes.WorkloadView:
    """A workload as it is now; of `pods` the open ones count."""
    return shapes.WorkloadView(**_workload(row, pods, book))


def detail(row: records.WorkloadRow, pods: Sequence[records.PodRow], book: Book) -> shapes.WorkloadDetail:
    """A workload with its definition and all its pods."""
    ordered = sorted(pods, key=lambda pod: (pod.attempt, pod.index))
    return shapes.WorkloadDetail(
        **_workload(row, pods, book),
        definition=row.definition,
        pods=[pod_view(pod, book) for pod in ordered],
        checkpoint_directory=f"{book.data_directory}/workloads/{row.id}/checkpoint",
    )


def pod_view(pod: records.PodRow, book: Book) -> shapes.PodView:
    """One pod."""
    return shapes.PodView(
        id=pod.id,
        index=pod.index,
        attempt=pod.attempt,
        phase=pod.phase,
        node=pod.node,
        shares=[_share(share.device, share.milli, share.mib, book=book) for share in pod.shares],
        pid=pod.pid,
        port=pod.port,
        bound=pod.bound,
        started=pod.started,
        ended=pod.ended,
        exit_code=pod.exit_code,
        exit_signal=pod.exit_signal,
        exit_kind=pod.exit_kind,
        exit_message=pod.exit_message,
        limits=pod.limits,
    )


def reason(row: records.WorkloadRow, last: waits.Waits) -> shapes.Reason | None:
    """Why it waits, as the last cycle found it; None if it does not."""
    stored = last.reason(row.id) if row.phase is lifecycle.Phase.PENDING else None
    if stored is None:
        return None
    return shapes.Reason(
        code=stored.code,
        message=stored.message,
        numbers=dict(stored.numbers),
        blockers=[shapes.Blocker(workload=id, description=text) for id, text in stored.blockers],
        position=last.position(row.id),
    )


def receipt(row: records.ReceiptRow, names: Mapping[str, str]) -> shapes.Receipt:
    """What an eviction left behind."""
    known = {str(rule): rule for rule in Rule}
    return shapes.Receipt(
        id=row.id,
        workload=row.workload,
        workload_name=row.workload_name,
        project=names.get(row.project, row.project),
        pod=row.pod,
        beneficiary=row.beneficiary,
        beneficiary_name=row.beneficiary_name,
        rule=known.get(row.rule, row.rule),
        explanation=row.explanation,
        rejected=list(row.rejected),
        evicted=row.evicted,
        ran_seconds=int(row.ran.total_seconds()),
        milli_gpus=row.milli_gpus,
    )


def node(found: Node, here: Sequence[records.PodRow]) -> node_shapes.NodeView:
    """A machine and how much of it its pods hold."""
    taken = {share.device for pod in here for share in pod.shares}
    return node_shapes.NodeView(
        id=found.id,
        pool=found.pool,
        is_ready=found.is_ready,
        is_cordoned=found.is_cordoned,
        cpus=quantities.format_milli(found.milli_cpus),
        memory=quantities.format_bytes(found.memory_bytes),
        held_cpus=quantities.format_milli(sum(pod.milli_cpus for pod in here)),
        held_memory=quantities.format_bytes(sum(pod.memory_bytes for pod in here)),
        pods=len(here),
        devices=len(found.devices),
        free_devices=sum(device.withheld is None and device.id not in taken for device in found.devices),
        is_simulated=any(device.is_simulated for device in found.devices),
    )


def device(
    place: Place, holders: Sequence[node_shapes.DeviceHolder], use: node_shapes.DeviceUse | None
) -> node_shapes.DeviceView:
    """A device and who holds it."""
    found = place.device
    return node_shapes.DeviceView(
        id=found.id,
        node=place.node,
        index=found.index,
        model=found.model,
        memory_mib=found.memory_mib,
        is_simulated=found.is_simulated,
        guarantee=found.guarantee,
        guarantee_description=guarantees.describe(found.guarantee),
        withheld=found.withheld,
        withheld_description=None if found.withheld is None else _WITHHELD.get(found.withheld, found.withheld),
        foreign=[node_shapes.ForeignUse(pid=one.pid, user=one.user, mib=one.mib) for one in found.foreign],
        held_milli_gpus=sum(holder.milli_gpus for holder in holders),
        held_mib=sum(holder.mib for holder in holders),
        holders=list(holders),
        use=use,
    )


def holder(
    pod: records.PodRow, device_id: str, row: records.WorkloadRow | None, *, project: str
) -> node_shapes.DeviceHolder:
    """A pod that holds something of a device; `row` is its workload, if it is known."""
    shares = [share for share in pod.shares if share.device == device_id]
    return node_shapes.DeviceHolder(
        workload=pod.workload,
        workload_name=pod.workload if row is None else row.name,
        project=project,
        pod=pod.id,
        milli_gpus=sum(share.milli for share in shares),
        mib=sum(share.mib for share in shares),
        is_ending=pod.phase is shapes.PodPhase.ENDING,
    )


def weakest(found: Sequence[Guarantee]) -> Guarantee | None:
    """The guarantee that holds for all of these; None for none."""
    return min(found, key=lambda guarantee: _STRENGTH[guarantee], default=None)


def read_book(
    tx: ports.Transaction, nodes: Sequence[Node], *, now: datetime, pods: Sequence[records.PodRow] = ()
) -> Book:
    """The book of this transaction, for these pods and the workloads that they are of."""
    queues = {row.id: row for row in tx.queues.find()}
    return Book(
        queues=queues,
        names={id: row.name for id, row in queues.items()},
        places=places(tx, nodes, pods),
        now=now,
        last=waits.read(tx),
    )


def _place(tx: ports.Transaction, node: Node | None, id: str) -> Place | None:
    """Where a device is; one that is gone is where it was."""
    if node is not None:
        for device in node.devices:
            if device.id == id:
                return Place(node.id, device)
    row = tx.devices.get(id)
    if row is None:
        return None
    return Place(row.node, Device(row.id, row.index, row.model, row.memory_mib, row.is_simulated))


def _workload(row: records.WorkloadRow, pods: Sequence[records.PodRow], book: Book) -> dict[str, object]:
    living = sorted((pod for pod in pods if pod.phase in OPEN), key=lambda pod: (pod.attempt, pod.index))
    held = [share.device for pod in living for share in pod.shares]
    known = [book.places[id] for id in dict.fromkeys(held) if id in book.places]
    running = [pod for pod in living if pod.phase is shapes.PodPhase.RUNNING]
    asked = row.request
    queue = book.queues.get(row.project)
    department = queue.department if queue is not None else None
    so_far = row.ran if row.running_since is None else row.ran + max(book.now - row.running_since, _NOTHING)
    return {
        "id": row.id,
        "name": row.name,
        "project": book.names.get(row.project, row.project),
        "department": book.names.get(department or "", department or ""),
        "kind": row.definition.kind,
        "phase": row.phase,
        "gpu": quantities.format_gpu(asked.gpu),
        "cpu": quantities.format_milli(asked.milli_cpus) if asked.milli_cpus else None,
        "memory": quantities.format_bytes(asked.memory_bytes) if asked.memory_bytes else None,
        "replicas": row.definition.replicas,
        "priority": row.priority,
        "preemptible": row.is_preemptible,
        "actor": row.actor,
        "created": row.created,
        "waiting_since": row.waiting_since if row.phase is lifecycle.Phase.PENDING else None,
        "started": row.first_started,
        "finished": row.finished,
        "attempt": row.attempt,
        "failures": row.failures,
        "evictions": row.evictions,
        "ran_seconds": int(so_far.total_seconds()),
        "outcome": row.outcome if row.finished is not None else None,
        "exit_code": row.exit_code,
        "exit_signal": row.exit_signal,
        "reason": reason(row, book.last),
        "not_before": row.not_before if row.phase is lifecycle.Phase.PENDING else None,
        "url": next((f"http://{book.host}:{pod.port}" for pod in running if pod.port is not None), None),
        "devices": [place.name for place in known],
        "guarantee": weakest([place.device.guarantee for place in known]),
        "is_simulated": any(place.device.is_simulated for place in known),
        "labels": dict(row.definition.labels),
    }


def _share(id: str, milli: int, mib: int, *, book: Book) -> shapes.Share:
    place = book.places.get(id)
    found = Device(id, index=-1, model="gone", memory_mib=0) if place is None else place.device
    return shapes.Share(
        device=id,
        index=found.index,
        model=found.model,
        milli_gpus=milli,
        mib=mib,
        guarantee=found.guarantee,
        is_simulated=found.is_simulated,
    )
