"""What people see of figures: the overview, the queue, series, timelines, usage over time, previews."""

from datetime import timedelta

import pytest
from syrupy import assertion

from aliquot.cli import history, output, overview, queue, queues, timelines, usage
from aliquot.core.plan import Code
from aliquot.wire import overview as overview_shapes
from aliquot.wire import queue as shapes
from aliquot.wire import series, workloads
from aliquot.wire import timelines as timeline_shapes
from tests.cli import door, samples

TABLE, WIDE = output.Format.TABLE, output.Format.WIDE
HOUR = timedelta(hours=1)


def entry(**more: object) -> shapes.QueueEntry:
    """One that waits for a device that another holds without end."""
    fields: dict[str, object] = {
        "position": 1,
        "workload": "01a",
        "name": "want",
        "project": "vision",
        "department": "arts",
        "pool": "default",
        "kind": workloads.Kind.TRAINING,
        "gpu": "1",
        "milli_gpus": 2000,
        "replicas": 2,
        "priority": 25,
        "waiting_since": samples.AGO,
        "reason": samples.reason(),
        "promised": [],
        "expected_unknown_because": "big runs and states no run time",
        "waits_for": [shapes.Named(workload="01b", name="big", project="text")],
    }
    return shapes.QueueEntry.model_validate({**fields, **more})


@pytest.mark.parametrize("layout", [TABLE, WIDE])
def test_the_queue_says_who_is_next_and_until_when(
    layout: output.Format, snapshot: assertion.SnapshotAssertion
) -> None:
    start = shapes.StartRange(earliest=samples.NOW, latest=samples.NOW + HOUR)
    known = entry(
        position=2, name="next", reason=None, promised=["node-1/0"], expected_start=start, expected_unknown_because=None
    )

    assert queue.table([entry(), known], layout, now=samples.NOW) == snapshot


def test_an_empty_queue_says_so() -> None:
    assert queue.table([], TABLE, now=samples.NOW) == "nobody waits"


def test_the_overview_says_what_is_held_who_waits_and_what_is_broken(snapshot: assertion.SnapshotAssertion) -> None:
    example = overview_shapes.WaitingExample(id="01a", name="want", project="vision", message="none of 8 is free")
    found = overview_shapes.Overview(
        time=samples.NOW,
        cluster="default",
        version="1",
        is_accepting=True,
        devices=overview_shapes.DeviceTotals(
            count=8, free=1, held_milli_gpus=6500, measured=0, withheld=1, is_simulated=True, description="8 simulated"
        ),
        nodes=overview_shapes.NodeTotals(count=1, not_ready=0, cordoned=0),
        phases={"pending": 2, "running": 3},
        waiting=[
            overview_shapes.WaitingGroup(
                code=Code.NO_FREE_DEVICE, workloads=2, milli_gpus=3000, oldest=samples.AGO, example=example
            )
        ],
        idle=[
            overview_shapes.IdleHolding(
                workload="01b",
                workload_name="lazy",
                project="text",
                milli_gpus=1000,
                device="node-1/3",
                since=samples.AGO,
                utilisation_percent=2,
            )
        ],
        departments=[
            overview_shapes.DepartmentTotals(
                name="arts",
                held_milli_gpus=6500,
                fair_share_milli_gpus=8000,
                asked_milli_gpus=9500,
                waiting=2,
                running=3,
            )
        ],
        health=[overview_shapes.Finding(name="ledger", status="good", message="the ledger adds up")],
    )

    assert overview.describe(found) == snapshot


def test_history_has_a_column_for_each_line_and_nothing_where_nothing_was_seen(
    snapshot: assertion.SnapshotAssertion,
) -> None:
    found = series.Series(
        metric=series.Metric.ALLOCATED,
        unit="GPU",
        start=samples.AGO,
        end=samples.NOW,
        step_seconds=60,
        times=[samples.AGO, samples.AGO + HOUR],
        lines=[series.SeriesLine(name="arts", values=[1.5, None]), series.SeriesLine(name="text", values=[0, None])],
        capacity=[8, None],
    )

    assert history.table(found, TABLE) == snapshot


def test_a_timeline_has_a_line_for_each_span(snapshot: assertion.SnapshotAssertion) -> None:
    spans = [
        timeline_shapes.Span(
            kind="waiting",
            start=samples.AGO,
            end=samples.AGO + HOUR,
            reason=timeline_shapes.SpanReason(code=Code.NO_FREE_DEVICE, message="none of 8 is free"),
        ),
        timeline_shapes.Span(kind="running", start=samples.AGO + HOUR, attempt=1, places=["node-1/0"]),
    ]

    assert timelines.table(spans, TABLE, now=samples.NOW) == snapshot


def test_usage_over_time_shows_what_was_used_where_it_was_measured(snapshot: assertion.SnapshotAssertion) -> None:
    found = series.UsageSeries(
        step="day",
        start=samples.AGO,
        end=samples.NOW,
        times=[samples.AGO],
        lines=[
            series.UsageLine(name="arts", allocated_gpu_hours=[12.5], used_gpu_hours=[None]),
            series.UsageLine(name="text", allocated_gpu_hours=[3], used_gpu_hours=[1.25]),
        ],
    )

    assert usage.over_time(found, TABLE) == snapshot


def test_a_preview_of_terms_says_who_starts_who_goes_and_whose_share_is_another(
    snapshot: assertion.SnapshotAssertion,
) -> None:
    about = {"workload": "01a", "name": "want", "project": "vision", "gpu": "2"}
    found = shapes.QueuePreview(
        starts=[shapes.PreviewedStart(**about, places=["node-1/0", "node-1/1"])],
        evicts=[shapes.PreviewedEviction(workload="01b", name="big", project="text", gpu="2", for_name="want")],
        fair_shares=[
            shapes.PreviewedShare(
                queue="vision", is_department=False, pool="default", before_milli_gpus=0, after_milli_gpus=2000
            )
        ],
        waits_before=2,
        waits_after=1,
    )

    assert queues.foresee(found) == snapshot


def test_a_preview_in_which_nothing_happens_says_so() -> None:
    found = shapes.QueuePreview(starts=[], evicts=[], fair_shares=[], waits_before=0, waits_after=0)

    assert queues.foresee(found) == "Nobody would start, and nobody would be evicted.\nNothing was changed."


@pytest.mark.parametrize(
    "arguments",
    [
        ["history", "sunshine"],
        ["history", "--since", "yesterday"],
        ["history", "--points", "1"],
        ["usage", "--step", "day"],
        ["usage", "--by", "department"],
        ["usage", "--since", "7d"],
        ["queue", "--limit", "0"],
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(arguments: list[str]) -> None:
    with door.closed_door() as closed:
        answer = door.call(*arguments, url=closed.url)

        assert answer.code == 2
        assert answer.stderr
        assert not closed.was_used()
