"""Small worlds for tests: name only what matters, everything else has a plain default.

Amounts are written as people write them (`gpu="0.5"`, `cpu="500m"`, `memory="64Gi"`). Ids equal names, a device of
`node-1` is called `node-1-gpu-0`, and all times count from `NOW`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from aliquot.core import quantities
from aliquot.core.model import (
    DEFAULT_POOL,
    Claim,
    Device,
    ForeignUse,
    GpuRequest,
    Node,
    Pod,
    PodRequest,
    PodState,
    PoolTerms,
    Promise,
    Queue,
    Share,
    Snapshot,
    Workload,
)

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
DEVICE_MEMORY = "80Gi"

Part = Node | Queue | Workload | Promise


def mib(text: str) -> int:
    """`80Gi` in MiB."""
    return quantities.parse_bytes(text, "memory") // 2**20


def device(
    id: str = "node-1-gpu-0",
    *,
    memory: str = DEVICE_MEMORY,
    model: str = "H100",
    withheld: str | None = None,
    foreign: tuple[ForeignUse, ...] = (),
) -> Device:
    """One device; its index is the number at the end of its id."""
    return Device(
        id=id, index=int(id.rpartition("-")[2]), model=model, memory_mib=mib(memory), withheld=withheld, foreign=foreign
    )


def node(
    id: str = "node-1",
    devices: int | Sequence[Device] = 8,
    *,
    cpu: str = "64",
    memory: str = "512Gi",
    pool: str = DEFAULT_POOL,
    is_cordoned: bool = False,
    is_ready: bool = True,
    max_pods: int = 1000,
    device_memory: str = DEVICE_MEMORY,
) -> Node:
    """A machine with so many equal devices, or with these."""
    if isinstance(devices, int):
        devices = [device(f"{id}-gpu-{index}", memory=device_memory) for index in range(devices)]
    return Node(
        id=id,
        milli_cpus=quantities.parse_milli(cpu, "cpu"),
        memory_bytes=quantities.parse_bytes(memory, "memory"),
        devices=tuple(devices),
        pool=pool,
        max_pods=max_pods,
        is_ready=is_ready,
        is_cordoned=is_cordoned,
    )


def claim(quota: str | None = None, *, weight: int = 1, limit: str | None = None, is_memory: bool = False) -> Claim:
    """A claim on one resource; None is unlimited."""
    read = quantities.parse_bytes if is_memory else quantities.parse_milli
    return Claim(
        quota=None if quota is None else read(quota, "quota"),
        weight=weight,
        limit=None if limit is None else read(limit, "limit"),
    )


def queue(
    id: str = "team-a",
    gpu: str | None = "0",
    *,
    parent: str | None = None,
    weight: int = 1,
    limit: str | None = None,
    priority: int = 100,
    cpu: Claim | None = None,
    memory: Claim | None = None,
    pool: str = DEFAULT_POOL,
) -> Queue:
    """A project, or a department where others name it as `parent`; `gpu` is its GPU quota, None is unlimited."""
    terms = PoolTerms(
        gpu=claim(gpu, weight=weight, limit=limit), cpu=cpu or Claim(), memory=memory or Claim(), priority=priority
    )
    return Queue(id=id, name=id, created=NOW - timedelta(days=30), parent=parent, terms={pool: terms})


def request(gpu: str | None = "1", *, cpu: str = "0", memory: str = "0") -> PodRequest:
    """What one pod asks for; `gpu=None` is none."""
    return PodRequest(
        gpu=None if gpu is None else quantities.parse_gpu(gpu),
        milli_cpus=quantities.parse_milli(cpu, "cpu"),
        memory_bytes=quantities.parse_bytes(memory, "memory"),
    )


def job(
    id: str = "job",
    queue: str = "team-a",
    gpu: str | None = "1",
    *,
    pods: int = 1,
    min_pods: int | None = None,
    cpu: str = "0",
    memory: str = "0",
    priority: int = 50,
    is_preemptible: bool = True,
    pool: str = DEFAULT_POOL,
    waits: timedelta = timedelta(hours=1),
    not_before: datetime | None = None,
) -> Workload:
    """A workload all of whose pods are pending; it began to wait `waits` ago."""
    ask = request(gpu, cpu=cpu, memory=memory)
    return Workload(
        id=id,
        name=id,
        queue=queue,
        created=NOW - waits,
        pods=tuple(Pod(id=f"{id}-{index}", index=index, request=ask) for index in range(pods)),
        min_pods=pods if min_pods is None else min_pods,
        priority=priority,
        is_preemptible=is_preemptible,
        pool=pool,
        not_before=not_before,
    )


def asking(workload: Workload, **asked: object) -> Workload:
    """The workload with pods that ask for this besides, or instead: fields of their request."""
    pods = tuple(replace(pod, request=replace(pod.request, **asked)) for pod in workload.pods)  # type: ignore[arg-type]  # passed on
    return replace(workload, pods=pods)


def having(workload: Workload, **facts: object) -> Workload:
    """The workload with pods of which this is so: fields of a pod."""
    return replace(workload, pods=tuple(replace(pod, **facts) for pod in workload.pods))  # type: ignore[arg-type]  # passed on


def running(
    workload: Workload,
    *places: str,
    started: timedelta = timedelta(minutes=30),
    state: PodState = PodState.RUNNING,
    due: datetime | None = None,
    device_memory: str = DEVICE_MEMORY,
) -> Workload:
    """The workload with its first pods at these places, one text each: `node-1:0,1`, or `node-1` without devices."""
    pods = list(workload.pods)
    for index, place in enumerate(places):
        node_id, _, devices = place.partition(":")
        before = pods[index]
        pods[index] = replace(
            before,
            state=state,
            node=node_id,
            shares=shares(before.request.gpu, node_id, devices, device_memory=device_memory),
            release_due=due if state is PodState.RELEASING else None,
        )
    return replace(workload, pods=tuple(pods), started=NOW - started)


def releasing(workload: Workload, *places: str, due: timedelta | None = timedelta(seconds=20)) -> Workload:
    """The workload, told to end and still holding these places for `due` at most."""
    return running(workload, *places, state=PodState.RELEASING, due=None if due is None else NOW + due)


def shares(
    gpu: GpuRequest | None, node_id: str, devices: str, *, device_memory: str = DEVICE_MEMORY
) -> tuple[Share, ...]:
    """What a pod with this request holds of the devices `0,1` of a node."""
    if gpu is None or not devices:
        return ()
    offer = mib(device_memory)
    milli = gpu.milli if gpu.mib is None else -(-1000 * gpu.mib // offer)
    held = offer * (gpu.milli or 0) // 1000 if gpu.mib is None else gpu.mib
    return tuple(Share(f"{node_id}-gpu-{index}", milli or 0, held) for index in devices.split(","))


def snapshot(*parts: Part) -> Snapshot:
    """A snapshot of these nodes, queues, workloads and promises."""
    return Snapshot(
        nodes=tuple(part for part in parts if isinstance(part, Node)),
        queues=tuple(part for part in parts if isinstance(part, Queue)),
        workloads=tuple(part for part in parts if isinstance(part, Workload)),
        promises=tuple(part for part in parts if isinstance(part, Promise)),
    )
