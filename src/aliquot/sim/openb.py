"""How much of a cluster gets allocated, measured as the FGD paper does it on Alibaba's openb workloads.

Source of the procedure: Weng et al., USENIX ATC 2023, and its simulator. Pods come one at a time in random order, more
of them than there is room for, and none ever ends. A pod that does not fit is dropped. What is measured is the part of
all GPUs that is allocated by the time that pods for so many per cent of them have come.

With `queue` the pods do not come one at a time: all wait in a queue that the scheduler sees, and it may choose whom to
serve first.

Promises: the same seed gives the same arrivals and the same order of nodes to every way of placing; our own is the one
of the product (`core.placement`, `core.schedule`), called as the production loop calls it.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from aliquot.core import placement, schedule
from aliquot.core import snapshot as snapshots
from aliquot.core.errors import InvalidInput
from aliquot.core.model import (
    DEFAULT_POOL,
    WHOLE_DEVICE_MILLI,
    Asked,
    Claim,
    GpuRequest,
    Node,
    PlacementStrategy,
    Pod,
    PodRequest,
    Policy,
    PoolTerms,
    Queue,
    QueueOrder,
    Snapshot,
    Workload,
)
from aliquot.sim import lines, nodes, placements, traces
from aliquot.sim.intake import BEGIN

NODES = "openb_node_list_gpu_node.csv"
LIST = "openb_pod_list_{}.csv"
OURS: tuple[PlacementStrategy, ...] = ("fragmentation", "pack", "spread")
"""The strategies of the product; the first is its default."""
POLICIES = (*OURS, *placements.NAMES)
OVERLOAD = 1.3
"""Pods come until they ask for so much of all GPUs."""
_QUEUE = "all"


@dataclass(frozen=True, slots=True)
class Load:
    """A cluster and the pods of a workload, by name."""

    nodes: tuple[Node, ...]
    requests: tuple[PodRequest, ...]

    @property
    def capacity(self) -> int:
        """Milli-GPU of all nodes."""
        return sum(len(node.devices) for node in self.nodes) * WHOLE_DEVICE_MILLI

    @property
    def asked(self) -> Counter[PodRequest]:
        """How often each request comes."""
        return Counter(self.requests)


@dataclass(frozen=True, slots=True)
class Draw:
    """What one seed makes of a load: the order of the nodes, and the pods in the order in which they come."""

    nodes: tuple[Node, ...]
    arrivals: tuple[PodRequest, ...]


@dataclass(frozen=True, slots=True)
class Served:
    """What came of a queue: per cent of all GPUs that are allocated; how many pods started, of how many."""

    allocated: float
    started: int
    pods: int


class Placing(Protocol):
    """A way of placing pods, with a cluster of its own."""

    def place(self, request: PodRequest) -> bool:
        """Whether there was room for a pod, which is taken then."""


def read(folder: Path, workload: str) -> Load:
    """A workload by its name, from a folder with the published lists. Raises InvalidInput."""
    where, what = folder / NODES, folder / LIST.format(workload)
    for path in (where, what):
        if not path.is_file():
            raise InvalidInput(f"{path}: there is no such list", field="--data", valid=("the folder `openb`",))
    with lines.open_text(where) as stream:
        cluster = nodes.parse_list(where.name, stream)
    jobs = traces.read(what, "openb").jobs
    requests: dict[traces.Shape, PodRequest] = {}
    return Load(cluster, tuple(_request(job.shape, requests) for job in sorted(jobs, key=lambda job: job.name)))


def draw(load: Load, seed: int) -> Draw:
    """All pods shuffled, then copies of any of them until one more would pass the overload; and the nodes shuffled.
    As in the published runs, the copy that ends it is judged by what it asks of one device."""
    rng = random.Random(seed)
    arrivals = list(load.requests)
    rng.shuffle(arrivals)
    asked, most = sum(size_of(one) for one in arrivals), int(OVERLOAD * load.capacity)
    while asked <= most:
        copy = rng.choice(load.requests)
        if asked + (copy.gpu.milli or 0 if copy.gpu else 0) > most:
            break
        asked += size_of(copy)
        arrivals.append(copy)
    order = list(load.nodes)
    rng.shuffle(order)
    return Draw(tuple(_renamed(node, index) for index, node in enumerate(order)), tuple(arrivals))


def placing_of(policy: str, load: Load, drawn: Draw, seed: int) -> Placing:
    """A way of placing by its name."""
    for strategy in OURS:
        if policy == strategy:
            return Own(drawn.nodes, load.asked, strategy)
    rule = placements.rule_of(policy, drawn.nodes, load.asked)
    return placements.Placements(drawn.nodes, rule, random.Random(seed))


def run(arrivals: Iterable[PodRequest], placing: Placing, capacity: int) -> dict[int, float]:
    """Per cent of all GPUs that are allocated, by per cent that was asked for: the mean over all arrivals that round
    to it."""
    asked = allocated = 0
    seen: dict[int, list[int]] = {}
    for request in arrivals:
        asked += size_of(request)
        if placing.place(request):
            allocated += size_of(request)
        seen.setdefault((200 * asked + capacity) // (2 * capacity), []).append(allocated)
    return {percent: 100 * sum(found) / len(found) / capacity for percent, found in seen.items()}


def queue(arrivals: Sequence[PodRequest], cluster: Sequence[Node], capacity: int) -> Served:
    """What one cycle makes of all pods at once, in a queue that serves the largest first."""
    waiting = tuple(
        Workload(
            id=f"pod-{index:06}",
            name=f"pod-{index:06}",
            queue=_QUEUE,
            created=BEGIN + timedelta(seconds=index),
            pods=(Pod(f"pod-{index:06}/0", 0, request),),
            min_pods=1,
        )
        for index, request in enumerate(arrivals)
    )
    served = dataclasses.replace(_queue(), order=QueueOrder.LARGEST_FIRST)
    world = snapshots.World(Snapshot(tuple(cluster), (served,), waiting))
    cycle = schedule.decide(world, Policy(actions=("allocate",)), BEGIN + timedelta(days=1))
    allocated = sum(share.milli for bind in cycle.binds for share in bind.place.shares)
    return Served(100 * allocated / capacity, len(cycle.binds), len(waiting))


class Own:
    """The product's placement by one of its strategies, in a world that is kept from pod to pod."""

    def __init__(self, cluster: Sequence[Node], asked: Counter[PodRequest], strategy: PlacementStrategy) -> None:
        """`asked`: how often each request comes, which the product knows as what was asked lately."""
        recent = tuple(Asked(request, count) for request, count in asked.items())
        self._world = snapshots.World(Snapshot(tuple(cluster), (_queue(),), recent=recent))
        self._placer = placement.Placer(self._world, Policy(gpu_placement=strategy))
        self._owner = Workload(id="pods", name="pods", queue=_QUEUE, created=BEGIN, pods=(), min_pods=1)
        self._count = 0

    def place(self, request: PodRequest) -> bool:
        """Whether there was room for a pod, which is taken then."""
        self._count += 1
        pod = Pod(f"pods/{self._count}", self._count, request)
        ask = self._world.make_ask(self._owner, DEFAULT_POOL, (pod,), is_core=True)
        holdings = self._placer.place(ask, "now")
        for holding in holdings or ():
            self._world.hold(holding)
        return holdings is not None


def size_of(request: PodRequest) -> int:
    """Milli-GPU in all."""
    return 0 if request.gpu is None else request.gpu.devices * (request.gpu.milli or 0)


def _request(shape: traces.Shape, known: dict[traces.Shape, PodRequest]) -> PodRequest:
    if shape not in known:
        gpu = GpuRequest(shape.devices, shape.milli, models=shape.models) if shape.devices else None
        known[shape] = PodRequest(gpu, shape.milli_cpus, shape.memory_bytes)
    return known[shape]


def _renamed(node: Node, index: int) -> Node:
    """Named by its place, because the last to decide between equal nodes is their name."""
    id = f"node-{index:05}"
    devices = tuple(dataclasses.replace(device, id=f"{id}/{device.index}") for device in node.devices)
    return dataclasses.replace(node, id=id, devices=devices)


def _queue() -> Queue:
    return Queue(id=_QUEUE, name=_QUEUE, created=BEGIN, terms={DEFAULT_POOL: PoolTerms(gpu=Claim(quota=None))})
