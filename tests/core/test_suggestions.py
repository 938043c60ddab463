"""Suggestions of the rarer kinds, each where only that kind of change may be made; and what is said else."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import change, explain, ladders, schedule
from aliquot.core.explain import Explanation
from aliquot.core.model import (
    Affinity,
    GpuRequest,
    Group,
    Near,
    Place,
    Policy,
    Promise,
    Sharing,
    Snapshot,
    Topology,
    Workload,
)
from aliquot.core.plan import Code, Reason
from tests.builders import NOW, asking, claim, job, node, queue, releasing, running, shares, snapshot
from tests.core.outcomes import plan

TEAM = queue("team-a", "8")
POLICY = Policy()


def explained(world: Snapshot, *kinds: type, policy: Policy = POLICY, most_whole: int = 150) -> Explanation:
    """Of the workload `job`, where changes of these kinds can be made (all, if none is named)."""
    may: Collection[type] = kinds or explain.ALL_KINDS
    return explain.explain(world, "job", policy=policy, now=NOW, kinds=may, most_whole=most_whole)


def said(world: Snapshot, *kinds: type) -> str:
    """What is suggested, once it is seen that it works."""
    found = explained(world, *kinds).suggestion
    if found is None:
        return ""
    made = schedule.schedule(change.overlay(world, [found.change]), POLICY, NOW)
    assert "job" in {one.workload for one in made.binds} | {one.workload for one in made.nominates}
    return found.description


def why(world: Snapshot, *, policy: Policy = POLICY) -> Reason:
    return next(one.reason for one in plan(world, policy=policy).waits if one.workload == "job")


def mixed(first: str | None, second: str | None, *, groups: bool = False) -> Workload:
    """A gang of two pods that ask for unlike shares."""
    both = job(pods=2)
    pods = tuple(
        replace(pod, request=job(gpu=gpu).pods[0].request, group=f"g{pod.index}" if groups else "")
        for pod, gpu in zip(both.pods, (first, second), strict=True)
    )
    root = Group("", 2, (Group("g0", 1), Group("g1", 1))) if groups else None
    return replace(both, pods=pods, gang=root)


def test_to_prefer_to_be_near_instead_of_requiring_it() -> None:
    racks = [replace(node(f"node-{name}", 1), labels={"rack": name}) for name in "xy"]
    world = snapshot(*racks, TEAM, replace(job(pods=2), near=Near("net", required="rack")))

    found = said(replace(world, topologies=(Topology("net", ("rack",)),)), change.LoosenNear)

    assert found == "prefer that its pods are near each other instead of requiring it"


def test_to_state_a_run_time_that_ends_before_promised_room_is_needed() -> None:
    ending = releasing(job("ending"), "node-1:0", due=timedelta(minutes=10))
    pair = job("pair", gpu="2", waits=timedelta(hours=9))
    place = Place("pair-0", "node-1", shares(pair.pods[0].request.gpu, "node-1", "0,1"))
    due = NOW + timedelta(minutes=10)
    kept = Promise("pair", (place,), NOW, due, due + timedelta(minutes=10), ("ending-0",))
    world = snapshot(node(devices=2), TEAM, ending, pair, kept, replace(job(), max_run_time=timedelta(hours=1)))

    assert said(world, change.SetMaxRunTime) == (
        "state that it runs for 10m at most: it may then use promised room until that is needed"
    )


@pytest.mark.parametrize(
    ("gang", "text"),
    [
        pytest.param(
            mixed("1", "0.5"), "ask for 0.5 GPU instead of 1 per pod that asks for this", id="pods without a group"
        ),
        pytest.param(
            mixed("1", "0.5", groups=True), "ask for 0.5 GPU instead of 1 per pod of g0", id="pods of a group"
        ),
    ],
)
def test_of_unlike_pods_it_is_said_which_should_ask_for_less(gang: Workload, text: str) -> None:
    assert said(snapshot(node(devices=1), TEAM, gang), change.SetGpu) == text


def test_pods_that_ask_for_no_gpu_are_not_told_to_ask_for_less() -> None:
    assert said(snapshot(node(devices=1), TEAM, mixed(None, "2")), change.SetGpu) == (
        "ask for 1 GPU instead of 2 per pod that asks for this"
    )


def test_where_many_wait_unlike_pods_are_told_the_same() -> None:
    world = snapshot(node(devices=1), TEAM, mixed(None, "2"), *[job(f"x{n}", gpu="9") for n in range(8)])

    found = explained(world, change.SetGpu, most_whole=0).suggestion

    assert found is not None
    assert found.description == "ask for 1 GPU instead of 2 per pod that asks for this"


@pytest.mark.parametrize(("amount", "text"), [(2**30, "1Gi"), (3 * 2**20, "3Mi"), (2**10, "1Ki"), (1000, "1000")])
def test_memory_is_said_to_the_byte(amount: int, text: str) -> None:
    assert ladders.exact(amount) == text


def test_a_limit_that_is_set_to_the_byte_is_said_to_the_byte() -> None:
    tight = queue("team-a", "8", memory=claim("1000", limit="1000", is_memory=True))

    assert said(snapshot(node(), tight, job(memory="1Mi")), change.SetTerms).startswith(
        "raise the memory limit of project team-a from 1000 to "
    )


# Where nothing helps


def test_a_held_project_on_a_cluster_without_room_has_two_things_in_its_way() -> None:
    holders = [
        running(job(f"h{n}", "team-b", "4", is_preemptible=False), f"node-1:{4 * n},{4 * n + 1}") for n in (0, 1)
    ]
    world = snapshot(node(devices=0), replace(TEAM, is_held=True), queue("team-b", "8"), *holders, job())

    found = explained(world)

    assert found.reason is not None
    assert found.reason.code is Code.QUEUE_HELD
    assert found.no_suggestion_because == "an administrator has to release the project; that alone does not start it"


@pytest.mark.parametrize("kind", ["delay", "minimum run time"])
def test_who_may_evict_later_is_told_so_where_no_one_change_helps_before(kind: str) -> None:
    holders = [running(job(f"h{n}", priority=10), f"node-1:{n}") for n in range(2)]
    team, own = TEAM, job(gpu="2")
    if kind == "delay":
        own = replace(own, preemption_delay=timedelta(hours=2))
    else:
        team = replace(team, preempt_min_runtime=timedelta(hours=2))

    found = explained(snapshot(node(devices=2), team, *holders, own), change.SetGpu)

    assert found.reason is not None
    assert found.reason.code is (Code.PREEMPTION_DELAY if kind == "delay" else Code.PROTECTED_MIN_RUNTIME)
    assert found.suggestion is None
    assert (found.no_suggestion_because or "").startswith(
        "by itself it may evict others from 13:00:00 (UTC) on"
        if kind == "delay"
        else "by itself it may evict others once"
    )


# Reasons of the rarer kinds


def test_a_policy_that_starts_nothing_is_the_reason() -> None:
    reason = why(snapshot(node(), TEAM, job()), policy=replace(POLICY, actions=("reclaim",)))

    assert (reason.code, reason.message) == (Code.BEHIND, "this cycle starts nothing: its policy leaves that out")


@pytest.mark.parametrize("gpu", ["1", "0.5", "20Gi"])
def test_all_who_would_fit_but_for_promised_room_are_told_who_has_the_promise(gpu: str) -> None:
    ending = releasing(job("ending"), "node-1:0")
    pair = job("pair", gpu="2", waits=timedelta(hours=9))
    place = Place("pair-0", "node-1", shares(pair.pods[0].request.gpu, "node-1", "0,1"))
    kept = Promise("pair", (place,), NOW, NOW + timedelta(seconds=30), NOW + timedelta(minutes=1), ("ending-0",))
    world = snapshot(node(devices=2), TEAM, ending, pair, kept, job("other", gpu=gpu), job(gpu=gpu))

    waits = {one.workload: one.reason.code for one in plan(world).waits}

    assert waits["job"] is waits["other"] is Code.BEHIND


def test_a_way_of_sharing_is_not_the_reason_where_there_is_no_room_in_any() -> None:
    holder = running(job("holder", is_preemptible=False), "node-1:0")
    strict = asking(job(), gpu=GpuRequest(1, 500, sharing=Sharing.SM_SHARING, is_sharing_required=True))

    assert why(snapshot(node(devices=1), TEAM, holder, strict)).code is Code.NO_FREE_DEVICE


def test_of_several_resources_the_one_that_is_short_is_named() -> None:
    rich = replace(node(), resources={"disk": 10, "rdma": 1})
    holder = running(asking(job("holder", is_preemptible=False), resources=(("rdma", 1),)), "node-1:0")

    reason = why(snapshot(rich, TEAM, holder, asking(job(), resources=(("disk", 5), ("rdma", 1)))))

    assert reason.message == "needs 1 of rdma on one node; the most that is free is 0 on node-1"


def test_the_pods_that_would_fit_one_by_one_are_counted_together() -> None:
    rich = replace(node(devices=2), resources={"rdma": 1})
    both = job(pods=2)
    pods = [
        replace(pod, request=replace(pod.request, resources=(("rdma", 1),), milli_cpus=pod.index)) for pod in both.pods
    ]
    unlike = replace(both, pods=tuple(pods))

    assert not plan(snapshot(rich, TEAM, unlike)).binds
    assert why(snapshot(rich, TEAM, unlike)).code is Code.LARGER_THAN_POOL


def test_who_repels_those_of_its_own_kind_waits_where_one_of_them_is() -> None:
    lonely = asking(job(pods=2), labels=(("app", "x"),), anti_affinity=(Affinity((("app", "x"),), "host"),))
    world = snapshot(replace(node(devices=2), labels={"host": "one"}), TEAM, lonely)

    assert why(world).code is Code.GANG_INCOMPLETE


@pytest.mark.parametrize("second", ["1", "0.5"])
def test_a_gang_of_unlike_pods_that_would_fit_but_for_promised_room_is_told_who_has_the_promise(second: str) -> None:
    ending = releasing(job("ending"), "node-1:0")
    pair = job("pair", gpu="2", waits=timedelta(hours=9))
    place = Place("pair-0", "node-1", shares(pair.pods[0].request.gpu, "node-1", "0,1"))
    kept = Promise("pair", (place,), NOW, NOW + timedelta(seconds=30), NOW + timedelta(minutes=1), ("ending-0",))
    gang = mixed("1", second)
    gang = replace(
        gang, pods=(gang.pods[0], replace(gang.pods[1], request=replace(gang.pods[1].request, milli_cpus=5)))
    )

    world = snapshot(node(devices=2), node("node-2", 1), TEAM, ending, pair, kept, gang)

    assert why(world).code is Code.BEHIND


def test_a_gang_in_which_some_ask_for_no_gpu_is_too_large_only_if_that_is_proven() -> None:
    gang = mixed("1", None)
    pods = tuple(replace(pod, request=replace(pod.request, resources=(("rdma", 1),))) for pod in gang.pods)

    assert why(snapshot(replace(node(), resources={"rdma": 1}), TEAM, replace(gang, pods=pods))).code is (
        Code.LARGER_THAN_POOL
    )


def test_promised_room_is_named_to_those_with_rules_about_their_neighbours_too() -> None:
    ending = releasing(job("ending", gpu=None, cpu="10"), "node-1")
    first = job("first", cpu="60", priority=60)
    place = Place("first-0", "node-1", shares(first.pods[0].request.gpu, "node-1", "0"))
    kept = Promise("first", (place,), NOW, NOW + timedelta(seconds=30), NOW + timedelta(minutes=1), ("ending-0",))
    shy = asking(job(), anti_affinity=(Affinity((("app", "x"),), "host"),))

    assert why(snapshot(replace(node(devices=1), labels={"host": "one"}), TEAM, ending, first, shy, kept)).code is (
        Code.BEHIND
    )


def test_those_of_unlike_priority_are_told_the_same_shortage() -> None:
    fixed = running(job("fixed", is_preemptible=False), "node-1:0")

    made = plan(snapshot(node(devices=1), TEAM, fixed, job(), job("other", priority=60)))

    assert {one.reason.code for one in made.waits} == {Code.NO_FREE_DEVICE}
