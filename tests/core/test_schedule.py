"""What a cycle does, rule by rule, with exact outcomes: who starts where, who gives way, who is promised what."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import schedule
from aliquot.core.model import ForeignUse, PodState, Policy, Promise, Snapshot, Workload
from aliquot.core.plan import Code, Plan, Rule
from tests import builders
from tests.builders import NOW, job, node, queue, releasing, running, snapshot

GRACE = timedelta(seconds=30)


def plan(taken: Snapshot, *, policy: Policy | None = None, after: timedelta = timedelta()) -> Plan:
    return schedule.schedule(taken, policy or Policy(), NOW + after)


def bound(made: Plan) -> dict[str, list[str]]:
    """By workload, the devices of its pods (or the node, where it asks for none)."""
    found: dict[str, list[str]] = {}
    for one in made.binds:
        names = [share.device.removeprefix("node-1-") for share in one.place.shares] or [one.place.node]
        found.setdefault(one.workload, []).extend(names)
    return found


def evicted(made: Plan) -> list[str]:
    return [one.pod for one in made.evicts]


def nominated(made: Plan) -> list[str]:
    return [one.workload for one in made.nominates]


def code_of(made: Plan, workload: str) -> Code:
    return next(one.reason.code for one in made.waits if one.workload == workload)


def full(queue_id: str, count: int = 8, *, first: int = 0, **more: int) -> list[Workload]:
    """So many running jobs of one device each."""
    return [
        running(job(f"{queue_id}{index}", queue_id, **more), f"node-1:{index}")  # type: ignore[arg-type]  # ints only
        for index in range(first, first + count)
    ]


def promise_of(made: Plan, workload: str) -> Promise:
    """The nomination, as whoever stores it gives it back."""
    one = next(one for one in made.nominates if one.workload == workload)
    return Promise(
        workload=one.workload,
        places=one.places,
        made=one.due - (one.expires - one.due),
        due=one.due,
        expires=one.expires,
        waits_for=one.waits_for,
        may_evict=one.may_evict,
    )


# What is placed, and where


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

    assert bound(plan(taken)) == {"new": ["gpu-5"]}


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


# In which order


def test_the_higher_priority_comes_first_then_the_longer_wait_then_the_id() -> None:
    jobs = [
        job("late", waits=timedelta(minutes=1)),
        job("b"),
        job("a"),
        job("urgent", priority=60, waits=timedelta(minutes=1)),
    ]

    made = plan(snapshot(node(), queue(), *jobs))

    assert [one.workload for one in made.binds] == ["urgent", "a", "b", "late"]


def test_who_is_below_its_minimum_comes_before_who_has_it() -> None:
    above = running(job("above", pods=2, min_pods=1, waits=timedelta(hours=9)), "node-1:0")

    made = plan(snapshot(node(devices=2), queue(), above, job("below")))

    assert list(bound(made)) == ["below"]


def test_queues_take_turns_by_what_they_hold_of_their_share() -> None:
    jobs = [job(f"{id}{index}", id) for id in "ab" for index in range(4)]

    made = plan(snapshot(node(devices=4), queue("a"), queue("b"), *jobs))

    assert [one.workload for one in made.binds] == ["a0", "b0", "a1", "b1"]


def test_a_queue_below_its_quota_comes_before_one_that_borrows() -> None:
    taken = snapshot(
        node(devices=3), queue("a"), queue("b", "2"), *[job(f"{id}{n}", id) for id in "ab" for n in (1, 2)]
    )

    assert [one.workload for one in plan(taken).binds] == ["b1", "b2", "a1"]


def test_positions_count_those_who_wait_in_the_order_they_are_served() -> None:
    made = plan(snapshot(node(devices=1), queue(), running(job("old"), "node-1:0"), job("b"), job("a"), job("c")))

    assert [(one.workload, one.position) for one in made.waits] == [("a", 1), ("b", 2), ("c", 3)]


# Limits and quotas


def test_a_queue_borrows_beyond_its_quota_while_room_is_free() -> None:
    made = plan(snapshot(node(), queue("a", "4"), queue("b", "4"), *[job(f"a{index}", "a") for index in range(8)]))

    assert len(made.binds) == 8


def test_a_limit_of_the_department_bounds_its_projects_together() -> None:
    taken = snapshot(
        node(),
        queue("d", limit="3"),
        queue("a", parent="d"),
        queue("b", parent="d"),
        job("a1", "a", "2"),
        job("b1", "b", "2"),
    )

    made = plan(taken)

    assert len(made.binds) == 1
    assert code_of(made, "b1") is Code.QUEUE_LIMIT
    assert made.waits[0].reason.numbers == {"queue": "d", "resource": "gpu", "held": 2000, "asked": 2000, "limit": 3000}


def test_a_limit_counts_pods_that_are_ending() -> None:
    taken = snapshot(node(), queue(limit="4"), releasing(job("old", gpu="4"), "node-1:0,1,2,3"), job("new", gpu="4"))

    made = plan(taken)

    assert not made.binds
    assert nominated(made) == ["new"]
    assert made.nominates[0].waits_for == ("old-0",)


def test_work_that_may_not_be_preempted_stays_within_the_quota() -> None:
    taken = snapshot(
        node(), queue("a", "1"), job("w1", "a", is_preemptible=False), job("w2", "a", is_preemptible=False)
    )

    made = plan(taken)

    assert list(bound(made)) == ["w1"]
    assert code_of(made, "w2") is Code.NON_PREEMPTIBLE_OVER_QUOTA


def test_a_limit_on_cpu_binds_like_one_on_gpus() -> None:
    taken = snapshot(
        node(), queue(cpu=builders.claim(limit="3")), *[job(f"job-{n}", gpu=None, cpu="2") for n in (1, 2)]
    )

    made = plan(taken)

    assert list(bound(made)) == ["job-1"]
    assert made.waits[0].reason.numbers["resource"] == "cpu"


# Reclaim between queues


def test_a_lent_quota_comes_back_in_the_first_cycle() -> None:
    taken = snapshot(node(), queue("a", "4"), queue("b", "4"), *full("a"), *[job(f"b{n}", "b") for n in range(4)])

    made = plan(taken)

    assert evicted(made) == ["a7-0", "a6-0", "a5-0", "a4-0"]
    assert nominated(made) == ["b0", "b1", "b2", "b3"]
    assert {one.rule for one in made.evicts} == {Rule.RECLAIM}
    assert [one.waits_for for one in made.nominates] == [("a7-0",), ("a6-0",), ("a5-0",), ("a4-0",)]
    assert {(one.due, one.expires) for one in made.nominates} == {(NOW + GRACE, NOW + 2 * GRACE)}
    assert not made.binds


def test_the_receipt_says_by_which_numbers() -> None:
    made = plan(snapshot(node(), queue("a", "4"), queue("b", "4"), *full("a"), job("b0", "b")))

    assert made.evicts[0].explanation == (
        "b holds 0 GPUs and stays with b0 within its quota of 4 GPUs; a holds 8 GPUs, over its quota of 4 GPUs"
    )


def test_a_quota_is_not_exceeded_by_reclaiming() -> None:
    taken = snapshot(node(), queue("a", "4"), queue("b", "4"), *full("a"), *[job(f"b{n}", "b") for n in range(6)])

    made = plan(taken)

    assert len(made.evicts) == 4
    assert code_of(made, "b4") is Code.OVER_FAIR_SHARE


def test_without_quotas_fair_shares_are_reclaimed() -> None:
    taken = snapshot(node(), queue("a"), queue("b"), *full("a"), *[job(f"b{n}", "b") for n in range(8)])

    made = plan(taken)

    assert len(made.evicts) == 4
    assert "fair share of 4 GPUs" in made.evicts[0].explanation


def test_both_within_their_quota_leave_each_other_alone() -> None:
    taken = snapshot(node(), queue("a", "8"), queue("b", "8"), *full("a", 4), *full("b", 4, first=4), job("b9", "b"))

    assert not plan(taken).evicts


def test_work_that_may_not_be_preempted_is_no_victim() -> None:
    fixed = [replace(one, is_preemptible=False) for one in full("a")]

    made = plan(snapshot(node(), queue("a", "8"), queue("b", "4"), *fixed, job("b0", "b")))

    assert not made.evicts
    assert code_of(made, "b0") is Code.NO_FREE_DEVICE


def test_a_gang_whose_queue_would_fall_below_its_quota_is_spared() -> None:
    taken = snapshot(
        node(),
        queue("a", "4"),
        queue("b", "4"),
        running(job("a1", "a", "6"), "node-1:0,1,2,3,4,5"),
        *full("b", 2, first=6),
        job("b9", "b"),
    )

    assert not plan(taken).evicts


def test_nothing_is_evicted_for_what_would_not_fit_then() -> None:
    taken = snapshot(node(), queue("a", "4"), queue("b", "4"), *full("a"), job("b0", "b", "5"))

    made = plan(taken)

    assert not made.evicts
    assert code_of(made, "b0") is Code.OVER_FAIR_SHARE


def test_no_victim_is_taken_that_the_result_does_not_need() -> None:
    taken = snapshot(
        node(devices=3),
        queue("a", "0"),
        queue("b", "3"),
        running(job("half", "a", "0.5"), "node-1:0", started=timedelta(minutes=1)),
        running(job("other", "a", "0.5", is_preemptible=False), "node-1:0"),
        running(job("long", "a"), "node-1:1", started=timedelta(hours=2)),
        running(job("longer", "a"), "node-1:2", started=timedelta(hours=3)),
        job("b0", "b"),
    )

    made = plan(taken)

    assert evicted(made) == ["long-0"]
    assert "half: the result does not need it" in made.evicts[0].rejected


def test_a_large_victim_is_found_where_small_ones_would_use_up_what_a_queue_can_give() -> None:
    taken = snapshot(
        node(),
        queue("a", "2"),
        queue("b", "6"),
        running(job("long", "a"), "node-1:0", started=timedelta(hours=9)),
        running(job("wide", "a", "6"), "node-1:1,2,3,4,5,6", started=timedelta(hours=1)),
        running(job("young", "a"), "node-1:7", started=timedelta(minutes=1)),
        job("b0", "b", "6"),
    )

    made = plan(taken)

    assert evicted(made) == ["wide-0"]


def test_the_lowest_priority_goes_first() -> None:
    jobs = [replace(one, priority=40 if one.id == "a3" else 50) for one in full("a")]

    made = plan(snapshot(node(), queue("a", "4"), queue("b", "4"), *jobs, job("b0", "b")))

    assert evicted(made) == ["a3-0"]


def test_the_queue_farthest_over_its_share_gives() -> None:
    taken = snapshot(
        node(), queue("a", "1"), queue("b", "2"), queue("c", "2"), *full("a", 5), *full("b", 3, first=5), job("c0", "c")
    )

    assert evicted(plan(taken)) == ["a4-0"]


def test_pods_above_the_minimum_go_before_any_core() -> None:
    elastic = running(job("elastic", "a", pods=4, min_pods=2), *[f"node-1:{n}" for n in range(4)])
    taken = snapshot(node(), queue("a", "4"), queue("b", "4"), elastic, *full("a", 4, first=4), job("b0", "b", "2"))

    assert evicted(plan(taken)) == ["elastic-3", "elastic-2"]


def test_a_core_goes_whole() -> None:
    gang = running(job("gang", "a", pods=4), *[f"node-1:{n}" for n in range(4)])
    taken = snapshot(node(devices=4), queue("a", "0"), queue("b", "4"), gang, job("b0", "b"))

    assert sorted(evicted(plan(taken))) == ["gang-0", "gang-1", "gang-2", "gang-3"]


def test_a_department_takes_back_from_another_for_any_of_its_projects() -> None:
    taken = snapshot(
        node(),
        queue("d1", "4"),
        queue("d2", "4"),
        queue("a", "0", parent="d1"),
        queue("b", "0", parent="d2"),
        *full("a"),
        *[job(f"b{n}", "b") for n in range(5)],
    )

    assert len(plan(taken).evicts) == 4


def test_projects_of_one_department_are_compared_with_each_other() -> None:
    taken = snapshot(
        node(),
        queue("d1", "4"),
        queue("d2", "4"),
        queue("a", "2", parent="d1"),
        queue("b", "2", parent="d1"),
        queue("c", "4", parent="d2"),
        *full("a", 4),
        *full("c", 4, first=4),
        job("b0", "b", "2"),
    )

    assert sorted(evicted(plan(taken))) == ["a2-0", "a3-0"]


def test_a_limit_of_the_department_is_made_room_under_too() -> None:
    taken = snapshot(
        node(),
        queue("d", "4", limit="4"),
        queue("a", "2", parent="d"),
        queue("b", "2", parent="d"),
        *full("a", 4),
        job("b0", "b", "2"),
    )

    made = plan(taken)

    assert len(made.evicts) == 2
    assert nominated(made) == ["b0"]
    assert made.nominates[0].waits_for == ("a2-0", "a3-0")


def test_unlimited_cpu_does_not_stand_in_the_way_of_a_gpu_quota() -> None:
    jobs = [running(job(f"a{n}", "a", cpu="8"), f"node-1:{n}") for n in range(8)]
    taken = snapshot(
        node(cpu="64"), queue("a", "4"), queue("b", "4"), *jobs, *[job(f"b{n}", "b", cpu="8") for n in range(4)]
    )

    assert len(plan(taken).evicts) == 4


def test_who_would_pass_its_quota_of_one_resource_reclaims_no_other() -> None:
    # b has a GPU quota and no CPU quota; the two CPUs that are free are due to c, which waits for more.
    taken = snapshot(
        node(cpu="8"),
        queue("a", "4"),
        queue("b", "4", cpu=builders.claim("0")),
        queue("c", "0", cpu=builders.claim("8")),
        *full("a"),
        running(job("c0", "c", None, cpu="6"), "node-1"),
        job("c1", "c", None, cpu="4"),
        job("b0", "b", cpu="2"),
    )

    assert not plan(taken).evicts


def test_what_a_cycle_has_promised_it_does_not_take_again() -> None:
    # As above; low is entitled to a GPU, high is not (its CPUs), yet could take it from low by priority.
    taken = snapshot(
        node(cpu="8"),
        queue("a", "4"),
        queue("b", "4", cpu=builders.claim("0")),
        queue("c", "0", cpu=builders.claim("8")),
        *full("a"),
        running(job("c0", "c", None, cpu="6"), "node-1"),
        job("c1", "c", None, cpu="4"),
        job("low", "b"),
        job("high", "b", cpu="2", priority=100),
    )

    assert nominated(plan(taken)) == ["low"]


def test_what_is_short_and_due_to_the_victims_queue_protects_it() -> None:
    # a is over its GPU quota, yet within its CPU quota, and c waits for CPU.
    taken = snapshot(
        node(cpu="8"),
        queue("a", "4", cpu=builders.claim("8")),
        queue("b", "4"),
        queue("c", "0", cpu=builders.claim("0")),
        *[running(job(f"a{n}", "a", cpu="1"), f"node-1:{n}") for n in range(8)],
        job("c0", "c", None, cpu="4"),
        job("b0", "b"),
    )

    assert not plan(taken).evicts


def test_a_stepwise_loop_between_two_cohorts_does_not_start() -> None:
    # Reported of another scheduler: 300 in all, quotas 150, 150 and 0; 250 and 50 run, 50 more are asked.
    taken = snapshot(
        node(devices=0, cpu="300"),
        queue("ga", cpu=builders.claim("150")),
        queue("gb", cpu=builders.claim("150")),
        queue("be", cpu=builders.claim("0")),
        running(job("ga1", "ga", None, cpu="250"), "node-1"),
        running(job("be1", "be", None, cpu="50"), "node-1"),
        job("ga2", "ga", None, cpu="50"),
    )

    assert len(plan(taken).evicts) <= 1


# Preemption inside a queue


def test_a_higher_priority_takes_from_a_lower_of_the_same_queue() -> None:
    taken = snapshot(node(), queue("a", "8"), *full("a"), job("urgent", "a", priority=100))

    made = plan(taken)

    assert evicted(made) == ["a7-0"]
    assert made.evicts[0].rule is Rule.PREEMPT
    assert made.evicts[0].explanation == "urgent has priority 100, a7 of the same project has 50"


def test_an_equal_priority_takes_nothing() -> None:
    assert not plan(snapshot(node(), queue("a", "8"), *full("a"), job("equal", "a"))).evicts


def test_the_limit_of_the_queue_is_made_room_under_by_preemption() -> None:
    taken = snapshot(node(), queue("a", limit="4"), *full("a", 4), job("urgent", "a", "2", priority=100))

    made = plan(taken)

    assert len(made.evicts) == 2
    assert nominated(made) == ["urgent"]


def test_a_share_needs_only_the_victim_on_its_device() -> None:
    taken = snapshot(
        node(devices=1),
        queue("a", "1"),
        running(job("low", "a", "0.5", priority=10), "node-1:0"),
        running(job("mid", "a", "0.5", priority=20), "node-1:0"),
        job("urgent", "a", "0.5", priority=100),
    )

    assert evicted(plan(taken)) == ["low-0"]


def test_room_that_is_being_freed_anyway_saves_a_victim() -> None:
    taken = snapshot(
        node(devices=2), queue("a", "2"), *full("a", 1), releasing(job("gone", "a"), "node-1:1"),
        job("urgent", "a", priority=100),
    )  # fmt: skip

    made = plan(taken)

    assert not made.evicts
    assert nominated(made) == ["urgent"]
    assert made.nominates[0].due == NOW + timedelta(seconds=20)
    assert made.nominates[0].waits_for == ("gone-0",)


# Promises


def evicting() -> Snapshot:
    return snapshot(node(devices=1), queue("a", "0"), queue("b", "1"), *full("a", 1), job("b0", "b"))


def next_cycle(taken: Snapshot, made: Plan, *, gone: bool) -> Snapshot:
    """The snapshot after the plan: what was told to end is ending, or gone and waiting again."""
    told = {one.pod for one in made.evicts}
    workloads = []
    for workload in taken.workloads:
        pods = []
        for pod in workload.pods:
            state = PodState.PENDING if gone else PodState.RELEASING
            if pod.id in told or pod.state is PodState.RELEASING:
                is_held = state is PodState.RELEASING
                pod = replace(
                    pod,
                    state=state,
                    node=pod.node if is_held else None,
                    shares=pod.shares if is_held else (),
                    release_due=NOW + GRACE if is_held else None,
                )
            pods.append(pod)
        workloads.append(replace(workload, pods=tuple(pods)))
    promises = tuple(promise_of(made, one.workload) for one in made.nominates)
    return replace(taken, workloads=tuple(workloads), promises=promises)


def test_a_promise_is_kept_as_it_was_made_while_its_room_is_held() -> None:
    first = plan(evicting())

    second = plan(next_cycle(evicting(), first, gone=False), after=timedelta(seconds=5))

    assert second.nominates == first.nominates
    assert not second.evicts
    assert code_of(second, "b0") is Code.WAITING_FOR_RELEASE


def test_a_promise_binds_at_its_place_as_soon_as_that_is_free() -> None:
    first = plan(evicting())

    second = plan(next_cycle(evicting(), first, gone=True), after=timedelta(seconds=5))

    assert bound(second) == {"b0": ["gpu-0"]}
    assert not second.evicts
    assert [one.workload for one in second.waits] == ["a0"]


def test_promised_room_is_no_ones_until_then() -> None:
    first = plan(evicting())
    later = next_cycle(evicting(), first, gone=True)
    taken = replace(later, workloads=(*later.workloads, job("early", "b", waits=timedelta(days=1))))

    assert bound(plan(taken)) == {"b0": ["gpu-0"]}


def test_a_promised_share_leaves_the_rest_of_the_device_to_others() -> None:
    old = releasing(job("old", gpu="0.5"), "node-1:0")
    taken = snapshot(node(devices=1), queue(), old, job("new", gpu="0.5", waits=timedelta(days=1)))
    first = plan(taken)
    assert bound(first) == {"new": ["gpu-0"]}

    held = snapshot(
        node(devices=1),
        queue(),
        old,
        job("promised", gpu="0.5"),
        job("new", gpu="0.5"),
        Promise(
            "promised",
            (replace(first.binds[0].place, pod="promised-0"),),
            made=NOW - GRACE,
            due=NOW + GRACE,
            expires=NOW + 3 * GRACE,
            waits_for=("old-0",),
        ),
    )
    assert len(bound(plan(held))) == 1


def test_an_expired_promise_is_planned_anew_once_without_evictions() -> None:
    first = plan(evicting())
    stuck = next_cycle(evicting(), first, gone=False)

    second = plan(stuck, after=2 * GRACE)

    assert not second.evicts
    assert [one.may_evict for one in second.nominates] == [False]


def test_who_has_just_lost_a_promise_to_time_evicts_no_one_in_that_cycle() -> None:
    first = plan(evicting())
    never_ended = replace(evicting(), promises=(promise_of(first, "b0"),))

    assert not plan(never_ended, after=2 * GRACE).evicts
    assert plan(replace(never_ended, promises=()), after=3 * GRACE).evicts


def test_a_promise_ends_with_its_workload() -> None:
    first = plan(evicting())
    later = next_cycle(evicting(), first, gone=True)
    taken = replace(later, workloads=tuple(one for one in later.workloads if one.id != "b0"))

    second = plan(taken)

    assert not second.nominates
    assert bound(second) == {"a0": ["gpu-0"]}


def test_a_promise_for_another_request_is_dropped() -> None:
    first = plan(evicting())
    later = next_cycle(evicting(), first, gone=False)
    taken = replace(later, workloads=tuple(job("b0", "b", "0.5") if one.id == "b0" else one for one in later.workloads))

    second = plan(taken)

    assert [share.milli for one in second.nominates for place in one.places for share in place.shares] == [500]


def test_a_promise_on_a_node_that_was_cordoned_is_dropped() -> None:
    first = plan(evicting())
    later = next_cycle(evicting(), first, gone=True)

    second = plan(replace(later, nodes=(replace(later.nodes[0], is_cordoned=True),)))

    assert not second.nominates
    assert code_of(second, "b0") is Code.NODE_UNAVAILABLE


def test_who_could_evict_the_holder_takes_its_promise() -> None:
    taken = snapshot(node(devices=1), queue("a", "1"), *full("a", 1), job("high", "a", priority=100))
    first = plan(taken)
    later = next_cycle(taken, first, gone=False)

    second = plan(replace(later, workloads=(*later.workloads, job("higher", "a", priority=200))))

    assert nominated(second) == ["higher"]
    assert not second.evicts
    assert second.nominates[0].waits_for == ("a0-0",)
    assert code_of(second, "high") is Code.BEHIND


def test_a_promise_counts_as_held_by_its_queue() -> None:
    taken = snapshot(node(), queue("a", "4"), queue("b", "4"), *full("a"), *[job(f"b{n}", "b") for n in range(4)])
    first = plan(taken)
    later = next_cycle(taken, first, gone=False)

    second = plan(replace(later, workloads=(*later.workloads, job("b9", "b"))), after=timedelta(seconds=1))

    assert not second.evicts
    assert second.nominates == first.nominates


def test_an_evicted_workload_does_not_start_again_before_its_pods_are_gone() -> None:
    half_gone = running(job("gang", pods=2), "node-1:0")
    ending = replace(half_gone, pods=(replace(half_gone.pods[0], state=PodState.RELEASING), half_gone.pods[1]))

    made = plan(snapshot(node(), queue(), ending))

    assert not made.binds
    assert code_of(made, "gang") is Code.WAITING_FOR_RELEASE


# The budget


def test_the_budget_ends_the_search_for_victims_and_says_so() -> None:
    taken = snapshot(node(), queue("a", "4"), queue("b", "4"), *full("a"), job("b0", "b"))

    made = plan(taken, policy=Policy(step_budget=2))

    assert not made.evicts
    assert made.is_cut_off
    assert code_of(made, "b0") is Code.BUDGET
    assert made.step_budget == 2


def test_what_fits_is_placed_before_any_search() -> None:
    taken = snapshot(
        node(devices=9), queue("a", "4"), queue("b", "4"), *full("a"), job("b0", "b", "4", priority=200), job("b1", "b")
    )

    made = plan(taken, policy=Policy(step_budget=3))

    assert list(bound(made)) == ["b1"]
    assert not made.evicts


# What the plan tells


def test_the_plan_tells_shares_holdings_and_requests_of_every_queue() -> None:
    made = plan(snapshot(node(), queue("a", "4"), queue("b", "4"), *full("a"), job("b0", "b", "2")))

    gpus = {
        name: (made.fair_share[key].milli_gpus, made.held[key].milli_gpus, made.asked[key].milli_gpus)
        for name, key in (("a", ("default", "a")), ("b", ("default", "b")))
    }
    assert gpus == {"a": (6000, 8000, 8000), "b": (2000, 0, 2000)}


def test_what_runs_on_a_cordoned_node_still_counts_for_the_shares() -> None:
    taken = snapshot(
        node(devices=2), node("node-2", 2, is_cordoned=True), queue("a", "4"), running(job("a1", "a"), "node-2:0")
    )

    made = plan(replace(taken, workloads=(*taken.workloads, job("a2", "a", "2"))))

    assert made.fair_share["default", "a"].milli_gpus == 3000


def test_a_device_with_less_to_offer_takes_what_still_fits() -> None:
    used = builders.device(memory="40Gi", foreign=(ForeignUse(4711, "eve", 40 * 1024),))

    made = plan(snapshot(node(devices=[used]), queue(), job("small", gpu="20Gi"), job("large", gpu="60Gi")))

    assert list(bound(made)) == ["small"]
    assert code_of(made, "large") is Code.DEVICE_IN_USE
