"""What-if: each change gives the snapshot that would have been, and leaves the one it was made from alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import change, quantities
from aliquot.core.change import Change
from aliquot.core.errors import NotFound
from aliquot.core.model import (
    Group,
    Near,
    Place,
    PodState,
    PoolTerms,
    Promise,
    Snapshot,
    Toleration,
    Workload,
)
from tests import builders
from tests.builders import NOW, asking, device, job, node, queue, running, snapshot

PROMISE = Promise("job", (Place("job-0", "node-1"),), NOW, NOW, NOW + timedelta(seconds=1))
START = snapshot(
    node(devices=[device(withheld="cordoned")], is_cordoned=True),
    queue(),
    job(pods=2),
    running(job("old", pods=2, min_pods=1), "node-1:0"),
    PROMISE,
)


def workload(taken: Snapshot, id: str = "job") -> Workload:
    return next(one for one in taken.workloads if one.id == id)


def test_a_workload_is_added() -> None:
    extra = job("extra")

    after = change.overlay(START, [change.AddWorkload(extra)])

    assert workload(after, "extra") == extra
    assert len(after.workloads) == len(START.workloads) + 1


def test_a_workload_with_the_same_id_is_replaced() -> None:
    after = change.overlay(START, [change.AddWorkload(job(pods=7))])

    assert len(workload(after).pods) == 7
    assert len(after.workloads) == len(START.workloads)


def test_a_workload_goes_with_its_promise() -> None:
    after = change.overlay(START, [change.RemoveWorkload("job")])

    assert [one.id for one in after.workloads] == ["old"]
    assert after.promises == ()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (change.SetGpu("job", quantities.parse_gpu("0.5")), builders.request("0.5")),
        (change.SetGpu("job", None), builders.request(None)),
        (change.SetCpu("job", 3000), builders.request(cpu="3")),
        (change.SetMemory("job", 2**30), builders.request(memory="1Gi")),
    ],
)
def test_pending_pods_ask_for_something_else(changed: Change, expected: object) -> None:
    assert [pod.request for pod in workload(change.overlay(START, [changed])).pods] == [expected, expected]


def test_pods_that_run_keep_what_they_hold() -> None:
    after = workload(change.overlay(START, [change.SetCpu("old", 3000)]), "old")

    assert [(pod.state, pod.request.milli_cpus) for pod in after.pods] == [
        (PodState.RUNNING, 0),
        (PodState.PENDING, 3000),
    ]


@pytest.mark.parametrize(
    ("id", "count", "pods", "min_pods"), [("job", 1, 1, 1), ("job", 4, 4, 4), ("old", 1, 1, 1), ("old", 3, 3, 1)]
)
def test_replicas_come_and_go_at_the_end(id: str, count: int, pods: int, min_pods: int) -> None:
    after = workload(change.overlay(START, [change.SetReplicas(id, count)]), id)

    assert [pod.id for pod in after.pods] == [f"{id}-{index}" for index in range(pods)]
    assert after.min_pods == min_pods


def test_replicas_that_run_are_not_taken_away() -> None:
    assert len(workload(change.overlay(START, [change.SetReplicas("old", 0)]), "old").pods) == 1


def test_the_way_it_competes_is_set() -> None:
    changes: list[Change] = [
        change.SetPriority("job", 99),
        change.SetPreemptible("job", is_preemptible=False),
        change.SetPool("job", "lab"),
    ]

    after = workload(change.overlay(START, changes))

    assert after == replace(workload(START), priority=99, is_preemptible=False, pool="lab")


def test_how_long_it_runs_is_stated() -> None:
    after = workload(change.overlay(START, [change.SetMaxRunTime("job", timedelta(hours=1))]))

    assert after == replace(workload(START), max_run_time=timedelta(hours=1))


def test_the_minimum_of_one_group_of_a_gang_is_set() -> None:
    root = Group("", 2, (Group("x", 2), Group("in", 1, (Group("y", 3),))))
    taken = replace(START, workloads=(replace(job(), gang=root),))

    after = workload(change.overlay(taken, [change.SetMinPods("job", 1, "y")]))

    assert after.gang == Group("", 2, (Group("x", 2), Group("in", 1, (Group("y", 1),))))


def test_what_is_required_to_be_near_is_only_preferred_then() -> None:
    strict = Near("net", required="rack")
    root = Group("", 1, (Group("x", 1, near=Near("net", required="zone", preferred="rack")), Group("y", 1)), strict)
    flat, nested, free = replace(job("flat"), near=strict), replace(job("nested"), gang=root), job("free")
    taken = replace(START, workloads=(flat, nested, free))

    after = change.overlay(taken, [change.LoosenNear(id) for id in ("flat", "nested", "free")])

    wish = Near("net", preferred="rack")
    assert workload(after, "flat").near == wish
    assert workload(after, "nested").gang == Group("", 1, (Group("x", 1, near=wish), Group("y", 1)), wish)
    assert workload(after, "free") == free


def test_what_is_only_preferred_stays_so() -> None:
    wish = replace(job(), near=Near("net", preferred="rack"))

    assert workload(change.overlay(replace(START, workloads=(wish,)), [change.LoosenNear("job")])) == wish


def test_it_may_go_to_any_node_of_its_pool() -> None:
    choosy = asking(job(), nodes=("node-9",), node_labels=(("zone", ("a",)),))

    after = workload(change.overlay(replace(START, workloads=(choosy,)), [change.OpenNodes("job")]))

    assert after == asking(job(), tolerations=(Toleration(),))


def test_the_terms_of_a_queue_are_set_in_one_pool() -> None:
    terms = PoolTerms(gpu=builders.claim("8"))

    after = change.overlay(START, [change.SetTerms("team-a", "lab", terms)])

    assert after.queues[0].terms_in("lab") == terms
    assert after.queues[0].terms_in("default") == START.queues[0].terms_in("default")


def test_a_queue_is_added_or_replaced() -> None:
    after = change.overlay(START, [change.AddQueue(queue("team-b")), change.AddQueue(queue(gpu="8"))])

    assert {one.id: one.terms_in("default").gpu.quota for one in after.queues} == {"team-a": 8000, "team-b": 0}


def test_of_several_nodes_and_devices_one_is_offered_again() -> None:
    shut = [device(f"node-1-gpu-{index}", withheld="cordoned") for index in range(2)]
    taken = replace(START, nodes=(node(devices=shut, is_cordoned=True), node("node-2", is_cordoned=True)))

    after = change.overlay(taken, [change.UncordonNode("node-2"), change.OfferDevice("node-1-gpu-1")])

    assert [one.is_cordoned for one in after.nodes] == [True, False]
    assert [one.withheld for one in after.nodes[0].devices] == ["cordoned", None]


def test_a_node_and_a_device_are_offered_again() -> None:
    after = change.overlay(START, [change.UncordonNode("node-1"), change.OfferDevice("node-1-gpu-0")])

    assert not after.nodes[0].is_cordoned
    assert after.nodes[0].devices[0].withheld is None


@pytest.mark.parametrize(
    ("changed", "field", "valid"),
    [
        (change.RemoveWorkload("x"), "workload", ("job", "old")),
        (change.SetPriority("x", 1), "workload", ("job", "old")),
        (change.SetTerms("x", "default", PoolTerms()), "project", ("team-a",)),
        (change.UncordonNode("x"), "node", ("node-1",)),
        (change.OfferDevice("x"), "device", ("node-1-gpu-0",)),
    ],
)
def test_a_change_of_what_is_not_there_is_refused(changed: Change, field: str, valid: tuple[str, ...]) -> None:
    with pytest.raises(NotFound) as refused:
        change.overlay(START, [changed])

    assert (refused.value.field, refused.value.valid) == (field, valid)


def test_the_snapshot_it_was_made_from_stays_as_it_was() -> None:
    before = repr(START)

    change.overlay(START, [change.SetPriority("job", 99), change.RemoveWorkload("old"), change.UncordonNode("node-1")])

    assert repr(START) == before
