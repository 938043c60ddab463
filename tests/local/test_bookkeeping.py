"""How a plan is written down, on a real database: whole or not at all, and only while it still fits what is stored."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from aliquot.core.lifecycle import Phase
from aliquot.core.model import GpuRequest, Place, PodRequest, Share, Snapshot
from aliquot.core.plan import Bind, Evict, Nominate, Plan, Rule
from aliquot.db import store as db
from aliquot.local import bookkeeping
from aliquot.service import demand
from aliquot.service.ports import Transaction
from aliquot.service.records import QueueRow, WorkloadRow
from aliquot.wire.workloads import Definition, Kind, PodPhase

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PEN = bookkeeping.Pen(NOW, lambda taken: 20_000 + len(taken))

pytestmark = pytest.mark.anyio


@pytest.fixture
def store() -> Iterator[db.SqlStore]:
    opened = db.open_store(":memory:")
    yield opened
    opened.close()


def gang(replicas: int = 2, kind: Kind = Kind.TRAINING) -> WorkloadRow:
    return WorkloadRow(
        id="w",
        name="train",
        project="p",
        definition=Definition(command=["true"], replicas=replicas, kind=kind, gpu="1"),
        request=PodRequest(GpuRequest()),
        priority=25,
        is_preemptible=True,
        grace=timedelta(seconds=30),
        back_off=timedelta(seconds=10),
        actor="admin",
        created=NOW,
        waiting_since=NOW,
    )


def planned(row: WorkloadRow) -> tuple[Plan, Snapshot]:
    """A plan that binds every pod of the workload, each on a device of its own."""
    wanted = demand.demand(row, ())
    binds = tuple(Bind(row.id, Place(pod.id, "n", (Share(f"gpu-{pod.index}", 1000, 80),))) for pod in wanted.pods)
    return Plan(binds=binds), Snapshot(workloads=(wanted,))


def keep(tx: Transaction, row: WorkloadRow) -> None:
    if tx.queues.get("d") is None:
        tx.queues.put(QueueRow("d", "d", NOW))
        tx.queues.put(QueueRow("p", "p", NOW, department="d"))
    tx.workloads.put(row)


async def test_a_gang_is_bound_whole_with_its_ledger_entries(store: db.SqlStore) -> None:
    row = gang()
    await store.write(lambda tx: keep(tx, row))

    await store.write(lambda tx: bookkeeping.write_plan(tx, *planned(row), PEN))

    bound = await store.read(lambda tx: tx.workloads.get("w"))
    pods = await store.read(lambda tx: tx.pods.find(workload="w"))
    entries = await store.read(lambda tx: tx.ledger.find(closed=None))
    assert bound is not None
    assert (bound.phase, bound.attempt) == (Phase.STARTING, 1)
    assert [(pod.index, pod.phase, pod.port) for pod in pods] == [(0, PodPhase.BOUND, None), (1, PodPhase.BOUND, None)]
    assert {(entry.pod, entry.device, entry.milli) for entry in entries} == {
        (pod.id, f"gpu-{pod.index}", 1000) for pod in pods
    }


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"phase": Phase.SUSPENDED},
        {"request": PodRequest(GpuRequest(devices=2))},
        {"definition": gang(3).definition},
        {"is_preemptible": False},
    ],
)
async def test_a_plan_for_what_a_person_changed_meanwhile_binds_nothing(
    store: db.SqlStore, meanwhile: dict[str, object]
) -> None:
    row = gang()
    changed = replace(row, **meanwhile)  # type: ignore[arg-type]  # fields by name
    await store.write(lambda tx: keep(tx, changed))

    await store.write(lambda tx: bookkeeping.write_plan(tx, *planned(row), PEN))

    assert await store.read(lambda tx: tx.workloads.get("w")) == changed
    assert await store.read(lambda tx: tx.pods.count()) == 0
    assert await store.read(lambda tx: tx.ledger.count()) == 0


async def test_each_pod_of_a_workspace_gets_a_port_of_its_own(store: db.SqlStore) -> None:
    row = gang(kind=Kind.WORKSPACE)
    await store.write(lambda tx: keep(tx, row))

    await store.write(lambda tx: bookkeeping.write_plan(tx, *planned(row), PEN))

    ports = await store.read(lambda tx: [pod.port for pod in tx.pods.find()])
    assert ports == [20_000, 20_001]


async def test_an_eviction_leaves_a_receipt_and_keeps_the_ledger_open_until_the_pod_is_gone(store: db.SqlStore) -> None:
    row = gang(1)
    await store.write(lambda tx: keep(tx, row))
    await store.write(lambda tx: bookkeeping.write_plan(tx, *planned(row), PEN))

    evict = Evict("w", "w-1-0", "other", Rule.RECLAIM, "p holds 1 of its quota of 0")
    await store.write(lambda tx: bookkeeping.write_plan(tx, Plan(evicts=(evict,)), Snapshot(), PEN))

    evicted = await store.read(lambda tx: tx.workloads.get("w"))
    receipts = await store.read(lambda tx: tx.receipts.find())
    assert evicted is not None
    assert (evicted.phase, evicted.evictions) == (Phase.EVICTING, 1)
    assert [(one.workload, one.beneficiary, one.rule) for one in receipts] == [("w", "other", "reclaim")]
    assert await store.read(lambda tx: tx.ledger.count(closed=None)) == 1


@pytest.mark.parametrize("rule", [Rule.STALE_GANG, Rule.DRAIN])
async def test_an_eviction_that_serves_nobody_names_nobody_and_the_workload_waits_again(
    store: db.SqlStore, rule: Rule
) -> None:
    row = gang(2)
    await store.write(lambda tx: keep(tx, row))
    await store.write(lambda tx: bookkeeping.write_plan(tx, *planned(row), PEN))

    evicts = tuple(Evict("w", f"w-1-{index}", "", rule, "p is drained") for index in range(2))
    await store.write(lambda tx: bookkeeping.write_plan(tx, Plan(evicts=evicts), Snapshot(), PEN))

    receipts = await store.read(lambda tx: tx.receipts.find())
    events = await store.read(lambda tx: tx.events.find(code="evicted"))
    assert [(one.pod, one.beneficiary, one.beneficiary_name, one.rule) for one in receipts] == [
        ("w-1-0", None, None, rule),
        ("w-1-1", None, None, rule),
    ]
    assert [one.message for one in events] == [f"is told to end, for nobody ({rule}): p is drained"]
    turns = await store.write(lambda tx: bookkeeping.look_over(tx, bookkeeping.open_rows(tx), {}, now=NOW))
    assert [(turn.row.phase, turn.row.evictions, turn.row.failures) for turn in turns] == [(Phase.PENDING, 1, 0)]


async def test_a_promise_keeps_the_time_it_was_made_and_goes_when_it_is_not_made_again(store: db.SqlStore) -> None:
    row = gang(1)
    await store.write(lambda tx: keep(tx, row))
    made = Nominate("w", (Place("w-1-0", "n"),), ("x",), NOW + timedelta(seconds=30), NOW + timedelta(seconds=60))
    later = bookkeeping.Pen(NOW + timedelta(seconds=5), PEN.new_port)

    await store.write(lambda tx: bookkeeping.write_plan(tx, Plan(nominates=(made,)), Snapshot(), PEN))
    await store.write(lambda tx: bookkeeping.write_plan(tx, Plan(nominates=(made,)), Snapshot(), later))
    kept = await store.read(lambda tx: tx.promises.find())
    await store.write(lambda tx: bookkeeping.write_plan(tx, Plan(), Snapshot(), later))

    assert [promise.made for promise in kept] == [NOW]
    assert await store.read(lambda tx: tx.promises.count()) == 0
