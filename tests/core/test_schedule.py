"""What a cycle starts, in which order, and what bounds it: exact outcomes, rule by rule."""

from dataclasses import replace
from datetime import timedelta

from aliquot.core.model import ForeignUse, Policy
from aliquot.core.plan import Code
from tests import builders
from tests.builders import job, node, queue, releasing, running, snapshot
from tests.core.outcomes import bound, code_of, full, nominated, plan

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
