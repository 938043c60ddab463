"""What is kept of the reasons of a cycle: the same that the plan said, written once."""

from collections.abc import Iterator
from typing import Any

import pytest

from aliquot.core.plan import Blocker, Code, Reason, Wait
from aliquot.db import store as db
from aliquot.service import ports, waits
from aliquot.service.records import StoredReason
from tests import builders
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
FULL = Reason(
    Code.NO_FREE_DEVICE, "all devices are held", {"free": 0}, (Blocker("w", "w holds one"), Blocker(None, "x"))
)


@pytest.fixture
def store() -> Iterator[db.SqlStore]:
    opened = db.open_store(":memory:")
    yield opened
    opened.close()


async def test_reasons_come_back_as_the_plan_gave_them_each_with_its_position(store: db.SqlStore) -> None:
    equal = Reason(FULL.code, FULL.message, dict(FULL.numbers), FULL.blockers)
    other = Reason(Code.POOL_EMPTY, "nothing is there", {"pool": "default"})
    said = [Wait("a", FULL, 1), Wait("b", FULL, 2), Wait("c", equal, 3), Wait("d", other, 4)]

    await store.write(lambda tx: waits.write(tx, said, builders.NOW))
    kept = await store.read(waits.read)

    stored = StoredReason(FULL.code, FULL.message, dict(FULL.numbers), (("w", "w holds one"), (None, "x")))
    assert [kept.reason(id) for id in "abc"] == [stored] * 3
    assert kept.reason("d") == StoredReason(other.code, other.message, dict(other.numbers))
    assert [kept.position(id) for id in "abcde"] == [1, 2, 3, 4, None]
    assert kept.reason("e") is None
    assert len(kept.reasons) == 2


async def test_before_the_first_cycle_nobody_has_a_reason(store: db.SqlStore) -> None:
    kept = await store.read(waits.read)

    assert (kept.reason("a"), kept.position("a")) == (None, None)


async def test_a_cycle_that_finds_the_same_writes_nothing(store: db.SqlStore) -> None:
    said = [Wait("a", FULL, 1)]
    await store.write(lambda tx: waits.write(tx, said, builders.NOW))

    def again(tx: ports.Transaction) -> tuple[Any, Any]:  # Any: rows
        before = tx.facts.get(waits.FACT)
        waits.write(tx, said, builders.NOW)
        return before, tx.facts.get(waits.FACT)

    before, after = await store.write(again)
    assert before is after


async def test_a_workload_that_starts_and_waits_again_shows_no_old_reason(world: worlds.World) -> None:
    await world.submit("holder", gpu="8")
    await world.submit("waiting", gpu="8")
    await world.cycle()
    told = await world.workloads.get(worlds.ANN, "waiting")

    await world.workloads.suspend(worlds.ANN, "waiting")
    suspended = await world.workloads.get(worlds.ANN, "waiting")
    await world.cycle()
    await world.workloads.resume(worlds.ANN, "waiting")
    resumed = await world.workloads.get(worlds.ANN, "waiting")

    assert told.reason is not None
    assert (told.reason.code, told.reason.position) == (Code.NO_FREE_DEVICE, 1)
    assert (suspended.reason, resumed.reason) == (None, None)
