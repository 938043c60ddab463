"""Who gives way to whom: reclaim between queues, preemption inside one, and the victims that are spared."""

from dataclasses import replace
from datetime import timedelta

from aliquot.core.plan import Code, Rule
from tests import builders
from tests.builders import NOW, job, node, queue, releasing, running, snapshot
from tests.core.outcomes import GRACE, code_of, evicted, full, nominated, plan

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


def test_a_guarantee_is_honoured_against_one_large_gang_though_its_queue_falls_below_its_quota() -> None:
    taken = snapshot(
        node(),
        queue("a", "4"),
        queue("b", "4"),
        running(job("a1", "a", "6"), "node-1:0,1,2,3,4,5"),
        *full("b", 2, first=6),
        job("b9", "b"),
    )

    assert evicted(plan(taken)) == ["a1-0"]


def test_a_queue_is_not_left_below_its_quota_where_smaller_work_does() -> None:
    taken = snapshot(
        node(),
        queue("a", "4"),
        queue("b", "4"),
        running(job("a1", "a", "5"), "node-1:0,1,2,3,4", started=timedelta(minutes=1)),
        running(job("a2", "a"), "node-1:5", started=timedelta(hours=9)),
        *full("b", 2, first=6),
        job("b9", "b"),
    )

    assert evicted(plan(taken)) == ["a2-0"]


def test_no_fair_share_of_cpu_takes_back_what_a_quota_of_gpus_took() -> None:
    taken = snapshot(
        node(devices=4, cpu="2"),
        queue("a", "3"),
        queue("b", "0"),
        running(job("a1", "a", cpu="1"), "node-1:0"),
        running(job("a2", "a", cpu="1"), "node-1:1"),
        job("b1", "b", cpu="500m"),
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
