"""Who ends for nobody, and for whose end a head of a queue waits."""

from dataclasses import replace
from datetime import timedelta

from aliquot.core.model import Affinity, Node, Place, Promise, Spread
from aliquot.core.plan import Code, Rule
from tests.builders import NOW, asking, job, mib, node, queue, releasing, running, shares, snapshot
from tests.core.outcomes import GRACE, code_of, evicted, nominated, plan


def test_a_gang_below_its_minimum_ends_whole_when_its_grace_is_over() -> None:
    gang = running(job("gang", pods=3, gpu="3"), "node-1:0,1,2", "node-1:3,4,5")
    stale = replace(gang, stale_for=timedelta(minutes=3), stale_grace=timedelta(minutes=2))

    made = plan(snapshot(node(), queue(), stale))

    assert evicted(made) == ["gang-0", "gang-1"]
    assert {one.rule for one in made.evicts} == {Rule.STALE_GANG}


def test_a_gang_that_is_promised_what_it_lacks_does_not_end_as_stale() -> None:
    gang = running(job("gang", pods=3, gpu="3"), "node-1:0,1,2", "node-1:3,4,5")
    stale = replace(gang, stale_for=timedelta(minutes=3), stale_grace=timedelta(minutes=2))
    ending = releasing(job("ending", gpu="1"), "node-2:0")
    place = Place("gang-2", "node-2", shares(gang.pods[2].request.gpu, "node-2", "0,1,2"))
    promise = Promise("gang", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("ending-0",))

    made = plan(snapshot(node(), node("node-2", devices=3), queue(), ending, stale, promise))

    assert not made.evicts
    assert nominated(made) == ["gang"]


def test_a_head_waits_for_the_end_of_all_pods_of_a_workload() -> None:
    elastic = replace(
        running(job("elastic", pods=2, min_pods=1), "node-1:0", "node-1:1"),
        is_preemptible=False,
        is_semi_preemptible=True,
    )
    fixed = running(job("fixed", is_preemptible=False), "node-1:2")
    head = replace(job("head", is_preemptible=False), created=NOW - timedelta(hours=9))
    holding = replace(queue(gpu="2"), hold_after=timedelta(0))

    made = plan(snapshot(node(devices=3), holding, elastic, fixed, head))

    assert [one.waits_for for one in made.nominates] == [("elastic-0", "elastic-1")]


def test_who_asks_for_guaranteed_amounts_takes_before_who_would_have_to_give_back() -> None:
    half = str(mib("32Gi")) + "Mi"
    lent = queue("lender", "1")
    first = job("cpu-only", "lender", None, memory=half, waits=timedelta(hours=2))
    second = job("with-gpu", "lender", "1", memory=half)
    others = [running(job(f"other{n}", "borrower", gpu, memory=half), place) for n, gpu, place in _OTHERS]

    made = plan(snapshot(node(devices=1, memory="64Gi"), lent, queue("borrower"), first, second, *others))

    assert [(one.workload, one.beneficiary) for one in made.evicts] == [("other1", "with-gpu")]
    assert code_of(made, "cpu-only") is Code.OVER_FAIR_SHARE


_OTHERS = ((0, None, "node-1"), (1, "1", "node-1:0"))


def test_who_is_drawn_to_a_kept_promise_starts_beside_it_in_the_same_cycle() -> None:
    near = asking(job("near", waits=timedelta(hours=9)), affinity=(Affinity((("app", "a"),), "host"),))
    pair = asking(job("pair", pods=2), labels=(("app", "a"),))
    places = tuple(
        Place(pod.id, "node-1", shares(pod.request.gpu, "node-1", str(n))) for n, pod in enumerate(pair.pods)
    )
    promise = Promise("pair", places, NOW, NOW + GRACE, NOW + 2 * GRACE)
    host = replace(node(), labels={"host": "node-1"})

    made = plan(snapshot(host, queue(), near, pair, promise))

    assert sorted(one.workload for one in made.binds) == ["near", "pair", "pair"]


def _host(id: str, devices: int) -> Node:
    return replace(node(id, devices), labels={"host": id})


NEAR_A = (Affinity((("app", "a"),), "host"),)


def test_nobody_is_evicted_so_that_another_of_its_group_is_the_first_and_may_go_anywhere() -> None:
    there = asking(running(job("there", gpu=None, cpu="1", priority=10), "node-1"), labels=(("app", "a"),))
    drawn = asking(job("drawn", priority=100), labels=(("app", "a"),), affinity=NEAR_A)

    made = plan(snapshot(_host("node-1", 0), _host("node-2", 1), queue(), there, drawn))

    assert evicted(made) == []
    assert code_of(made, "drawn") is Code.AFFINITY


def test_who_is_promised_room_beside_one_who_starts_later_in_the_cycle_starts_with_it() -> None:
    first = asking(job("first", gpu="1", priority=100), affinity=NEAR_A)
    other = asking(job("other", gpu="1"), labels=(("app", "a"),))
    promises = tuple(
        Promise(one.id, (Place(f"{one.id}-0", "node-1", shares(one.pods[0].request.gpu, "node-1", str(at))),), NOW,
                NOW + GRACE, NOW + 2 * GRACE)
        for at, one in enumerate((other, first))
    )  # fmt: skip

    made = plan(snapshot(_host("node-1", 2), queue(), first, other, *promises))

    assert sorted(one.workload for one in made.binds) == ["first", "other"]


def test_a_promise_is_dropped_when_those_who_start_keep_its_workload_away() -> None:
    even = asking(job("even", gpu="1"), spread=(Spread((("app", "a"),), "host"),))
    place = Place("even-0", "node-1", shares(even.pods[0].request.gpu, "node-1", "0"))
    promise = Promise("even", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE)
    crowd = asking(job("crowd", gpu=None, pods=2, cpu="1", priority=100), labels=(("app", "a"),))
    crowd = replace(
        crowd, pods=tuple(replace(pod, request=replace(pod.request, nodes=("node-1",))) for pod in crowd.pods)
    )

    made = plan(snapshot(_host("node-1", 1), _host("node-2", 0), queue(), crowd, even, promise))

    assert nominated(made) == []
    assert code_of(made, "even") is Code.AFFINITY


def test_of_a_promised_gang_a_part_starts_where_it_fits_while_another_waits() -> None:
    crew = job("crew", gpu="0.5", pods=2, min_pods=1)
    drawn = replace(crew.pods[1], request=replace(crew.pods[1].request, gpu=None, affinity=NEAR_A))
    crew = replace(crew, pods=(crew.pods[0], drawn))
    promise = Promise("crew", (Place("crew-1", "node-1", ()),), NOW, NOW + GRACE, NOW + 2 * GRACE)
    ending = asking(releasing(job("ending", gpu="1"), "node-1:0"), labels=(("app", "a"),))

    made = plan(snapshot(_host("node-1", 2), queue(), ending, crew, promise))

    assert [one.place.pod for one in made.binds] == ["crew-0"]


def test_a_promise_beside_others_is_kept_while_its_room_is_being_freed() -> None:
    there = asking(running(job("there", gpu=None, cpu="1"), "node-1"), labels=(("app", "a"),))
    drawn = asking(job("drawn", gpu="1"), affinity=NEAR_A)
    place = Place("drawn-0", "node-1", shares(drawn.pods[0].request.gpu, "node-1", "0"))
    promise = Promise("drawn", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("ending-0",))
    ending = releasing(job("ending", gpu="1"), "node-1:0")
    early = job("early", gpu=None, cpu="1")

    made = plan(snapshot(_host("node-1", 1), queue(), there, ending, drawn, early, promise))

    assert [one.workload for one in made.nominates] == ["drawn"]
