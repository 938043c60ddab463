"""What the scheduler sees of what is stored."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import lifecycle
from aliquot.core.lifecycle import Phase
from aliquot.core.model import Place, PodState, Share
from aliquot.service import demand, records
from aliquot.wire import workloads as shapes
from tests import builders

SHARES = (Share("gpu-0", 500, 40),)
ROW = records.WorkloadRow(
    id="w",
    name="job",
    project="team",
    definition=shapes.Definition(command=["true"], replicas=2),
    request=builders.request("0.5"),
    priority=25,
    is_preemptible=True,
    grace=timedelta(seconds=30),
    back_off=timedelta(seconds=10),
    actor="ann",
    created=builders.NOW - timedelta(hours=2),
    waiting_since=builders.NOW - timedelta(hours=1),
)


def pod(index: int, phase: shapes.PodPhase, *, attempt: int = 1, code: int | None = None) -> records.PodRow:
    return records.PodRow(
        id=demand.pod_id("w", attempt, index),
        workload="w",
        index=index,
        attempt=attempt,
        node="node-1",
        bound=builders.NOW,
        shares=SHARES,
        phase=phase,
        ending_since=builders.NOW if phase is shapes.PodPhase.ENDING else None,
        exit_code=code,
    )


def test_one_that_waits_asks_for_all_its_replicas_under_ids_of_the_next_attempt() -> None:
    row = replace(ROW, attempt=1)

    seen = demand.demand(row, [pod(0, shapes.PodPhase.ENDED, code=0), pod(1, shapes.PodPhase.ENDED, code=1)])

    assert [(one.id, one.index, one.state, one.request) for one in seen.pods] == [
        ("w-2-0", 0, PodState.PENDING, ROW.request),
        ("w-2-1", 1, PodState.PENDING, ROW.request),
    ]
    assert (seen.min_pods, seen.queue, seen.created) == (2, "team", ROW.waiting_since)


def test_what_is_bound_or_runs_holds_its_place() -> None:
    row = replace(ROW, phase=Phase.STARTING, attempt=1)

    seen = demand.demand(row, [pod(1, shapes.PodPhase.BOUND), pod(0, shapes.PodPhase.RUNNING)])

    assert [(one.index, one.state, one.node, one.shares) for one in seen.pods] == [
        (0, PodState.RUNNING, "node-1", SHARES),
        (1, PodState.RUNNING, "node-1", SHARES),
    ]


def test_a_replica_that_ended_well_is_not_missed() -> None:
    row = replace(ROW, phase=Phase.RUNNING, attempt=1)

    seen = demand.demand(row, [pod(0, shapes.PodPhase.RUNNING), pod(1, shapes.PodPhase.ENDED, code=0)])

    assert [one.state for one in seen.pods] == [PodState.RUNNING, PodState.SUCCEEDED]
    assert (seen.min_pods, seen.pods[1].shares) == (1, ())


@pytest.mark.parametrize("phase", sorted(lifecycle.ENDING))
def test_one_that_is_ended_only_gives_back_and_asks_for_nothing(phase: Phase) -> None:
    row = replace(ROW, phase=phase, attempt=1)

    seen = demand.demand(row, [pod(0, shapes.PodPhase.ENDING), pod(1, shapes.PodPhase.RUNNING)])

    assert [(one.state, one.release_due) for one in seen.pods] == [
        (PodState.RELEASING, builders.NOW + ROW.grace),
        (PodState.RELEASING, None),
    ]


def test_a_replica_of_an_evicted_one_that_has_ended_waits_for_the_others_to_end() -> None:
    row = replace(ROW, phase=Phase.EVICTING, attempt=1)

    seen = demand.demand(row, [pod(0, shapes.PodPhase.ENDED, code=0), pod(1, shapes.PodPhase.ENDING)])

    assert [one.state for one in seen.pods] == [PodState.PENDING, PodState.RELEASING]
    assert seen.min_pods == 2


@pytest.mark.parametrize(
    ("phase", "pods"),
    [
        (Phase.EVICTING, ["w-3-0", "w-3-1"]),
        (Phase.PENDING, ["w-4-0", "w-4-1"]),
        *[(phase, None) for phase in (Phase.SUSPENDING, Phase.STOPPING, Phase.FAILING, Phase.SUSPENDED)],
    ],
)
def test_a_promise_is_for_the_pods_that_end_and_then_for_the_next_attempt(phase: Phase, pods: list[str] | None) -> None:
    row = replace(ROW, phase=phase, attempt=3)
    places = tuple(Place(f"w-3-{index}", "node-1", SHARES) for index in range(2))
    promise = records.PromiseRow("w", places, builders.NOW, builders.NOW, builders.NOW, waits_for=("w-3-0",))
    of_nobody = replace(promise, id="gone")

    held = demand.promises([of_nobody, promise], [row])

    assert [[place.pod for place in one.places] for one in held] == ([] if pods is None else [pods])
    assert all(one.waits_for == ("w-3-0",) for one in held)


def test_pods_of_earlier_attempts_are_not_seen() -> None:
    row = replace(ROW, phase=Phase.RUNNING, attempt=2)

    seen = demand.demand(row, [pod(0, shapes.PodPhase.ENDED, code=1), pod(0, shapes.PodPhase.RUNNING, attempt=2)])

    assert [one.id for one in seen.pods] == ["w-2-0"]


def test_the_time_that_is_left_is_what_earlier_attempts_did_not_use() -> None:
    row = replace(ROW, max_run_time=timedelta(hours=2), ran=timedelta(minutes=90))

    assert demand.demand(row, ()).max_run_time == timedelta(minutes=30)
    assert demand.demand(replace(row, ran=timedelta(hours=3)), ()).max_run_time == timedelta(0)


def test_what_has_not_changed_is_seen_as_the_same_object() -> None:
    waiting = replace(ROW, id="v")
    running = replace(ROW, phase=Phase.RUNNING, attempt=1)
    pods = [pod(0, shapes.PodPhase.RUNNING), pod(1, shapes.PodPhase.RUNNING)]
    demands = demand.Demands()
    before = demands.of([(waiting, ()), (running, pods), (replace(ROW, id="over", phase=Phase.STOPPED), ())])

    after = demands.of([(replace(waiting), ()), (running, [pods[0], replace(pods[1], phase=shapes.PodPhase.ENDING)])])
    last = demands.of([(replace(waiting, priority=75), ())])

    assert [one.id for one in before] == ["v", "w"]
    assert after[0] is before[0]
    assert [one.state for one in after[1].pods] == [PodState.RUNNING, PodState.RELEASING]
    assert [(one.id, one.priority) for one in last] == [("v", 75)]
