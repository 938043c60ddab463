"""Every change that the engine can suggest is an operation of the API and a command line; and the server's status."""

from dataclasses import replace

import pytest

from aliquot.core import change, explain, plan
from aliquot.core.lifecycle import Phase
from aliquot.core.model import Claim, GpuRequest, PoolTerms
from aliquot.service import questions, server
from aliquot.wire import projects, workloads
from tests import builders
from tests.service import world as worlds

SNAPSHOT = builders.snapshot(
    builders.node(),
    builders.queue("research", "8"),
    builders.queue("team-a", "4", parent="research"),
    builders.job("one"),
    builders.job("two"),
)
TERMS = PoolTerms(gpu=Claim(quota=4000, limit=5000), memory=Claim(quota=3 * 2**29))


@pytest.mark.parametrize(
    ("changed", "operation", "body", "command"),
    [
        (change.SetGpu("one", GpuRequest(2, 500)), "updateWorkload", {"gpu": "2x0.5"}, "update one --gpu 2x0.5"),
        (change.SetCpu("one", 1500), "updateWorkload", {"cpu": "1.5"}, "update one --cpu 1.5"),
        (change.SetMemory("one", 3 * 2**29), "updateWorkload", {"memory": "1536Mi"}, "update one --memory 1536Mi"),
        (change.SetReplicas("one", 3), "updateWorkload", {"replicas": 3}, "update one --replicas 3"),
        (change.SetPriority("one", 9), "updateWorkload", {"priority": 9}, "update one --priority 9"),
        (
            change.SetPreemptible("one", is_preemptible=False),
            "updateWorkload",
            {"preemptible": False},
            "update one --not-preemptible",
        ),
        (change.RemoveWorkload("two"), "stopWorkload", {}, "stop two"),
        (change.UncordonNode("node-1"), "uncordon", {}, "nodes uncordon node-1"),
        (change.OfferDevice("node-1-gpu-0"), "uncordon", {}, "nodes uncordon node-1-gpu-0"),
        (
            change.SetTerms("team-a", "default", TERMS),
            "updateProject",
            {
                "pools": {
                    "default": {
                        "gpu": {"quota": "4", "weight": 1, "limit": "5"},
                        "memory": {"quota": "1536Mi", "weight": 1, "limit": None},
                    }
                }
            },
            "projects update team-a --pool default --gpu-limit 5 --memory-quota 1536Mi",
        ),
        (
            change.SetTerms("research", "default", PoolTerms(gpu=Claim(quota=9000))),
            "updateDepartment",
            {"pools": {"default": {"gpu": {"quota": "9", "weight": 1, "limit": None}}}},
            "departments update research --pool default --gpu-quota 9",
        ),
    ],
)
def test_a_change_is_an_operation_and_a_command(
    changed: change.Change, operation: str, body: dict[str, object], command: str
) -> None:
    reason = plan.Reason(plan.Code.NO_FREE_DEVICE, "none is free", {"free": 0})
    suggestion = explain.Suggestion(changed, "do it", "owner", "starts-after-evictions", ("two",))

    shown = questions.show(SNAPSHOT, explain.Explanation(reason, 1, suggestion)).suggestion

    assert shown is not None
    assert (shown.operation, shown.body, shown.command) == (operation, body, f"aliquot {command}")
    assert shown.evicts == ["two"]
    if operation == "updateWorkload":
        workloads.WorkloadUpdate.model_validate(shown.body)
    if operation in {"updateProject", "updateDepartment"}:
        projects.QueueUpdate.model_validate(shown.body)


def test_a_name_that_two_workloads_have_comes_with_its_project() -> None:
    twin = replace(builders.job("other", "team-b"), name="one")
    twins = builders.snapshot(builders.queue("team-a"), builders.queue("team-b"), builders.job("one"), twin)
    reason = plan.Reason(plan.Code.NO_FREE_DEVICE, "none is free")
    suggestion = explain.Suggestion(change.SetPriority("other", 9), "raise it", "owner", "starts")

    shown = questions.show(twins, explain.Explanation(reason, 1, suggestion)).suggestion

    assert shown is not None
    assert (shown.target, shown.command) == ("other", "aliquot update one --project team-b --priority 9")


@pytest.mark.anyio
async def test_the_status_counts_devices_and_work(world: worlds.World) -> None:
    facts = server.ServerFacts("0.1.0", "http://127.0.0.1:8265", 7, "/data", "ann", builders.NOW)
    one = server.Server(world.store, world.cluster, facts=facts)
    await world.submit("runs", gpu="8")
    await world.cycle()
    await world.submit("waits", gpu="1")

    status = await one.status(worlds.ANN)

    assert (status.devices.count, status.devices.models, status.running, status.waiting) == (8, ["H100"], 1, 1)
    assert (status.user, status.pid, status.is_accepting) == ("ann", 7, True)
    assert (await world.workloads.get(worlds.ANN, "runs")).phase is Phase.RUNNING
