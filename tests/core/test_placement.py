"""Where pods go: which device, which node, and what never fits together."""

from dataclasses import replace

import pytest

from aliquot.core.model import Asked, Policy
from aliquot.core.plan import Code
from tests import builders
from tests.builders import job, node, queue, running, snapshot
from tests.core.outcomes import bound, code_of, plan


def test_two_halves_share_one_device_and_a_whole_one_goes_elsewhere() -> None:
    made = plan(snapshot(node(), queue(), job("half-1", gpu="0.5"), job("half-2", gpu="0.5"), job("whole")))

    places = bound(made)
    assert places["half-1"] == places["half-2"]
    assert places["whole"] != places["half-1"]


def test_a_half_is_half_the_memory_and_500_thousandths() -> None:
    made = plan(snapshot(node(), queue(), job("half", gpu="0.5")))

    share = made.binds[0].place.shares[0]
    assert (share.milli, share.mib) == (500, 40 * 1024)


def test_two_halves_fit_on_a_device_with_an_odd_number_of_mib() -> None:
    odd = builders.device(memory="81559Mi")

    made = plan(snapshot(node(devices=[odd]), queue(), job("half-1", gpu="0.5"), job("half-2", gpu="0.5")))

    assert [one.place.shares[0].mib for one in made.binds] == [40779, 40779]


def test_requests_by_memory_fit_by_memory_alone() -> None:
    # 24 x 2,000 MiB on 46,068 MiB: 23 fit, though each is charged 44 thousandths, rounded up.
    jobs = [job(f"job-{index:02}", gpu="2000Mi") for index in range(24)]

    made = plan(snapshot(node(devices=[builders.device(memory="46068Mi")]), queue(), *jobs))

    assert len(made.binds) == 23
    assert made.binds[0].place.shares[0].milli == 44
    assert code_of(made, "job-23") is Code.NO_DEVICE_FITS


def test_a_share_goes_to_the_device_that_is_already_shared() -> None:
    taken = snapshot(node(), queue(), running(job("old", gpu="0.25"), "node-1:5"), job("new", gpu="0.5"))

    assert bound(plan(taken, policy=Policy(gpu_placement="pack"))) == {"new": ["gpu-5"]}


def test_by_fragmentation_a_share_leaves_no_piece_that_nobody_expected_can_use() -> None:
    taken = snapshot(node(), queue(), running(job("old", gpu="0.25"), "node-1:5"), job("new", gpu="0.5"))

    asked = (Asked(builders.request("0.5"), 10), Asked(builders.request("0.25"), 1))

    assert bound(plan(replace(taken, recent=asked))) == {"new": ["gpu-0"]}


def test_a_share_takes_the_tightest_fit() -> None:
    taken = snapshot(
        node(),
        queue(),
        running(job("quarter", gpu="0.25"), "node-1:2"),
        running(job("half", gpu="0.5"), "node-1:4"),
        job("new", gpu="0.5"),
    )

    assert bound(plan(taken)) == {"new": ["gpu-4"]}


def test_several_shares_of_one_pod_sit_on_different_devices() -> None:
    made = plan(snapshot(node(devices=2), queue(), job("pair", gpu="2x0.5")))

    assert bound(made) == {"pair": ["gpu-0", "gpu-1"]}


def test_three_pairs_of_halves_fit_on_three_devices() -> None:
    made = plan(snapshot(node(devices=3), queue(), job("pairs", gpu="2x0.5", pods=3)))

    assert sorted(bound(made)["pairs"]) == ["gpu-0", "gpu-0", "gpu-1", "gpu-1", "gpu-2", "gpu-2"]


@pytest.mark.parametrize(("gpu_placement", "node_id"), [("pack", "node-2"), ("spread", "node-1")])
def test_whole_devices_are_packed_or_spread_over_nodes(gpu_placement: str, node_id: str) -> None:
    taken = snapshot(node("node-1"), node("node-2"), queue(), running(job("old"), "node-2:0"), job("new"))

    made = plan(taken, policy=Policy(gpu_placement=gpu_placement))  # type: ignore[arg-type]  # from the table above

    assert made.binds[0].place.node == node_id


def test_a_request_by_memory_takes_the_larger_device_where_only_that_keeps_it_within_the_limit() -> None:
    # 10Gi of 20Gi count 500 thousandths, 10Gi of 80Gi count 125.
    devices = [builders.device("node-1-gpu-0", memory="20Gi"), builders.device("node-1-gpu-1", memory="80Gi")]

    made = plan(snapshot(node(devices=devices), queue(limit="0.2"), job(gpu="10Gi")))

    assert bound(made) == {"job": ["gpu-1"]}


def test_work_without_a_gpu_keeps_off_the_nodes_that_have_some() -> None:
    made = plan(snapshot(node("node-1"), node("node-2", 0), queue(), job("cpu-only", gpu=None, cpu="2")))

    assert made.binds[0].place.node == "node-2"


def test_cpu_and_memory_are_left_balanced() -> None:
    taken = snapshot(
        node("node-1", cpu="8", memory="16Gi"),
        node("node-2", cpu="8", memory="16Gi"),
        queue(),
        running(job("cpu", gpu=None, cpu="4"), "node-1"),
        job("new", cpu="1", memory="8Gi"),
    )

    assert plan(taken).binds[0].place.node == "node-1"


def test_a_gang_starts_whole_or_not_at_all() -> None:
    made = plan(snapshot(node(), queue(), job("gang", pods=20)))

    assert not made.binds


def test_two_large_gangs_under_one_limit_do_not_lock_each_other_out() -> None:
    taken = snapshot(node(), queue(limit="4"), job("gang-1", pods=4), job("gang-2", pods=4))

    made = plan(taken)

    assert list(bound(made)) == ["gang-1"]
    assert code_of(made, "gang-2") is Code.QUEUE_LIMIT


def test_a_blocked_head_holds_back_nothing_that_fits() -> None:
    taken = snapshot(node(), queue(), job("head", pods=9, priority=100), job("one"), job("cpu-only", gpu=None, cpu="1"))

    assert set(bound(plan(taken))) == {"one", "cpu-only"}


def test_a_pod_and_a_limit_are_kept_apart_in_one_cycle() -> None:
    made = plan(snapshot(node(), queue("a"), queue("b"), job("a1", "a", "8"), job("b1", "b", "8")))

    assert len(made.binds) == 1
    assert len(made.waits) == 1


def test_two_pools_do_not_know_each_other() -> None:
    taken = snapshot(node("node-1"), node("node-2", pool="lab"), queue(), job("here"), job("there", pool="lab"))

    assert {one.workload: one.place.node for one in plan(taken).binds} == {"here": "node-1", "there": "node-2"}


def test_nothing_starts_on_withheld_devices_or_cordoned_nodes() -> None:
    withheld = [builders.device("node-1-gpu-0", withheld="cordoned"), builders.device("node-1-gpu-1")]
    taken = snapshot(node(devices=withheld), node("node-2", is_cordoned=True), queue(), job("one"), job("two"))

    assert bound(plan(taken)) == {"one": ["gpu-1"]}


def test_a_node_without_cpus_takes_work_that_asks_for_none() -> None:
    bare = node(devices=1, cpu="0", memory="0")

    assert bound(plan(snapshot(bare, queue(), job()))) == {"job": ["gpu-0"]}


def test_a_request_by_memory_that_passes_the_limit_on_every_device_waits_for_the_limit() -> None:
    made = plan(snapshot(node(devices=1), queue(limit="0.4"), job(gpu="40Gi"), job("other", gpu="40Gi")))

    assert not made.binds
    assert code_of(made, "job") is code_of(made, "other") is Code.QUEUE_LIMIT


def test_devices_of_a_pod_that_asks_for_none_any_more_are_still_taken() -> None:
    changed = running(job("changed"), "node-1:0")
    pod = replace(changed.pods[0], request=builders.request(None))

    made = plan(snapshot(node(devices=2), queue(), replace(changed, pods=(pod,)), job(gpu="2")))

    assert not made.binds
