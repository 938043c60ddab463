"""Explanations where many wait: fewer amounts and fewer others are tried, and what is suggested works all the same."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import change, explain, schedule
from aliquot.core.explain import Explanation
from aliquot.core.model import Policy, QueueOrder, Snapshot, Taint, Workload
from aliquot.core.plan import Code
from tests.builders import NOW, Part, claim, job, node, queue, running, snapshot

POLICY = Policy()
CROWD = 8


def explained(world: Snapshot) -> Explanation:
    """Of the workload `job`, as where many wait."""
    return explain.explain(world, "job", policy=POLICY, now=NOW, most_whole=0)


def crowd(*parts: Part, ahead: int = 0, behind: int = CROWD, **asked: str) -> Snapshot:
    """The parts, and others of the same project that wait before and after `job`."""
    others = [job(f"x{index}", waits=timedelta(hours=2 + index), **asked) for index in range(ahead)]  # type: ignore[arg-type]  # texts only
    others += [job(f"y{index}", waits=timedelta(minutes=30)) for index in range(behind)]
    return snapshot(*parts, *others)


def full(count: int = 8, **more: bool) -> Workload:
    places = ",".join(str(index) for index in range(count))
    return running(job("holder", gpu=str(count), **more), f"node-1:{places}")  # type: ignore[arg-type]  # passed on


TEAM = queue("team-a", "8")

WORLDS = [
    pytest.param(
        crowd(node(devices=4), TEAM, full(2, is_preemptible=False), job(gpu="3")),
        "ask for 2 GPU instead of 3",
        id="fewer devices",
    ),
    pytest.param(
        crowd(node(devices=1), TEAM, running(job("holder", gpu="0.7"), "node-1:0"), job(gpu="0.5")),
        "ask for 0.3 GPU instead of 0.5",
        id="a smaller share",
    ),
    pytest.param(
        crowd(node(devices=1), TEAM, running(job("holder", gpu="60Gi"), "node-1:0"), job(gpu="50Gi")),
        "ask for 20Gi GPU instead of 50Gi",
        id="less memory of a device",
    ),
    pytest.param(
        crowd(node(devices=2, cpu="8"), TEAM, running(job("holder", cpu="6"), "node-1:0"), job(cpu="4")),
        "ask for 2 CPU instead of 4",
        id="less CPU",
    ),
    pytest.param(
        crowd(node(devices=2, memory="8Gi"), TEAM, running(job("holder", memory="6Gi"), "node-1:0"), job(memory="4Gi")),
        "ask for 2Gi of memory instead of 4Gi",
        id="less memory",
    ),
    pytest.param(
        crowd(node(), queue(limit="3"), full(2), job(gpu="2")),
        "ask for 1 GPU instead of 2",
        id="what is left of a limit",
    ),
    pytest.param(
        crowd(node(), queue(limit="2"), full(2), job()),
        "raise the GPU limit of project team-a from 2 to 3",
        id="a higher limit",
    ),
    pytest.param(
        crowd(node(), queue(limit="2"), full(2), job(), ahead=3),
        "raise the GPU limit of project team-a from 2 to 6",
        id="a limit that is high enough for those before it too",
    ),
    pytest.param(
        crowd(node(), queue(gpu="0", limit="4"), full(2), job(priority=1000, is_preemptible=False)),
        "make it preemptible: it may then be evicted for others",
        id="being evictable",
    ),
    pytest.param(
        crowd(replace(node(), taints=(Taint("team", "red"),)), TEAM, job()),
        "tolerate the taint team=red:NoSchedule",
        id="a toleration",
    ),
    pytest.param(
        crowd(node(), replace(TEAM, is_held=True), job()),
        "release team-a",
        id="a release of the project, which lets all of it start",
    ),
    pytest.param(
        crowd(node(is_cordoned=True), TEAM, job()),
        "take the cordon from node-1",
        id="an end of a cordon",
    ),
    pytest.param(
        crowd(node(), TEAM, full(8, is_preemptible=False), job(priority=1000)),
        "stop holder (of the same project)",
        id="the end of another",
    ),
    pytest.param(
        crowd(
            node(devices=3),
            queue("team-a", limit="2", memory=claim("64Gi", limit="64Gi", is_memory=True)),
            running(job("holder", memory="60Gi"), "node-1:0"),
            job(memory="8Gi"),
        ),
        "ask for 4Gi of memory instead of 8Gi",
        id="what is left of a limit on memory",
    ),
]


@pytest.mark.parametrize(("world", "said"), WORLDS)
def test_what_is_suggested_in_a_crowd_starts_the_workload(world: Snapshot, said: str) -> None:
    found = explained(world).suggestion

    assert found is not None
    assert found.description == said
    made = schedule.schedule(change.overlay(world, [found.change]), POLICY, NOW)
    assert "job" in {one.workload for one in made.binds} | {one.workload for one in made.nominates}


def test_in_a_crowd_it_is_said_where_nothing_helps() -> None:
    world = crowd(node(), queue("team-a", "0", limit="0"), full(), job(gpu="9"), ahead=3)

    found = explained(world)

    assert found.suggestion is None
    assert found.no_suggestion_because is not None


@pytest.mark.parametrize("order", list(QueueOrder))
def test_in_a_crowd_a_smaller_request_helps_in_whatever_order_a_queue_serves(order: QueueOrder) -> None:
    world = crowd(node(devices=3), replace(TEAM, order=order), full(2), job(gpu="2"))

    found = explained(world).suggestion

    assert found is not None
    assert found.description == "ask for 1 GPU instead of 2"


def test_in_a_crowd_who_comes_first_is_reckoned_with_when_a_limit_is_to_be_raised() -> None:
    before = [job(f"z{index}", gpu="2", priority=1000, is_preemptible=False) for index in range(2)]
    last = job(gpu="2", priority=1000, is_preemptible=False, waits=timedelta(minutes=1))
    world = crowd(node(), queue(limit="1", gpu="8"), *before, last)

    found = explained(world)

    assert found.reason is not None
    assert found.reason.code is Code.QUEUE_LIMIT
    assert found.suggestion is not None
    assert found.suggestion.description in (
        "ask for 1 GPU instead of 2",
        "raise the GPU limit of project team-a from 1 to 6",
    )


def test_in_a_crowd_few_who_hold_unlike_amounts_are_tried_as_the_one_to_be_stopped() -> None:
    holders = [
        running(job(f"h{index}", "team-b", is_preemptible=False), f"node-1:{index}") for index in range(8)
    ]  # fmt: skip
    world = crowd(node(), TEAM, queue("team-b", "0"), *holders, job(priority=1000))

    found = explained(world).suggestion

    assert found is not None
    assert found.description == "stop h0 (of project team-b)"
    assert found.who_can == "administrator"
