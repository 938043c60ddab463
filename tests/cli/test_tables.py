"""What people see: every table and page of text, as it is when piped."""

from datetime import timedelta
from typing import Any

import pytest
from syrupy import assertion

from aliquot.cli import (
    audit,
    departments,
    events,
    ledger,
    nodes,
    output,
    projects,
    receipts,
    status,
    top,
    usage,
    why,
    words,
    workloads,
)
from aliquot.core import lifecycle
from aliquot.core.plan import Code, Rule
from aliquot.wire import projects as project_shapes
from aliquot.wire import records
from aliquot.wire import workloads as shapes
from tests.cli import samples

Phase = lifecycle.Phase
TABLE, WIDE = output.Format.TABLE, output.Format.WIDE
MODELS = {"node-1/0": "H100"}
ENDED: dict[str, Any] = {  # Any: fields
    "devices": [],
    "guarantee": None,
    "is_simulated": False,
    "finished": samples.NOW - timedelta(minutes=5),
}
VIEWS: list[shapes.WorkloadView] = [
    samples.workload(),
    samples.waiting(),
    samples.workload(name="lab", kind=shapes.Kind.WORKSPACE, url="http://127.0.0.1:20001", priority=75),
    samples.workload(name="done", phase=Phase.SUCCEEDED, outcome="completed", exit_code=0, **ENDED),
    samples.workload(name="broken", phase=Phase.FAILED, outcome="failed", exit_code=3, **ENDED),
    samples.workload(name="killed", phase=Phase.FAILED, outcome="failed", exit_signal=9, **ENDED),
    samples.workload(name="lost", phase=Phase.FAILED, outcome="exit-unknown", **ENDED),
    samples.workload(name="cpu-only", gpu="0", devices=[], phase=Phase.STOPPED, outcome="stopped"),
]


@pytest.mark.parametrize("layout", [TABLE, WIDE])
def test_the_list_of_workloads(layout: output.Format, snapshot: assertion.SnapshotAssertion) -> None:
    assert workloads.table(VIEWS, layout, now=samples.NOW, models=MODELS) == snapshot


def test_an_empty_list_says_what_to_do() -> None:
    assert "aliquot run" in workloads.table([], TABLE, now=samples.NOW, models={})


@pytest.mark.parametrize(
    "detail",
    [
        samples.workload(),
        samples.waiting(),
        samples.workload(replicas=2, evictions=1, failures=2, attempt=4, labels={"team": "vision"}),
        samples.workload(
            phase=Phase.FAILED,
            outcome="failed",
            exit_code=3,
            pods=[
                samples.pod(
                    shares=[samples.share(index, milli_gpus=1000, mib=81_000) for index in (0, 1, 2, 5)],
                    phase=shapes.PodPhase.ENDED,
                    ended=samples.NOW,
                    exit_kind="exited",
                    exit_code=3,
                )
            ],
            **ENDED,
        ),
    ],
    ids=["running", "waiting", "with mishaps", "failed on whole devices"],
)
def test_a_workload_in_full(detail: shapes.WorkloadDetail, snapshot: assertion.SnapshotAssertion) -> None:
    assert workloads.describe(detail, now=samples.NOW) == snapshot


@pytest.mark.parametrize(
    "reason",
    [
        samples.reason(suggestion=samples.suggestion()),
        samples.reason(
            suggestion=samples.suggestion(outcome="starts", evicts=[], command=None, who_can="administrator")
        ),
        samples.reason(code=Code.BUDGET, blockers=[], numbers={}, no_suggestion_because="the search was cut off"),
    ],
    ids=["with evictions", "without a command", "without a suggestion"],
)
def test_why_one_waits(reason: shapes.Reason, snapshot: assertion.SnapshotAssertion) -> None:
    assert why.describe("want", reason) == snapshot


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.SUSPENDED, Phase.SUCCEEDED])
def test_why_of_one_that_does_not_wait(phase: Phase, snapshot: assertion.SnapshotAssertion) -> None:
    assert why.not_waiting(samples.workload(phase=phase)) == snapshot


@pytest.mark.parametrize("layout", [TABLE, WIDE])
def test_the_list_of_devices(layout: output.Format, snapshot: assertion.SnapshotAssertion) -> None:
    views = [
        samples.device(0),
        samples.real_device(1),
        samples.real_device(2, withheld="device-in-use", withheld_description="pid 12 of ada uses 900 MiB", holders=[]),
    ]

    assert nodes.device_table(views, layout) == snapshot


def test_top_marks_what_is_simulated_and_what_is_not_measured(snapshot: assertion.SnapshotAssertion) -> None:
    devices = [samples.device(0, held_milli_gpus=500, held_mib=40_448), samples.real_device(1)]

    assert top.draw(devices, [samples.workload()], waiting=2, now=samples.NOW) == snapshot


@pytest.mark.parametrize("layout", [TABLE, WIDE])
def test_the_list_of_projects(layout: output.Format, snapshot: assertion.SnapshotAssertion) -> None:
    views = [samples.project(), samples.project(name="default", follows_machine=True, pools={})]

    assert projects.table(views, layout, pool="default") == snapshot


def test_a_project_in_full(snapshot: assertion.SnapshotAssertion) -> None:
    assert projects.describe(samples.project(), now=samples.NOW) == snapshot


def test_the_list_of_departments(snapshot: assertion.SnapshotAssertion) -> None:
    view = project_shapes.DepartmentView(
        id="01d",
        name="default",
        created=samples.AGO,
        pools=samples.project().pools,
        projects=2,
        follows_machine=True,
    )

    assert departments.table([view], TABLE, pool="default") == snapshot


@pytest.mark.parametrize(
    "found",
    [samples.status(), samples.status(is_accepting=False, notice="the disk is full")],
    ids=["well", "full disk"],
)
def test_the_status(found: records.Status, snapshot: assertion.SnapshotAssertion) -> None:
    assert status.describe(found, now=samples.NOW) == snapshot


def test_the_list_of_events(snapshot: assertion.SnapshotAssertion) -> None:
    event = records.Event(
        sequence=7,
        time=samples.AGO,
        noun="workload",
        subject="01a",
        subject_name="digits",
        project="default",
        code="bound",
        message="gets its place on node-1",
    )

    assert events.table([event], WIDE) == snapshot


@pytest.mark.parametrize("layout", [TABLE, WIDE])
def test_the_list_of_receipts(layout: output.Format, snapshot: assertion.SnapshotAssertion) -> None:
    receipt = shapes.Receipt(
        id="01r",
        workload="01b",
        workload_name="big",
        project="default",
        pod="pod-2",
        beneficiary="01a",
        beneficiary_name="want",
        rule=Rule.PREEMPT,
        explanation="want has priority 26, big of the same project has 25",
        rejected=["digits alone: frees 0.5 GPU, 1 is needed"],
        evicted=samples.AGO,
        ran_seconds=90,
        milli_gpus=8000,
    )

    assert receipts.table([receipt], layout, now=samples.NOW) == snapshot


def test_usage_that_is_not_measured_says_so(snapshot: assertion.SnapshotAssertion) -> None:
    measured = records.Usage(
        subject="01a",
        name="digits",
        project="default",
        allocated_gpu_seconds=4020,
        used_gpu_seconds=2000,
        run_seconds=8040,
        last=samples.AGO,
    )
    simulated = measured.model_copy(update={"name": "simulated", "used_gpu_seconds": None})

    assert usage.table([measured, simulated], TABLE, now=samples.NOW) == snapshot


@pytest.mark.parametrize("faults", [[], ["pod-1 holds 0.5 GPU and has no open entry"]])
def test_the_ledger_in_words(faults: list[str], snapshot: assertion.SnapshotAssertion) -> None:
    audit = records.LedgerAudit(
        is_balanced=not faults, open_entries=1, held_milli_gpus=500, ledger_milli_gpus=500, faults=faults
    )

    assert ledger.describe(audit) == snapshot


def test_the_list_of_changes(snapshot: assertion.SnapshotAssertion) -> None:
    record = records.AuditRecord(
        id="01c",
        time=samples.AGO,
        actor="admin",
        origin="127.0.0.1",
        verb="create",
        noun="workload",
        subject="01a",
        outcome="done",
        detail="",
    )

    assert audit.table([record], TABLE) == snapshot


@pytest.mark.parametrize(
    "answer",
    [
        shapes.DryRun(outcome="starts", places=["node-1/0"]),
        shapes.DryRun(outcome="starts-after-evictions", places=["node-1/0"], evicts=["big"]),
        shapes.DryRun(outcome="waits", reason=samples.reason()),
    ],
    ids=["starts", "evicts", "waits"],
)
def test_a_dry_run_says_what_would_happen(answer: shapes.DryRun, snapshot: assertion.SnapshotAssertion) -> None:
    assert words.foresee(answer, "created") == snapshot


def test_a_piped_table_has_no_colours_and_cuts_nothing() -> None:
    long = "x" * 500

    text = output.table([output.Column("NAME"), output.Column("NOTE")], [["a", long], ["b", "two\nlines"]])

    assert "\x1b" not in text
    assert text.splitlines() == ["NAME  NOTE", f"a     {long}", "b     two lines"]


@pytest.mark.parametrize("mark", ["\x1b", "\x07", "\r", "\x9b", "\u202e"])
def test_what_people_wrote_cannot_steer_the_terminal(mark: str) -> None:
    facts = output.facts([("Labels", f"key={mark}[2J")])
    piped = output.table([output.Column("NAME")], [[f"a{mark}[2J"]])

    assert mark not in facts + piped
    assert "[2J" in facts
    assert "[2J" in piped
