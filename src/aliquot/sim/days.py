"""Random days: a small cluster, a tree of queues and a script of arrivals, ends, changes and losses, all from one seed.

Promises: the same seed gives the same day on every machine. Days are crowded on purpose (borrowers fill the cluster
early, owners and people with higher priority come later), so that many cycles have to evict.
"""

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from aliquot.core.model import (
    DEFAULT_POOL,
    WHOLE_DEVICE_MILLI,
    Claim,
    Device,
    GpuRequest,
    Node,
    Pod,
    PodRequest,
    Policy,
    PoolTerms,
    Queue,
    Workload,
)
from aliquot.service import loop
from aliquot.sim.clock import VirtualClock
from aliquot.sim.cluster import GRACE, SimCluster
from aliquot.sim.runner import Simulation
from aliquot.sim.script import Cordon, Event, Happening, Job, Offer, Script, SetQueue, Stop, Submit, Uncordon, Withhold

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(hours=24)
GIB = 2**30

_GPU_KINDS = (
    *[GpuRequest(devices=1)] * 8,
    *[GpuRequest(devices=2)] * 4,
    GpuRequest(devices=4),
    *[GpuRequest(devices=1, milli=500)] * 3,
    GpuRequest(devices=1, milli=250),
    GpuRequest(devices=1, milli=333),
    GpuRequest(devices=2, milli=500),
    *[GpuRequest(devices=1, milli=None, mib=20 * 1024)] * 2,
    GpuRequest(devices=1, milli=None, mib=30_000),
)


@dataclass(frozen=True, slots=True)
class Day:
    """Where a day begins and all that happens in it."""

    seed: int
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    script: Script
    policy: Policy

    @property
    def end(self) -> datetime:
        """When it is over."""
        return self.script.start + DAY

    def simulation(self) -> Simulation:
        """A cluster at the start of this day, with its script ahead."""
        clock = VirtualClock(self.script.start)
        cluster = SimCluster(clock, nodes=self.nodes, queues=self.queues, grace=GRACE)
        cluster.plan_ahead(self.script.events)
        return Simulation(cluster, clock, loop.Planner(self.policy))


def random_day(seed: int) -> Day:
    """The day of this seed: 4 to 16 devices, 2 to 4 departments, 20 to 40 jobs."""
    rng = random.Random(seed)
    nodes = _nodes(rng)
    queues = _queues(rng, devices=sum(len(node.devices) for node in nodes))
    projects = [queue for queue in queues if queue.parent is not None]
    events = [*_arrivals(rng, nodes, projects), *_changes(rng, nodes, queues)]
    script = Script(start=MIDNIGHT, events=tuple(sorted(events, key=lambda event: event.at)))
    policy = Policy(release_grace=GRACE, gpu_placement=rng.choice(("pack", "pack", "spread")))
    return Day(seed, nodes, queues, script, policy)


def _nodes(rng: random.Random) -> tuple[Node, ...]:
    sizes = rng.choice(((4,), (8,), (4, 4), (2, 2, 4), (8, 4), (8, 8), (2, 4)))
    return tuple(
        _node(f"node-{index}", devices, memory_gib=rng.choice((24, 80, 80))) for index, devices in enumerate(sizes)
    )


def _node(id: str, devices: int, *, memory_gib: int) -> Node:
    return Node(
        id=id,
        milli_cpus=devices * 8000,
        memory_bytes=devices * 64 * GIB,
        devices=tuple(
            Device(f"{id}-gpu-{index}", index, f"card-{memory_gib}", memory_gib * 1024, is_simulated=True)
            for index in range(devices)
        ),
    )


def _queues(rng: random.Random, *, devices: int) -> tuple[Queue, ...]:
    """Departments whose quotas add up to about what there is, each divided among its projects."""
    queues: list[Queue] = []
    departments = rng.randint(2, 4)
    for index, quota in enumerate(_split(rng, devices * rng.choice((1000, 1000, 1000, 1250, 750)), departments)):
        department = _queue(rng, f"department-{index}", quota=quota)
        queues.append(department)
        for number, part in enumerate(_split(rng, quota, rng.randint(1, 3))):
            queues.append(_queue(rng, f"project-{index}{number}", quota=part, parent=department.id))
    return tuple(queues)


def _queue(rng: random.Random, id: str, *, quota: int, parent: str | None = None) -> Queue:
    limit = quota + rng.choice((0, 2000, 4000)) if rng.random() < 0.1 else None
    terms = PoolTerms(
        gpu=Claim(quota=None if rng.random() < 0.05 else quota, weight=rng.choice((1, 1, 2, 3)), limit=limit),
        cpu=Claim(quota=rng.choice((4000, 16000))) if rng.random() < 0.1 else Claim(),
        memory=Claim(),
        priority=rng.choice((100, 100, 100, 200)),
    )
    created = MIDNIGHT - timedelta(days=rng.randint(1, 300))
    return Queue(id=id, name=id, created=created, parent=parent, terms={DEFAULT_POOL: terms})


def _split(rng: random.Random, total: int, parts: int) -> list[int]:
    """Whole devices, so many to each; the last one gets what is left."""
    weights = [rng.choice((0, 1, 1, 2, 3)) for _ in range(parts)]
    whole = [total * weight // (sum(weights) or 1) // 1000 * 1000 for weight in weights]
    whole[-1] = max(0, total - sum(whole[:-1]))
    return whole


def _arrivals(rng: random.Random, nodes: tuple[Node, ...], projects: list[Queue]) -> list[Event]:
    """Borrowers at the start, long and preemptible; then owners of quota, seldom anybody, over the whole day."""
    count = rng.randint(20, 40)
    borrowers = rng.sample(projects, k=max(1, len(projects) // 3))
    owners = [queue for queue in projects if queue.terms_in(DEFAULT_POOL).gpu.quota] or projects
    largest = max(len(node.devices) for node in nodes)
    release_takes = timedelta(seconds=rng.randint(1, 30))
    events = []
    for index in range(count):
        is_early = index < count * 3 // 5
        queue = rng.choice(borrowers if is_early else owners if rng.random() < 0.95 else projects)
        job = _job(rng, f"job-{index:02d}", queue, largest=largest)
        if rng.random() < 0.9:
            job = replace(job, release_takes=release_takes)
        if is_early:
            workload = replace(job.workload, is_preemptible=True, priority=25)
            job = replace(job, workload=workload, run_time=timedelta(hours=rng.randint(20, 60)))
        at = MIDNIGHT + timedelta(minutes=rng.randint(0, 1)) if is_early else _during(rng)
        events.append(Event(at, Submit(job)))
    return events


def _job(rng: random.Random, id: str, queue: Queue, *, largest: int) -> Job:
    """A job of a size that its project may hope for; one in ten is of any size."""
    quota = queue.terms_in(DEFAULT_POOL).gpu.quota
    most = 99 if quota is None or rng.random() < 0.1 else max(1, quota // WHOLE_DEVICE_MILLI)
    gpu = rng.choice([kind for kind in _GPU_KINDS if kind.devices <= min(most, largest)])
    pods = rng.choice([count for count in (1, 1, 1, 1, 1, 2, 2, 3, 4) if count * gpu.devices <= most] or [1])
    request = PodRequest(
        gpu=gpu if rng.random() < 0.95 else None,
        milli_cpus=rng.choice((0, 0, 1000, 4000)),
        memory_bytes=rng.choice((0, 0, 8, 32)) * GIB,
    )
    workload = Workload(
        id=id,
        name=id,
        queue=queue.id,
        created=MIDNIGHT,
        pods=tuple(Pod(f"{id}-{index}", index, request) for index in range(pods)),
        min_pods=pods if rng.random() < 0.85 else rng.randint(1, pods),
        priority=rng.choice((50, 50, 75, 100)),
        is_preemptible=rng.random() < 0.85,
    )
    return Job(
        workload=workload,
        run_time=timedelta(minutes=rng.choice((90, 240, 480, 900, 1800))),
        checkpoint_every=rng.choice((None, timedelta(minutes=10), timedelta(hours=1))),
        release_takes=timedelta(seconds=rng.randint(1, 30)),
    )


def _changes(rng: random.Random, nodes: tuple[Node, ...], queues: tuple[Queue, ...]) -> list[Event]:
    """People and accidents: stops, new quotas, cordons, lost devices that come back."""
    events = [Event(_during(rng), Stop(f"job-{rng.randint(0, 30):02d}")) for _ in range(rng.randint(0, 1))]
    events += [Event(_during(rng), SetQueue(_requota(rng, rng.choice(queues)))) for _ in range(rng.randint(0, 1))]
    if rng.random() < 0.3:
        node = rng.choice(nodes).id
        events += _for_a_while(rng, Cordon(node), Uncordon(node))
    if rng.random() < 0.4:
        device = rng.choice(rng.choice(nodes).devices).id
        reason = rng.choice(("lost", "xid", "device-in-use", "cordoned"))
        events += _for_a_while(rng, Withhold(device, reason), Offer(device))
    return events


def _requota(rng: random.Random, queue: Queue) -> Queue:
    terms = queue.terms_in(DEFAULT_POOL)
    gpu = replace(terms.gpu, quota=rng.randint(0, 8) * WHOLE_DEVICE_MILLI, weight=rng.randint(1, 3))
    return replace(queue, terms={DEFAULT_POOL: replace(terms, gpu=gpu)})


def _for_a_while(rng: random.Random, first: Happening, then: Happening) -> list[Event]:
    at = _during(rng)
    return [Event(at, first), Event(at + timedelta(hours=rng.randint(1, 6)), then)]


def _during(rng: random.Random) -> datetime:
    """Some time of the day, on a grid, so that some things happen at the same instant."""
    return MIDNIGHT + timedelta(minutes=10 * rng.randint(6, 140))
