"""Room that is being freed for someone: kept, redeemed, taken over, expired."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core.model import Group, Near, Place, PodState, Promise, Share, Snapshot, Topology
from aliquot.core.plan import Code, Plan
from tests.builders import NOW, job, mib, node, queue, releasing, running, shares, snapshot
from tests.core.outcomes import GRACE, bound, code_of, full, nominated, plan, promise_of


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


def test_what_is_left_of_a_promise_that_somebody_took_is_given_out_in_the_same_cycle() -> None:
    ending = releasing(job("ending", "a", "0.25", waits=timedelta(hours=9)), "node-1:0")
    holder = job("holder", "b", "1")
    whole = Place("holder-0", "node-1", (Share("node-1-gpu-0", 1000, mib("80Gi")),))
    later = NOW + GRACE
    promise = Promise("holder", (whole,), NOW, later, later + GRACE, waits_for=("ending-0",))
    taker = job("taker", "a", "0.25", waits=timedelta(hours=9))
    half = job("half", "b", "0.5", waits=timedelta(hours=6))

    made = plan(snapshot(node(devices=1), queue("a"), queue("b"), ending, taker, half, holder, promise))

    assert {one.workload for one in made.binds} == {"taker", "half"}
    assert not made.nominates


def test_what_is_above_the_minimum_of_promised_work_is_not_held_to_the_quota_of_fixed_work() -> None:
    crew = replace(job("crew", "a", pods=2, min_pods=1), is_preemptible=False, is_semi_preemptible=True)
    ending = [releasing(job(f"ending{index}", "b"), f"node-1:{index}") for index in range(2)]
    taken = snapshot(node(devices=2), queue("a", "1"), queue("b", "1"), *ending, crew)
    first = plan(taken)

    later = next_cycle(taken, first, gone=False)
    between = plan(later, after=timedelta(seconds=1))
    second = plan(replace(later, workloads=(crew,)), after=timedelta(seconds=2))

    assert [len(one.places) for one in first.nominates] == [2]
    assert between.nominates == first.nominates
    assert bound(second) == {"crew": ["gpu-0", "gpu-1"]}
    assert not second.nominates


def test_who_has_lost_a_promise_in_another_pool_waits_for_its_first_pool_again() -> None:
    ending = releasing(job("ending", "a", pool="far"), "node-2:0")
    holder = replace(job("holder", "a"), fallback_pools=("far",))
    place = Place("holder-0", "node-2", (Share("node-2-gpu-0", 1000, mib("80Gi")),))
    promise = Promise("holder", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("ending-0",))
    higher = job("higher", "a", priority=200, pool="far")
    near, far = node("node-1", 1), node("node-2", 1, pool="far")

    made = plan(snapshot(near, far, queue("a", "8"), ending, holder, higher, promise))

    assert nominated(made) == ["higher"]
    assert [(one.workload, one.place.node) for one in made.binds] == [("holder", "node-1")]


def test_a_promise_that_a_lowered_limit_does_not_allow_any_more_is_dropped() -> None:
    first = plan(evicting())
    later = next_cycle(evicting(), first, gone=False)

    lowered = [queue("b", "1", limit="0") if one.id == "b" else one for one in later.queues]
    second = plan(replace(later, queues=tuple(lowered)), after=timedelta(seconds=1))

    assert nominated(first) == ["b0"]
    assert not second.nominates
    assert code_of(second, "b0") is Code.QUEUE_LIMIT


@pytest.mark.parametrize(("places", "kept"), [(("node-1", "node-2"), True), (("node-1", "node-3"), False)])
def test_a_promise_whose_places_are_not_near_any_more_is_made_anew(places: tuple[str, str], *, kept: bool) -> None:
    near = Near("net", required="rack")
    crew = replace(job("crew", pods=2), near=near)
    racks = {"node-1": "a", "node-2": "a", "node-3": "b"}
    nodes = [replace(node(id, 2), labels={"rack": name}) for id, name in racks.items()]
    waits = [releasing(job(f"old-{id}", gpu="2"), f"{id}:0,1") for id in racks]
    promised = tuple(
        Place(pod.id, at, shares(pod.request.gpu, at, "0")) for pod, at in zip(crew.pods, places, strict=True)
    )
    promise = Promise("crew", promised, NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("old-node-1-0",))
    taken = snapshot(*nodes, queue(), *waits, crew, promise)

    made = plan(replace(taken, topologies=(Topology("net", ("rack",)),)))

    assert ([place.node for place in made.nominates[0].places] == list(places)) is kept
    assert len({racks[place.node] for place in made.nominates[0].places}) == 1


def test_a_promise_to_the_rest_of_a_gang_goes_with_the_gang() -> None:
    crew = running(job("crew", pods=3, min_pods=2), "away:0", "node-1:0")
    place = Place("crew-2", "node-1", shares(crew.pods[2].request.gpu, "node-1", "1"))
    promise = Promise("crew", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("old-0",))
    away = replace(node("away", 1), is_drained=True)

    made = plan(snapshot(node(devices=2), away, queue(), releasing(job("old"), "node-1:1"), crew, promise))

    assert sorted(one.pod for one in made.evicts) == ["crew-0", "crew-1"]
    assert nominated(made) == []
    assert [one.workload for one in made.waits] == ["crew"]


def test_each_group_of_a_promised_gang_has_to_be_near_itself() -> None:
    near = Near("net", required="rack")
    groups = (Group("left", 1, near=near), Group("right", 1, near=near))
    crew = job("crew", pods=2)
    pods = tuple(replace(pod, group=name) for pod, name in zip(crew.pods, ("left", "right"), strict=True))
    crew = replace(crew, pods=pods, gang=Group("", 2, groups), min_pods=2)
    nodes = [replace(node(f"node-{name}", 1), labels={"rack": name}) for name in ("a", "b")]
    places = tuple(
        Place(pod.id, one.id, shares(pod.request.gpu, one.id, "0")) for pod, one in zip(crew.pods, nodes, strict=True)
    )
    promise = Promise("crew", places, NOW, NOW + GRACE, NOW + 2 * GRACE)
    gone = running(job("gone", gpu=None, cpu="1"), "node-that-is-gone")

    made = plan(replace(snapshot(*nodes, queue(), crew, gone, promise), topologies=(Topology("net", ("rack",)),)))

    assert sorted(one.place.node for one in made.binds) == ["node-a", "node-b"]


def test_a_promise_stays_where_the_gang_goes_on_without_what_has_to_end() -> None:
    crew = running(job("crew", pods=3, min_pods=1), "away:0", "node-1:0")
    place = Place("crew-2", "node-1", shares(crew.pods[2].request.gpu, "node-1", "1"))
    promise = Promise("crew", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("old-0",))
    away = replace(node("away", 1), is_drained=True)

    made = plan(snapshot(node(devices=2), away, queue(), releasing(job("old"), "node-1:1"), crew, promise))

    assert [one.pod for one in made.evicts] == ["crew-0"]
    assert nominated(made) == ["crew"]


def test_what_runs_on_a_node_that_is_gone_is_near_nobody_and_binds_nobody() -> None:
    crew = replace(running(job("crew", pods=2, min_pods=1), "gone:0"), near=Near("net", required="rack"))
    here = replace(node("node-a", 1), labels={"rack": "a"})
    place = Place("crew-1", "node-a", shares(crew.pods[1].request.gpu, "node-a", "0"))
    promise = Promise("crew", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE)

    made = plan(replace(snapshot(here, queue(), crew, promise), topologies=(Topology("net", ("rack",)),)))

    assert [one.place.node for one in made.binds] == ["node-a"]
