"""The laws about reasons, suggestions and sameness can fail, too: what is false is found out."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import change, explain
from aliquot.core.model import Place, PodState, Policy, Snapshot
from aliquot.core.plan import Bind, Blocker, Code, Evict, Plan, Reason, Rule, Wait
from tests.builders import NOW, job, node, queue, releasing, running, snapshot
from tests.laws import judge, reason_laws, rest, sameness, search, shrink, suggestion_laws
from tests.laws.case import Case, LawBroken
from tests.laws.judge import Law
from tests.laws.worlds import World


def world(parts: Snapshot) -> World:
    return World(0, frozenset(), parts, Policy(), NOW)


def waits(code: Code, *blockers: Blocker, id: str = "one") -> Plan:
    return Plan(waits=(Wait(id, Reason(code, "by hand", blockers=blockers), 1),))


def is_broken(law: Law, parts: Snapshot, plan: Plan) -> bool:
    try:
        law(Case(world(parts), plan))
    except LawBroken:
        return True
    return False


FREE = snapshot(node("node-1", 1), queue(), job("one"))
"""It could start."""
HELD = snapshot(node("node-1", 1), queue(), running(job("old"), "node-1:0"), job("one"))
"""Another has the device."""
TRUE_OF_HELD = {Code.NO_FREE_DEVICE, Code.NO_DEVICE_FITS, Code.FRAGMENTED, Code.SHARING_MODE, Code.OVER_FAIR_SHARE}
"""Codes that may be said of it: the finer differences are not judged."""


@pytest.mark.parametrize("code", sorted(Code))
def test_no_reason_is_true_of_who_could_start(code: Code) -> None:
    assert is_broken(reason_laws.every_reason_is_true, FREE, waits(code))


@pytest.mark.parametrize("code", sorted(Code))
def test_only_what_is_the_case_is_true_of_who_cannot(code: Code) -> None:
    assert is_broken(reason_laws.every_reason_is_true, HELD, waits(code)) == (code not in TRUE_OF_HELD)


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        (Code.WAITING_FOR_RELEASE, snapshot(node("node-1", 1), queue(), releasing(job("old"), "node-1:0"), job("one"))),
        (Code.QUEUE_LIMIT, snapshot(node(), queue(limit="0.5"), job("one"))),
        (Code.NON_PREEMPTIBLE_OVER_QUOTA, snapshot(node(), queue(), job("one", is_preemptible=False))),
        (Code.LARGER_THAN_ANY_NODE, snapshot(node("node-1", 1), queue(), job("one", gpu="2"))),
        (Code.LARGER_THAN_POOL, snapshot(node("node-1", 1), queue(), job("one", pods=2))),
        (Code.NODE_UNAVAILABLE, snapshot(node(is_cordoned=True), queue(), job("one"))),
        (Code.NO_SUCH_QUEUE, snapshot(node(), queue("other"), job("one"))),
        (Code.BACKING_OFF, snapshot(node(), queue(), job("one", not_before=NOW + timedelta(minutes=1)))),
        (Code.QUEUE_HELD, snapshot(node(), replace(queue(), is_held=True), job("one"))),
        (Code.POOL_EMPTY, snapshot(node(pool="other"), queue(), job("one"))),
        (Code.NO_FREE_CPU, snapshot(node(cpu="1"), queue(), job("one", cpu="2"))),
    ],
)
def test_a_reason_that_is_the_case_is_true(code: Code, parts: Snapshot) -> None:
    assert not is_broken(reason_laws.every_reason_is_true, parts, waits(code))


@pytest.mark.parametrize(("limit", "is_lie"), [("2", True), ("1", False)])
def test_room_in_a_later_pool_counts_where_the_queue_may_have_it(limit: str, is_lie: bool) -> None:  # noqa: FBT001
    pair = replace(job("one", pods=2), fallback_pools=("far",))
    held = running(job("old", gpu="2"), "node-1:0,1")
    far = queue(limit=limit, pool="far")
    there = replace(far, terms={**far.terms, **queue().terms})

    plan = waits(Code.NO_FREE_DEVICE)

    assert (
        is_broken(
            reason_laws.every_reason_is_true,
            snapshot(node("node-1", 2), node("node-2", 2, pool="far"), there, held, pair),
            plan,
        )
        == is_lie
    )


def test_a_blocker_who_is_not_there_is_found() -> None:
    plan = waits(Code.NO_FREE_DEVICE, Blocker("nobody", "nobody holds it"))

    assert is_broken(reason_laws.every_reason_is_true, HELD, plan)


# Suggestions.


def told(suggestion: explain.Suggestion | None, *, because: str | None = None) -> explain.Explanation:
    plan = sameness.plan_of(world(HELD))
    return explain.Explanation(plan.waits[0].reason, 1, suggestion, because)


def judge_told(explanation: explain.Explanation) -> None:
    case = judge.case_of(world(HELD))
    suggestion_laws.judge_told(case, "one", explanation)


def test_a_suggestion_that_does_not_start_it_is_found() -> None:
    idle = explain.Suggestion(change.SetPriority("one", 1), "lower it", "owner", "starts")

    with pytest.raises(LawBroken, match="does not start"):
        judge_told(told(idle))


def test_a_suggestion_that_hides_whom_it_evicts_is_found() -> None:
    hiding = explain.Suggestion(change.SetPriority("one", 900), "raise it", "owner", "starts")

    with pytest.raises(LawBroken, match="would evict"):
        judge_told(told(hiding))


def test_a_suggestion_that_is_kept_back_is_found() -> None:
    with pytest.raises(LawBroken, match="starts it"):
        judge_told(told(None, because="nothing helps"))


def test_silence_is_found() -> None:
    with pytest.raises(LawBroken, match="nothing said instead"):
        judge_told(told(None))


def test_another_reason_than_that_of_the_plan_is_found() -> None:
    with pytest.raises(LawBroken, match="explain says"):
        judge_told(replace(told(None), reason=Reason(Code.BUDGET, "by hand")))


# Sameness.


@pytest.mark.parametrize("law", [sameness.order_does_not_matter, sameness.a_kept_world_is_like_a_fresh_one])
def test_a_plan_that_is_not_that_of_the_engine_is_found(law: Law) -> None:
    assert is_broken(law, FREE, Plan())
    assert not is_broken(law, FREE, sameness.plan_of(world(FREE)))


def test_what_is_left_lying_is_found() -> None:
    assert is_broken(sameness.nothing_that_fits_waits, FREE, waits(Code.FRAGMENTED))


def test_a_budget_that_is_said_to_have_ended_and_has_not_is_found() -> None:
    assert is_broken(sameness.a_cut_off_cycle_says_so, FREE, waits(Code.BUDGET))
    early = replace(waits(Code.BUDGET), is_cut_off=True, steps=1, step_budget=9)
    assert is_broken(sameness.a_cut_off_cycle_says_so, FREE, early)


def test_a_cut_off_cycle_that_says_nothing_is_found() -> None:
    """The plan is said to have had steps, and to have done more than the engine does with fewer."""
    more = replace(sameness.plan_of(world(FREE)), evicts=(Evict("one", "one-0", "", Rule.DRAIN, "by hand"),), steps=5)

    assert is_broken(sameness.a_cut_off_cycle_says_so, FREE, more)


def test_a_difference_names_the_part() -> None:
    plan = sameness.plan_of(world(FREE))

    assert sameness.difference(plan, plan) == ""
    assert sameness.difference(plan, replace(plan, binds=())).startswith("binds")
    assert sameness.difference(plan, replace(plan, steps=99)).startswith("steps")


def test_a_shuffled_snapshot_is_in_another_order_and_has_the_same_parts() -> None:
    parts = snapshot(*(node(f"node-{index}") for index in range(6)), queue(), *(job(f"j{at}") for at in range(6)))

    other = sameness.shuffled(parts, random.Random(1))

    assert other != parts
    assert set(other.workloads) == set(parts.workloads)


# Rest, shrinking, and the long search.


def test_a_cluster_that_does_the_same_over_and_over_is_found() -> None:
    """Its pod is started and ended for ever."""

    def planner(one: World) -> Plan:
        pod = one.snapshot.workloads[0].pods[0]
        if pod.state is PodState.PENDING:
            return Plan(binds=(Bind("one", Place(pod.id, "node-1")),))
        return Plan(evicts=(Evict("one", pod.id, "", Rule.DRAIN, "by hand"),) if pod.state is PodState.RUNNING else ())

    with pytest.raises(LawBroken, match="it-comes-to-rest"):
        rest.judge_run(world(FREE), (), planner=planner)


def test_a_cluster_that_is_at_rest_is_left_early() -> None:
    verdict = rest.judge_run(world(FREE))

    assert verdict.judged["runs"] == 1
    assert verdict.judged["cycles to rest"] < 5


def test_a_world_is_shrunk_to_what_breaks_the_law() -> None:
    def judged(one: World) -> None:
        if any(pod.state is PodState.PENDING for of in one.snapshot.workloads for pod in of.pods):
            raise LawBroken("somebody-waits", "by hand")

    large = search.world_of("cycles", 4)
    small = shrink.shrink(large, shrink.breaks(judged))

    assert len(small.snapshot.workloads) == 1
    assert small.snapshot.nodes == ()


def test_what_is_written_down_can_be_read_again() -> None:
    text = shrink.written(search.world_of("cycles", 4).snapshot)
    names = shrink.names_to_read()

    assert eval(text, names) == search.world_of("cycles", 4).snapshot  # noqa: S307 - what this test has just written


def test_a_search_goes_on_where_it_was() -> None:
    progress = search.Progress()

    search.search("cycles", range(2), progress, save=lambda: None)
    search.search("cycles", range(3), progress, save=lambda: None)

    assert progress.done["cycles"] == 3
    assert progress.judged["cycles"] + len(progress.broken) >= 3
