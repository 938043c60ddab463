"""What is kept: events and their stream, receipts, usage, the ledger's audit, audit records."""

import asyncio
import functools
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from aliquot.core import errors
from aliquot.core.model import Share
from aliquot.service import ledger, paging, ports, records, usage
from aliquot.wire import projects as project_shapes
from aliquot.wire import records as shapes
from tests import builders
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
ANN = worlds.ANN


async def test_a_stream_of_events_goes_on_after_a_sequence_and_then_waits_for_new_ones(world: worlds.World) -> None:
    await world.submit("first")
    seen = (await world.events.list(ANN, worlds.everything())).items[0].sequence
    await world.submit("second")
    stream = world.events.follow(ANN, seen)

    told = [await anext(stream)]
    waiting = asyncio.ensure_future(anext(stream))
    await world.submit("third")
    told.append(await waiting)

    assert [(event.subject_name, event.code) for event in told] == [("second", "submitted"), ("third", "submitted")]
    assert seen < told[0].sequence < told[1].sequence


async def test_a_stream_that_starts_now_tells_only_what_is_asked_for(world: worlds.World) -> None:
    await world.submit("before")
    stream = world.events.follow(ANN, None, filters={"noun": "project"})

    waiting = asyncio.ensure_future(anext(stream))
    while not world.store._news._followers:
        await world.store.read(lambda tx: tx.events.count())
    await world.submit("job")
    await world.projects.create(ANN, project_shapes.ProjectNew(name="team-b"))

    assert (await waiting).subject_name == "team-b"


async def test_a_stream_misses_nothing_of_many(world: worlds.World) -> None:
    stream = world.events.follow(ANN, 0, filters={"noun": "workload"})
    await world.store.write(lambda tx: [tx.events.put(event(str(number))) for number in range(1200)])

    async def write_more() -> None:
        for number in range(1200, 1220):
            await world.store.write(functools.partial(put_event, str(number)))

    writing = asyncio.ensure_future(write_more())
    told = [await anext(stream) for _ in range(1220)]
    await writing

    assert [one.subject for one in told] == [str(number) for number in range(1220)]


def put_event(subject: str, tx: ports.Transaction) -> None:
    tx.events.put(event(subject))


def event(subject: str) -> records.EventRow:
    return records.EventRow(builders.NOW, "workload", subject, subject, "submitted", "")


async def test_a_stream_refuses_an_unknown_filter(world: worlds.World) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        await anext(world.events.follow(ANN, 0, filters={"colour": "red"}))

    assert caught.value.field == "colour"


async def test_events_are_listed_newest_first_and_filtered(world: worlds.World) -> None:
    first = await world.submit("first")
    await world.submit("second")

    everything = await world.events.list(ANN, worlds.everything(project="default", noun="workload"))
    newer = await world.events.list(
        ANN, worlds.everything(after=str(everything.items[-1].sequence), noun="workload", name="second")
    )

    assert [event.subject_name for event in everything.items] == ["second", "first"]
    assert everything.items[1].subject == first.id
    assert [event.subject_name for event in newer.items] == ["second"]


async def test_an_eviction_leaves_a_receipt_that_names_both(world: worlds.World) -> None:
    await world.submit("low", gpu="8", priority="low")
    await world.cycle()
    await world.submit("high", gpu="8", priority="high")
    await world.cycle(3)

    receipts = (await world.receipts.list(ANN, worlds.everything(workload="low", project="default"))).items

    assert [(one.workload_name, one.beneficiary_name, one.milli_gpus) for one in receipts] == [("low", "high", 8000)]
    assert (await world.receipts.list(ANN, worlds.everything(beneficiary="low"))).total == 0


async def test_usage_counts_shares_over_time_and_what_is_open_up_to_now(world: worlds.World) -> None:
    await world.submit("half", gpu="0.5")
    await world.submit("none")
    await world.cycle()
    world.clock.advance(timedelta(minutes=10))

    by_workload = await world.usage.by_workload(ANN, paging.ListRequest(sort=("name",)))
    by_project = await world.usage.by_project(ANN)

    assert [(one.name, one.allocated_gpu_seconds, one.used_gpu_seconds) for one in by_workload.items] == [
        ("half", 300, None),
        ("none", 0, None),
    ]
    assert [(one.name, one.allocated_gpu_seconds, one.run_seconds) for one in by_project.items] == [
        ("default", 300, 1200)
    ]


async def test_what_a_deleted_project_used_stays_known(world: worlds.World) -> None:
    detail = await world.submit("job", gpu="1")
    await world.cycle()
    world.clock.advance(timedelta(minutes=1))
    world.cluster.finish(f"{detail.id}-1-0")
    await world.cycle()

    await world.projects.delete(ANN, "default")

    by_project = await world.usage.by_project(ANN)
    by_workload = await world.usage.by_workload(ANN, paging.ListRequest())
    assert [(one.name, one.allocated_gpu_seconds) for one in by_project.items] == [("default", 60)]
    assert [(one.name, one.project) for one in by_workload.items] == [("job", "default")]


def test_many_short_entries_add_up_and_what_was_measured_is_told_apart() -> None:
    second = timedelta(seconds=1)
    short = records.LedgerRow(
        "1", "w", "p", "pod", "gpu", milli=500, mib=1, opened=builders.NOW, closed=builders.NOW + second
    )

    found = usage.add_up([short, short, replace(short, used_milli_seconds=1500)], builders.NOW)

    assert (found.allocated, found.used, found.last) == (1, 1, builders.NOW + second)


async def test_the_books_balance_while_work_runs(world: worlds.World) -> None:
    for number in range(5):
        await world.submit(f"job-{number}", gpu="2x0.5")
    await world.cycle()

    audit = await world.ledger.audit(ANN)

    assert audit == shapes.LedgerAudit(
        is_balanced=True, open_entries=10, held_milli_gpus=5000, ledger_milli_gpus=5000, faults=[]
    )


def pod(id: str, *shares: Share) -> records.PodRow:
    return records.PodRow(id, "w", index=0, attempt=1, node="node-1", bound=builders.NOW, shares=shares)


def entry(id: str, share: Share) -> records.LedgerRow:
    return records.LedgerRow(
        f"{id}/{share.device}", "w", "p", id, share.device, milli=share.milli, mib=share.mib, opened=builders.NOW
    )


HALF = Share("gpu-0", 500, 40)


@pytest.mark.parametrize(
    ("entries", "pods", "fault"),
    [
        ([entry("a", HALF)], [], "holds nothing of gpu-0"),
        ([], [pod("a", HALF)], "0 entries"),
        ([entry("a", HALF), entry("a", HALF)], [pod("a", HALF)], "2 entries"),
        ([entry("a", HALF)], [pod("a", Share("gpu-0", 501, 40))], "its entry says 500"),
        ([entry(id, HALF) for id in "abc"], [pod(id, HALF) for id in "abc"], "1500 milli of 1000"),
    ],
)
def test_every_fault_of_the_ledger_is_a_sentence(
    entries: list[records.LedgerRow], pods: list[records.PodRow], fault: str
) -> None:
    found = ledger.compare(entries, pods)

    assert not found.is_balanced
    assert len(found.faults) == 1
    assert fault in found.faults[0]


def test_shares_by_memory_whose_charges_are_rounded_up_fill_a_device_without_a_fault() -> None:
    # 23 times 2000 MiB fit on 46068 MiB; each is charged ceil(1000 * 2000 / 46068) = 44 milli, 1012 in all.
    shares = {f"pod-{number}": Share("gpu-0", 44, 2000) for number in range(23)}

    found = ledger.compare([entry(id, share) for id, share in shares.items()], [pod(*each) for each in shares.items()])

    assert (found.faults, found.held_milli_gpus) == ([], 1012)


async def test_audit_records_are_found_by_who_and_what(world: worlds.World) -> None:
    detail = await world.submit("job")
    await world.workloads.suspend(ANN, "job")

    found = await world.audit.list(ANN, worlds.everything(actor="ann", subject=detail.id))

    assert {one.verb for one in found.items} == {"suspend", "create"}
    assert {(one.origin, one.outcome) for one in found.items} == {("test", "done")}


async def test_what_was_refused_is_in_the_audit_with_the_code_of_the_refusal(world: worlds.World) -> None:
    await world.submit("job")
    for refused in (
        world.projects.delete(ANN, "default"),
        world.projects.create(ANN, project_shapes.ProjectNew(name="default")),
        world.submit("job"),
    ):
        with pytest.raises(errors.Conflict):
            await refused
    await world.workloads.stop(ANN, "job")
    with pytest.raises(errors.Conflict):
        await world.workloads.resume(ANN, "job")

    found = (await world.audit.list(ANN, worlds.everything())).items

    refusals = {(one.verb, one.noun, one.subject, one.outcome) for one in found if one.outcome != "done"}
    assert refusals == {
        ("delete", "project", "default", "not-empty"),
        ("create", "project", "default", "name-taken"),
        ("create", "workload", "job", "name-taken"),
        ("resume", "workload", "job", "cannot-resume"),
    }


async def test_usage_over_time_lies_in_the_steps_in_which_it_was(world: worlds.World) -> None:
    await world.submit("half", gpu="0.5")
    await world.cycle()
    began = world.clock.now()
    world.clock.advance(timedelta(hours=3))

    asked = usage.SeriesRequest(step="hour", by="department", start=began, end=began + timedelta(hours=2))
    found = await world.usage.series(ANN, asked)
    whole = await world.usage.by_project(ANN, start=began + timedelta(hours=1), end=began + timedelta(hours=2))

    assert [line.name for line in found.lines] == ["default"]
    assert sum(found.lines[0].allocated_gpu_hours) == pytest.approx(1.0)
    assert found.lines[0].used_gpu_hours == [None] * len(found.times)
    assert [(one.allocated_gpu_seconds, one.run_seconds) for one in whole.items] == [(1800, 3600)]


@pytest.mark.parametrize(
    ("span", "step", "field"), [(timedelta(0), "day", "from"), (timedelta(days=400), "hour", "step")]
)
async def test_a_time_without_length_or_with_too_many_steps_is_refused(
    world: worlds.World, span: timedelta, step: Literal["hour", "day"], field: str
) -> None:
    now = world.clock.now()

    with pytest.raises(errors.InvalidInput) as caught:
        await world.usage.series(ANN, usage.SeriesRequest(step=step, start=now - span, end=now))

    assert caught.value.field == field
