"""Gangs as trees: what starts together, what grows, what is given up first, and where the parts are."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import gang
from aliquot.core.model import (
    Budget,
    Group,
    Near,
    Node,
    Pod,
    PodState,
    Snapshot,
    Topology,
    Workload,
)
from aliquot.core.plan import Code, Rule
from tests import builders
from tests.builders import job, node, queue, releasing, running, snapshot
from tests.core.outcomes import bound, code_of, evicted, nominated, plan

RACKS = Topology("site", ("zone", "rack"))
IN_A_RACK = Near("site", required="rack")


def tree(workload: Workload, root: Group, *groups: str) -> Workload:
    """The workload as a gang of this tree; the groups are those of its pods, in order."""
    pods = tuple(replace(pod, group=group) for pod, group in zip(workload.pods, groups, strict=True))
    return replace(workload, pods=pods, gang=root, min_pods=gang.least_pods(root))


def leaders(minimum: int = 1, *, near: Near | None = None) -> Group:
    """A leader and two workers, all of whom are needed; as a whole or at a minimum of groups."""
    return Group("", minimum, (Group("leader", 1), Group("workers", 2)), near)


def rack(id: str, zone: str, name: str, devices: int = 2) -> Node:
    return replace(node(id, devices), labels={"zone": zone, "rack": name})


def site(*parts: Node, **sizes: int) -> list[Node]:
    """Nodes by name, one rack each, all in one zone."""
    return [*parts, *(rack(f"node-{name}", "z", name, devices) for name, devices in sizes.items())]


def located(*parts: object) -> Snapshot:
    return replace(snapshot(queue("a", "8"), *parts), topologies=(RACKS,))  # type: ignore[arg-type]  # parts of a snapshot


def nodes_of(taken: Snapshot) -> list[str]:
    """Where the binds of a plan are, by pod."""
    return [one.place.node for one in sorted(plan(taken).binds, key=lambda one: one.place.pod)]


def rooms_after(workload: Workload, *names: str) -> list[list[str]]:
    """What would be given up of these pods, one after the other; the last of it together."""
    placed = [pod for pod in workload.pods if pod.id.rpartition("-")[2] in names]
    return [[pod.id.rpartition("-")[2] for pod in one.pods] for one in gang.units(workload, placed)]


# What starts together


def test_a_gang_of_groups_starts_whole() -> None:
    crew = tree(job("a1", "a", pods=3), leaders(2), "leader", "workers", "workers")

    made = plan(snapshot(node(devices=3), queue("a", "8"), crew))

    assert len(bound(made)["a1"]) == 3


def test_a_gang_of_groups_of_which_one_finds_no_room_does_not_start() -> None:
    crew = tree(job("a1", "a", pods=3), leaders(2), "leader", "workers", "workers")

    made = plan(snapshot(node(devices=2), queue("a", "8"), crew))

    assert not made.binds


def test_of_a_gang_that_needs_one_group_the_one_that_fits_starts_and_the_other_waits() -> None:
    either = Group("", 1, (Group("large", 3), Group("small", 1)))
    crew = tree(job("a1", "a", pods=4), either, "large", "large", "large", "small")

    made = plan(snapshot(node(devices=2), queue("a", "8"), crew))

    assert [one.place.pod for one in made.binds] == ["a1-3"]
    assert code_of(made, "a1") is Code.LARGER_THAN_POOL


def test_a_gang_above_its_minimum_grows_by_whole_groups() -> None:
    root = Group("", 1, (Group("one", 2), Group("two", 2)))
    crew = tree(job("a1", "a", pods=4), root, "one", "one", "two", "two")

    made = plan(snapshot(node(devices=3), queue("a", "8"), running(crew, "node-1:0", "node-1:1")))

    assert not made.binds


def test_a_group_above_its_minimum_grows_by_single_pods() -> None:
    root = Group("", 1, (Group("one", 1),))
    crew = tree(job("a1", "a", pods=3), root, "one", "one", "one")

    assert len(plan(snapshot(node(devices=2), queue("a", "8"), crew)).binds) == 2


def test_a_gang_with_too_few_pods_in_a_group_says_so() -> None:
    crew = tree(job("a1", "a", pods=2), leaders(2), "leader", "workers")

    assert code_of(plan(snapshot(node(), queue("a", "8"), crew)), "a1") is Code.GANG_INCOMPLETE


def test_pods_that_ended_well_count_for_the_minimum_of_their_group() -> None:
    crew = tree(job("a1", "a", pods=3), leaders(2), "leader", "workers", "workers")
    done = replace(crew, pods=(replace(crew.pods[0], state=PodState.SUCCEEDED), *crew.pods[1:]))

    assert len(plan(snapshot(node(devices=2), queue("a", "8"), done)).binds) == 2


def test_of_unlike_pods_above_the_minimum_those_that_fit_start() -> None:
    mixed = job("a1", "a", "2", pods=3, min_pods=1)
    small = replace(mixed.pods[2], request=job("x").pods[0].request)
    mixed = replace(mixed, pods=(*mixed.pods[:2], small))

    made = plan(snapshot(node(devices=1), queue("a", "8"), mixed))

    assert [one.place.pod for one in made.binds] == ["a1-2"]


def test_who_may_start_with_other_pods_is_not_refused_for_another_who_may_not() -> None:
    either = job("either", "a", pods=2, min_pods=1)
    small = replace(either.pods[1], request=builders.request("0.5"))
    either = replace(either, pods=(either.pods[0], small))
    half = running(job("half", "a", gpu="0.5"), "node-1:0")

    made = plan(snapshot(node(devices=1), queue("a", "8"), half, job("old", "a", waits=timedelta(hours=2)), either))

    assert [one.place.pod for one in made.binds] == ["either-1"]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_group_that_needs_a_rack_finds_one_though_a_larger_group_would_take_it(depth: int) -> None:
    needy = Group("leader", 1, near=IN_A_RACK)
    root = Group("", 2, (Group("head", 1, (needy,)) if depth > 1 else needy, Group("workers", 2)))
    crew = tree(job("a1", "a", pods=3), root, "leader", "workers", "workers")

    where = nodes_of(located(rack("node-1", "z", "r1", 1), node("node-2", devices=2), crew))

    assert where == ["node-1", "node-2", "node-2"]


# What is given up first


def test_a_flat_gang_gives_up_its_last_pods_one_by_one_and_its_minimum_together() -> None:
    assert rooms_after(job("a", pods=4, min_pods=2), "0", "1", "2", "3") == [["3"], ["2"], ["0", "1"]]


def test_what_ended_well_lets_more_pods_of_a_flat_gang_go() -> None:
    crew = job("a", pods=3, min_pods=1)
    done = replace(crew, pods=(replace(crew.pods[0], state=PodState.SUCCEEDED), *crew.pods[1:]))

    assert rooms_after(done, "1", "2") == [["2"], ["1"]]


@pytest.mark.parametrize(
    ("root", "groups", "given"),
    [
        pytest.param(
            Group("", 2, (Group("x", 1), Group("y", 1))),
            ("x", "x", "y"),
            [["1"], ["0", "2"]],
            id="a pod above the minimum of its group first",
        ),
        pytest.param(
            Group("", 1, (Group("x", 1), Group("y", 2))),
            ("x", "y", "y"),
            [["1", "2"], ["0"]],
            id="then a group above the minimum of groups",
        ),
        pytest.param(
            Group("", 1, (Group("x", 2), Group("y", 1))),
            ("x", "y"),
            [["0"], ["1"]],
            id="a group that is broken before all others",
        ),
        pytest.param(
            Group("", 1, (Group("x", 1), Group("idle", 0))),
            ("x", "idle", "idle"),
            [["2"], ["1"], ["0"]],
            id="a group that need not run may go to the last pod",
        ),
        pytest.param(
            Group("", 2, (Group("in", 1, (Group("x", 1), Group("y", 1))), Group("z", 1))),
            ("x", "y", "z"),
            [["1"], ["0", "2"]],
            id="inside an inner group as well",
        ),
    ],
)
def test_a_tree_gives_up(root: Group, groups: tuple[str, ...], given: list[list[str]]) -> None:
    crew = tree(job("a", pods=len(groups)), root, *groups)

    assert rooms_after(crew, *(str(index) for index in range(len(groups)))) == given


def test_a_group_that_lacks_a_pod_makes_a_gang_unsound_though_others_suffice() -> None:
    crew = tree(job("a", pods=3), Group("", 1, (Group("x", 2), Group("y", 1))), "x", "x", "y")

    assert gang.is_sound(crew, {"a-2"})
    assert not gang.is_sound(crew, {"a-0", "a-2"})
    assert gang.is_satisfied(crew, {"a-0", "a-2"})
    assert not gang.is_satisfied(crew, {"a-0"})


@pytest.mark.parametrize(
    ("root", "pods"),
    [
        pytest.param(Group("x", 3), 3, id="a leaf"),
        pytest.param(Group("", 1, (Group("x", 3), Group("y", 2))), 2, id="the smallest group"),
        pytest.param(Group("", 2, (Group("x", 3), Group("y", 2), Group("z", 4))), 5, id="the two smallest groups"),
    ],
)
def test_a_gang_runs_with_as_few_pods_as(root: Group, pods: int) -> None:
    assert gang.least_pods(root) == pods


def test_a_gang_that_needs_few_of_many_groups_is_tried_in_a_bounded_number_of_ways() -> None:
    names = [f"g{index:02}" for index in range(12)]
    root = Group("", 6, tuple(Group(name, 1) for name in names))
    crew = tree(job("a", pods=12), root, *names)

    found = gang.choices(crew, active=(), waiting=crew.pods)

    assert len(found) == gang.MOST_CHOICES
    assert [pod.group for pod in found[0]] == names[:6]


def test_groups_below_their_minimum_come_before_those_that_grow_and_these_evenly() -> None:
    root = Group("", 3, (Group("x", 1), Group("y", 1), Group("z", 0)))
    crew = tree(job("a", pods=6), root, "x", "x", "y", "y", "z", "z")

    assert _next(crew) == ["a-0", "a-2"]
    assert _next(crew, "a-0", "a-2") == ["a-1"]
    assert _next(crew, "a-0", "a-1", "a-2") == ["a-3"]


def _next(crew: Workload, *active: str) -> list[str]:
    waiting: list[Pod] = [pod for pod in crew.pods if pod.id not in active]
    return [pod.id for pod in gang.choices(crew, active=active, waiting=waiting)[0]]


def test_work_that_gives_way_only_above_its_minimum_loses_no_more_than_that() -> None:
    crew = replace(job("a1", "a", pods=3, min_pods=1), is_preemptible=False, is_semi_preemptible=True)
    taken = snapshot(
        node(devices=3), queue("a", "1"), queue("b", "2"), running(crew, "node-1:0", "node-1:1", "node-1:2"),
        *[job(f"b{index}", "b") for index in range(3)],
    )  # fmt: skip

    made = plan(taken)

    assert sorted(evicted(made)) == ["a1-1", "a1-2"]
    assert nominated(made) == ["b0", "b1"]


def test_what_is_above_the_minimum_of_work_that_does_not_give_way_may_pass_the_quota_but_not_its_core() -> None:
    crew = replace(job("a1", "a", pods=3, min_pods=1), is_preemptible=False, is_semi_preemptible=True)

    assert len(plan(snapshot(node(), queue("a", "1"), crew)).binds) == 3
    assert not plan(snapshot(node(), queue("a", "0"), crew)).binds


def test_a_pod_that_comes_first_and_starts_late_may_not_make_the_core_pass_the_quota() -> None:
    crew = replace(job("a1", "a", pods=2, min_pods=1), is_preemptible=False, is_semi_preemptible=True)
    first = replace(crew.pods[0], request=job("x", gpu="2").pods[0].request)
    late = running(replace(crew, pods=(replace(crew.pods[1], index=1), first)), "node-1:0")

    assert not plan(snapshot(node(), queue("a", "1"), late)).binds
    assert len(plan(snapshot(node(), queue("a", "2"), late)).binds) == 1


# Where the parts are


def test_a_gang_that_requires_a_rack_is_in_one() -> None:
    crew = replace(job("a1", "a", pods=4), near=IN_A_RACK)

    assert nodes_of(located(*site(r1=3, r2=4, r3=3), crew)) == ["node-r2"] * 4


def test_a_gang_that_requires_a_rack_waits_though_two_racks_have_room_together() -> None:
    taken = located(*site(r1=3, r2=3), replace(job("a1", "a", pods=4), near=IN_A_RACK))

    made = plan(taken)

    assert not made.binds
    assert code_of(made, "a1") is Code.TOPOLOGY


def test_racks_of_one_name_in_two_zones_are_two_racks() -> None:
    taken = located(
        rack("n1", "east", "r", 2), rack("n2", "west", "r", 2), replace(job("a1", "a", pods=4), near=IN_A_RACK)
    )

    assert not plan(taken).binds


def test_a_node_without_a_label_is_in_no_rack() -> None:
    bare = replace(node("bare", 8), labels={"zone": "z"})

    assert nodes_of(located(bare, *site(r1=2), replace(job("a1", "a", pods=2), near=IN_A_RACK))) == ["node-r1"] * 2


@pytest.mark.parametrize("level", ["row", "zone"])
def test_a_topology_or_level_that_is_not_there_keeps_who_requires_it_waiting(level: str) -> None:
    near = Near("site" if level == "row" else "elsewhere", required=level)

    assert not plan(located(*site(r1=4), replace(job("a1", "a", pods=2), near=near))).binds


def test_a_level_that_is_preferred_and_not_there_changes_nothing() -> None:
    crew = replace(job("a1", "a", pods=2), near=Near("site", preferred="row"))

    assert len(plan(located(*site(r1=4), crew)).binds) == 2


def test_who_prefers_a_rack_gets_one_where_one_has_room() -> None:
    crew = replace(job("a1", "a", pods=3), near=Near("site", preferred="rack"))

    assert nodes_of(located(*site(r1=2, r2=3, r3=4), crew)) == ["node-r2"] * 3


def test_who_prefers_a_rack_and_finds_none_is_in_as_few_as_can_be() -> None:
    crew = replace(job("a1", "a", pods=5), near=Near("site", preferred="rack"))

    assert sorted(nodes_of(located(*site(r1=1, r2=3, r3=2), crew))) == ["node-r2"] * 3 + ["node-r3"] * 2


def test_who_prefers_a_rack_starts_on_nodes_that_are_in_none() -> None:
    crew = replace(job("a1", "a", pods=3), near=Near("site", preferred="rack"))

    assert sorted(nodes_of(located(node("bare", 2), *site(r1=1), crew))) == ["bare", "bare", "node-r1"]


def test_who_prefers_a_rack_and_requires_a_zone_stays_in_the_zone() -> None:
    crew = replace(job("a1", "a", pods=3), near=Near("site", required="zone", preferred="rack"))
    nodes = [
        rack("e1", "east", "r1"),
        rack("e2", "east", "r2", 1),
        rack("w1", "west", "r1"),
        rack("n1", "north", "r", 1),
    ]

    assert sorted(nodes_of(located(*nodes, crew))) == ["e1", "e1", "e2"]


def test_what_grows_stays_in_the_rack_in_which_it_runs() -> None:
    crew = replace(job("a1", "a", pods=3, min_pods=1), near=IN_A_RACK)

    assert nodes_of(located(*site(r1=2, r2=8), running(crew, "node-r1:0"))) == ["node-r1"]


def test_each_group_is_in_a_rack_of_its_own_wish_and_the_whole_in_a_zone() -> None:
    root = Group("", 2, (Group("x", 2, near=IN_A_RACK), Group("y", 2, near=IN_A_RACK)), Near("site", required="zone"))
    crew = tree(job("a1", "a", pods=4), root, "x", "x", "y", "y")
    nodes = [
        rack("e1", "east", "r1", 2),
        rack("e2", "east", "r2", 1),
        rack("w1", "west", "r1"),
        rack("w2", "west", "r2"),
    ]

    found = nodes_of(located(*nodes, crew))

    assert sorted(found) == ["w1", "w1", "w2", "w2"]
    assert found[0] == found[1]


def test_a_group_tries_the_next_rack_where_the_first_has_no_room_for_its_unlike_pods() -> None:
    crew = replace(job("a1", "a", "2", pods=2), near=IN_A_RACK)
    small = replace(crew.pods[1], request=job("x", cpu="40").pods[0].request)
    crew = replace(crew, pods=(crew.pods[0], small))
    nodes = [replace(rack("n1", "z", "r1", 3), milli_cpus=8_000), rack("n2", "z", "r2", 3)]

    assert nodes_of(located(*nodes, crew)) == ["n2", "n2"]


def test_a_gang_whose_groups_cannot_all_be_near_does_not_start_in_part() -> None:
    root = Group("", 2, (Group("x", 2, near=IN_A_RACK), Group("y", 2, near=IN_A_RACK)))
    crew = tree(job("a1", "a", pods=4), root, "x", "x", "y", "y")

    assert not plan(located(*site(r1=3, r2=1), crew)).binds


def test_a_gang_without_a_wish_of_its_own_has_each_group_where_it_wants() -> None:
    root = Group("", 2, (Group("x", 1), Group("y", 2, near=IN_A_RACK)))
    crew = tree(job("a1", "a", pods=3), root, "x", "y", "y")

    found = nodes_of(located(*site(r1=1, r2=2), crew))

    assert found == ["node-r1", "node-r2", "node-r2"]


def test_room_is_made_in_one_rack_for_a_gang_that_requires_it() -> None:
    others = [running(job(f"b{index}", "b"), f"node-r{1 + index // 2}:{index % 2}") for index in range(4)]
    crew = replace(job("a1", "a", pods=2), near=IN_A_RACK)

    made = plan(located(*site(r1=2, r2=2), queue("b", "0"), *others, crew))

    assert sorted(evicted(made)) in (["b0-0", "b1-0"], ["b2-0", "b3-0"])
    assert nominated(made) == ["a1"]


# What budgets and limits say


def test_a_disruption_budget_protects_as_many_pods_as_it_says() -> None:
    others = [running(job(f"b{index}", "b"), f"node-1:{index}") for index in range(3)]
    taken = snapshot(node(devices=3), queue("a", "3"), queue("b", "0"), *others, *[job(f"a{n}", "a") for n in range(3)])
    budget = Budget("keep", frozenset(one.pods[0].id for one in others), 1)

    assert len(evicted(plan(taken))) == 3
    assert len(evicted(plan(replace(taken, budgets=(budget,))))) == 1
    assert not evicted(plan(replace(taken, budgets=(replace(budget, allowed=0),))))


def test_a_queue_loses_no_more_pods_a_day_than_it_says() -> None:
    others = [running(job(f"b{index}", "b"), f"node-1:{index}") for index in range(3)]
    limited = replace(queue("b", "0"), evictions_left=2)
    taken = snapshot(node(devices=3), queue("a", "3"), limited, *others, *[job(f"a{n}", "a") for n in range(3)])

    assert len(evicted(plan(taken))) == 2


# Drained and stale


def test_what_runs_in_a_drained_queue_is_told_to_end() -> None:
    taken = snapshot(node(), replace(queue("a", "8"), is_drained=True), running(job("a1", "a"), "node-1:0"))

    made = plan(taken)

    assert [(one.pod, one.rule, one.explanation) for one in made.evicts] == [("a1-0", Rule.DRAIN, "a is drained")]


def test_of_what_runs_on_a_drained_node_what_cannot_stay_without_it_ends_too() -> None:
    away = replace(node("away"), is_drained=True)
    rigid = running(job("a1", "a", pods=2), "away:0", "node-1:0")
    elastic = running(job("a2", "a", pods=2, min_pods=1), "node-1:1", "away:1")
    elsewhere = running(job("a3", "a"), "node-1:2")

    made = plan(snapshot(node(), away, queue("a", "8"), rigid, elastic, elsewhere))

    assert sorted(evicted(made)) == ["a1-0", "a1-1", "a2-1"]
    assert {one.explanation for one in made.evicts} == {"away is drained"}


def test_who_is_drained_twice_over_ends_once() -> None:
    away = replace(node("away"), is_drained=True)
    drained = replace(queue("a", "8"), is_drained=True)
    gone = releasing(job("a2", "a"), "away:1")

    assert evicted(plan(snapshot(away, drained, running(job("a1", "a"), "away:0"), gone))) == ["a1-0"]


def test_a_gang_below_its_minimum_gives_up_what_is_above_that_of_its_groups_first() -> None:
    crew = tree(job("a", pods=3), Group("", 2, (Group("x", 1), Group("y", 1))), "x", "x", "y")

    assert rooms_after(crew, "0", "1") == [["1"], ["0"]]


def test_a_pod_that_lacks_something_else_keeps_its_gang_from_growing_and_not_from_starting() -> None:
    crew = job("a1", "a", pods=3, min_pods=1)
    crew = replace(crew, pods=(*crew.pods[:1], replace(crew.pods[1], unmet="volume data does not exist"), crew.pods[2]))

    assert [one.place.pod for one in plan(snapshot(node(), queue("a", "8"), crew)).binds] == ["a1-0"]


def test_what_runs_outside_the_rack_that_it_requires_does_not_grow_anywhere() -> None:
    crew = replace(job("a1", "a", pods=2, min_pods=1), near=IN_A_RACK)

    assert not plan(located(node("bare", 2), *site(r1=8), running(crew, "bare:0"))).binds


def test_alike_pods_that_prefer_unlike_ones_to_start_first_are_tried_in_every_way() -> None:
    # Of three pods two start; the first pair does not fit, pairs with another kind do.
    crew = job("a1", "a", "2", pods=4, min_pods=2)
    small = job("x", gpu="0.5").pods[0].request
    crew = replace(crew, pods=tuple(replace(pod, request=small) if pod.index > 1 else pod for pod in crew.pods))

    made = plan(snapshot(node(devices=3), queue("a", "8"), crew))

    assert {one.place.pod for one in made.binds} > {"a1-2"}
    assert len(made.binds) >= 2


def test_room_is_made_for_whichever_pods_of_a_gang_it_can_be_made_for() -> None:
    crew = job("a1", "a", "4", pods=2, min_pods=1, priority=100)
    small = job("x").pods[0].request
    crew = replace(crew, pods=(crew.pods[0], replace(crew.pods[1], request=small)))
    low = [running(job(f"low{index}", "a", priority=10), f"node-1:{index}") for index in range(2)]
    fixed = running(job("fixed", "a", "2", is_preemptible=False), "node-1:2,3")

    made = plan(snapshot(node(devices=4), queue("a", "8"), *low, fixed, crew))

    assert len(evicted(made)) == 1
    assert [place.pod for one in made.nominates for place in one.places] == ["a1-1"]


# Which pods and groups come first


def cores(workload: Workload, *names: str) -> list[bool]:
    """Of what would be given up one after the other, what is at the minimum."""
    placed = [pod for pod in workload.pods if pod.id.rpartition("-")[2] in names]
    return [one.is_core for one in gang.units(workload, placed)]


def test_pods_of_a_higher_priority_start_first_and_are_given_up_last() -> None:
    crew = job("a", pods=3, min_pods=1)
    crew = replace(crew, pods=tuple(replace(pod, priority=pod.index) for pod in crew.pods))

    assert _next(crew) == ["a-2"]
    assert rooms_after(crew, "0", "1", "2") == [["0"], ["1"], ["2"]]


def test_only_what_is_at_the_minimum_is_a_core() -> None:
    flat = job("a", pods=3, min_pods=1)
    done = replace(flat, pods=(replace(flat.pods[0], state=PodState.SUCCEEDED), *flat.pods[1:]))
    grouped = tree(job("a", pods=3), Group("", 2, (Group("x", 1), Group("y", 1))), "x", "x", "y")

    assert cores(flat, "0", "1", "2") == [False, False, True]
    assert cores(done, "1", "2") == [False, False]
    assert cores(grouped, "0", "1", "2") == [False, True]


def test_a_tree_may_be_one_group_without_a_name_on_its_pods() -> None:
    crew = replace(job("a1", "a", pods=2), gang=Group("all", 2))

    assert len(plan(snapshot(node(), queue("a", "8"), crew)).binds) == 2


def test_a_group_that_lacks_one_pod_starts_with_that_one() -> None:
    crew = tree(job("a", pods=4), Group("", 1, (Group("x", 2), Group("y", 2))), "x", "x", "y", "y")

    assert _next(crew, "a-0") == ["a-1"]


def test_of_groups_above_their_minimum_the_one_that_is_filled_least_grows() -> None:
    crew = tree(job("a", pods=7), Group("", 2, (Group("x", 1), Group("y", 2))), *"xxx", *"yyyy")

    assert _next(crew, "a-0", "a-1", "a-3", "a-4") == ["a-5"]
    assert _next(crew, "a-0", "a-3", "a-4") == ["a-1"]


def test_each_way_to_choose_among_unlike_pods_takes_as_many_different_ones() -> None:
    crew = job("a", pods=4, min_pods=3)
    kinds = ["1", "2", "0.5", "0.5"]
    crew = replace(
        crew,
        pods=tuple(
            replace(pod, request=job(gpu=gpu).pods[0].request) for pod, gpu in zip(crew.pods, kinds, strict=True)
        ),
    )

    found = gang.choices(crew, active=(), waiting=crew.pods)

    assert [len({pod.id for pod in choice}) for choice in found] == [3] * len(found)
    assert {frozenset(pod.index for pod in choice) for choice in found} == {frozenset({0, 1, 2}), frozenset({0, 2, 3})}
