"""What nothing present could ever start is refused with the field and both numbers; all else is admitted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import admission, schedule
from aliquot.core.model import ForeignUse, Policy, Snapshot, Workload
from tests import builders
from tests.builders import NOW, device, having, job, node, queue, running, snapshot


@pytest.mark.parametrize(
    ("taken", "workload", "field", "message"),
    [
        pytest.param(
            snapshot(node(), queue("a")), job(queue="b"), "project", "project: 'b' does not exist", id="unknown project"
        ),
        pytest.param(
            snapshot(node(), queue("d"), queue("a", parent="d")),
            job(queue="d"),
            "project",
            "project: d is a department; workloads belong to a project",
            id="a department",
        ),
        pytest.param(
            snapshot(node(), queue()),
            job(gpu="9"),
            "gpu",
            "needs 9 GPUs on one node; the largest node of pool default has 8",
            id="more GPUs than any node",
        ),
        pytest.param(
            snapshot(node(devices=0), queue()),
            job(gpu="0.5"),
            "gpu",
            "needs 1 GPU on one node; the largest node of pool default has 0",
            id="no GPU at all",
        ),
        pytest.param(
            snapshot(node(), queue()),
            job(gpu="81Gi"),
            "gpu",
            "needs 81Gi of GPU memory; the largest GPU of pool default offers 81920 MiB",
            id="more memory than any device",
        ),
        pytest.param(
            snapshot(node(), queue()),
            job(cpu="65"),
            "cpu",
            "needs 65 CPUs on one node; the largest node of pool default has 64 CPUs",
            id="more CPU than any node",
        ),
        pytest.param(
            snapshot(node(), queue()),
            job(memory="1Ti"),
            "memory",
            "needs 1Ti of memory on one node; the largest node of pool default has 512Gi of memory",
            id="more memory than any node",
        ),
        pytest.param(
            snapshot(node(), queue()),
            job(pods=9),
            "replicas",
            "replicas: 9 pods start at once; pool default holds 8 of them even when empty",
            id="more replicas than fit",
        ),
        pytest.param(
            snapshot(node(devices=16), queue(limit="8")),
            job(pods=16),
            "gpu",
            "gpu: this asks 16 GPUs in all; the limit of project team-a is 8 GPUs",
            id="more than the limit",
        ),
        pytest.param(
            snapshot(node(), queue("d", limit="2"), queue("a", parent="d")),
            job(queue="a", gpu="3"),
            "gpu",
            "gpu: this asks 3 GPUs in all; the limit of department d is 2 GPUs",
            id="more than the limit of the department",
        ),
        pytest.param(
            snapshot(node(), queue(cpu=builders.claim(limit="2"))),
            job(gpu=None, cpu="3"),
            "cpu",
            "cpu: this asks 3 CPUs in all; the limit of project team-a is 2 CPUs",
            id="more CPU than the limit",
        ),
        pytest.param(
            snapshot(node(), queue(gpu="1")),
            job(gpu="2", is_preemptible=False),
            "gpu",
            "gpu: this asks 2 GPUs in all; the quota, which work that may not be preempted cannot pass, of project "
            "team-a is 1 GPU",
            id="not preemptible beyond the quota",
        ),
        pytest.param(
            snapshot(node(), queue()), job(pool="lab"), "pool", "pool 'lab' has no node", id="a pool without a node"
        ),
    ],
)
def test_what_can_never_start_is_refused(taken: Snapshot, workload: Workload, field: str, message: str) -> None:
    refused = admission.refuse(taken, workload)

    assert refused is not None
    assert (refused.field, refused.message) == (field, message)
    assert refused.stable_code == "cannot-ever-start"


@pytest.mark.parametrize(
    "taken",
    [
        pytest.param(snapshot(node(devices=1), queue(), running(job("old"), "node-1:0")), id="all is held"),
        pytest.param(snapshot(node(devices=1, is_cordoned=True), queue()), id="the node is cordoned"),
        pytest.param(snapshot(node(devices=1, is_ready=False), queue()), id="the node is not ready"),
        pytest.param(snapshot(node(devices=[device(withheld="lost")]), queue()), id="the device is withheld"),
        pytest.param(
            snapshot(node(devices=[device(memory="1Gi", foreign=(ForeignUse(1, "eve", 80_000),))]), queue()),
            id="others use the device",
        ),
        pytest.param(
            snapshot(node(devices=1), queue(limit="1"), running(job("old"), "node-1:0")), id="the limit is used up"
        ),
        pytest.param(snapshot(node(devices=1), queue(gpu="0")), id="it would borrow"),
    ],
)
def test_what_could_start_some_day_is_admitted(taken: Snapshot) -> None:
    assert admission.refuse(taken, job()) is None


def test_the_refusal_of_an_unknown_project_lists_the_projects() -> None:
    refused = admission.refuse(snapshot(node(), queue("b"), queue("a")), job(queue="c"))

    assert refused is not None
    assert refused.valid == ("a", "b")


def test_a_gang_that_fits_only_when_its_shares_are_spread_is_admitted() -> None:
    taken = snapshot(node(devices=3), queue("team-a"))

    assert admission.refuse(taken, job(queue="team-a", gpu="2x12Gi", pods=7)) is None


NODES = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["4", "8"]), st.sampled_from(["16Gi", "24Gi", "80Gi"])),
    min_size=1,
    max_size=3,
)
JOBS = st.builds(
    job,
    gpu=st.sampled_from([None, "1", "2", "3", "0.5", "0.3", "2x0.5", "3x0.7", "10Gi", "20Gi", "2x12Gi"]),
    pods=st.integers(1, 7),
    cpu=st.sampled_from(["0", "1", "3", "5"]),
    is_preemptible=st.booleans(),
)


@given(nodes=NODES, workload=JOBS, quota=st.sampled_from(["0", "1", "4"]), limit=st.sampled_from([None, "1", "3"]))
def test_what_is_admitted_starts_on_the_emptied_cluster(
    nodes: list[tuple[int, str, str]], workload: Workload, quota: str, limit: str | None
) -> None:
    parts = [
        node(f"node-{index}", devices, cpu=cpu, device_memory=memory)
        for index, (devices, cpu, memory) in enumerate(nodes)
    ]
    taken = snapshot(*parts, queue(gpu=quota, limit=limit))

    made = schedule.schedule(snapshot(*parts, *taken.queues, workload), Policy(), NOW)

    assert bool(made.binds) == (admission.refuse(taken, workload) is None)


def test_what_passes_a_limit_only_because_of_the_devices_it_would_have_to_be_on_is_admitted() -> None:
    unlike = node(devices=[device("node-1-gpu-0", memory="100Gi"), device("node-1-gpu-1", memory="80Gi")])

    assert admission.refuse(snapshot(unlike, queue(limit="1.05")), job(gpu="2x45Gi")) is None


def test_work_that_lacks_something_that_is_not_counted_is_admitted() -> None:
    assert admission.refuse(snapshot(node(), queue()), having(job(), unmet="volume data does not exist")) is None
