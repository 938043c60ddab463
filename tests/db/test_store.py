"""The Store: one writer, readers beside it, news for followers, and what a failing database is to a user."""

import asyncio
import pathlib
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from aliquot.core import errors
from aliquot.db import dialect, store
from aliquot.service import ports, records
from tests import builders

pytestmark = pytest.mark.anyio

EVENT = records.EventRow(builders.NOW, "workload", "1", "job", "submitted", "It was submitted.")


@pytest.fixture
def opened(tmp_path: pathlib.Path) -> Iterator[store.SqlStore]:
    one = store.open_store(tmp_path / "one.db", most_waiting=4)
    yield one
    one.close()


def fact(id: str, value: str = "") -> records.FactRow:
    return records.FactRow(id, value)


async def test_what_was_written_is_there_when_the_store_is_opened_again(tmp_path: pathlib.Path) -> None:
    first = store.open_store(tmp_path / "one.db")
    await first.write(lambda tx: tx.facts.put(fact("a", "1")))
    first.close()

    second = store.open_store(tmp_path / "one.db")

    assert await second.read(lambda tx: tx.facts.get("a")) == fact("a", "1")
    second.close()


async def test_a_write_that_raises_leaves_nothing(opened: store.SqlStore) -> None:
    def work(tx: ports.Transaction) -> None:
        tx.facts.put(fact("a"))
        raise errors.Conflict("no")

    with pytest.raises(errors.Conflict):
        await opened.write(work)

    assert await opened.read(lambda tx: tx.facts.count()) == 0


async def test_concurrent_writes_are_done_one_after_the_other(opened: store.SqlStore) -> None:
    def add(tx: ports.Transaction) -> None:
        before = tx.facts.get("sum")
        tx.facts.put(fact("sum", str(int(before.value if before else "0") + 1)))

    await asyncio.gather(*(opened.patient.write(add) for _ in range(100)))

    assert await opened.read(lambda tx: tx.facts.get("sum")) == fact("sum", "100")


async def test_a_read_sees_one_state_while_others_write(opened: store.SqlStore) -> None:
    has_counted, may_count_again = threading.Event(), threading.Event()

    def count_twice(tx: ports.Transaction) -> tuple[int, int]:
        first = tx.facts.count()
        has_counted.set()
        may_count_again.wait(60)
        return first, tx.facts.count()

    reading = asyncio.create_task(opened.read(count_twice))
    await asyncio.to_thread(has_counted.wait, 60)
    await opened.write(lambda tx: tx.facts.put(fact("a")))
    may_count_again.set()

    assert await reading == (0, 0)


async def test_a_queue_that_is_too_long_is_refused_at_once_but_not_to_the_cluster(opened: store.SqlStore) -> None:
    has_begun, may_go_on = threading.Event(), threading.Event()

    def hold(_: ports.Transaction) -> None:
        has_begun.set()
        may_go_on.wait(60)

    writes = [asyncio.create_task(opened.write(hold)) for _ in range(4)]
    await asyncio.to_thread(has_begun.wait, 60)

    with pytest.raises(errors.Unavailable) as caught:
        await opened.write(lambda tx: tx.facts.put(fact("a")))
    of_the_cluster = asyncio.create_task(opened.patient.write(lambda tx: tx.facts.put(fact("b"))))
    may_go_on.set()
    await asyncio.gather(*writes, of_the_cluster)

    assert caught.value.retry_after_seconds >= 1
    assert await opened.write(lambda tx: [row.id for row in tx.facts.find()]) == ["b"]


async def test_a_follower_is_told_the_newest_event_at_once_and_after_each_commit(opened: store.SqlStore) -> None:
    first = await opened.write(lambda tx: tx.events.put(EVENT))
    changes = aiter(opened.changes())
    told = [await anext(changes)]

    waiting = asyncio.ensure_future(anext(changes))
    second = await opened.write(lambda tx: tx.events.put(EVENT))
    told.append(await waiting)

    assert told == [first.sequence, second.sequence]


async def test_a_write_whose_caller_went_away_still_wakes_followers(opened: store.SqlStore) -> None:
    changes = aiter(opened.changes())
    before = await anext(changes)
    has_begun, may_go_on = threading.Event(), threading.Event()

    def work(tx: ports.Transaction) -> None:
        tx.events.put(EVENT)
        has_begun.set()
        may_go_on.wait(60)

    writing = asyncio.create_task(opened.write(work))
    await asyncio.to_thread(has_begun.wait, 60)
    writing.cancel()
    may_go_on.set()

    assert await anext(changes) > before


async def test_a_full_disk_is_said_and_harms_nothing_that_is_stored(opened: store.SqlStore) -> None:
    await opened.write(lambda tx: tx.facts.put(fact("a", "kept")))

    def limit(connection: sa.Connection) -> None:
        # SQLite answers the same when its file may not grow as when the disk is full.
        connection.exec_driver_sql("PRAGMA max_page_count = 1")

    sa.event.listen(opened._engine, "begin", limit)
    with pytest.raises(errors.Unavailable) as caught:
        await opened.write(lambda tx: tx.facts.put(fact("a", "x" * 10_000_000)))
    sa.event.remove(opened._engine, "begin", limit)

    assert caught.value.stable_code == "disk-full"
    assert await opened.read(lambda tx: tx.facts.get("a")) == fact("a", "kept")


async def test_a_lock_by_another_program_is_said(opened: store.SqlStore, tmp_path: pathlib.Path) -> None:
    hasty = store.SqlStore(dialect.engine(tmp_path / "one.db", busy_milliseconds=1), records.Scope())
    may_go_on, has_begun = threading.Event(), threading.Event()

    def hold(_: ports.Transaction) -> None:
        has_begun.set()
        may_go_on.wait(60)

    holding = asyncio.create_task(opened.write(hold))
    await asyncio.to_thread(has_begun.wait, 60)
    with pytest.raises(errors.Unavailable) as caught:
        await hasty.write(lambda tx: tx.facts.count())
    may_go_on.set()
    await holding

    assert caught.value.stable_code == "store-busy"
    hasty.close()


async def test_a_pod_without_its_workload_is_refused(opened: store.SqlStore) -> None:
    pod = records.PodRow("pod", "nobody", index=0, attempt=1, node="node-1", bound=builders.NOW)

    with pytest.raises(errors.Conflict) as caught:
        await opened.write(lambda tx: tx.pods.put(pod))

    assert caught.value.stable_code == "no-parent"


async def test_every_connection_writes_ahead_and_syncs_each_commit(opened: store.SqlStore) -> None:
    with opened._engine.connect() as connection:
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("journal_mode", "synchronous")]

    assert found == ["wal", 2]
