"""Who comes first inside a queue, when turns change hands, and what work may do while it waits for its own room."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core.model import DEFAULT_POOL, Place, Policy, Promise, Queue, QueueOrder, Workload
from aliquot.core.plan import Code, Plan, Rule
from tests.builders import NOW, job, node, queue, releasing, running, shares, snapshot
from tests.core.outcomes import GRACE, bound, code_of, evicted, full, nominated, plan

QUANTUM = timedelta(minutes=10)


def ordered(by: QueueOrder, id: str = "a", gpu: str = "8") -> Queue:
    return replace(queue(id, gpu), order=by)


def sliced(id: str = "a", gpu: str = "8") -> Queue:
    return ordered(QueueOrder.LEAST_ATTAINED_SERVICE, id, gpu)


def having_had(workload: Workload, gpu_hours: float) -> Workload:
    return replace(workload, attained_milli_seconds=int(gpu_hours * 3_600_000))


def order_of(made: Plan) -> list[str]:
    return [one.workload for one in sorted(made.waits, key=lambda one: one.position)]


# The order inside a queue


def test_who_asks_for_most_comes_first_where_a_queue_says_so() -> None:
    jobs = [job("one", "a"), job("two", "a", "2"), job("cpus", "a", None, cpu="8"), job("cpu", "a", None, cpu="1")]

    made = plan(snapshot(node(is_cordoned=True), ordered(QueueOrder.LARGEST_FIRST), *jobs))

    assert order_of(made) == ["two", "one", "cpus", "cpu"]


def test_who_has_had_less_gpu_time_comes_first_where_a_queue_says_so() -> None:
    jobs = [
        having_had(job("most", "a", waits=timedelta(hours=9)), 7.9),
        having_had(job("more", "a", waits=timedelta(hours=8)), 2),
        having_had(job("some", "a", waits=timedelta(hours=7)), 1),
        having_had(job("none", "a", waits=timedelta(hours=1)), 0.9),
        having_had(job("none-too", "a", waits=timedelta(hours=2)), 0),
    ]

    made = plan(snapshot(node(is_cordoned=True), sliced(), *jobs))

    assert order_of(made) == ["none-too", "none", "some", "more", "most"]


def test_above_the_highest_class_all_are_equal() -> None:
    policy = Policy(service_threshold=3_600_000, service_classes=2)
    jobs = [having_had(job("huge", "a", waits=timedelta(hours=2)), 500), having_had(job("large", "a"), 1)]

    made = plan(snapshot(node(is_cordoned=True), sliced(), *jobs), policy=policy)

    assert order_of(made) == ["huge", "large"]


# Time slices


def test_work_of_an_earlier_class_takes_the_turn_of_work_that_has_had_its_quantum() -> None:
    old = having_had(running(job("old", "a"), "node-1:0"), 4)
    made = plan(snapshot(node(devices=1), sliced(), old, job("new", "a")))

    assert [(one.pod, one.rule) for one in made.evicts] == [("old-0", Rule.TIME_SLICE)]
    assert made.evicts[0].explanation == "new has had less GPU time than old of its project, which had its quantum"
    assert nominated(made) == ["new"]


@pytest.mark.parametrize(
    ("had", "ran", "priority", "is_evicted"),
    [
        pytest.param(4, QUANTUM, 50, True, id="exactly the quantum"),
        pytest.param(4, QUANTUM - timedelta(seconds=1), 50, False, id="not the quantum yet"),
        pytest.param(0.5, QUANTUM, 50, False, id="of the same class"),
        pytest.param(4, QUANTUM, 60, False, id="of a higher priority"),
    ],
)
def test_a_turn_ends_only_after_the_quantum_and_for_an_earlier_class(
    had: float, ran: timedelta, priority: int, *, is_evicted: bool
) -> None:
    old = having_had(running(job("old", "a", priority=priority), "node-1:0", started=ran), had)

    assert bool(evicted(plan(snapshot(node(devices=1), sliced(), old, job("new", "a"))))) is is_evicted


def test_the_turn_of_the_work_of_the_latest_class_that_may_go_ends() -> None:
    jobs = [
        having_had(running(job("a1", "a", priority=50), "node-1:0"), 2),
        having_had(running(job("a2", "a", priority=60), "node-1:1"), 9),
        having_had(running(job("a3", "a", priority=50), "node-1:2", started=timedelta(0)), 9),
    ]

    assert evicted(plan(snapshot(node(devices=3), sliced(), *jobs, job("new", "a")))) == ["a1-0"]


def test_no_turns_are_taken_where_a_queue_serves_those_who_wait_longest() -> None:
    old = having_had(running(job("old", "a"), "node-1:0"), 4)

    assert not plan(snapshot(node(devices=1), queue("a", "8"), old, job("new", "a"))).evicts


def test_promised_room_is_no_turn_to_take() -> None:
    ending = releasing(job("ending", "a"), "node-1:0")
    place = Place("old-0", "node-1", shares(ending.pods[0].request.gpu, "node-1", "0"))
    promise = Promise("old", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("ending-0",))

    made = plan(snapshot(node(devices=1), sliced(), ending, having_had(job("old", "a"), 4), job("new", "a"), promise))

    assert nominated(made) == ["old"]
    assert not made.evicts


# Who may not evict yet, and who may not be evicted yet


def test_who_must_wait_before_it_evicts_says_so_and_evicts_then() -> None:
    late = replace(job("late", "a", priority=100, waits=timedelta(minutes=5)), preemption_delay=timedelta(minutes=6))
    taken = snapshot(node(devices=1), queue("a", "1"), *full("a", 1), late)

    assert code_of(plan(taken), "late") is Code.PREEMPTION_DELAY
    assert evicted(plan(taken, after=timedelta(minutes=1))) == ["a0-0"]


def test_who_never_preempts_does_not() -> None:
    meek = replace(job("meek", "a", priority=100), never_preempts=True)

    assert not plan(snapshot(node(devices=1), queue("a", "1"), *full("a", 1), meek)).evicts


@pytest.mark.parametrize("kind", ["reclaim", "preempt"])
def test_work_is_safe_for_the_minimum_run_time_of_its_queue_or_the_one_above(kind: str) -> None:
    department = replace(
        queue("d", "0"), reclaim_min_runtime=timedelta(hours=1), preempt_min_runtime=timedelta(hours=1)
    )
    own = queue("a", "0", parent="d")
    asker = job("asker", "b" if kind == "reclaim" else "a", priority=100)
    young = running(job("young", "a"), "node-1:0", started=timedelta(minutes=59))
    taken = snapshot(node(devices=1), department, own, queue("b", "1"), young, asker)

    assert code_of(plan(taken), "asker") is Code.PROTECTED_MIN_RUNTIME
    assert evicted(plan(taken, after=timedelta(minutes=1))) == ["young-0"]


def test_the_value_of_the_queue_itself_goes_before_that_of_the_one_above() -> None:
    department = replace(queue("d", "1"), preempt_min_runtime=timedelta(hours=1))
    own = replace(queue("a", "1", parent="d"), preempt_min_runtime=timedelta(0))
    taken = snapshot(node(devices=1), department, own, *full("a", 1), job("urgent", "a", priority=100))

    assert evicted(plan(taken)) == ["a0-0"]


def test_what_is_above_the_minimum_of_a_gang_is_not_safe() -> None:
    own = replace(queue("a", "8"), preempt_min_runtime=timedelta(hours=1))
    elastic = running(job("elastic", "a", pods=2, min_pods=1), "node-1:0", "node-1:1")

    made = plan(snapshot(node(devices=2), own, elastic, job("urgent", "a", priority=100)))

    assert evicted(made) == ["elastic-1"]


def test_of_equal_work_what_has_saved_later_goes_first() -> None:
    jobs = [running(job(f"a{index}", "a"), f"node-1:{index}") for index in range(3)]
    jobs[0] = replace(jobs[0], saved=NOW - timedelta(minutes=1))

    made = plan(snapshot(node(devices=3), queue("a", "8"), *jobs, job("urgent", "a", priority=100)))

    assert evicted(made) == ["a0-0"]


# Room that is kept for a head


def holding() -> Queue:
    return replace(queue("a", "8"), hold_after=timedelta(minutes=30))


def stated(id: str, place: str, ends_in: timedelta, gpu: str = "1") -> Workload:
    started = timedelta(minutes=30)
    return replace(running(job(id, "b", gpu), place, started=started), max_run_time=started + ends_in)


def test_a_head_that_has_waited_for_long_is_promised_the_room_that_is_free_first() -> None:
    jobs = [stated("late", "node-1:0", timedelta(hours=2)), stated("soon", "node-1:1", timedelta(hours=1))]

    made = plan(snapshot(node(devices=2), queue("b", "2"), holding(), *jobs, job("head", "a")), policy=_CALM)

    assert [(one.waits_for, one.due, one.may_evict) for one in made.nominates] == [
        (("soon-0",), NOW + timedelta(hours=1), True)
    ]


def test_a_head_of_whom_the_queue_above_says_so_is_promised_room_too() -> None:
    below = queue("a1", "8", parent="a")

    made = plan(
        snapshot(node(devices=1), queue("b", "1"), holding(), below, *full("b", 1), job("x", "a1")), policy=_CALM
    )

    assert nominated(made) == ["x"]


def test_nobody_but_the_head_of_a_queue_is_promised_room_that_way() -> None:
    heads = [job("first", "a", waits=timedelta(hours=3)), job("second", "a", waits=timedelta(hours=2))]
    calm = queue("c", "8")

    made = plan(
        snapshot(node(devices=2), queue("b", "2"), holding(), calm, *full("b", 2), *heads, job("c1", "c")), policy=_CALM
    )

    assert nominated(made) == ["first"]


def test_a_head_that_has_not_waited_for_long_is_promised_nothing() -> None:
    young = job("head", "a", waits=timedelta(minutes=29))
    taken = snapshot(node(devices=1), queue("b", "1"), holding(), *full("b", 1), young)

    assert not plan(taken, policy=_CALM).nominates
    assert nominated(plan(taken, policy=_CALM, after=timedelta(minutes=1))) == ["head"]


def test_a_head_that_never_fits_is_promised_nothing() -> None:
    taken = snapshot(node(devices=2), queue("b", "2"), holding(), *full("b", 2), job("head", "a", "3"))

    assert not plan(taken, policy=_CALM).nominates


def test_a_head_that_waits_for_the_end_of_its_own_queue_elsewhere_is_promised_nothing() -> None:
    own = running(job("own", "a"), "node-2:0")
    other = running(job("b1", "b"), "node-1:0", started=timedelta(hours=9))
    limited = replace(holding(), terms=queue("a", "8", limit="1").terms)

    made = plan(snapshot(node(devices=1), node("node-2", 1), queue("b", "1"), limited, own, other,
                         job("head", "a", waits=timedelta(hours=5))), policy=_CALM)  # fmt: skip

    assert [one.waits_for for one in made.nominates] in ([], [("own-0",)])


def test_no_room_is_kept_when_the_steps_of_the_cycle_are_used_up() -> None:
    taken = snapshot(node(devices=1), queue("b", "1"), holding(), *full("b", 1), job("head", "a"))

    made = plan(taken, policy=replace(_CALM, step_budget=0))

    assert not made.nominates
    assert made.is_cut_off
    assert code_of(made, "head") is Code.BUDGET


_CALM = Policy(actions=("allocate",))


# Filling promised room


def waiting_room(*parts: Workload) -> Plan:
    """One device of two is free and promised to a pair of devices; who else comes may use it until then."""
    ending = releasing(job("ending", "b"), "node-1:0", due=timedelta(minutes=10))
    pair = job("pair", "a", "2")
    place = Place("pair-0", "node-1", shares(pair.pods[0].request.gpu, "node-1", "0,1"))
    due = NOW + timedelta(minutes=10)
    promise = Promise("pair", (place,), NOW, due, due + GRACE, waits_for=("ending-0",))
    return plan(snapshot(node(devices=2), queue("a", "2"), queue("b", "0"), ending, pair, promise, *parts))


@pytest.mark.parametrize(
    ("span", "starts"),
    [
        pytest.param(timedelta(minutes=10), True, id="until it is needed"),
        pytest.param(timedelta(minutes=10, seconds=1), False, id="a second longer"),
        pytest.param(None, False, id="nobody knows how long"),
    ],
)
def test_work_that_ends_before_a_promise_falls_due_may_run_in_its_room(span: timedelta | None, *, starts: bool) -> None:
    made = waiting_room(replace(job("short", "b"), max_run_time=span))

    assert [one.workload for one in made.binds] == (["short"] if starts else [])
    assert nominated(made) == ["pair"]


def test_no_more_than_the_free_part_of_promised_room_is_filled() -> None:
    made = waiting_room(replace(job("short", "b", "2"), max_run_time=timedelta(minutes=1)))

    assert not made.binds


def test_work_that_fills_the_room_of_a_promise_does_not_end_that_promise() -> None:
    made = waiting_room(
        replace(running(job("filler", "b"), "node-1:1", started=timedelta(0)), max_run_time=timedelta(minutes=9))
    )

    assert nominated(made) == ["pair"]


def test_a_promise_whose_room_somebody_holds_for_longer_is_planned_anew() -> None:
    made = waiting_room(
        replace(running(job("filler", "b"), "node-1:1", started=timedelta(0)), max_run_time=timedelta(minutes=11))
    )

    assert nominated(made) != ["pair"] or made.nominates[0].waits_for != ("ending-0",)


# Promises of gangs


def promised(workload: Workload, *devices: str, waits_for: str) -> Promise:
    """Room on node-1 for the last pods of a workload, one device each."""
    pods = workload.pods[-len(devices) :]
    places = tuple(
        Place(pod.id, "node-1", shares(pod.request.gpu, "node-1", of)) for pod, of in zip(pods, devices, strict=True)
    )
    return Promise(workload.id, places, NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=(waits_for,))


def test_of_a_promised_gang_that_may_start_in_part_those_start_whose_places_are_free() -> None:
    elastic = job("elastic", "a", pods=3, min_pods=1)
    ending = releasing(job("ending", "a"), "node-1:1")
    kept = promised(elastic, "0", "1", "2", waits_for="ending-0")

    made = plan(snapshot(node(devices=3), queue("a", "8"), ending, elastic, kept))

    assert bound(made) == {"elastic": ["gpu-0", "gpu-2"]}
    assert [place.pod for one in made.nominates for place in one.places] == ["elastic-1"]


def test_a_promised_gang_that_needs_all_its_pods_starts_whole_when_all_places_are_free() -> None:
    rigid = job("rigid", "a", pods=2)
    ending = releasing(job("ending", "a"), "node-1:1")
    taken = snapshot(node(devices=2), queue("a", "8"), ending, rigid, promised(rigid, "0", "1", waits_for="ending-0"))

    assert not plan(taken).binds
    gone = replace(taken, workloads=tuple(one for one in taken.workloads if one.id == "rigid"))
    assert bound(plan(gone)) == {"rigid": ["gpu-0", "gpu-1"]}


def test_a_gang_that_is_promised_a_part_is_promised_what_it_grows_by_in_the_same_promise() -> None:
    elastic = job("elastic", "a", pods=2, min_pods=1)
    ending = [releasing(job(f"ending{index}", "a"), f"node-1:{index}") for index in range(2)]

    made = plan(snapshot(node(devices=2), queue("a", "8"), *ending, elastic))

    assert [len(one.places) for one in made.nominates] == [2]
    assert made.nominates[0].waits_for == ("ending0-0", "ending1-0")


@pytest.mark.parametrize("kind", ["a pod is gone", "a device is missing", "a gang in part", "a place without devices"])
def test_a_promise_that_is_no_longer_for_what_waits_is_dropped(kind: str) -> None:
    pair = job("pair", "a", pods=2)
    ending = [releasing(job(f"ending{index}", "a"), f"node-1:{index}") for index in range(2)]
    kept = promised(pair, "0", "1", waits_for="ending0-0")
    if kind == "a pod is gone":
        kept = replace(kept, places=(kept.places[0], replace(kept.places[1], pod="other")))
    elif kind == "a device is missing":
        kept = replace(kept, places=(kept.places[0], replace(kept.places[1], shares=())))
    elif kind == "a gang in part":
        kept = replace(kept, places=kept.places[:1])
    else:
        pair = replace(pair, pods=tuple(replace(pod, request=replace(pod.request, gpu=None)) for pod in pair.pods))

    made = plan(snapshot(node(devices=2), queue("a", "8"), *ending, pair, kept))

    assert [one.places for one in made.nominates] != [kept.places]


def test_promised_room_without_devices_is_kept() -> None:
    light = job("light", "a", None, cpu="64")
    ending = releasing(job("ending", "a", None, cpu="64"), "node-1")
    kept = Promise("light", (Place("light-0", "node-1"),), NOW, NOW + GRACE, NOW + 2 * GRACE, ("ending-0",))

    made = plan(snapshot(node(), queue("a", "8"), ending, light, kept), after=timedelta(seconds=1))

    assert [(one.workload, one.due) for one in made.nominates] == [("light", NOW + GRACE)]


def test_who_is_promised_room_by_an_old_promise_evicts_nobody() -> None:
    ending = releasing(job("ending", "b"), "node-1:0")
    low = running(job("low", "a", priority=10), "node-1:1")
    urgent = job("urgent", "a", priority=100)

    made = plan(
        snapshot(
            node(devices=2), queue("a"), queue("b"), ending, low, urgent, promised(urgent, "0", waits_for="ending-0")
        )
    )

    assert not made.evicts


# Pools in turn


def pooled(*parts: Workload, first: int = 1, second: int = 2, gpu: str = "8") -> Plan:
    """Two pools; queue a has the same terms in both."""
    both = queue("a", gpu)
    both = replace(both, terms={DEFAULT_POOL: both.terms[DEFAULT_POOL], "spot": both.terms[DEFAULT_POOL]})
    return plan(snapshot(node(devices=first), node("node-2", second, pool="spot"), both, *parts))


def choosy(id: str, **more: int) -> Workload:
    return replace(job(id, "a", **more), fallback_pools=("spot",))  # type: ignore[arg-type]  # ints only


def test_who_finds_no_room_in_its_first_pool_starts_in_the_next() -> None:
    made = pooled(choosy("one"), choosy("two"), choosy("three"))

    assert sorted(one.place.node for one in made.binds) == ["node-1", "node-2", "node-2"]


def test_a_gang_is_never_in_two_pools() -> None:
    assert not pooled(choosy("gang", pods=3)).binds
    assert {one.place.node for one in pooled(choosy("gang", pods=2)).binds} == {"node-2"}


def test_who_runs_in_its_first_pool_grows_there_or_not_at_all() -> None:
    assert not pooled(running(choosy("gang", pods=2, min_pods=1), "node-1:0")).binds


def test_room_is_made_in_a_later_pool_where_none_can_be_made_in_the_first() -> None:
    fixed = running(job("fixed", "a", is_preemptible=False), "node-1:0")
    low = running(replace(job("low", "a", priority=10), pool="spot"), "node-2:0")

    made = pooled(fixed, low, choosy("urgent", priority=100), second=1)

    assert evicted(made) == ["low-0"]


def test_work_on_a_node_that_is_gone_stands_in_nobodys_way() -> None:
    lost = running(job("lost", "a"), "node-9:0")

    made = plan(snapshot(node(devices=1), queue("a", "8"), lost, job("new", "a")))

    assert bound(made) == {"new": ["gpu-0"]}


def test_stuck_pods_free_nothing() -> None:
    stuck = releasing(job("stuck", "a"), "node-1:0")
    stuck = replace(stuck, pods=(replace(stuck.pods[0], is_stuck=True),))

    made = plan(snapshot(node(devices=1), queue("a", "8"), stuck, job("new", "a")))

    assert not made.binds
    assert not made.nominates


def test_a_head_that_runs_in_part_does_not_wait_for_its_own_pods() -> None:
    own = running(job("head", "a", pods=2, min_pods=1), "node-1:0")

    made = plan(snapshot(node(devices=2), queue("b", "1"), holding(), *full("b", 1, first=1), own), policy=_CALM)

    assert [one.waits_for for one in made.nominates] == [("b1-0",)]


def test_a_head_of_unlike_pods_is_promised_room_for_those_that_find_it_first() -> None:
    head = job("head", "a", "4", pods=2, min_pods=1)
    head = replace(head, pods=(head.pods[0], replace(head.pods[1], request=job("x", gpu="2").pods[0].request)))
    others = [stated("soon", "node-1:0,1", timedelta(hours=1), gpu="2"), stated("late", "node-1:2", timedelta(hours=2))]

    made = plan(snapshot(node(devices=3), queue("b", "3"), holding(), *others, head), policy=_CALM)

    assert [[place.pod for place in one.places] for one in made.nominates] == [["head-1"]]
    assert [one.waits_for for one in made.nominates] == [("soon-0",)]


def test_who_has_backed_off_for_long_enough_starts() -> None:
    taken = snapshot(node(devices=1), queue("a", "1"), job("again", "a", not_before=NOW + timedelta(minutes=1)))

    assert not plan(taken).binds
    assert bound(plan(taken, after=timedelta(minutes=1))) == {"again": ["gpu-0"]}


def test_of_those_alike_who_had_to_wait_before_evicting_all_are_told_alike_that_it_does_not_help() -> None:
    late = [replace(job(f"late{n}", "a"), preemption_delay=timedelta(minutes=1)) for n in range(3)]

    low = running(job("low", "a", "0.5", priority=10), "node-1:0")
    fixed = running(job("fixed", "a", "0.5", is_preemptible=False), "node-1:0")

    made = plan(snapshot(node(devices=1), queue("a", "1"), low, fixed, *late))

    assert not made.evicts
    assert {one.reason.code for one in made.waits} == {Code.NO_FREE_DEVICE}


def test_who_meets_with_the_protection_of_a_minimum_run_time_is_told_of_it_and_all_alike_wait() -> None:
    own = replace(queue("a", "8"), preempt_min_runtime=timedelta(hours=1))
    urgent = [job(f"urgent{n}", "a", priority=100) for n in range(2)]

    made = plan(snapshot(node(devices=1), own, *full("a", 1), *urgent))

    assert not made.evicts
    assert code_of(made, "urgent0") is Code.PROTECTED_MIN_RUNTIME
