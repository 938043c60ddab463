"""What random days found: victims that the result did not need, pods that were promised a place and lost one."""

from aliquot.core import schedule as scheduler
from aliquot.core.model import Policy
from tests.builders import NOW, job, node, queue, running, snapshot


def test_of_an_elastic_gang_only_the_pods_in_the_way_are_evicted() -> None:
    elastic = running(job("elastic", pods=4, min_pods=1), "node-1:0", "node-2:0", "node-2:1", "node-1:1")
    taker = job("taker", "team-b", gpu="2")
    world = snapshot(node("node-1", 2), node("node-2", 2), queue("team-a", "0"), queue("team-b", "4"), elastic, taker)

    plan = scheduler.schedule(world, Policy(), NOW)

    # On node-1 the core would have to go, which is all of it; on node-2 two pods above the minimum do.
    assert {one.pod for one in plan.evicts} == {"elastic-1", "elastic-2"}


def test_a_pod_that_has_to_go_is_promised_a_place_where_there_is_one() -> None:
    half = running(job("half", gpu="0.5", pods=2, min_pods=1), "node-1:0")
    keeper = running(job("keeper", "team-c", gpu="0.5", is_preemptible=False), "node-1:1")
    queues = (queue("team-a", "0", limit="0.5"), queue("team-b", "1"), queue("team-c", "1"))
    world = snapshot(node("node-1", 2), *queues, half, keeper, job("owner", "team-b"))

    plan = scheduler.schedule(world, Policy(), NOW)

    assert [one.pod for one in plan.evicts] == ["half-0"]
    assert {one.workload: one.places[0].shares[0].device for one in plan.nominates} == {
        "owner": "node-1-gpu-0",
        "half": "node-1-gpu-1",
    }
