"""The stream of changes: every change of a row is told, once, to all, however it came about."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from aliquot.core import plan
from aliquot.service import changes, ports, records, waits
from aliquot.wire import changes as shapes
from aliquot.wire import projects as project_shapes
from aliquot.wire import workloads as workload_shapes
from tests import builders
from tests.service import world as worlds
from tests.service.world import ANN, World

pytestmark = pytest.mark.anyio


class Ear:
    """A follower, and what it was told."""

    def __init__(self, world: World, after: int | None = None) -> None:
        self._told: AsyncIterator[changes.Message] = world.changes.follow(ANN, after)
        self.sequence = 0

    async def hear(self) -> changes.Message:
        message = await anext(self._told)
        self.sequence = message.sequence
        return message

    async def changes(self) -> shapes.Changes:
        message = await self.hear()
        assert message.kind == "changes"
        return shapes.Changes.model_validate_json(message.text)

    async def until(
        self, workload: str, is_it: Callable[[workload_shapes.WorkloadView], bool]
    ) -> workload_shapes.WorkloadView:
        """The next that is told of a workload and is so. (It may be told twice: a row is read after it was touched.)"""
        while True:
            for view in (await self.changes()).workloads:
                if view.id == workload and is_it(view):
                    return view

    async def close(self) -> None:
        await cast(AsyncGenerator[changes.Message], self._told).aclose()  # cast: `follow` is one


@contextlib.asynccontextmanager
async def listening(world: World, after: int | None = None) -> AsyncIterator[Ear]:
    ear = Ear(world, after)
    try:
        hello = await ear.hear()
        assert hello.kind == "hello"
        yield ear
    finally:
        await ear.close()


async def test_the_first_word_says_from_where_it_goes_on(world: World) -> None:
    await world.submit("a")
    ear = Ear(world)

    hello = shapes.Hello.model_validate_json((await ear.hear()).text)
    await ear.close()

    assert (hello.sequence, hello.version, hello.started) == (world.store.newest().sequence, "1", builders.NOW)


async def test_every_step_of_a_life_is_told_as_the_row_is_then(world: World) -> None:
    async with listening(world) as ear:
        made = await world.submit("job", gpu="1", priority=10)
        await ear.until(made.id, lambda view: view.phase == "pending" and view.priority == 10)

        await world.workloads.update(ANN, "job", workload_shapes.WorkloadUpdate(priority=20))
        await ear.until(made.id, lambda view: view.priority == 20)

        await world.workloads.suspend(ANN, "job")
        await ear.until(made.id, lambda view: view.phase == "suspended")
        await world.workloads.resume(ANN, "job")
        await ear.until(made.id, lambda view: view.phase == "pending")

        await world.cycle()
        view = await ear.until(made.id, lambda view: view.phase == "running")
        assert view.devices == ["node-1/0"]

        world.cluster.finish(f"{made.id}-1-0")
        await world.cycle()
        view = await ear.until(made.id, lambda view: view.phase == "succeeded")
        assert (view.outcome, view.devices) == ("completed", [])


async def test_a_device_that_is_given_back_while_the_others_run_is_told_though_no_event_says_it(world: World) -> None:
    made = await world.submit("pair", gpu="1", replicas=2)
    await world.cycle(2)
    async with listening(world) as ear:
        before = world.store.newest().sequence

        world.cluster.finish(f"{made.id}-1-1")
        await world.cycle()

        await ear.until(made.id, lambda view: view.devices == ["node-1/0"])
        assert world.store.newest().sequence == before


async def test_why_something_waits_is_told_when_it_is_found_and_when_it_is_another(world: World) -> None:
    await world.submit("held", gpu="8")
    await world.cycle()
    async with listening(world) as ear:
        made = await world.submit("wants", gpu="1", preemptible=False, priority=0)
        await world.cycle()
        await ear.until(made.id, lambda view: view.reason is not None and view.reason.code == "no-free-device")

        await world.quota("default", "0")
        await world.cycle()

        other = "non-preemptible-over-quota"
        await ear.until(made.id, lambda view: view.reason is not None and view.reason.code == other)


async def test_a_reason_in_other_words_is_told_too(world: World) -> None:
    made = [await world.submit(f"job-{number}") for number in range(150)]
    await world.store.write(lambda tx: waits.write(tx, said(made, "one"), builders.NOW))
    async with listening(world) as ear:
        await world.store.write(lambda tx: waits.write(tx, said(made, "two"), builders.NOW))

        told: list[str] = []
        while len(told) < len(made):
            told += [view.id for view in (await ear.changes()).workloads]

    assert sorted(told) == sorted(one.id for one in made)


async def test_a_place_in_line_alone_is_not_told(world: World) -> None:
    made = [await world.submit(f"job-{number}") for number in range(2)]
    await world.store.write(lambda tx: waits.write(tx, said(made, "one"), builders.NOW))
    async with listening(world) as ear:
        await world.store.write(lambda tx: waits.write(tx, said(made[::-1], "one"), builders.NOW))
        await world.workloads.stop(ANN, "job-1")

        assert [view.name for view in (await ear.changes()).workloads] == ["job-1"]


def said(made: Sequence[workload_shapes.WorkloadDetail], message: str) -> list[plan.Wait]:
    """All wait for one reason, in this order."""
    reason = plan.Reason(plan.Code.BEHIND, message)
    return [plan.Wait(one.id, reason, place) for place, one in enumerate(made, start=1)]


async def test_what_is_deleted_is_gone(world: World) -> None:
    made = await world.submit("job")
    await world.workloads.stop(ANN, "job")
    async with listening(world) as ear:
        await world.workloads.delete(ANN, "job")

        assert (await ear.changes()).gone_workloads == [made.id]


@pytest.mark.parametrize(
    ("noun", "expected"),
    [("project", {"project", "department"}), ("device", {"device", "node"}), ("receipt", {"receipt"})],
)
async def test_of_other_nouns_it_is_told_that_something_changed(world: World, noun: str, expected: set[str]) -> None:
    async with listening(world) as ear:
        if noun == "project":
            await world.projects.create(ANN, project_shapes.ProjectNew(name="vision"))
        elif noun == "device":
            await world.nodes.cordon(ANN, "node-1/0")
        else:
            await world.store.write(lambda tx: tx.receipts.put(RECEIPT))

        told = await ear.changes()

    assert expected <= set(told.nouns)
    assert "workload" not in told.nouns


RECEIPT = records.ReceiptRow(
    "r", "w", "w", "p", "pod", "reclaim", "because", builders.NOW, ran=builders.NOW - builders.NOW, milli_gpus=1
)


async def test_what_changes_in_one_pause_is_one_message_with_each_row_once(world: World) -> None:
    made, begun, over = await world.submit("job"), asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        begun.set()
        await over.wait()

    world.clock.on_sleep = pause
    async with listening(world) as ear:
        await begun.wait()
        for priority in range(9):
            await world.workloads.update(ANN, "job", workload_shapes.WorkloadUpdate(priority=priority))
        over.set()

        told = await ear.changes()

    assert [(view.id, view.priority) for view in told.workloads] == [(made.id, 8)]


async def test_who_was_away_is_told_what_was_missed(world: World) -> None:
    async with listening(world) as ear:
        await world.submit("seen")
        await ear.changes()
        last = ear.sequence
    missed = [await world.submit("one"), await world.submit("two")]

    async with listening(world, last) as ear:
        told = await ear.changes()

    assert {one.id for one in missed} <= {view.id for view in told.workloads}
    assert not told.is_reset


async def test_a_change_without_event_is_missed_by_nobody(world: World) -> None:
    made = await world.submit("pair", gpu="1", replicas=2)
    await world.cycle(2)
    async with listening(world) as ear:
        last = ear.sequence
    world.cluster.finish(f"{made.id}-1-1")
    await world.cycle()

    async with listening(world, last) as ear:
        await ear.until(made.id, lambda view: view.devices == ["node-1/0"])


@pytest.mark.parametrize("after", [0, 10**9])
async def test_who_was_away_too_long_or_comes_from_elsewhere_asks_for_all_anew(world: World, after: int) -> None:
    async with listening(world, after) as ear:
        told = await ear.changes()

    assert (told.is_reset, told.workloads) == (True, [])
    assert told.sequence == world.store.newest().sequence


async def test_too_much_at_once_is_told_as_one_word(world: World) -> None:
    await world.submit("job")
    (row,) = await world.rows()

    def many(tx: ports.Transaction) -> None:
        for number in range(changes.MOST_ROWS + 1):
            tx.workloads.put(replace(row, id=f"w{number}", name=f"w{number}"))

    async with listening(world) as ear:
        await world.store.write(many)

        assert (await ear.changes()).is_reset


async def test_all_who_follow_get_the_same_text(world: World) -> None:
    async with listening(world) as one, listening(world) as other:
        await world.submit("job")

        assert (await one.hear()).text is (await other.hear()).text


async def test_who_does_not_read_asks_for_all_anew_and_nothing_piles_up(world: World) -> None:
    await world.submit("job")
    async with listening(world) as slow, listening(world) as quick:
        for priority in range(changes.MOST_UNREAD + 2):
            await world.workloads.update(ANN, "job", workload_shapes.WorkloadUpdate(priority=priority))
            await quick.changes()

        heard = [await slow.changes() for _ in range(2)]

    assert [one.is_reset for one in heard] == [True, False]


async def test_silence_is_broken_by_a_beat() -> None:
    with worlds.opened() as world:
        await world.prepare()
        world.changes._beat_seconds = 0.01
        async with listening(world) as ear:
            beat = await ear.hear()

    assert (beat.kind, beat.sequence) == ("beat", ear.sequence)


async def test_nothing_runs_on_when_nobody_follows(world: World) -> None:
    before = asyncio.all_tasks()
    async with listening(world):
        assert len(asyncio.all_tasks()) > len(before)

    await world.rows()
    assert asyncio.all_tasks() == before
