"""Tables against what a plain dict would do, and the rules that the use cases rely on."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot.core import errors
from aliquot.core.model import PodRequest
from aliquot.db import schema, store
from aliquot.service import ports, records
from aliquot.wire import workloads
from tests import builders
from tests.db import rows

KINDS = {kind.row: name for name, kind in schema.KINDS.items()}


class Undo(Exception):
    """Carries a result out of a transaction that is not to be kept."""

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result


@pytest.fixture(scope="module")
def opened() -> Iterator[store.SqlStore]:
    one = store.open_store(":memory:")
    yield one
    one.close()


def tried(opened: store.SqlStore, work: Callable[[ports.Transaction], Any]) -> Any:  # Any: whatever the work returns
    """The result of `work` on empty tables."""

    def undone(tx: ports.Transaction) -> None:
        raise Undo(work(tx))

    try:
        asyncio.run(opened.write(undone))
    except Undo as undo:
        return undo.result


def entry(id: str, **fields: Any) -> records.LedgerRow:  # Any: the values of the row's fields
    plain = records.LedgerRow(id, "work", "team", f"pod-{id}", "gpu-0", milli=500, mib=10, opened=builders.NOW)
    return replace(plain, **fields)


def workload(id: str, **fields: Any) -> records.WorkloadRow:  # Any: the values of the row's fields
    plain = records.WorkloadRow(
        id=id,
        name="job",
        project="team",
        definition=workloads.Definition(command=["true"], labels={"team.io/stage": "dev"}),
        request=PodRequest(),
        priority=50,
        is_preemptible=True,
        grace=timedelta(seconds=30),
        back_off=timedelta(seconds=10),
        actor="ann",
        created=builders.NOW,
        waiting_since=builders.NOW,
    )
    return replace(plain, **fields)


@pytest.mark.parametrize("kind", rows.KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_kind_of_row_comes_back_as_it_was_put(opened: store.SqlStore, kind: type, data: st.DataObject) -> None:
    row = data.draw(rows.row(kind))
    if kind is records.EventRow:
        row = replace(row, sequence=abs(row.sequence) % 2**62 + 1)
    key = str(row.sequence) if kind is records.EventRow else row.id

    def work(tx: ports.Transaction) -> Any:
        table = getattr(tx, KINDS[kind])
        table.put(row)
        return table.get(key), table.find()

    assert tried(opened, work) == (row, [row])


FIELDS = ("id", "workload", "milli", "opened", "closed", "used_milli_seconds")
SHORT = st.text("ab%_", max_size=3)
ENTRIES = st.builds(
    entry,
    id=st.text("abc", min_size=1, max_size=2),
    workload=SHORT,
    milli=st.integers(0, 3),
    closed=st.none() | st.integers(0, 2).map(lambda days: builders.NOW + timedelta(days=days)),
    used_milli_seconds=st.none() | st.integers(0, 2),
)
WHERES = st.one_of(
    st.builds(ports.Where, st.just("workload"), st.sampled_from(("eq", "ne", "contains", "lt", "ge")), SHORT),
    st.builds(ports.Where, st.just("workload"), st.just("in"), st.lists(SHORT, max_size=3)),
    st.builds(ports.Where, st.just("milli"), st.sampled_from(("eq", "ne", "lt", "le", "gt", "ge")), st.integers(0, 3)),
    st.builds(ports.Where, st.just("closed"), st.sampled_from(("is", "eq", "ne")), st.none()),
    st.builds(ports.Where, st.just("closed"), st.sampled_from(("eq", "ne", "lt", "ge")), st.just(builders.NOW)),
)
CHANGES = st.lists(st.tuples(st.booleans(), ENTRIES), max_size=30)
SORTS = st.lists(st.tuples(st.sampled_from(("", "-")), st.sampled_from(FIELDS)).map("".join), max_size=3).map(tuple)


def holds(where: ports.Where, row: records.LedgerRow) -> bool:
    """What a condition means."""
    value, wanted = getattr(row, where.field), where.value
    if where.operator in {"eq", "is"}:
        return bool(value == wanted)
    if where.operator == "ne":
        return bool(value != wanted)
    if where.operator == "in":
        return value in wanted  # type: ignore[operator]  # the value of `in` is a sequence
    if value is None:
        return False
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "contains": lambda one, other: other in one,
        "lt": lambda one, other: one < other,
        "le": lambda one, other: one <= other,
        "gt": lambda one, other: one > other,
        "ge": lambda one, other: one >= other,
    }
    return tests[where.operator](value, wanted)


def ordered(found: list[records.LedgerRow], sort: tuple[str, ...]) -> list[records.LedgerRow]:
    """Rows in the order of a query: None first, the id breaks ties."""
    for name in reversed((*sort, "id")):
        bare = name.removeprefix("-")
        is_descending = name.startswith("-")

        def key(row: records.LedgerRow, bare: str = bare) -> tuple[bool, Any]:
            value = getattr(row, bare)
            return (value is not None, 0 if value is None else value)

        found = sorted(found, key=key, reverse=is_descending)
    return found


def walk(table: ports.Table[records.LedgerRow], query: ports.Query) -> tuple[list[records.LedgerRow], set[int]]:
    """All pages, and the totals they told."""
    found: list[records.LedgerRow] = []
    totals = set()
    while True:
        part, about = table.page(query)
        found += part
        totals.add(about.total)
        if about.next is None:
            return found, totals
        query = replace(query, after=about.next)


@given(changes=CHANGES, where=st.lists(WHERES, max_size=2).map(tuple), sort=SORTS, limit=st.integers(1, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_does_what_a_dict_does(
    opened: store.SqlStore,
    changes: list[tuple[bool, records.LedgerRow]],
    where: tuple[ports.Where, ...],
    sort: tuple[str, ...],
    limit: int,
) -> None:
    oracle: dict[str, records.LedgerRow] = {}
    for is_put, row in changes:
        if is_put:
            oracle[row.id] = row
        else:
            oracle.pop(row.id, None)

    def work(tx: ports.Transaction) -> Any:
        for is_put, row in changes:
            if is_put:
                tx.ledger.put(row)
            else:
                tx.ledger.delete(row.id)
        query = ports.Query(where, sort, limit)
        return tx.ledger.find(*where), tx.ledger.count(*where), walk(tx.ledger, query), tx.ledger.get("a")

    found, count, (paged, totals), one = tried(opened, work)
    matching = [row for row in oracle.values() if all(holds(condition, row) for condition in where)]
    assert found == sorted(matching, key=lambda row: row.id)
    assert count == len(matching)
    assert paged == ordered(matching, sort)
    assert totals == {len(matching)}
    assert one == oracle.get("a")


def test_events_are_numbered_upwards_and_no_number_comes_twice(opened: store.SqlStore) -> None:
    event = records.EventRow(builders.NOW, "workload", "1", "job", "submitted", "It was submitted.")

    def work(tx: ports.Transaction) -> list[int]:
        first, second = tx.events.put(event), tx.events.put(event)
        tx.events.delete(str(second.sequence))
        third = tx.events.put(event)
        return [first.sequence, second.sequence, third.sequence]

    first, second, third = tried(opened, work)
    assert 0 < first < second < third


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (workload("2"), "name-taken"),
        (workload("2", name="other", key="k"), "idempotency-key-reused"),
    ],
)
def test_a_broken_rule_of_workloads_is_a_conflict_with_its_code(
    opened: store.SqlStore, second: records.WorkloadRow, code: str
) -> None:
    def work(tx: ports.Transaction) -> None:
        tx.workloads.put(workload("1", key="k"))
        tx.workloads.put(second)

    with pytest.raises(errors.Conflict) as caught:
        tried(opened, work)
    assert caught.value.stable_code == code


def test_a_name_is_free_again_once_its_workload_has_finished(opened: store.SqlStore) -> None:
    def work(tx: ports.Transaction) -> int:
        tx.workloads.put(workload("1", finished=builders.NOW))
        tx.workloads.put(workload("2"))
        tx.workloads.put(workload("3", project="other"))
        return tx.workloads.count(name="job")

    assert tried(opened, work) == 3


def test_a_pod_has_one_open_entry_for_a_device(opened: store.SqlStore) -> None:
    def work(tx: ports.Transaction) -> None:
        tx.ledger.put(entry("1", pod="pod", closed=builders.NOW))
        tx.ledger.put(entry("2", pod="pod"))
        tx.ledger.put(entry("3", pod="pod"))

    with pytest.raises(errors.Conflict, match="open entry"):
        tried(opened, work)


def test_a_department_and_a_project_may_share_a_name_but_not_two_projects(opened: store.SqlStore) -> None:
    department = records.QueueRow("1", "default", builders.NOW)
    project = records.QueueRow("2", "default", builders.NOW, department="1")

    def work(tx: ports.Transaction) -> None:
        tx.queues.put(department)
        tx.queues.put(project)
        tx.queues.put(replace(project, id="3"))

    with pytest.raises(errors.Conflict) as caught:
        tried(opened, work)
    assert (caught.value.stable_code, caught.value.field) == ("name-taken", "name")


def test_labels_are_found_inside_the_definition(opened: store.SqlStore) -> None:
    def work(tx: ports.Transaction) -> list[int]:
        tx.workloads.put(workload("1"))
        return [tx.workloads.count(**{"definition.labels.team.io/stage": value}) for value in ("dev", "live")]

    assert tried(opened, work) == [1, 0]


@pytest.mark.parametrize("name", ["colour", "definition", "name.inner", 'definition.labels."', ""])
def test_a_field_that_is_not_there_cannot_be_looked_for(opened: store.SqlStore, name: str) -> None:
    with pytest.raises(errors.InvalidInput):
        tried(opened, lambda tx: tx.workloads.find(ports.Where(name, "eq", "x")))


@pytest.mark.parametrize(
    "query",
    [
        ports.Query(sort=("colour",)),
        ports.Query(sort=("shares",)),
        ports.Query(after="%%%"),
        ports.Query(after="é"),
        ports.Query(after="W10"),
        ports.Query(after="WyJpZCIsWzVdXQ"),
        ports.Query(sort=("bound",), after="WyJpZCIsWyJhIl1d"),
    ],
)
def test_an_unknown_order_or_cursor_is_refused(opened: store.SqlStore, query: ports.Query) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        tried(opened, lambda tx: tx.pods.page(query))
    assert caught.value.field in {"sort", "cursor"}


def test_a_row_of_another_scope_is_neither_taken_nor_seen() -> None:
    other = store.open_store(":memory:", scope=records.Scope("other", "default"))

    with pytest.raises(ValueError, match="does not belong"):
        tried(other, lambda tx: tx.ledger.put(entry("1")))
    other.close()


HOT: list[tuple[str, tuple[ports.Where, ...]]] = [
    ("workloads", (ports.Where("finished", "is", None), ports.Where("deleted", "eq", None))),
    ("workloads", (ports.Where("is_deleting", "eq", True), ports.Where("deleted", "eq", None))),
    ("workloads", (ports.Where("ttl", "ne", None), ports.Where("deleted", "eq", None))),
    ("workloads", (ports.Where("actor", "eq", "ann"), ports.Where("key", "eq", "k"))),
    ("workloads", (ports.Where("name", "eq", "job"), ports.Where("deleted", "eq", None))),
    ("pods", (ports.Where("workload", "in", ["a", "b"]),)),
    ("pods", (ports.Where("phase", "in", ["bound", "running", "ending"]),)),
    ("pods", (ports.Where("ended", "is", None),)),
    ("ledger", (ports.Where("closed", "is", None),)),
    ("ledger", (ports.Where("closed", "is", None), ports.Where("pod", "eq", "p"))),
    ("ledger", (ports.Where("project", "eq", "p"),)),
    ("events", (ports.Where("subject", "eq", "s"),)),
]


@pytest.mark.parametrize(("name", "where"), HOT)
def test_what_every_cycle_asks_is_answered_from_an_index(
    opened: store.SqlStore, name: str, where: tuple[ports.Where, ...]
) -> None:
    asked: list[tuple[str, Any]] = []  # Any: the parameters of a statement

    def work(tx: ports.Transaction) -> list[str]:
        table = getattr(tx, name)
        sa.event.listen(table._connection, "before_cursor_execute", lambda *said: asked.append(said[2:4]))
        table.find(*where)
        statement, parameters = asked[0]
        plan = table._connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return [str(row[-1]) for row in plan]

    plan = tried(opened, work)

    # An index over open rows alone may be read from end to end: there are few of them, however long the past is.
    found = [line for line in plan if not line.startswith("USE TEMP B-TREE")]
    partial = ("ix_workloads_open", "ix_workloads_ttl", "ix_pods_open", "ix_ledger_open")
    assert found != []
    assert [line for line in found if not line.startswith("SEARCH") and not line.endswith(partial)] == []


def test_a_row_is_the_same_object_until_it_changes(opened: store.SqlStore) -> None:
    def work(tx: ports.Transaction) -> list[Any]:
        tx.workloads.put(workload("w"))
        first, second = tx.workloads.get("w"), tx.workloads.find()[0]
        tx.workloads.put(replace(workload("w"), priority=75))
        return [first, second, tx.workloads.get("w")]

    first, second, changed = tried(opened, work)

    assert first is second
    assert (first.priority, changed.priority) == (50, 75)
