"""The search for victims in its corners: who is spared, who is passed over, and what is promised to those who lose."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core.model import Affinity, GpuRequest, Group, Place, Policy, Promise, Queue, Sharing, Spread, Workload
from aliquot.core.plan import Code, Plan
from tests.builders import NOW, Part, asking, claim, job, node, queue, releasing, running, shares, snapshot
from tests.core.outcomes import GRACE, code_of, evicted, full, nominated, plan

NO_MOVES = Policy(actions=("allocate", "reclaim", "preempt"))


def made_of(*parts: Part, policy: Policy = NO_MOVES) -> Plan:
    return plan(snapshot(*parts), policy=policy)


def low(id: str, *places: str, gpu: str = "1", **more: object) -> Workload:
    """Runs with a priority that the urgent ones of its queue pass."""
    return running(job(id, "a", gpu, pods=len(places), **{"priority": 10, **more}), *places)  # type: ignore[arg-type]  # passed on


def urgent(gpu: str | None = "1", **more: object) -> Workload:
    return job("urgent", "a", gpu, **{"priority": 100, **more})  # type: ignore[arg-type]  # passed on


A = queue("a", "8")


# Whom the result needs


def test_victims_on_other_nodes_than_the_one_that_is_taken_are_spared() -> None:
    cheap = low("cheap", "node-1:0", gpu="0.5")
    fixed = low("fixed", "node-1:0", gpu="0.5", is_preemptible=False)
    dear = low("dear", "node-2:0", priority=20)

    made = made_of(node(devices=1), node("node-2", 1), A, cheap, fixed, dear, urgent())

    assert evicted(made) == ["dear-0"]
    assert "cheap: the result does not need it" in made.evicts[0].rejected


def test_a_victim_elsewhere_is_needed_where_the_limit_of_the_queue_counts_it() -> None:
    limited = queue("a", "8", limit="2")

    made = made_of(node(devices=1), node("node-2", 1), node("node-3", 2), limited, low("one", "node-1:0"),
                   low("two", "node-2:0", priority=20), urgent("2"))  # fmt: skip

    assert sorted(evicted(made)) == ["one-0", "two-0"]
    assert [place.node for one in made.nominates for place in one.places][:1] == ["node-3"]


def test_a_core_is_not_taken_and_its_surplus_left() -> None:
    elastic = low("elastic", *[f"node-1:{index}" for index in range(4)], min_pods=2)

    assert sorted(evicted(made_of(node(devices=4), A, elastic, urgent("4")))) == [f"elastic-{n}" for n in range(4)]


def test_a_second_seeker_takes_more_of_a_gang_that_has_lost_pods_in_this_cycle() -> None:
    elastic = low("elastic", *[f"node-1:{index}" for index in range(4)], min_pods=1)
    seekers = [replace(urgent(), id=f"urgent{n}", name=f"urgent{n}", pods=job(f"urgent{n}").pods) for n in (1, 2)]

    made = made_of(node(devices=4), A, elastic, *seekers)

    assert evicted(made) == ["elastic-3", "elastic-2"]
    assert nominated(made) == ["urgent1", "urgent2"]


def test_the_minimum_of_a_gang_evicts_and_the_rest_of_it_waits_for_that() -> None:
    victims = [low(f"a{index}", f"node-1:{index}") for index in range(2)]

    made = made_of(node(devices=2), A, *victims, urgent(pods=2, min_pods=1))

    assert len(made.evicts) == 1
    assert [len(one.places) for one in made.nominates] == [1]


def test_of_many_nodes_with_victims_only_some_are_compared() -> None:
    nodes = [node(f"node-{index:02}", 2) for index in range(34)]
    victims = [low(f"a{node.id}{n}", f"{node.id}:{n}") for node in nodes for n in range(2)]

    made = made_of(*nodes, queue("a", "100"), *victims, urgent("2"))

    assert len(made.evicts) == 2
    assert len({one.pod.removeprefix("a")[:7] for one in made.evicts}) == 1


def test_victims_on_nodes_that_the_seeker_may_not_use_are_passed_over() -> None:
    closed = replace(node("node-3", 2), is_cordoned=True)
    victims = [low(f"a{at}{n}", f"node-{at}:{n}") for at in (1, 2, 3) for n in range(2)]
    choosy = asking(urgent("2"), nodes=("node-2", "node-3"))

    assert sorted(evicted(made_of(node(devices=2), node("node-2", 2), closed, A, *victims, choosy))) == [
        "a20-0",
        "a21-0",
    ]


def test_work_of_unknown_age_has_nothing_to_lose() -> None:
    unknown = replace(low("unknown", "node-1:0"), started=None)

    assert evicted(made_of(node(devices=2), A, unknown, low("known", "node-1:1"), urgent())) == ["unknown-0"]


def test_memory_of_a_device_is_reclaimed_too() -> None:
    made = made_of(node(devices=1), queue("a", "0"), queue("b", "1"), *full("a", 1), job("b0", "b", "40Gi"))

    assert evicted(made) == ["a0-0"]


def test_cpu_is_reclaimed_where_no_gpu_is_asked() -> None:
    greedy = running(job("greedy", "a", None, cpu="64"), "node-1")
    lender = queue("a", "0", cpu=claim("0"))

    made = made_of(node(), lender, queue("b", cpu=claim("32")), greedy, job("b0", "b", None, cpu="8"))

    assert evicted(made) == ["greedy-0"]


def test_one_large_gang_gives_more_than_its_queue_is_over_by() -> None:
    fixed = running(job("fixed", "c", is_preemptible=False), "node-1:6")
    wide = running(job("wide", "a", "6"), "node-1:0,1,2,3,4,5")

    made = made_of(node(devices=7), queue("a", "5"), queue("b", "2"), queue("c", "0"), wide, fixed, job("b1", "b", "2"))

    assert evicted(made) == ["wide-0"]


def test_a_queue_is_not_left_below_its_due_for_a_taker_from_whom_it_would_take_back() -> None:
    # a is due four and holds them with one job of three and one of one; b is due four as well and holds three.
    parts: list[Part] = [
        node(devices=8),
        queue("a", "4"),
        queue("b", "4"),
        running(job("wide", "a", "5"), "node-1:0,1,2,3,4"),
        *full("b", 3, first=5),
    ]

    assert evicted(made_of(*parts, job("b9", "b"))) == ["wide-0"]
    assert not made_of(*parts, job("b9", "b", "2")).evicts


def test_what_is_guaranteed_is_not_taken_for_what_is_only_fair() -> None:
    # The asker is within its fair share of both and over its quota of GPUs; the holder is within its quota.
    holder = running(job("holder", "a", cpu="48"), "node-1:0")

    made = made_of(node(devices=2), queue("a", "1"), queue("c", "0"), holder, job("asker", "c", cpu="24"))

    assert not made.evicts


def test_projects_of_departments_take_from_each_other_as_far_as_both_levels_allow() -> None:
    queues = [
        queue("d1", "2"),
        queue("d2", "2"),
        *(queue(id, "1", parent="d1") for id in "ab"),
        queue("c", "2", parent="d2"),
    ]

    made = made_of(node(devices=4), *queues, *full("a", 2), *full("b", 2, first=2), job("c0", "c"), job("c1", "c"))

    assert sorted(evicted(made)) == ["a1-0", "b3-0"]
    assert nominated(made) == ["c0", "c1"]


# What steps allow


@pytest.mark.parametrize("gpu", ["1", "2"])
def test_a_search_that_its_steps_end_evicts_nobody_and_says_so(gpu: str) -> None:
    victims = [low(f"a{index}", f"node-1:{index}", gpu="0.5") for index in (0, 0, 1, 1)]
    victims = [
        replace(one, id=f"{one.id}{n}", pods=(replace(one.pods[0], id=f"{one.id}{n}-0"),))
        for n, one in enumerate(victims)
    ]
    parts: list[Part] = [
        node(devices=2),
        A,
        *victims,
        urgent(gpu),
        replace(urgent(gpu), id="other", pods=job("other", gpu=gpu).pods),
    ]
    full_search = made_of(*parts)

    codes = set()
    for steps in range(1, full_search.steps + 1):
        made = made_of(*parts, policy=replace(NO_MOVES, step_budget=steps))
        codes.add(code_of(made, "urgent"))
        assert made.is_cut_off == (Code.BUDGET in {one.reason.code for one in made.waits})

    assert Code.BUDGET in codes
    assert full_search.evicts


# What is promised to those who lose


def tight(*more: Part, held: Queue | None = None) -> Plan:
    """Two pods of a low priority on one node; the urgent one needs all of it, and another node has room for them."""
    pair = [low("a1", "node-1:0", gpu="0.5"), low("a2", "node-1:1", gpu="0.5")]
    return made_of(node(devices=2), node("node-2", 1), held or A, *pair, *more, urgent("2"))


def test_who_loses_its_place_is_promised_another_where_there_is_one() -> None:
    made = tight()

    assert sorted(nominated(made)) == ["a1", "a2", "urgent"]
    assert {place.node for one in made.nominates if one.workload != "urgent" for place in one.places} == {"node-2"}


def test_who_loses_its_place_is_promised_none_while_it_backs_off() -> None:
    failing = replace(low("a3", "node-1:0", gpu="0.5"), not_before=NOW + timedelta(hours=1))

    assert "a3" not in nominated(tight(failing))
    assert "a3-0" in evicted(tight(failing))


def test_a_gang_below_its_minimum_that_loses_its_places_is_promised_none() -> None:
    broken = running(job("broken", "a", "0.5", pods=3, priority=10), "node-1:0", "node-1:1")
    never = replace(broken.pods[2], request=replace(broken.pods[2].request, nodes=()))

    made = tight(replace(broken, pods=(*broken.pods[:2], never)))

    assert {"broken-0", "broken-1"} <= set(evicted(made))
    assert "broken" not in nominated(made)


@pytest.mark.parametrize(("repels", "promised"), [(True, ["urgent"]), (False, ["a1", "urgent"])])
def test_who_loses_its_place_is_promised_none_that_the_taker_cannot_stand(*, repels: bool, promised: list[str]) -> None:
    zone = {"zone": "z"}
    nodes = [replace(node(devices=1), labels=zone), replace(node("node-2", 1), labels=zone)]
    loud = asking(low("a1", "node-1:0"), labels=(("app", "loud"),))
    quiet = asking(urgent(), nodes=("node-1",), labels=(("app", "quiet"),))
    if repels:
        quiet = asking(quiet, anti_affinity=(Affinity((("app", "loud"),), "zone"),))

    made = made_of(*nodes, A, loud, quiet)

    assert evicted(made) == ["a1-0"]
    assert sorted(nominated(made)) == promised


# Promised room


def promise(workload: Workload, devices: str, *, waits_for: str, may_evict: bool = True) -> Promise:
    place = Place(workload.pods[0].id, "node-1", shares(workload.pods[0].request.gpu, "node-1", devices))
    return Promise(workload.id, (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, (waits_for,), may_evict)


def test_promised_room_and_running_work_are_taken_together_where_both_are_needed() -> None:
    ending = releasing(job("ending", "a"), "node-1:0")
    waiting = job("waiting", "a", priority=10)

    kept = promise(waiting, "0", waits_for="ending-0")
    others = [low("a1", "node-1:1"), low("a2", "node-1:2", is_preemptible=False)]

    made = made_of(node(devices=3), A, ending, waiting, kept, *others, urgent("2"))

    assert evicted(made) == ["a1-0"]
    assert nominated(made) == ["urgent"]
    assert made.nominates[0].waits_for == ("a1-0", "ending-0")
    assert code_of(made, "waiting") is Code.BEHIND


def test_a_promise_that_expires_for_the_second_time_lets_its_workload_evict_again() -> None:
    seeker = urgent()
    old = replace(promise(seeker, "0", waits_for="x", may_evict=False), made=NOW - 3 * GRACE, due=NOW, expires=NOW)

    assert evicted(made_of(node(devices=1), A, low("a1", "node-1:0"), seeker, old)) == ["a1-0"]
    assert not made_of(node(devices=1), A, low("a1", "node-1:0"), seeker, replace(old, may_evict=True)).evicts


def test_a_promised_gang_of_which_only_the_minimum_counts_as_fixed_starts_whole_within_its_quota() -> None:
    crew = replace(job("crew", "a", pods=2, min_pods=1), is_preemptible=False, is_semi_preemptible=True)
    places = tuple(
        Place(pod.id, "node-1", shares(pod.request.gpu, "node-1", str(index))) for index, pod in enumerate(crew.pods)
    )
    kept = Promise("crew", places, NOW, NOW + GRACE, NOW + 2 * GRACE)

    made = made_of(node(devices=2), queue("a", "1"), crew, kept)

    assert len(made.binds) == 2
    assert not made.nominates


def test_who_was_moved_and_has_not_ended_keeps_its_new_place() -> None:
    moving = releasing(job("moving", "a"), "node-1:0")
    kept = Promise(
        "moving", (Place("moving-0", "node-1", shares(moving.pods[0].request.gpu, "node-1", "1")),), NOW, NOW + GRACE,
        NOW + 2 * GRACE, ("moving-0",),
    )  # fmt: skip

    made = made_of(node(devices=2), A, moving, kept, job("new", "a"))

    assert sorted(nominated(made)) == ["moving", "new"]
    assert not made.binds


# What runs where nothing is


def test_what_runs_on_a_node_that_is_gone_is_told_to_end_with_its_queue() -> None:
    drained = replace(queue("a", "8"), is_drained=True)

    assert evicted(made_of(node(devices=1), drained, low("lost", "node-9:0"))) == ["lost-0"]


def test_a_stale_gang_on_a_drained_node_ends_once() -> None:
    away = replace(node("away", 3), is_drained=True)
    stale = replace(running(job("gang", "a", pods=3), "away:0", "away:1"), stale_for=timedelta(hours=1))

    made = made_of(away, A, stale, policy=Policy())

    assert sorted(evicted(made)) == ["gang-0", "gang-1"]


@pytest.mark.parametrize(
    ("grace", "lasted", "ends"),
    [
        pytest.param(timedelta(minutes=2), timedelta(minutes=2), True, id="its grace is over"),
        pytest.param(timedelta(minutes=2), timedelta(seconds=119), False, id="its grace is not over"),
        pytest.param(timedelta(seconds=-1), timedelta(days=9), False, id="it may stay so for ever"),
        pytest.param(None, timedelta(seconds=60), True, id="the grace of the policy is over"),
        pytest.param(None, timedelta(seconds=59), False, id="the grace of the policy is not over"),
        pytest.param(timedelta(0), None, True, id="it has none"),
    ],
)
def test_a_gang_below_its_minimum_ends_after_its_grace(
    grace: timedelta | None, lasted: timedelta | None, *, ends: bool
) -> None:
    other = replace(job("elsewhere", "a", pods=2), pool="other")
    elsewhere = replace(running(other, "node-2:0"), stale_for=timedelta(seconds=1), stale_grace=timedelta(days=1))
    stale = replace(running(job("gang", "a", pods=3), "node-1:0"), stale_for=lasted, stale_grace=grace)

    made = made_of(node(devices=1), node("node-2", 1, pool="other"), A, stale, elsewhere, policy=Policy())

    assert evicted(made) == (["gang-0"] if ends else [])


def test_a_gang_goes_on_growing_only_while_a_group_of_it_can_run() -> None:
    root = Group("", 1, (Group("x", 1), Group("y", 2)))
    crew = job("crew", "a", pods=2)
    crew = replace(
        crew,
        gang=root,
        min_pods=1,
        pods=tuple(replace(pod, group=name) for pod, name in zip(crew.pods, "xy", strict=True)),
    )

    made = made_of(node(devices=2), A, crew)

    assert [one.place.pod for one in made.binds] == ["crew-0"]


def test_two_projects_that_may_each_give_one_make_no_room_for_two_on_one_node() -> None:
    queues = [
        queue("d1", "2"),
        queue("d2", "2"),
        *(queue(id, "1", parent="d1") for id in "ab"),
        queue("c", "2", parent="d2"),
    ]
    held = [running(job(f"a{n}", "a"), f"node-1:{n}") for n in range(2)]
    held += [running(job(f"b{n}", "b"), f"node-2:{n}") for n in range(2)]

    made = made_of(node(devices=2), node("node-2", 2), *queues, *held, job("c0", "c", "2"))

    assert not made.evicts


def test_of_nodes_with_victims_the_one_is_chosen_that_loses_the_least_work() -> None:
    ran = {"node-1": 3, "node-2": 1, "node-3": 2}
    victims = [
        running(job(f"{name}-{n}", "a", priority=10), f"{name}:{n}", started=timedelta(hours=hours, minutes=n))
        for name, hours in ran.items()
        for n in range(2)
    ]

    made = made_of(*[node(name, 2) for name in ran], queue("a", "8"), *victims, urgent("2"))

    assert sorted(evicted(made)) == ["node-2-0-0", "node-2-1-0"]


def test_a_gang_of_which_this_cycle_ended_a_part_gives_what_is_left_of_it() -> None:
    away = replace(node("away", 1), is_drained=True)
    elastic = low("elastic", "node-1:0", "node-1:1", "away:0", min_pods=1)

    made = made_of(node(devices=2), away, A, elastic, urgent("2"))

    assert sorted(evicted(made)) == ["elastic-0", "elastic-1", "elastic-2"]


def test_a_gang_gives_its_optional_group_before_the_core_though_that_is_smaller() -> None:
    crew = running(job("crew", "a", None, pods=3, priority=10, cpu="1"), "node-1", "node-1", "node-1")
    groups = (Group("leader", 1), Group("pair", 2))
    pods = tuple(replace(pod, group=group) for pod, group in zip(crew.pods, ("leader", "pair", "pair"), strict=True))
    crew = replace(crew, pods=pods, gang=Group("", 1, groups), min_pods=1)

    made = made_of(node(devices=0, cpu="3"), A, crew, urgent(None, cpu="1"))

    assert sorted(evicted(made)) == ["crew-1", "crew-2"]


def test_work_within_its_quota_is_left_alone_by_who_passes_its_own_of_the_same() -> None:
    nodes = [node(devices=4), node("node-2", 2), node("node-3", 1)]
    taker = queue("b", "1", memory=claim("1Gi", weight=2, is_memory=True))
    wide = running(job("wide", "a", "2", pods=2, cpu="1"), "node-1:0,1", "node-2:0,1", started=timedelta(hours=1))
    light = running(job("light", "a", None, cpu="1", memory="1Gi"), "node-1", started=timedelta(hours=5))

    made = made_of(*nodes, queue("a", "0"), taker, wide, light, job("b1", "b", "2", pods=2, min_pods=1, memory="1Gi"))

    assert "light-0" not in evicted(made)


def test_a_unit_is_not_taken_across_a_due_where_its_queue_would_take_it_back() -> None:
    # Due two of three devices, the giver holds almost one and is promised two more; the takers are due the rest.
    waiting = [
        job("g1", "g", "0.3"),
        job("g2", "g", "24Gi"),
        job("g3", "g", "0.3"),
        job("g4", "g", waits=timedelta(hours=2)),
    ]
    takers = [job("t1", "s", "24Gi"), asking(job("t2", "t"), gpu=GpuRequest(1, 333, sharing=Sharing.SM_SHARING,
                                                                          is_sharing_required=True))]  # fmt: skip
    holder = running(job("g0", "g", "0.999"), "node-2:0", started=timedelta(0))

    made = made_of(
        node(devices=1), node("node-2", 2), queue("g", "2"), queue("s"), queue("t"), holder, *waiting, *takers
    )

    assert "g0-0" not in evicted(made)


def test_a_resource_that_is_not_short_does_not_stand_in_the_way_of_one_that_is() -> None:
    greedy = [running(job(f"a{n}", "a", cpu="8"), f"node-1:{n}") for n in range(2)]
    half = claim("8")

    made = made_of(
        node(cpu="16"), queue("a", "2", cpu=half), queue("b", "1", cpu=half), *greedy, job("b1", "b", cpu="4")
    )

    assert evicted(made) == ["a1-0"]


def test_who_loses_its_place_is_promised_none_that_would_crowd_the_zone_of_the_taker() -> None:
    zones = {"node-1": "x", "node-2": "y", "node-3": "x"}
    sizes = {"node-1": 2, "node-2": 0, "node-3": 1}
    nodes = [replace(node(name, sizes[name]), labels={"zone": zone}) for name, zone in zones.items()]
    app = (("app", "web"),)
    victim = asking(low("a1", "node-1:0"), labels=app)
    taker = asking(urgent("2"), labels=app, spread=(Spread(app, "zone"),))

    made = made_of(*nodes, A, victim, taker)

    assert evicted(made) == ["a1-0"]
    assert nominated(made) == ["urgent"]


def test_promised_room_of_fixed_work_is_kept() -> None:
    ending = releasing(job("ending", "a"), "node-1:0")
    fixed = job("fixed", "a", is_preemptible=False)

    made = made_of(node(devices=1), A, ending, fixed, promise(fixed, "0", waits_for="ending-0"), urgent())

    assert nominated(made) == ["fixed"]
    assert not made.evicts


def test_victims_that_are_legal_one_by_one_and_not_together_are_left_alone() -> None:
    # Within the department a project may take from another; with that, the department would take more than it is due.
    held = [running(job("c1", "c", "2"), "node-1:0,1"), running(job("b1", "b"), "node-2:2")]
    queues = [queue("d", "4"), queue("a", "0", parent="d", priority=200), queue("b", "0", parent="d"), queue("c", "0")]

    made = made_of(
        node(devices=2), node("node-2", 2), *queues, *held, job("first", "a", pods=2), job("second", "a", pods=2)
    )

    assert [one.workload for one in made.binds] == ["first", "first"]
    assert not made.evicts
    assert code_of(made, "second") is Code.OVER_FAIR_SHARE
