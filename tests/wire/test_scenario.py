"""What a scenario's file says is what the scheduler gets."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from aliquot.core.model import (
    Affinity,
    Asked,
    Budget,
    Claim,
    Device,
    ForeignUse,
    GpuRequest,
    Group,
    MigProfile,
    Near,
    Node,
    Pod,
    PodRequest,
    PodState,
    PoolTerms,
    Preemptibility,
    Queue,
    QueueOrder,
    Share,
    Sharing,
    Spread,
    Taint,
    Toleration,
    Usage,
    Workload,
)
from aliquot.wire.scenario import reader, shape

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OFFER = 81_559


def read(text: str, *, version: int = 2) -> shape.Scenario:
    """A scenario of these parts."""
    return reader.read(f"format: aliquot-scenario/{version}\n{text}".encode(), "cluster.yaml")


def pod(text: str, *, node: str = "{name: n0, gpus: 4}") -> Pod:
    """The only pod of a scenario with one workload."""
    job = f"workloads: [{{name: j, queue: q, pods: [{{name: p, {text}}}]}}]"
    return read(f"nodes: [{node}]\nqueues: [{{name: q}}]\n{job}").snapshot.workloads[0].pods[0]


def workload(text: str, *, pods: str = "[{name: p}]") -> Workload:
    """The only workload of a scenario."""
    parts = "nodes: [{name: n0, labels: {zone: z, rack: r}}, {name: n1, pool: gold}]\nqueues: [{name: q}]"
    topologies = "topologies: [{name: t, levels: [zone, rack]}]"
    return read(f"{parts}\n{topologies}\nworkloads: [{{name: j, queue: q, pods: {pods}, {text}}}]").snapshot.workloads[
        0
    ]


def node(text: str) -> Node:
    """The only node of a scenario."""
    return read(f"nodes: [{{name: n0, {text}}}]").snapshot.nodes[0]


def queue(text: str) -> Queue:
    """The only queue of a scenario with the pools `default` and `gold`."""
    nodes = "nodes: [{name: n0}, {name: n1, pool: gold}]"
    return read(f"{nodes}\nqueues: [{{name: q, {text}}}]").snapshot.queues[0]


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("gpu: 2", GpuRequest(devices=2)),
        ("gpu: 0", None),
        ("gpu: {portion: 0.25, devices: 2}", GpuRequest(devices=2, milli=250)),
        ("gpu: {memory: 20Gi}", GpuRequest(milli=None, mib=20 * 1024)),
        ("gpu: {mig: {3g.40gb: 2}}", GpuRequest(devices=2, milli=None, profile="3g.40gb")),
        ("gpu: 2x0.5", GpuRequest(devices=2, milli=500)),
        ("gpu: {portion: 0.5, compute: 0.2}", GpuRequest(milli=500, compute_milli=200)),
        ("gpu: {portion: 0.5, computeLimit: 1}", GpuRequest(milli=500, compute_limit_milli=1000)),
        ("gpu: {memory: 1Gi, memoryLimit: 2Gi}", GpuRequest(milli=None, mib=1024, memory_limit_mib=2048)),
        ("gpu: {portion: 0.5, sharing: sm-sharing}", GpuRequest(milli=500, sharing=Sharing.SM_SHARING)),
        (
            "gpu: {portion: 0.5, sharing: time-slicing, sharingRequired: true}",
            GpuRequest(milli=500, sharing=Sharing.TIME_SLICING, is_sharing_required=True),
        ),
        ("gpu: {devices: 3, models: [A, B]}", GpuRequest(devices=3, models=("A", "B"))),
        ("gpu: {devices: 1, minMemory: 40Gi}", GpuRequest(min_device_mib=40 * 1024)),
    ],
)
def test_a_pod_asks_for_devices_in_every_way(text: str, gpu: GpuRequest | None) -> None:
    assert pod(text).request.gpu == gpu


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ('cpu: "1.5", memory: 1G', PodRequest(milli_cpus=1500, memory_bytes=10**9)),
        ("resources: {rdma/hca: 2, b: 0}", PodRequest(resources=(("rdma/hca", 2),))),
        ("nodes: [n0]", PodRequest(nodes=("n0",))),
        ("selector: {zone: [b, a], rack: r}", PodRequest(node_labels=(("rack", ("r",)), ("zone", ("a", "b"))))),
        (
            "tolerations: [{key: k, value: v, effect: NoExecute}, {}]",
            PodRequest(tolerations=(Toleration("k", "v", "NoExecute"), Toleration())),
        ),
        ("labels: {app: 1}", PodRequest(labels=(("app", "1"),))),
        ("podAffinity: {app: x, topologyKey: rack}", PodRequest(affinity=(Affinity((("app", "x"),), "rack"),))),
        (
            "podAntiAffinity: [{a: x, topologyKey: r}, {b: y, topologyKey: s}]",
            PodRequest(anti_affinity=(Affinity((("a", "x"),), "r"), Affinity((("b", "y"),), "s"))),
        ),
        (
            "spread: [{labels: {app: x}, topologyKey: zone, maxSkew: 2}]",
            PodRequest(spread=(Spread((("app", "x"),), "zone", 2),)),
        ),
        ("hostPorts: [443, 80]", PodRequest(host_ports=(80, 443))),
    ],
)
def test_a_pod_says_what_it_needs_and_where(text: str, request_: PodRequest) -> None:
    assert pod(text).request == request_


def test_equal_requests_become_one_object() -> None:
    pods = "[{name: p, gpu: 1, cpu: 1}, {name: r, gpu: 1, cpu: 1, hostPorts: []}]"

    first, second = workload("priority: 1", pods=pods).pods

    assert first.request is second.request


@pytest.mark.parametrize(
    ("state", "found", "is_stuck"),
    [
        ("running", PodState.RUNNING, False),
        ("releasing", PodState.RELEASING, False),
        ("stuck-releasing", PodState.RELEASING, True),
    ],
)
def test_a_pod_holds_its_place(state: str, found: PodState, *, is_stuck: bool) -> None:
    held = pod(f"state: {state}, node: n0, gpu: 1")

    assert (held.state, held.is_stuck, held.node) == (found, is_stuck, "n0")
    assert held.shares == (Share("n0/0", 1000, OFFER),)


def test_facts_about_a_pod_are_passed_on() -> None:
    found = pod("state: releasing, node: n0, releaseDue: 20s, unmet: a volume is missing, priority: -3")

    assert (found.release_due, found.unmet, found.priority) == (NOW + timedelta(seconds=20), "a volume is missing", -3)


HOLDERS = """
nodes: [{name: n0, gpus: 4, gpuMemory: 1001Mi}]
queues: [{name: q}]
workloads:
- name: j
  queue: q
  pods:
  - {name: free, state: running, node: n0, gpu: 1}
  - {name: half, state: running, node: n0, gpu: {portion: 0.5}, devices: [b]}
  - {name: other, state: running, node: n0, gpu: {memory: 300Mi}, devices: [b]}
  - {name: two, state: running, node: n0, gpu: {portion: 0.25, devices: 2}, devices: [c, a]}
"""


def test_pods_that_name_devices_choose_first_and_equal_names_are_one_device() -> None:
    pods = {pod.id: pod.shares for pod in read(HOLDERS, version=1).snapshot.workloads[0].pods}

    assert pods == {
        "half": (Share("n0/0", 500, 500),),
        "other": (Share("n0/0", 300, 300),),
        "two": (Share("n0/1", 250, 250), Share("n0/2", 250, 250)),
        "free": (Share("n0/3", 1000, 1001),),
    }


@pytest.mark.parametrize(("gpus", "devices"), [(2, ["n0/0", "n0/1"]), (1, ["n0/0", "n0/0"])])
def test_a_share_that_names_no_device_shares_none_while_others_are_free(gpus: int, devices: list[str]) -> None:
    pods = "[{name: p, state: running, node: n0, gpu: 0.5}, {name: r, state: running, node: n0, gpu: 0.5}]"
    parts = f"nodes: [{{name: n0, gpus: {gpus}}}]\nqueues: [{{name: q}}]"

    own = read(f"{parts}\nworkloads: [{{name: j, queue: q, pods: {pods}}}]").snapshot.workloads[0].pods

    assert [pod.shares[0].device for pod in own] == devices


def test_the_id_of_a_listed_device_is_its_symbol() -> None:
    gpus = "{name: n0, gpus: [{id: g0, memory: 100Mi}, {id: g1, memory: 200Mi, model: B}]}"

    assert pod("state: running, node: n0, gpu: 1, devices: [g1]", node=gpus).shares == (Share("n0/1", 1000, 200),)


def test_fixed_instances_are_devices_that_go_as_a_whole() -> None:
    found = node("mig: {1g.10gb: 1, 3g.40gb: 1}").devices

    assert [(one.id, one.instance and one.instance.name, one.slices) for one in found] == [
        ("n0/0", "1g.10gb", 7),
        ("n0/1", "3g.40gb", 7),
    ]


@pytest.mark.parametrize(
    ("profile", "milli"), [("1g.10gb", 142), ("3g.40gb", 428), ("7g.80gb", 1000), ("1g.6gb", 250), ("2g.12gb", 500)]
)
def test_an_instance_counts_by_its_compute_slices(profile: str, milli: int) -> None:
    held = pod(f"state: running, node: n0, gpu: {{mig: {{{profile}: 1}}}}", node=f"{{name: n0, mig: {{{profile}: 1}}}}")

    assert [share.milli for share in held.shares] == [milli]


def test_instances_on_a_device_in_mig_mode_begin_where_the_file_says() -> None:
    parts = "{name: n0, gpus: 1, migProfiles: [1g.10gb, 3g.40gb]}"

    held = pod("state: running, node: n0, gpu: {mig: {3g.40gb: 1}}, devices: [d], starts: [4]", node=parts)

    assert held.shares == (Share("n0/0", 428, 40 * 1024, 4),)


def test_a_profile_may_say_more_than_its_name() -> None:
    profile = "{name: 2g.20gb, computeSlices: 2, memorySlices: 3, memory: 19968Mi, starts: [0, 3]}"

    assert node(f"gpus: 1, migProfiles: [{profile}]").devices[0].profiles == (
        MigProfile("2g.20gb", 2, 3, 19_968, (0, 3)),
    )


@pytest.mark.parametrize(
    ("name", "starts"),
    [
        pytest.param("1g.10gb+me", (6,), id="with the media engines: one of them, at the last place"),
        pytest.param("1g.20gb+me.all", (6,), id="with all media engines"),
        pytest.param("2g.24gb+gfx", (0, 2, 4), id="with graphics"),
        pytest.param("1g.20gb-me", (0, 2, 4, 6), id="without media engines"),
        pytest.param("1g.6gb+me", (3,), id="on a small card"),
    ],
)
def test_a_profile_may_end_as_its_maker_names_it(name: str, starts: tuple[int, ...]) -> None:
    found = node(f"gpus: 1, migProfiles: [{name}]").devices[0]

    assert [(one.name, one.starts) for one in found.profiles] == [(name, starts)]
    assert found.slices == (4 if "6gb" in name else 7)


def test_a_node_says_all_that_it_is() -> None:
    found = node(
        "pool: gold, gpus: 1, gpuMemory: 1Gi, gpuModel: B, sharing: sm-sharing, cpu: 2, memory: 1Ki, pods: 3,"
        " labels: {rack: r}, taints: [{key: k, value: v, effect: NoExecute}], ready: false, trouble: it is off,"
        " cordoned: true, drained: true, resources: {hca: 2}, foreign: {gpu: 1, cpu: 1, memory: 5, pods: 1},"
        " anonymousDevices: true"
    )

    assert (found.pool, found.milli_cpus, found.memory_bytes, found.max_pods) == ("gold", 2000, 1024, 3)
    assert found.devices == (Device("n0/0", 0, "B", 1024, sharing=Sharing.SM_SHARING),)
    assert (found.labels, found.taints) == ({"rack": "r"}, (Taint("k", "v", "NoExecute"),))
    assert (found.is_ready, found.trouble, found.is_cordoned, found.is_drained) == (False, "it is off", True, True)
    assert (found.resources, found.foreign_pods, found.has_anonymous_devices) == ({"hca": 2}, 1, True)
    assert (found.foreign.milli_gpus, found.foreign.milli_cpus, found.foreign.memory_bytes) == (1000, 1000, 5)


def test_a_listed_device_says_who_else_uses_it() -> None:
    found = node("gpus: [{withheld: device-in-use, foreign: [{pid: 7, user: eve, memory: 1Gi}]}]").devices[0]

    assert (found.withheld, found.foreign) == ("device-in-use", (ForeignUse(7, "eve", 1024),))


def test_a_queue_has_its_terms_in_every_pool_but_where_it_has_others() -> None:
    found = queue(
        "priority: 7, gpu: {quota: 1.5, weight: 2, limit: 3}, cpu: {quota: 1}, memory: {limit: 1Ki}, usage: {gpu: 0.5},"
        " pools: {gold: {gpu: {quota: 9}, usage: {cpu: 1}}}"
    )

    assert found.terms == {
        "default": PoolTerms(Claim(1500, 2, 3000), Claim(1000), Claim(None, 1, 1024), 7),
        "gold": PoolTerms(Claim(9000), Claim(1000), Claim(None, 1, 1024), 7),
    }
    assert found.usage == {"default": Usage(500_000, 0, 0), "gold": Usage(0, 1_000_000, 0)}


def test_a_queue_says_how_it_serves() -> None:
    found = queue(
        "held: true, drained: true, order: least-attained-service, holdAfter: 10m, evictionsLeft: 3,"
        " preemptMinRuntime: 0s, reclaimMinRuntime: 5m"
    )

    assert (found.is_held, found.is_drained, found.order) == (True, True, QueueOrder.LEAST_ATTAINED_SERVICE)
    assert (found.hold_after, found.evictions_left) == (timedelta(minutes=10), 3)
    assert (found.preempt_min_runtime, found.reclaim_min_runtime) == (timedelta(), timedelta(minutes=5))
    assert queue("priority: 1").preempt_min_runtime is None
    assert queue("created: -1h").created == NOW - timedelta(hours=1)


def test_queues_and_workloads_of_one_age_keep_the_order_of_the_file() -> None:
    jobs = "[{name: z, queue: b, pods: [{name: p}]}, {name: y, queue: b, pods: [{name: r}]}]"
    snapshot = read(f"queues: [{{name: b}}, {{name: a}}]\nworkloads: {jobs}").snapshot

    assert [one.id for one in sorted(snapshot.queues, key=lambda one: one.created)] == ["b", "a"]
    assert [one.id for one in sorted(snapshot.workloads, key=lambda one: one.created)] == ["z", "y"]


def test_a_workload_says_all_that_it_is() -> None:
    found = workload(
        "namespace: x, priority: 9, preemptibility: semi-preemptible, created: -60s, started: -30s, minPods: 1,"
        " pool: gold, fallbackPools: [default], neverPreempts: true, maxRunTime: 1h, notBefore: 10s,"
        " attainedService: 2s, saved: -5s,"
        " preemptionDelay: 3s, staleFor: 4s, staleGangGrace: -1s, topology: {name: t, required: zone, preferred: rack}"
    )

    assert (found.priority, found.preemptibility) == (9, Preemptibility.SEMI_PREEMPTIBLE)
    assert (found.created, found.started) == (NOW - timedelta(seconds=60), NOW - timedelta(seconds=30))
    assert (found.min_pods, found.pool, found.fallback_pools) == (1, "gold", ("default",))
    assert (found.never_preempts, found.max_run_time) == (True, timedelta(hours=1))
    assert (found.not_before, found.saved) == (NOW + timedelta(seconds=10), NOW - timedelta(seconds=5))
    assert (found.attained_milli_seconds, found.preemption_delay) == (2000, timedelta(seconds=3))
    assert (found.stale_for, found.stale_grace) == (timedelta(seconds=4), timedelta(seconds=-1))
    assert (found.near, found.pods[0].request.namespace) == (Near("t", "zone", "rack"), "x")


def test_a_gang_is_a_tree_whose_missing_minimums_are_all() -> None:
    groups = (
        "[{name: a}, {name: b, topology: {name: t, required: rack}, groups: [{name: c, min: 1}, {name: d, min: 2}]}]"
    )
    pods = "[{name: p, group: a}, {name: r, group: a}, {name: s, group: c}]"

    found = workload(f"groups: {groups}, topology: {{name: t, preferred: zone}}", pods=pods)

    assert found.near is None
    assert found.gang == Group(
        "",
        2,
        (Group("a", 2), Group("b", 2, (Group("c", 1), Group("d", 2)), Near("t", "rack"))),
        Near("t", preferred="zone"),
    )
    assert found.min_pods == 5


def test_the_policy_has_the_defaults_of_the_format() -> None:
    policy = read("name: x").policy

    assert (policy.gpu_placement, policy.cpu_placement, policy.max_consolidation_victims) == ("pack", "pack", None)


def test_the_policy_says_every_rule() -> None:
    policy = read(
        "actions: [reclaim, allocate]\n"
        "policy: {gpuPlacement: fragmentation, cpuPlacement: spread, maxConsolidationVictims: 0, staleGangGrace: -1s,"
        " stepBudget: 7, releaseGrace: 5s, placementByPool: {gold: binpack}, usageWeight: 0.5, serviceQuantum: 1m,"
        " serviceThreshold: 2s, serviceClasses: 3}"
    ).policy

    assert policy.actions == ("allocate", "reclaim")
    assert (policy.gpu_placement, policy.cpu_placement, policy.placement_by_pool) == (
        "fragmentation",
        "spread",
        {"gold": "pack"},
    )
    assert (policy.max_consolidation_victims, policy.stale_grace) == (0, timedelta(seconds=-1))
    assert (policy.step_budget, policy.release_grace, policy.usage_weight) == (7, timedelta(seconds=5), (1, 2))
    assert (policy.service_quantum, policy.service_threshold, policy.service_classes) == (timedelta(minutes=1), 2000, 3)


STANDING = """
nodes: [{name: n0, gpus: 2}]
queues: [{name: q}]
workloads:
- {name: old, queue: q, pods: [{name: o, state: releasing, node: n0, gpu: 1, devices: [d]}]}
- {name: new, queue: q, pods: [{name: n, gpu: 1}]}
- {name: booked, queue: q, pods: [{name: b, gpu: 1}]}
promises:
- {workload: new, places: [{pod: n, node: n0, devices: [d]}], made: -5s, due: 10s, waitsFor: [o], mayEvict: false}
- {workload: booked, places: [{pod: b, node: n0}], expires: 1h}
budgets: [{name: all, pods: [o], allowed: 2}]
recent: [{gpu: 2, count: 3}]
"""


def test_promises_keep_devices_that_others_still_hold_or_that_are_free() -> None:
    new, booked = read(STANDING).snapshot.promises

    assert [place.shares[0].device for place in (*new.places, *booked.places)] == ["n0/0", "n0/1"]
    assert (new.made, new.due, new.expires) == tuple(NOW + timedelta(seconds=at) for at in (-5, 10, 25))
    assert (new.waits_for, new.may_evict, booked.waits_for) == (("o",), False, ())
    assert (booked.due, booked.expires) == (NOW + timedelta(seconds=30), NOW + timedelta(hours=1))


def test_budgets_and_recent_requests_are_read() -> None:
    snapshot = read(STANDING).snapshot

    assert snapshot.budgets == (Budget("all", frozenset({"o"}), 2),)
    assert snapshot.recent == (Asked(PodRequest(gpu=GpuRequest(devices=2)), 3),)


def test_json_and_yaml_say_the_same() -> None:
    text = f"format: aliquot-scenario/2\n{STANDING}"

    assert reader.read(json.dumps(yaml.safe_load(text)).encode(), "x") == reader.read(text.encode(), "x")


def test_the_instant_of_the_first_cycle_may_be_given() -> None:
    assert read("now: 2027-03-04T05:06:07+01:00").now == datetime(2027, 3, 4, 4, 6, 7, tzinfo=UTC)
    assert reader.read(b'{"format": "aliquot-scenario/1", "now": "2027-03-04"}', "x").now == datetime(
        2027, 3, 4, tzinfo=UTC
    )
