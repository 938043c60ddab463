"""Moving what runs to make room: as little as can be, only where it fits elsewhere, and only as the rules allow."""

from dataclasses import replace
from datetime import timedelta

from aliquot.core.model import Budget, GpuRequest, Place, Policy, Promise, Sharing, Workload
from aliquot.core.plan import Code, Plan, Rule
from tests.builders import NOW, Part, asking, job, node, queue, releasing, running, shares, snapshot
from tests.core.outcomes import code_of, evicted, nominated, plan

ONLY_MOVES = Policy(actions=("allocate", "consolidate"))


def moved(*parts: Part, policy: Policy = ONLY_MOVES) -> Plan:
    return plan(snapshot(queue("a", "8"), *parts), policy=policy)


def at(id: str, *places: str, gpu: str = "1", **more: object) -> Workload:
    return running(job(id, "a", gpu, pods=len(places), **more), *places)  # type: ignore[arg-type]  # passed on


def new_nodes(made: Plan) -> dict[str, list[str]]:
    """By workload, the nodes of its promised places."""
    return {one.workload: [place.node for place in one.places] for one in made.nominates}


def test_several_move_off_one_node_for_work_that_needs_all_of_it() -> None:
    made = moved(node(devices=4), node("node-2", 4), at("a1", "node-1:0"), at("a2", "node-1:1"), at("a3", "node-2:0"),
                 at("a4", "node-2:1"), job("big", "a", "4"))  # fmt: skip

    assert {one.rule for one in made.evicts} == {Rule.CONSOLIDATE}
    assert {one.beneficiary for one in made.evicts} == {"big"}
    assert len(made.evicts) == 2
    assert set(nominated(made)) == {"big", *(one.workload for one in made.evicts)}


def test_the_node_off_which_the_fewest_pods_move_is_chosen() -> None:
    made = moved(node(devices=3), node("node-2", 3), at("a1", "node-1:0"), at("a2", "node-1:1"), at("a3", "node-2:0"),
                 job("big", "a", "3"))  # fmt: skip

    assert evicted(made) == ["a3-0"]
    assert new_nodes(made) == {"big": ["node-2"], "a3": ["node-1"]}


def test_of_equal_moves_the_one_that_loses_the_least_work_is_made() -> None:
    old = running(job("old", "a"), "node-1:0", started=timedelta(hours=2))
    young = running(job("young", "a"), "node-2:0", started=timedelta(hours=1))

    made = moved(node(devices=2), node("node-2", 2), old, young, job("big", "a", "2"))

    assert evicted(made) == ["young-0"]
    assert new_nodes(made) == {"big": ["node-2"], "young": ["node-1"]}


def test_nothing_moves_where_what_is_free_would_not_be_enough() -> None:
    made = moved(node(devices=2), node("node-2", 2), at("a1", "node-1:0"), at("a2", "node-2:0"), job("big", "a", "3"))

    assert not made.evicts


def test_nothing_moves_where_it_finds_no_new_place() -> None:
    choosy = asking(at("a1", "node-1:0"), nodes=("node-1",))

    assert not moved(node(devices=2), node("node-2", 1), choosy, job("big", "a", "2")).evicts


def test_nothing_moves_for_work_that_does_not_give_way_itself() -> None:
    fixed = job("big", "a", "2", is_preemptible=False)

    assert not moved(node(devices=2), node("node-2", 2), at("a1", "node-1:0"), at("a2", "node-2:0"), fixed).evicts


def test_work_that_does_not_give_way_does_not_move() -> None:
    fixed = [at("a1", "node-1:0", is_preemptible=False), at("a2", "node-2:0", is_preemptible=False)]

    assert not moved(node(devices=2), node("node-2", 2), *fixed, job("big", "a", "2")).evicts


def test_no_more_pods_move_than_the_policy_says() -> None:
    held = [at("a1", "node-1:0"), at("a2", "node-1:1"), at("a3", "node-2:0"), at("a4", "node-2:1")]
    parts: list[Part] = [node(devices=4), node("node-2", 4), *held, job("big", "a", "4")]

    assert len(moved(*parts, policy=replace(ONLY_MOVES, max_consolidation_victims=2)).evicts) == 2
    assert not moved(*parts, policy=replace(ONLY_MOVES, max_consolidation_victims=1)).evicts
    assert len(moved(*parts, policy=replace(ONLY_MOVES, max_consolidation_victims=None)).evicts) == 2


def test_a_gang_moves_whole_with_what_is_above_its_minimum_first() -> None:
    rigid = at("gang", "node-1:0", "node-2:0")
    elastic = at("elastic", "node-1:0", "node-2:0", min_pods=1)

    nodes: list[Part] = [node(devices=2), node("node-2", 2), node("node-3", 1), node("node-4", 1)]

    whole = moved(*nodes, rigid, job("big", "a", "2"))
    part = moved(*nodes, elastic, job("big", "a", "2"))

    assert sorted(evicted(whole)) == ["gang-0", "gang-1"]
    assert evicted(part) == ["elastic-1"]


def test_what_a_disruption_budget_protects_does_not_move() -> None:
    taken = snapshot(
        queue("a", "8"), node(devices=2), node("node-2", 2), at("a1", "node-1:0"), at("a2", "node-2:0"),
        job("big", "a", "2"),
    )  # fmt: skip
    budget = Budget("keep", frozenset({"a1-0", "a2-0"}), 0)

    assert len(plan(taken, policy=ONLY_MOVES).evicts) == 1
    assert not plan(replace(taken, budgets=(budget,)), policy=ONLY_MOVES).evicts
    assert evicted(plan(replace(taken, budgets=(replace(budget, pods=frozenset({"a1-0"})),)), policy=ONLY_MOVES)) == [
        "a2-0"
    ]


def test_nothing_moves_onto_or_off_a_node_that_the_work_may_not_use() -> None:
    choosy = asking(job("big", "a", "2"), nodes=("node-1",))

    made = moved(node(devices=2), node("node-2", 2), at("a1", "node-1:0"), at("a2", "node-2:0"), choosy)

    assert new_nodes(made) == {"big": ["node-1"], "a1": ["node-2"]}


def test_nothing_moves_of_a_queue_that_takes_no_new_work() -> None:
    held = replace(queue("b", "8"), is_held=True)
    others = [running(job(f"b{index}", "b"), f"node-{index}:0") for index in (1, 2)]

    assert not moved(node(devices=2), node("node-2", 2), held, *others, job("big", "a", "2")).evicts


def test_who_backs_off_does_not_move() -> None:
    failing = at("a1", "node-1:0", not_before=NOW + timedelta(minutes=5))
    fixed = at("a2", "node-2:0", is_preemptible=False)

    assert not moved(node(devices=2), node("node-2", 2), failing, fixed, job("big", "a", "2")).evicts


def test_a_gang_that_is_too_large_to_be_tried_pod_by_pod_moves_nothing() -> None:
    made = moved(node(devices=65), node("node-2", 2), at("a1", "node-1:0"), at("a2", "node-2:0"),
                 replace(job("wide", "a", "0.5", pods=140, min_pods=65), id="wide"), job("big", "a", "66"))  # fmt: skip

    assert not made.evicts


def test_moves_end_with_the_steps_of_the_cycle_and_that_is_said() -> None:
    parts: list[Part] = [
        node(devices=2),
        node("node-2", 2),
        at("a1", "node-1:0"),
        at("a2", "node-2:0"),
        job("big", "a", "2"),
    ]
    enough = moved(*parts).steps

    said = set()
    for steps in range(enough):
        made = moved(*parts, policy=replace(ONLY_MOVES, step_budget=steps))
        assert made.is_cut_off == (not made.evicts)
        said.add(code_of(made, "big"))

    assert Code.BUDGET in said


def test_pods_of_a_gang_that_waits_make_room_for_each_other_by_as_few_moves_as_can_be() -> None:
    parts: list[Part] = [
        node("node-0", 3),
        node("node-2", 4),
        node("node-3", 1),
        at("w0", "node-0:1", "node-2:0", "node-0:1", gpu="0.5"),
        at("w2", "node-0:2", gpu="0.5"),
        at("w4", "node-2:1", gpu="0.5"),
        job("light", "a", "0.5"),
        job("pair", "a", "2", pods=2, min_pods=1),
    ]

    made = moved(*parts)

    assert len(new_nodes(made)["pair"]) + len(made.binds) >= 2
    assert len(made.evicts) <= 3


def test_room_that_is_being_freed_counts_as_free_for_moves() -> None:
    made = moved(node(devices=2), node("node-2", 2), at("a1", "node-1:0"), at("a2", "node-2:0"),
                 releasing(job("gone", "a"), "node-1:1"), job("big", "a", "2"))  # fmt: skip

    assert len(made.evicts) == 1
    assert set(nominated(made)) == {"big", made.evicts[0].workload}


def test_those_who_only_prefer_a_way_of_sharing_start_anew_in_the_one_that_another_needs() -> None:
    strict = asking(
        job("sm", "a"), gpu=GpuRequest(1, None, 24_576, sharing=Sharing.SM_SHARING, is_sharing_required=True)
    )
    willing = asking(at("a1", "node-1:0", gpu="24Gi"), gpu=GpuRequest(1, None, 24_576, sharing=Sharing.TIME_SLICING))

    made = moved(node(devices=1), willing, at("a2", "node-1:0", gpu="8Gi"), strict)

    assert sorted(evicted(made)) == ["a1-0", "a2-0"]
    modes = {share.sharing for one in made.nominates for place in one.places for share in place.shares}
    assert modes == {Sharing.SM_SHARING}


def test_each_pod_of_a_gang_has_its_own_moves() -> None:
    held = [at(f"h{n}", f"node-{n}:0", gpu="0.5") for n in (1, 2, 3, 4)]
    nodes = [node(f"node-{n}", 1) for n in (1, 2, 3, 4)]

    made = moved(*nodes, *held, job("pair", "a", pods=2))

    assert len(made.evicts) == 2
    assert len({one.workload for one in made.evicts}) == 2
    assert len(new_nodes(made)["pair"]) == 2


def test_what_has_a_promise_does_not_move_and_who_waits_moves_no_pod_of_its_own() -> None:
    ending = releasing(job("ending", "a"), "node-2:1")
    waiting = job("waiting", "a", waits=timedelta(hours=9))
    place = Place("waiting-0", "node-2", shares(waiting.pods[0].request.gpu, "node-2", "1"))
    kept = Promise("waiting", (place,), NOW, NOW + timedelta(seconds=30), NOW + timedelta(minutes=1), ("ending-0",))
    own = running(job("own", "a", "1", pods=2, min_pods=1), "node-1:0")
    unlike = replace(own.pods[1], request=job("x", gpu="2").pods[0].request)

    made = moved(node(devices=2), node("node-2", 2), ending, waiting, kept, replace(own, pods=(own.pods[0], unlike)))

    assert not made.evicts


def test_all_pods_of_a_gang_on_a_node_move_together_where_some_are_not_enough() -> None:
    elastic = at("elastic", "node-1:0", "node-1:1", min_pods=1)
    fixed = at("fixed", "node-2:0", is_preemptible=False)

    made = moved(node(devices=2), node("node-2", 3), elastic, fixed, job("big", "a", "2", waits=timedelta(minutes=1)),
                 job("mid", "a", "2", waits=timedelta(hours=2)))  # fmt: skip

    assert not [one for one in made.binds if one.workload == "big"]


def test_a_large_gang_that_lacks_one_place_makes_nobody_move() -> None:
    half = at("half", "node-1:0", gpu="0.5")

    made = moved(node(devices=65), half, replace(job("wide", "a", "0.6", pods=65), id="wide"))

    assert not made.evicts
    assert not made.binds


def test_a_gang_of_which_a_part_is_not_enough_moves_whole() -> None:
    elastic = at("elastic", "node-1:0", "node-1:1", "node-1:2", min_pods=2)

    made = moved(node(devices=4), node("node-2", 3), elastic, job("big", "a", "4"))

    assert sorted(evicted(made)) == ["elastic-0", "elastic-1", "elastic-2"]
    assert new_nodes(made) == {"big": ["node-1"], "elastic": ["node-2"] * 3}
