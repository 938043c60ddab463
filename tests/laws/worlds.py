"""Random small clusters over the whole of the model, one for each seed, contended enough to be interesting.

Promises: the same seed and features give the same world on every machine; what runs in it is placed legally; making one
takes about a millisecond. `features` says which of the rules' inputs may come up, so that a law can be tried without
some of them.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from aliquot.core.model import (
    ACTION_NAMES,
    Amounts,
    Asked,
    Budget,
    Claim,
    Device,
    MigProfile,
    Node,
    PodState,
    Policy,
    PoolTerms,
    Queue,
    QueueOrder,
    Sharing,
    Snapshot,
    Taint,
    Topology,
    Usage,
)
from tests.laws import work

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)

NODES = frozenset(
    {"models", "taints", "labels", "mig-mode", "mig-instances", "pools", "cordons", "withheld", "foreign", "resources"}
    | {"device-sharing", "anonymous", "scarce"}
)
QUEUES = frozenset(
    {"departments", "limits", "queue-priorities", "usage", "unlimited", "weights", "held", "drained", "least-attained"}
    | {"min-runtime", "evictions-left", "hold-after", "cpu-terms"}
)
POLICIES = frozenset({"strategies", "actions", "few-moves", "budgets"})
FEATURES = NODES | QUEUES | POLICIES | work.FEATURES
"""All that may come up."""

COMMON = frozenset({"priorities", "portions", "gangs", "elastic", "departments", "weights", "releasing", "cpu"})
"""What comes up more often than the rest."""

NEEDS = {
    "profiles": ("mig-mode", "mig-instances"),
    "mig-mode": ("profiles",),
    "mig-instances": ("profiles",),
    "near": ("labels",),
    "selectors": ("labels",),
    "affinity": ("labels",),
    "anti-affinity": ("labels",),
    "spread": ("labels",),
    "fallbacks": ("pools",),
    "tolerations": ("taints",),
    "named-resources": ("resources",),
    "gang-trees": ("gangs",),
    "elastic": ("gangs",),
    "stale": ("gangs",),
    "stuck": ("releasing",),
    "attained": ("least-attained",),
    "scarce": ("cpu",),
    "cpu-terms": ("cpu",),
    "choosy": ("models",),
    "device-sharing": ("sharing",),
    "sharing": ("portions", "memory-shares"),
    "compute-apart": ("portions", "memory-shares"),
}
"""What a feature is nothing without."""

KNOWN_BEFORE = frozenset(
    {"departments", "limits", "queue-priorities", "unlimited", "weights", "cpu-terms", "cordons", "withheld", "models"}
    | {"gangs", "elastic", "portions", "memory-shares", "several-devices", "cpu", "priorities", "non-preemptible"}
    | {"releasing", "promises", "backing-off"}
)
"""What the first engine knew."""

PROFILES = (
    MigProfile("1g", 1, 1, 9_856, tuple(range(7))),
    MigProfile("2g", 2, 2, 19_968, (0, 2, 4)),
    MigProfile("3g", 3, 4, 40_448, (0, 4)),
    MigProfile("7g", 7, 8, 81_024, (0,)),
)
MEMORY = {"A": 81_559, "B": 40_961, "C": 24_576}


@dataclass(frozen=True)
class World:
    """One case: all that a plan is made of."""

    seed: int
    features: frozenset[str]
    snapshot: Snapshot
    policy: Policy
    now: datetime = NOW


def make(seed: int, features: Iterable[str] = FEATURES) -> World:
    """The world of this seed."""
    rng = random.Random(seed)
    density = rng.choice((0.03, 0.06, 0.1, 0.2, 0.35))
    chosen = {name for name in sorted(features) if rng.random() < density * (3 if name in COMMON else 1)}
    for name in sorted(chosen):
        needed = NEEDS.get(name, ())
        chosen |= {rng.choice(needed)} & frozenset(features) if needed and rng.random() < 0.85 else set()
    draw = work.Draw(rng, frozenset(chosen))
    topologies = (Topology("net", ("zone", "rack")), Topology("power", ("row",)))
    snapshot = Snapshot(
        nodes=tuple(_node(draw, index) for index in range(rng.choice((1, 1, 2, 2, 3, 3, 4, 5)))),
        queues=_queues(draw),
        topologies=topologies if draw.has("labels") else (),
    )
    snapshot = work.filled(draw, snapshot, NOW)
    snapshot = replace(snapshot, budgets=_budgets(draw, snapshot), recent=_recent(draw, snapshot))
    return World(seed, draw.features, snapshot, _policy(draw))


# Nodes.


def _node(draw: work.Draw, index: int) -> Node:
    rng, id = draw.rng, f"n{index}"
    model = rng.choice("ABC") if draw.has("models") else "A"
    kind = "whole"
    if draw.has("mig-mode") and rng.random() < 0.5:
        kind = "mig-mode"
    elif draw.has("mig-instances") and rng.random() < 0.4:
        kind = "mig-instances"
    count = rng.choice((0, 1, 1, 1, 2, 2, 2, 4)) if index else rng.choice((1, 2, 2, 2, 3, 4, 8))
    devices = tuple(one for at in range(count) for one in _devices(draw, f"{id}-gpu-{at}", at, model, kind))
    labels = {"host": id, "disk": rng.choice(("ssd", "hdd"))} if draw.has("labels") else {}
    if draw.has("labels"):
        labels |= {"zone": rng.choice("xy")} if rng.random() < 0.9 else {}
        labels |= {"rack": rng.choice("12")} if rng.random() < 0.9 else {}
        labels |= {"row": rng.choice("ab")} if rng.random() < 0.8 else {}
    is_scarce = draw.has("scarce")
    return Node(
        id=id,
        milli_cpus=rng.choice((2000, 4000, 7001)) if is_scarce else 64_000,
        memory_bytes=rng.choice((4, 8, 9)) * 2**30 if is_scarce else 512 * 2**30,
        devices=devices,
        pool=rng.choice(("default", "default", "other")) if draw.has("pools") else "default",
        max_pods=rng.choice((2, 3, 5)) if is_scarce and rng.random() < 0.3 else 110,
        is_ready=not (draw.has("cordons") and rng.random() < 0.12),
        is_cordoned=draw.has("cordons") and rng.random() < 0.2,
        is_drained=draw.has("drained") and rng.random() < 0.1,
        labels=labels,
        taints=tuple(_taints(draw)),
        resources={"rdma": rng.choice((0, 1, 2)), "disk": 100} if draw.has("resources") else {},
        foreign=Amounts(0, rng.choice((0, 500, 1500)), rng.choice((0, 2**30))) if draw.has("foreign") else Amounts(),
        foreign_pods=rng.choice((0, 1)) if draw.has("foreign") else 0,
        has_anonymous_devices=draw.has("anonymous") and kind == "whole" and rng.random() < 0.5,
    )


def _devices(draw: work.Draw, id: str, index: int, model: str, kind: str) -> list[Device]:
    rng = draw.rng
    withheld = None
    if draw.has("withheld") and rng.random() < 0.2:
        withheld = rng.choice(("cordoned", "device-in-use", "lost", "xid"))
    sharing = rng.choice((None, *Sharing)) if draw.has("device-sharing") else None
    if kind == "mig-mode":
        return [Device(id, index, "A", MEMORY["A"], withheld=withheld, profiles=PROFILES)]
    if kind == "mig-instances":
        names = rng.choice((("3g", "3g"), ("1g", "2g", "3g"), ("1g", "1g"), ("7g",)))
        cuts = [next(one for one in PROFILES if one.name == name) for name in names]
        return [
            Device(f"{id}-{at}", 10 * index + at, "A", cut.memory_mib, withheld=withheld, instance=cut)
            for at, cut in enumerate(cuts)
        ]
    return [Device(id, index, model, MEMORY[model], withheld=withheld, sharing=sharing)]


def _taints(draw: work.Draw) -> list[Taint]:
    if not draw.has("taints") or draw.rng.random() < 0.5:
        return []
    key, value = draw.rng.choice(("kept", "spot")), draw.rng.choice(("", "yes"))
    taints = (Taint(key, value), Taint(key, value, "NoExecute"), Taint(key, value, "PreferNoSchedule"))
    return [draw.rng.choice(taints)]


# Queues.


def _queues(draw: work.Draw) -> tuple[Queue, ...]:
    rng = draw.rng
    leaves = [f"q{index}" for index in range(rng.choice((1, 2, 2, 2, 3, 3, 4)))]
    parents: dict[str, str | None] = dict.fromkeys(leaves)
    if draw.has("departments"):
        tops = ["d0", "d1"][: rng.choice((1, 2, 2))]
        parents |= {id: rng.choice((*tops, *tops, None)) for id in leaves}
        parents |= dict.fromkeys(tops)
        if rng.random() < 0.3:
            parents |= {"e0": tops[0]}
            parents[leaves[0]] = "e0"
    # A department that nobody is in would be a project: that is as good a world.
    return tuple(_queue(draw, id, parent) for id, parent in sorted(parents.items()))


def _queue(draw: work.Draw, id: str, parent: str | None) -> Queue:
    rng = draw.rng
    pools = ("default", "other") if draw.has("pools") else ("default",)
    runtimes = (None, timedelta(0), timedelta(minutes=20), timedelta(hours=2))
    return Queue(
        id=id,
        name=id,
        created=NOW - timedelta(days=rng.choice((10, 20))),
        parent=parent,
        terms={pool: _terms(draw, is_inner=id[0] != "q") for pool in pools if rng.random() < 0.95},
        is_held=draw.has("held") and rng.random() < 0.3,
        is_drained=draw.has("drained") and rng.random() < 0.2,
        order=QueueOrder.LEAST_ATTAINED_SERVICE
        if draw.has("least-attained") and rng.random() < 0.7
        else QueueOrder.WAITING_TIME,
        hold_after=rng.choice((None, timedelta(0), timedelta(minutes=40))) if draw.has("hold-after") else None,
        preempt_min_runtime=rng.choice(runtimes) if draw.has("min-runtime") else None,
        reclaim_min_runtime=rng.choice(runtimes) if draw.has("min-runtime") else None,
        evictions_left=rng.choice((None, 0, 1, 2)) if draw.has("evictions-left") else None,
        usage={pool: _usage(draw) for pool in pools} if draw.has("usage") else {},
    )


def _usage(draw: work.Draw) -> Usage:
    steps = (0, 0, 1, 200_000, 333_333, 700_001)
    return Usage(draw.rng.choice(steps), draw.rng.choice(steps), draw.rng.choice(steps))


def _terms(draw: work.Draw, *, is_inner: bool) -> PoolTerms:
    quotas: tuple[int | None, ...] = (0, 0, 500, 1000, 1000, 2000, 3000)
    quotas = (2000, 4000, 4000, 6000) if is_inner else quotas
    quotas = (*quotas, None, None) if draw.has("unlimited") else quotas
    limits = (None, None, 1000, 2500, 4000)
    rng = draw.rng
    return PoolTerms(
        gpu=Claim(
            quota=rng.choice(quotas),
            weight=rng.choice((0, 1, 1, 2, 3)) if draw.has("weights") else 1,
            limit=rng.choice(limits) if draw.has("limits") else None,
        ),
        cpu=_claim(draw, (0, 1000, 3000)),
        memory=_claim(draw, (0, 2**30, 3 * 2**30 + 1)),
        priority=rng.choice((100, 100, 200)) if draw.has("queue-priorities") else 100,
    )


def _claim(draw: work.Draw, quotas: tuple[int, ...]) -> Claim:
    if not draw.has("cpu-terms") or draw.rng.random() < 0.4:
        return Claim()
    limit = draw.rng.choice((None, 2 * quotas[1], 2 * quotas[2])) if draw.has("limits") else None
    return Claim(draw.rng.choice((*quotas, None)), draw.rng.choice((1, 1, 2)), limit)


# What belongs to no single one.


def _budgets(draw: work.Draw, snapshot: Snapshot) -> tuple[Budget, ...]:
    running = [pod.id for one in snapshot.workloads for pod in one.pods if pod.state is PodState.RUNNING]
    if not draw.has("budgets") or not running:
        return ()
    sizes = [draw.rng.randint(1, len(running)) for _ in range(draw.rng.choice((1, 2)))]
    return tuple(
        Budget(f"b{index}", frozenset(draw.rng.sample(running, size)), draw.rng.choice((0, 1, 1, 2)))
        for index, size in enumerate(sizes)
    )


def _recent(draw: work.Draw, snapshot: Snapshot) -> tuple[Asked, ...]:
    requests = [pod.request for one in snapshot.workloads for pod in one.pods]
    if not draw.has("strategies") or not requests or draw.rng.random() < 0.5:
        return ()
    return (Asked(draw.rng.choice(requests), draw.rng.choice((1, 3))),)


def _policy(draw: work.Draw) -> Policy:
    rng, policy = draw.rng, Policy()
    if draw.has("strategies"):
        policy = replace(policy, gpu_placement=rng.choice(("fragmentation", "pack", "spread")))
        policy = replace(policy, cpu_placement=rng.choice(("pack", "spread")))
    if draw.has("few-moves"):
        policy = replace(policy, max_consolidation_victims=rng.choice((0, 1, 2, None)))
    if draw.has("actions"):
        policy = replace(policy, actions=tuple(one for one in ACTION_NAMES if one == "allocate" or rng.random() < 0.7))
    if draw.has("usage"):
        policy = replace(policy, usage_weight=rng.choice(((0, 1), (1, 1), (1, 2), (3, 1))))
    if draw.has("least-attained"):
        policy = replace(policy, service_quantum=rng.choice((timedelta(0), timedelta(minutes=10))))
    return policy
