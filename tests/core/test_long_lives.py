"""A world that is kept for long, and over changes of all kinds, plans like one that is made anew, and forgets."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from aliquot.core import schedule
from aliquot.core.model import Budget, Policy, Snapshot, Workload
from aliquot.core.snapshot import World
from tests.builders import NOW, job, node, queue, releasing, running, snapshot

START = snapshot(
    node(devices=2),
    queue("a", "1"),
    queue("b", "1"),
    running(job("old", "a"), "node-1:0"),
    releasing(job("ending", "a"), "node-1:1"),
    job("new", "b"),
)


def without(taken: Snapshot, *ids: str) -> Snapshot:
    return replace(taken, workloads=tuple(one for one in taken.workloads if one.id not in ids))


def with_one(taken: Snapshot, workload: Workload) -> Snapshot:
    return replace(without(taken, workload.id), workloads=(*without(taken, workload.id).workloads, workload))


def stuck(workload: Workload) -> Workload:
    return replace(workload, pods=tuple(replace(pod, is_stuck=True) for pod in workload.pods))


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(without(START, "ending"), id="what was ending is gone"),
        pytest.param(with_one(START, stuck(START.workloads[1])), id="what was ending is stuck"),
        pytest.param(without(with_one(START, stuck(START.workloads[1])), "old"), id="and another is gone"),
        pytest.param(replace(START, nodes=(*START.nodes, node("node-2", 1))), id="a node has come"),
        pytest.param(replace(START, queues=(*START.queues, queue("c", "8"))), id="a queue has come"),
        pytest.param(with_one(START, job("far", "a", pool="far")), id="somebody waits for a pool that is not there"),
        pytest.param(replace(START, budgets=(Budget("x", frozenset({"old-0"}), 0),)), id="a budget has come"),
    ],
)
def test_a_kept_world_plans_like_a_new_one(after: Snapshot) -> None:
    kept = World(START)

    for taken in (after, START, after):
        kept.sync(taken)

        assert schedule.schedule(kept, Policy(), NOW) == schedule.schedule(taken, Policy(), NOW)


def alternating(ready: Snapshot, big: Workload, times: int) -> Iterator[Snapshot]:
    for index in range(times):
        yield with_one(ready, replace(big, priority=50 + index % 2))


def test_a_kept_world_through_which_many_pods_went_still_plans_like_a_new_one() -> None:
    crowd = running(job("crowd", "a", None, pods=2_500, cpu="1m"), *["node-2"] * 2_500)
    ready = replace(START, nodes=(*START.nodes, node("node-2", 0, max_pods=10_000)))
    kept = World(ready)
    log = kept.pools["default"].touched

    for taken in alternating(ready, crowd, 6):
        kept.sync(taken)

    assert schedule.schedule(kept, Policy(), NOW) == schedule.schedule(taken, Policy(), NOW)
    assert len(log) < 25_000


def test_a_kept_world_does_not_remember_every_request_for_ever() -> None:
    requests = [job(gpu=None, cpu="1").pods[0].request for _ in range(10_100)]
    many = job("many", "a", None, pods=len(requests))
    many = replace(
        many, pods=tuple(replace(pod, request=one) for pod, one in zip(many.pods, requests, strict=True))
    )  # fmt: skip
    kept = World(START)
    first, second = kept.kind_of(requests[0]), kept.kind_of(requests[-1])

    kept.sync(with_one(START, many))
    kept.sync(START)

    assert first == second == kept.kind_of(requests[0])
    assert schedule.schedule(kept, Policy(), NOW) == schedule.schedule(START, Policy(), NOW)


def test_a_kept_world_does_not_tell_all_who_ever_waited_from_each_other_for_ever() -> None:
    kept = World(START)
    new = START.workloads[2]
    for priority in range(10_100):
        kept.make_ask(replace(new, priority=priority), "default", new.pods, is_core=True)

    kept.sync(without(START, "old"))

    assert schedule.schedule(kept, Policy(), NOW) == schedule.schedule(without(START, "old"), Policy(), NOW)


def test_a_world_of_which_nothing_changes_plans_the_same_again() -> None:
    busy = with_one(START, job("more", "b", gpu="2"))
    kept = World(busy)

    plans = [schedule.schedule(kept, Policy(), NOW) for _ in range(3)]

    assert plans[0] == plans[1] == plans[2]
