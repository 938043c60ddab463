"""The workloads of a random world: what runs (placed legally), what ends, what waits, and promises made before."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from aliquot.core.model import (
    Affinity,
    GpuRequest,
    Group,
    Near,
    Place,
    Pod,
    PodRequest,
    PodState,
    Promise,
    Sharing,
    Snapshot,
    Spread,
    Toleration,
    Workload,
)
from tests.laws import gangs, room
from tests.laws.room import Hold, Room

SHAPES = frozenset(
    {
        "portions",
        "memory-shares",
        "compute-apart",
        "several-devices",
        "sharing",
        "profiles",
        "choosy",
        "cpu",
        "limits-of-shares",
    }
    | {"selectors", "tolerations", "affinity", "anti-affinity", "spread", "host-ports", "named-resources", "unmet"}
)
GANGS = frozenset({"gangs", "gang-trees", "elastic", "near", "unlike-pods", "pod-priorities"})
STATES = frozenset({"promises", "releasing", "stuck", "stale", "succeeded", "partly-run", "backing-off", "lost-queue"})
TERMS = frozenset(
    {"priorities", "non-preemptible", "semi-preemptible", "never-preempts", "preemption-delay", "run-times"}
    | {"fallbacks", "attained", "saved"}
)
FEATURES = SHAPES | GANGS | STATES | TERMS
TRIES = 4
"""Places tried for a pod that is to run."""


@dataclass(frozen=True)
class Draw:
    """Where the choices of one world come from."""

    rng: random.Random
    features: frozenset[str]

    def has(self, feature: str) -> bool:
        """Whether this may come up in this world."""
        return feature in self.features


def filled(draw: Draw, snapshot: Snapshot, now: datetime) -> Snapshot:
    """The snapshot with workloads, some of which run, and promises."""
    rng = draw.rng
    queues = _homes(draw, snapshot)
    total = rng.choice((0, 2, 4, 6, 8, 8, 10, 10, 12, 14))
    running = rng.choice((0, total // 2, max(0, total - 3), max(0, total - 1)))
    hogs = rng.sample(queues, rng.choice((1, 1, 2)) if len(queues) > 2 else 1)
    is_unfair = rng.random() < 0.7
    places, workloads = Room(snapshot), []
    for index in range(total):
        is_first = index < running
        own = hogs if is_unfair and is_first and rng.random() < 0.85 else queues
        workload = _with_gang(draw, _workload(draw, f"w{index}", own, now))
        if is_first:
            workload = _started(draw, places, workload, now)
        elif draw.has("priorities") and rng.random() < 0.4:
            workload = replace(workload, priority=100)
        workloads.append(workload)
    snapshot = replace(snapshot, workloads=tuple(workloads))
    return replace(snapshot, promises=_promises(draw, snapshot, now))


def _homes(draw: Draw, snapshot: Snapshot) -> list[str]:
    inner = {one.parent for one in snapshot.queues}
    homes = [one.id for one in snapshot.queues if one.id not in inner]
    return [*homes * 4, "nowhere"] if draw.has("lost-queue") else homes


def _workload(draw: Draw, id: str, queues: Sequence[str], now: datetime) -> Workload:
    rng = draw.rng
    kind = rng.random()
    is_fixed = draw.has("non-preemptible") and kind < 0.3
    is_semi = draw.has("semi-preemptible") and 0.3 < kind < 0.6
    minutes = rng.choice((0, 1, 5, 30, 60, 60, 90))
    delays = (timedelta(0), timedelta(minutes=10), timedelta(hours=2))
    fallbacks = rng.choice(((), ("other",), ("default",), ("other", "default"))) if draw.has("fallbacks") else ()
    pool = rng.choice(("default", "default", "other")) if draw.has("fallbacks") else "default"
    request = _request(draw)
    count = rng.choice((1, 1, 2, 2, 3, 4)) if draw.has("gangs") else 1
    pods = tuple(Pod(f"{id}-{index}", index, request) for index in range(count))
    if draw.has("unlike-pods") and count > 1 and rng.random() < 0.5:
        pods = (replace(pods[0], request=_request(draw)), *pods[1:])
    if draw.has("pod-priorities"):
        pods = tuple(replace(pod, priority=rng.choice((0, 0, 5))) for pod in pods)
    return Workload(
        id=id,
        name=id,
        queue=rng.choice(queues),
        created=now - timedelta(minutes=minutes),
        pods=pods,
        min_pods=rng.randint(1, count) if draw.has("elastic") else count,
        priority=rng.choice((50, 50, 60, 100)) if draw.has("priorities") else 50,
        is_preemptible=not (is_fixed or is_semi),
        is_semi_preemptible=is_semi,
        pool=pool,
        fallback_pools=tuple(one for one in fallbacks if one != pool),
        not_before=now + rng.choice((-1, 1)) * timedelta(minutes=3)
        if draw.has("backing-off") and rng.random() < 0.2
        else None,
        max_run_time=rng.choice((None, timedelta(seconds=10), timedelta(hours=3))) if draw.has("run-times") else None,
        never_preempts=draw.has("never-preempts") and rng.random() < 0.4,
        preemption_delay=rng.choice(delays) if draw.has("preemption-delay") else timedelta(0),
        attained_milli_seconds=rng.choice((0, 1_000_000, 10_000_000)) if draw.has("attained") else 0,
        near=_near(draw) if draw.has("near") and count > 1 else None,
    )


def _near(draw: Draw) -> Near | None:
    levels: tuple[str | None, ...] = ("zone", "rack", None)
    required, preferred = draw.rng.choice(levels), draw.rng.choice(levels)
    return Near("net", required, preferred) if required or preferred else None


# What pods ask for.


def _request(draw: Draw) -> PodRequest:
    rng = draw.rng
    request = PodRequest(gpu=_gpu(draw))
    if draw.has("cpu"):
        request = replace(
            request, milli_cpus=rng.choice((0, 500, 1000, 1999)), memory_bytes=rng.choice((0, 1, 2)) << 30
        )
    if draw.has("selectors") and rng.random() < 0.5:
        labels = (("zone", ("x",)), ("disk", ("ssd",)), ("rack", ("1", "2")))
        request = replace(request, node_labels=(rng.choice(labels),))
    if draw.has("selectors") and rng.random() < 0.15:
        request = replace(request, nodes=("n0", "n1"), node_labels=())
    if draw.has("tolerations"):
        options = ((), (Toleration(),), (Toleration("kept"),), (Toleration("spot", "yes", "NoSchedule"),))
        request = replace(request, tolerations=rng.choice(options))
    if draw.has("host-ports") and rng.random() < 0.5:
        request = replace(request, host_ports=(rng.choice((80, 443)),))
    if draw.has("named-resources") and rng.random() < 0.6:
        request = replace(request, resources=(("rdma", 1),) if rng.random() < 0.7 else (("disk", 40), ("rdma", 1)))
    return _social(draw, request)


def _social(draw: Draw, request: PodRequest) -> PodRequest:
    rng = draw.rng
    names = {"affinity", "anti-affinity", "spread"} & draw.features
    if not names:
        return request
    labels = rng.choice(((), (("app", "a"),), (("app", "b"),), (("app", "a"), ("tier", "1"))))
    request = replace(request, labels=labels, namespace=rng.choice(("default", "default", "other")))
    term = Affinity(rng.choice(((("app", "a"),), (("app", "b"),))), rng.choice(("host", "zone")))
    if "affinity" in names and rng.random() < 0.4:
        request = replace(request, affinity=(term,))
    elif "anti-affinity" in names and rng.random() < 0.5:
        request = replace(request, anti_affinity=(term,))
    elif "spread" in names and rng.random() < 0.5:
        request = replace(request, spread=(Spread(term.labels, term.topology_key, rng.choice((1, 1, 2))),))
    return request


def _gpu(draw: Draw) -> GpuRequest | None:
    rng = draw.rng
    if draw.has("cpu") and rng.random() < 0.15:
        return None
    kinds = ["whole", "whole"]
    kinds += ["portion"] * 2 * draw.has("portions") + ["memory"] * 2 * draw.has("memory-shares")
    kinds += ["profile"] * 3 * draw.has("profiles")
    kind = rng.choice(kinds)
    devices = rng.choice((1, 1, 1, 2)) if kind == "whole" or draw.has("several-devices") else 1
    if kind == "profile":
        return GpuRequest(1, None, profile=rng.choice(("1g", "1g", "2g", "3g", "3g", "7g")))
    gpu = GpuRequest(devices)
    if kind == "portion":
        gpu = GpuRequest(devices, rng.choice((500, 500, 300, 333, 250, 1, 999)))
    if kind == "memory":
        gpu = GpuRequest(devices, None, rng.choice((8_192, 20_000, 24_576, 24_577, 50_000)))
    if kind != "whole" and draw.has("compute-apart") and rng.random() < 0.6:
        gpu = replace(gpu, compute_milli=rng.choice((0, 200, 500, 700)))
    if kind != "whole" and draw.has("limits-of-shares"):
        gpu = replace(gpu, memory_limit_mib=90_000, compute_limit_milli=1000)
    if kind != "whole" and draw.has("sharing") and rng.random() < 0.7:
        gpu = replace(gpu, sharing=rng.choice(tuple(Sharing)), is_sharing_required=rng.random() < 0.6)
    if draw.has("choosy") and rng.random() < 0.4:
        gpu = replace(gpu, models=rng.choice((("A",), ("B",), ("A", "B"))))
    if draw.has("choosy") and rng.random() < 0.2:
        gpu = replace(gpu, min_device_mib=40_000)
    return gpu


# Gangs as trees.


def _with_gang(draw: Draw, workload: Workload) -> Workload:
    if not draw.has("gang-trees") or draw.rng.random() < 0.4:
        return workload
    rng = draw.rng
    pods: list[Pod] = []
    tops = [_part(draw, workload, f"g{index}", pods) for index in range(rng.choice((1, 2, 2, 3)))]
    near = _near(draw) if draw.has("near") else None
    root = Group("", rng.randint(1, len(tops)) if draw.has("elastic") else len(tops), tuple(tops), near)
    return replace(workload, pods=tuple(pods), min_pods=_least(root), gang=root, near=None)


def _part(draw: Draw, workload: Workload, name: str, pods: list[Pod]) -> Group:
    rng = draw.rng
    near = _near(draw) if draw.has("near") and rng.random() < 0.5 else None
    if rng.random() < 0.25:
        below = tuple(_leaf(draw, workload, f"{name}-{index}", pods) for index in range(2))
        return Group(name, rng.randint(1, 2) if draw.has("elastic") else 2, below, near)
    return replace(_leaf(draw, workload, name, pods), near=near)


def _leaf(draw: Draw, workload: Workload, name: str, pods: list[Pod]) -> Group:
    rng = draw.rng
    count = rng.choice((1, 1, 2))
    request = _request(draw) if draw.has("unlike-pods") else workload.pods[0].request
    for _ in range(count):
        pods.append(Pod(f"{workload.id}-{len(pods)}", len(pods), request, group=name))
    return Group(name, rng.randint(1, count) if draw.has("elastic") else count)


def _least(group: Group) -> int:
    """The fewest pods with which the gang is whole."""
    if not group.groups:
        return group.minimum
    return sum(sorted(_least(one) for one in group.groups)[: group.minimum])


# What runs.


def _started(draw: Draw, places: Room, workload: Workload, now: datetime) -> Workload:
    """The workload with some of its pods running, if there is room for its minimum."""
    rng = draw.rng
    held = _random_places(draw, places, workload, gangs.chunks(workload))
    if held is None:
        return workload
    while not draw.has("partly-run") or rng.random() < 0.5:
        standing = _with_holds(workload, held, now)
        more = gangs.chunks(standing)
        found = _random_places(draw, places, standing, more) if more else None
        if not found:
            break
        held += found
    started = now - timedelta(minutes=rng.choice((0, 5, 15, 30, 60, 300)))
    saved = started + (now - started) / 2 if draw.has("saved") and rng.random() < 0.5 else None
    workload = replace(_with_holds(workload, held, now), started=started, saved=saved)
    workload = _ending(draw, workload, now)
    return _stale(draw, workload)


def _with_holds(workload: Workload, held: Sequence[Hold], now: datetime) -> Workload:
    at = {hold.pod.id: hold for hold in held}
    pods = tuple(
        replace(pod, state=PodState.RUNNING, node=at[pod.id].node, shares=at[pod.id].shares) if pod.id in at else pod
        for pod in workload.pods
    )
    return replace(workload, pods=pods, started=now)


def _random_places(draw: Draw, places: Room, workload: Workload, chunks: list[list[Pod]]) -> list[Hold] | None:
    """Places for one of these sets of pods, which then hold them; at random, so not always where there are some."""
    if not chunks:
        return None
    held: list[Hold] = []
    running = [hold for hold in places.holds() if hold.workload.id == workload.id]
    for pod in draw.rng.choice(chunks):
        pools = [places.nodes[hold.node].pool for hold in (*running, *held)]
        hold = _random_place(draw, places, workload, pod, pools=pools[:1])
        if hold is None:
            for one in held:
                places.remove(one)
            return None
        places.add(hold)
        held.append(hold)
    return held


def _random_place(draw: Draw, places: Room, workload: Workload, pod: Pod, *, pools: Sequence[str]) -> Hold | None:
    pools = pools or (workload.pool, *workload.fallback_pools)
    nodes = sorted((node for node in places.nodes.values() if node.pool in pools), key=lambda node: node.id)
    for node in draw.rng.sample(nodes, min(TRIES, len(nodes))):
        if not places.takes(replace(node, is_cordoned=False, is_drained=False), workload, pod):
            continue
        options = places.choices(node, pod.request)
        first = [one for _, one in zip(range(3), options, strict=False)]
        if not first:
            continue
        hold = Hold(workload, pod, node.id, draw.rng.choice(first))
        places.add(hold)
        is_astray = bool(gangs.strays(places, workload))
        places.remove(hold)
        if not is_astray:
            return hold
    return None


def _ending(draw: Draw, workload: Workload, now: datetime) -> Workload:
    """Some are told to end: whole, or the pods above the minimum."""
    rng = draw.rng
    if not draw.has("releasing") or rng.random() < 0.65:
        return workload
    running = [pod for pod in workload.pods if pod.state is PodState.RUNNING]
    told = {pod.id for pod in running}
    if rng.random() < 0.4:
        last = sorted(running, key=lambda pod: pod.index)[-1]
        is_spare = not gangs.broken_groups(workload, frozenset(told - {last.id})) and len(told) > 1
        told = {last.id} if is_spare else told
    due = rng.choice((None, now + timedelta(seconds=20), now + timedelta(minutes=5), now - timedelta(seconds=5)))
    is_stuck = draw.has("stuck") and rng.random() < 0.4
    pods = tuple(
        replace(pod, state=PodState.RELEASING, release_due=due, is_stuck=is_stuck) if pod.id in told else pod
        for pod in workload.pods
    )
    return replace(workload, pods=pods)


def _stale(draw: Draw, workload: Workload) -> Workload:
    """One pod of a gang is lost, or ended well."""
    rng = draw.rng
    running = [pod for pod in workload.pods if pod.state is PodState.RUNNING]
    kinds = [name for name in ("stale", "succeeded") if draw.has(name)]
    if not kinds or len(running) < 2 or rng.random() < 0.5:
        return workload
    kind = rng.choice(kinds)
    state = rng.choice((PodState.PENDING, PodState.FAILED)) if kind == "stale" else PodState.SUCCEEDED
    gone = rng.choice(running).id
    pods = tuple(replace(pod, state=state, node=None, shares=()) if pod.id == gone else pod for pod in workload.pods)
    workload = replace(workload, pods=pods)
    if not gangs.broken_groups(workload, gangs.standing(workload)):
        return workload
    return replace(
        workload,
        stale_for=timedelta(seconds=rng.choice((0, 30, 59, 60, 600))),
        stale_grace=rng.choice((None, None, timedelta(0), timedelta(minutes=5), timedelta(seconds=-1))),
    )


# What was promised.


def _promises(draw: Draw, snapshot: Snapshot, now: datetime) -> tuple[Promise, ...]:
    """Room that is free, or will be when what ends has ended, promised to one or two who wait."""
    if not draw.has("promises"):
        return ()
    rng = draw.rng
    later = Room(snapshot, room.held(snapshot, PodState.RUNNING))
    found: list[Promise] = []
    for workload in rng.sample(snapshot.workloads, len(snapshot.workloads)):
        is_ending = any(pod.state is PodState.RELEASING for pod in workload.pods)
        held = None if is_ending else _random_places(draw, later, workload, gangs.chunks(workload))
        if not held:
            continue
        nodes = {hold.node for hold in held}
        ending = [hold for hold in room.held(snapshot, PodState.RELEASING) if hold.node in nodes]
        due = now + timedelta(seconds=rng.choice((-20, 15, 30, 400)))
        found.append(
            Promise(
                workload.id,
                tuple(Place(hold.pod.id, hold.node, hold.shares) for hold in held),
                made=now - timedelta(seconds=30),
                due=due,
                expires=due + timedelta(seconds=rng.choice((-15, 30, 60))),
                waits_for=tuple(sorted(hold.pod.id for hold in ending)),
                may_evict=rng.random() < 0.8,
            )
        )
        if len(found) == 2:
            break
    return tuple(found)
