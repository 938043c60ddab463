"""Who ends for nobody, and for whose end a head of a queue waits."""

from dataclasses import replace
from datetime import timedelta

from aliquot.core.model import Affinity, Place, Promise
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
