"""Each law can fail: a plan that breaks it, made by hand, is found out; and the same plan without the fault is not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core.model import (
    Affinity,
    Amounts,
    Budget,
    Device,
    GpuRequest,
    Group,
    MigProfile,
    Near,
    Node,
    Place,
    Pod,
    PodRequest,
    PodState,
    Policy,
    Queue,
    Share,
    Sharing,
    Snapshot,
    Taint,
    Topology,
    Workload,
)
from aliquot.core.plan import Bind, Code, Evict, Nominate, Plan, Reason, Rule, Wait
from tests.builders import NOW, claim, job, mib, node, queue, releasing, running, snapshot
from tests.laws import amounts_laws, eviction_laws, judge, rest, state
from tests.laws.case import Case, LawBroken
from tests.laws.worlds import World

WHOLE = mib("80Gi")
LAWS = (*amounts_laws.LAWS, *eviction_laws.LAWS)
"""All that look at one plan, but for its reasons: plans made by hand give none that are true."""
Part = Node | Queue | Workload


def case(parts: Snapshot, plan: Plan, policy: Policy | None = None) -> Case:
    return Case(World(0, frozenset(), parts, policy or Policy(), NOW), plan)


def law_broken_by(parts: Snapshot, plan: Plan, policy: Policy | None = None) -> str | None:
    try:
        judge.judge_plan(case(parts, plan, policy), LAWS)
    except LawBroken as broken:
        return broken.law
    return None


def share(index: int = 0, *, node_id: str = "node-1", milli: int = 1000, memory: int = WHOLE) -> Share:
    return Share(f"{node_id}-gpu-{index}", milli, memory)


def bind(workload: str, *shares: Share, pod: int = 0, node_id: str = "node-1") -> Bind:
    return Bind(workload, Place(f"{workload}-{pod}", node_id, shares))


def evict(workload: str, *, to: str, rule: Rule = Rule.RECLAIM, pod: int = 0) -> Evict:
    return Evict(workload, f"{workload}-{pod}", to, rule, "by hand")


def promise(workload: str, *shares: Share, waits_for: str = "", node_id: str = "node-1", pod: int = 0) -> Nominate:
    due = NOW + timedelta(seconds=30)
    place = Place(f"{workload}-{pod}", node_id, shares)
    waiting = (waits_for,) if waits_for else ()
    return Nominate(workload, (place,), waiting, due=due, expires=due + timedelta(seconds=30))


def wait(workload: str, code: Code = Code.WAITING_FOR_RELEASE, position: int = 1) -> Wait:
    return Wait(workload, Reason(code, "by hand"), position)


def reclaiming(**changes: object) -> tuple[Snapshot, Plan]:
    """One device, held by a queue without quota; a queue that has quota takes it. All is well so far."""
    old = running(job("old", "a"), "node-1:0")
    parts = snapshot(node("node-1", 1), queue("a", "0"), queue("b", "1"), old, job("new", "b"))
    plan = Plan(
        evicts=(evict("old", to="new"),),
        nominates=(promise("new", share(), waits_for="old-0"),),
        waits=(wait("new"),),
    )
    return parts, replace(plan, **changes)  # type: ignore[arg-type]  # parts of a plan


def preempting(victim: int = 50, taker: int = 60) -> tuple[Snapshot, Plan]:
    """The same within one queue, by priority."""
    old = running(job("old", priority=victim), "node-1:0")
    parts = snapshot(node("node-1", 1), queue(), old, job("new", priority=taker))
    plan = reclaiming()[1]
    return parts, replace(plan, evicts=(evict("old", to="new", rule=Rule.PREEMPT),))


def with_queues(parts: Snapshot, **changes: object) -> Snapshot:
    queues = tuple(replace(one, **changes) for one in parts.queues)  # type: ignore[arg-type]  # fields of a queue
    return replace(parts, queues=queues)


def with_workload(parts: Snapshot, id: str, **changes: object) -> Snapshot:
    workloads = tuple(
        replace(one, **changes) if one.id == id else one  # type: ignore[arg-type]  # fields of a workload
        for one in parts.workloads
    )
    return replace(parts, workloads=workloads)


# What is well.


@pytest.mark.parametrize("world", [reclaiming(), preempting()])
def test_a_plan_that_keeps_the_rules_breaks_no_law(world: tuple[Snapshot, Plan]) -> None:
    assert law_broken_by(*world) is None


def test_a_start_that_keeps_the_rules_breaks_no_law() -> None:
    parts = snapshot(node("node-1", 2), queue(), job("one"))

    assert law_broken_by(parts, Plan(binds=(bind("one", share()),))) is None


# Room and amounts.


def overused() -> list[tuple[Snapshot, Plan]]:
    one, two = job("one"), job("two")
    both = Plan(binds=(bind("one", share()), bind("two", share())))
    half = share(milli=700, memory=WHOLE * 7 // 10)
    portions = Plan(binds=(bind("one", half), bind("two", half)))
    small = node("node-1", 2, cpu="1")
    cpus = Plan(binds=(bind("one", share(0)), bind("two", share(1))))
    crowded = node("node-1", 2, max_pods=1)
    promised = Plan(nominates=(promise("one", share()), promise("two", share())), waits=(wait("one"), wait("two")))
    ending = releasing(job("old"), "node-1:0")
    return [
        (snapshot(node(), queue(), one, two), both),
        (snapshot(node(), queue(), job("one", gpu="0.7"), job("two", gpu="0.7")), portions),
        (snapshot(small, queue(), job("one", cpu="1"), job("two", cpu="1")), cpus),
        (snapshot(crowded, queue(), one, two), cpus),
        (snapshot(node(), queue(), one, two), promised),
        (snapshot(node(), queue(), ending, one), Plan(binds=(bind("one", share()),), waits=())),
    ]


@pytest.mark.parametrize("world", overused())
def test_what_is_given_twice_is_found(world: tuple[Snapshot, Plan]) -> None:
    assert law_broken_by(*world) == "nothing-is-overused"


def test_more_of_a_named_resource_than_there_is_is_found() -> None:
    request = PodRequest(resources=(("rdma", 1),), host_ports=(80,))
    pods = [Workload(id, id, "team-a", NOW, (Pod(f"{id}-0", 0, request),), 1) for id in ("one", "two")]
    plan = Plan(binds=(bind("one"), bind("two")))

    assert (
        law_broken_by(snapshot(replace(node(), resources={"rdma": 1}), queue(), *pods), plan) == "nothing-is-overused"
    )
    assert (
        law_broken_by(snapshot(replace(node(), resources={"rdma": 2}), queue(), *pods), plan) == "nothing-is-overused"
    )


def test_two_instances_on_the_same_slices_are_found() -> None:
    profile = MigProfile("3g", 3, 4, 40_000, (0, 4))
    device = Device("node-1-gpu-0", 0, "A100", WHOLE, profiles=(profile,))
    request = PodRequest(GpuRequest(milli=None, profile="3g"))
    pods = [Workload(id, id, "team-a", NOW, (Pod(f"{id}-0", 0, request),), 1) for id in ("one", "two")]
    parts = snapshot(node("node-1", [device]), queue(), *pods)
    at = [Share(device.id, 428, 40_000, start) for start in (0, 4)]

    assert law_broken_by(parts, Plan(binds=(bind("one", at[0]), bind("two", at[1])))) is None
    assert law_broken_by(parts, Plan(binds=(bind("one", at[0]), bind("two", at[0])))) == "nothing-is-overused"
    wrong = replace(at[0], start=2)
    assert law_broken_by(parts, Plan(binds=(bind("one", wrong), bind("two", at[1])))) is not None


def test_two_sharing_modes_on_one_device_are_found() -> None:
    gpu = GpuRequest(milli=500, sharing=Sharing.SM_SHARING, is_sharing_required=True)
    one = job("one", gpu="0.5")
    two = replace(one, id="two", pods=(Pod("two-0", 0, PodRequest(gpu)),))
    half = share(milli=500, memory=WHOLE // 2)
    plan = Plan(binds=(bind("one", half), bind("two", replace(half, sharing=Sharing.SM_SHARING))))

    assert law_broken_by(snapshot(node(), queue(), one, two), plan) == "nothing-is-overused"


def misplaced() -> list[tuple[Snapshot, Plan]]:
    start = Plan(binds=(bind("one", share()),))
    one, half = job("one"), share(milli=500, memory=WHOLE // 2)
    away = replace(one, pods=(Pod("one-0", 0, PodRequest(GpuRequest(models=("A100",)))),))
    choosy = replace(one, pods=(Pod("one-0", 0, replace(one.pods[0].request, node_labels=(("disk", ("ssd",)),))),))
    held = Node("node-1", 64_000, 2**40, (Device("node-1-gpu-0", 0, "H100", WHOLE, withheld="lost"),))
    return [
        (snapshot(node(is_cordoned=True), queue(), one), start),
        (snapshot(node(is_ready=False), queue(), one), start),
        (snapshot(replace(node(), is_drained=True), queue(), one), start),
        (snapshot(replace(node(), taints=(Taint("kept"),)), queue(), one), start),
        (snapshot(node(pool="other"), queue(), one), start),
        (snapshot(held, queue(), one), start),
        (snapshot(node(), queue(), away), start),
        (snapshot(node(), queue(), choosy), start),
        (snapshot(node(), queue(), one), Plan(binds=(bind("one", half),))),
        (snapshot(node(), queue(), one), Plan(binds=(bind("one"),))),
        (snapshot(node(), queue(), job("one", gpu="2x0.5")), Plan(binds=(bind("one", *2 * (half,)),))),
        (snapshot(node(), queue(), one), Plan(binds=(bind("one", share(node_id="node-2")),))),
        (snapshot(node(), queue(), running(one, "node-1:1")), start),
        (snapshot(node(), queue(), one), replace(start, nominates=(promise("one", share(1)),), waits=(wait("one"),))),
    ]


@pytest.mark.parametrize("world", misplaced())
def test_a_place_that_was_not_asked_for_is_found(world: tuple[Snapshot, Plan]) -> None:
    assert law_broken_by(*world) == "places-are-legal"


def test_foes_side_by_side_are_found() -> None:
    from_afar = PodRequest(labels=(("app", "a"),))
    shy = replace(from_afar, anti_affinity=(Affinity((("app", "a"),), "host"),))
    pods = [
        Workload(id, id, "team-a", NOW, (Pod(f"{id}-0", 0, request),), 1)
        for id, request in (("one", from_afar), ("two", shy))
    ]
    apart = [replace(node(id), labels={"host": id}) for id in ("node-1", "node-2")]

    together = Plan(binds=(bind("one"), bind("two")))
    assert law_broken_by(snapshot(*apart, queue(), *pods), together) == "neighbours-bear-each-other"
    assert (
        law_broken_by(snapshot(*apart, queue(), *pods), Plan(binds=(bind("one"), bind("two", node_id="node-2"))))
        is None
    )


@pytest.mark.parametrize("what", ["limit", "quota"])
def test_a_term_of_a_queue_that_is_passed_is_found(what: str) -> None:
    one = job("one", is_preemptible=what == "limit")
    terms = queue(gpu="1", limit="1") if what == "limit" else queue(gpu="1")
    plan = Plan(binds=(bind("one", share(0)), bind("two", share(1))))
    law = {"limit": "no-limit-is-passed", "quota": "fixed-work-stays-within-quota"}[what]

    assert law_broken_by(snapshot(node(), terms, one), Plan(binds=(bind("one", share()),))) is None
    assert (
        law_broken_by(snapshot(node(), terms, one, replace(job("two"), is_preemptible=one.is_preemptible)), plan) == law
    )


def test_a_limit_of_cpu_that_is_passed_is_found() -> None:
    parts = snapshot(node(), queue(cpu=claim("1", limit="1")), job("one", cpu="2"))

    assert law_broken_by(parts, Plan(binds=(bind("one", share()),))) == "no-limit-is-passed"


def test_a_part_of_a_gang_is_found() -> None:
    half = Plan(binds=(bind("one", share()),), waits=(wait("one"),))
    whole = Plan(binds=(bind("one", share(0)), bind("one", share(1), pod=1)))

    assert law_broken_by(snapshot(node(), queue(), job("one", pods=2)), half) == "gangs-are-whole"
    assert law_broken_by(snapshot(node(), queue(), job("one", pods=2)), whole) is None
    assert law_broken_by(snapshot(node(), queue(), job("one", pods=2, min_pods=1)), half) is None


def test_a_group_below_its_minimum_is_found() -> None:
    tree = Group("", 1, (Group("a", 2), Group("b", 1)))
    gang = job("one", pods=3)
    pods = tuple(replace(pod, group="ab"[pod.index // 2]) for pod in gang.pods)
    gang = replace(gang, pods=pods, gang=tree, min_pods=1)
    waits = (wait("one"),)

    one_of_a = Plan(binds=(bind("one", share(0)), bind("one", share(2), pod=2)), waits=waits)
    assert law_broken_by(snapshot(node(), queue(), gang), one_of_a) == "gangs-are-whole"
    assert (
        law_broken_by(snapshot(node(), queue(), gang), Plan(binds=(bind("one", share(2), pod=2),), waits=waits)) is None
    )


def test_a_gang_left_below_its_minimum_by_an_eviction_is_found() -> None:
    old = running(job("old", "a", pods=2), "node-1:0", "node-1:1")
    parts, plan = reclaiming()
    parts = snapshot(node("node-1", 2), *parts.queues, old, job("new", "b"))

    assert law_broken_by(parts, plan) == "gangs-are-whole"


def test_a_gang_out_of_its_domain_is_found() -> None:
    nodes = [replace(node(id), labels={"rack": id}) for id in ("node-1", "node-2")]
    gang = replace(job("one", pods=2), near=Near("net", required="rack"))
    parts = replace(snapshot(*nodes, queue(), gang), topologies=(Topology("net", ("rack",)),))
    apart = Plan(binds=(bind("one", share()), bind("one", share(node_id="node-2"), pod=1, node_id="node-2")))
    near = Plan(binds=(bind("one", share()), bind("one", share(1), pod=1)))

    assert law_broken_by(parts, apart) == "gangs-are-whole"
    assert law_broken_by(parts, near) is None


def test_a_share_that_is_not_due_is_found() -> None:
    parts = snapshot(node("node-1", 1), queue("a", "0"), queue("b", "1"), job("one", "a"), job("two", "b"))
    waits = (wait("one", Code.FRAGMENTED, 1), wait("two", Code.FRAGMENTED, 2))
    none, one = Amounts(), Amounts(1000)
    right = {("default", "a"): none, ("default", "b"): one}

    assert law_broken_by(parts, Plan(fair_share=right, waits=waits)) is None
    wrong = right | {("default", "a"): one}
    assert law_broken_by(parts, Plan(fair_share=wrong, waits=waits)) == "shares-are-exact"


def test_children_with_more_than_their_parent_are_found() -> None:
    parts = snapshot(node("node-1", 1), queue("d", "1"), queue("a", "1", parent="d"), job("one", "a"))
    shares = {("default", "d"): Amounts(1000), ("default", "a"): Amounts(1001)}

    assert law_broken_by(parts, Plan(fair_share=shares, waits=(wait("one"),))) == "shares-are-exact"


def test_who_is_not_told_why_it_waits_is_found() -> None:
    parts = snapshot(node(), queue(), job("one"))

    assert law_broken_by(parts, Plan()) == "everyone-is-told"
    assert law_broken_by(parts, Plan(waits=(wait("one"), wait("one")))) == "everyone-is-told"


# Evictions.


def test_who_is_evicted_twice_or_does_not_run_is_found() -> None:
    parts, plan = reclaiming()

    twice = replace(plan, evicts=plan.evicts * 2)
    assert law_broken_by(parts, twice) == "nothing-settled-is-taken"
    other = replace(plan, evicts=(evict("new", to="old"),))
    assert law_broken_by(parts, other) == "nothing-settled-is-taken"


def test_who_grows_and_shrinks_at_once_is_found() -> None:
    old = running(job("old", "a", pods=3, min_pods=1), "node-1:0", "node-1:1")
    parts, plan = reclaiming()
    parts = snapshot(node("node-1", 3), *parts.queues, old, job("new", "b"))
    plan = replace(plan, binds=(bind("old", share(2), pod=2),), evicts=(evict("old", to="new", pod=1),))
    plan = replace(plan, nominates=(promise("new", share(1)),))

    assert law_broken_by(parts, plan) == "nothing-settled-is-taken"


def test_an_eviction_for_one_who_gets_nothing_is_found() -> None:
    parts, plan = reclaiming(nominates=())

    assert law_broken_by(parts, plan) == "evictions-are-legal"


@pytest.mark.parametrize(
    ("id", "change"),
    [
        ("new", {"never_preempts": True}),
        ("new", {"preemption_delay": timedelta(hours=2)}),
        ("old", {"is_preemptible": False}),
        ("old", {"is_preemptible": False, "is_semi_preemptible": True}),
    ],
)
def test_an_eviction_that_the_terms_of_a_workload_forbid_is_found(id: str, change: dict[str, object]) -> None:
    parts, plan = reclaiming()
    parts = replace(parts, queues=tuple(queue(one.id, "2" if one.id == "a" else "1") for one in parts.queues))
    parts = with_queues(reclaiming()[0]) if id == "new" else parts

    assert law_broken_by(with_workload(parts, id, **change), plan) == "evictions-are-legal"


@pytest.mark.parametrize(
    "change",
    [{"reclaim_min_runtime": timedelta(hours=1)}, {"evictions_left": 0}, {"is_held": True}],
)
def test_an_eviction_that_the_terms_of_a_queue_forbid_is_found(change: dict[str, object]) -> None:
    parts, plan = reclaiming()

    assert law_broken_by(with_queues(parts, **change), plan) == "evictions-are-legal"


def test_an_eviction_that_a_budget_or_the_policy_forbids_is_found() -> None:
    parts, plan = reclaiming()
    budget = Budget("b", frozenset({"old-0"}), 0)

    assert law_broken_by(replace(parts, budgets=(budget,)), plan) == "evictions-are-legal"
    assert law_broken_by(parts, plan, Policy(actions=("allocate", "preempt"))) == "evictions-are-legal"


def test_a_reclaim_beyond_what_is_due_is_found() -> None:
    """The victim's queue is within its quota."""
    parts, plan = reclaiming()
    parts = replace(parts, queues=(queue("a", "1"), queue("b", "1")))

    assert law_broken_by(parts, plan) == "evictions-are-legal"


def test_a_preemption_of_an_equal_or_of_another_queue_is_found() -> None:
    assert law_broken_by(*preempting(50, 50)) == "evictions-are-legal"
    parts, plan = reclaiming(evicts=(evict("old", to="new", rule=Rule.PREEMPT),))
    assert law_broken_by(with_workload(parts, "new", priority=90), plan) == "evictions-are-legal"


def test_a_move_to_nowhere_and_too_many_moves_are_found() -> None:
    parts, plan = reclaiming(evicts=(evict("old", to="new", rule=Rule.CONSOLIDATE),))
    assert law_broken_by(parts, plan) == "evictions-are-legal"

    there = snapshot(node("node-1", 1), node("node-2", 1), *parts.queues, *parts.workloads)
    new_place = promise("old", share(node_id="node-2"), node_id="node-2")
    moved = replace(plan, nominates=(*plan.nominates, new_place))
    assert law_broken_by(there, moved, Policy(max_consolidation_victims=0)) == "evictions-are-legal"


def test_a_time_slice_before_its_time_is_found() -> None:
    parts, plan = preempting(50, 50)
    plan = replace(plan, evicts=(evict("old", to="new", rule=Rule.TIME_SLICE),))

    assert law_broken_by(parts, plan) == "evictions-are-legal"


def test_an_eviction_that_nobody_needs_is_found() -> None:
    parts, plan = reclaiming()
    parts = snapshot(node("node-1", 2), *parts.queues, *parts.workloads)

    assert law_broken_by(parts, plan) == "evictions-are-needed"


def test_one_victim_too_many_is_found() -> None:
    other = running(job("other", "a"), "node-1:1")
    parts, plan = reclaiming()
    parts = snapshot(node("node-1", 2), *parts.queues, *parts.workloads, other)
    plan = replace(plan, evicts=(*plan.evicts, evict("other", to="new")))

    assert law_broken_by(parts, plan) == "evictions-are-needed"


def test_a_gang_released_before_its_grace_is_over_or_in_part_is_found() -> None:
    gang = running(job("old", pods=3), "node-1:0", "node-1:1")
    gang = replace(gang, stale_for=timedelta(seconds=70))
    parts = snapshot(node("node-1", 2), queue(), gang)
    told = tuple(evict("old", to="", rule=Rule.STALE_GANG, pod=index) for index in (0, 1))
    waits = (wait("old", Code.FRAGMENTED),)

    assert law_broken_by(parts, Plan(evicts=told, waits=waits)) is None
    assert law_broken_by(parts, Plan(evicts=told[:1], waits=waits)) == "evictions-for-no-one"
    assert law_broken_by(parts, Plan(waits=waits)) == "evictions-for-no-one"
    early = with_workload(parts, "old", stale_for=timedelta(seconds=30))
    assert law_broken_by(early, Plan(evicts=told, waits=waits)) == "evictions-for-no-one"
    patient = with_workload(parts, "old", stale_grace=timedelta(seconds=-1))
    assert law_broken_by(patient, Plan(evicts=told, waits=waits)) == "evictions-for-no-one"


def test_a_drain_where_nothing_is_drained_is_found() -> None:
    parts = snapshot(node(), queue(), running(job("old"), "node-1:0"))
    told = Plan(evicts=(evict("old", to="", rule=Rule.DRAIN),))

    assert law_broken_by(parts, told) == "evictions-for-no-one"
    assert law_broken_by(with_queues(parts, is_drained=True), told) is None
    assert law_broken_by(with_queues(parts, is_drained=True), Plan()) == "evictions-for-no-one"


# Circles.


def test_a_circle_over_three_is_found() -> None:
    takes = rest.Takes()
    takes.watch(Plan(evicts=(evict("a", to="b"),)))
    takes.watch(Plan(evicts=(evict("b", to="c"), evict("x", to="", rule=Rule.DRAIN))))

    with pytest.raises(LawBroken, match="no-circle"):
        takes.watch(Plan(evicts=(evict("c", to="a"),)))


def test_time_slices_are_no_circle() -> None:
    takes = rest.Takes()
    takes.watch(Plan(evicts=(evict("a", to="b", rule=Rule.TIME_SLICE),)))

    takes.watch(Plan(evicts=(evict("b", to="a", rule=Rule.TIME_SLICE),)))


def test_a_plan_that_is_carried_out_leaves_who_was_evicted_ending() -> None:
    parts, plan = reclaiming()

    after = state.carry_out(parts, plan, NOW)
    then = state.later(after, before=after, by=timedelta(seconds=10))

    assert [pod.state for one in after.workloads for pod in one.pods] == [PodState.RELEASING, PodState.PENDING]
    assert [one.workload for one in after.promises] == ["new"]
    assert [pod.state for one in then.workloads for pod in one.pods] == [PodState.PENDING, PodState.PENDING]
