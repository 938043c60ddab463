"""The rows of one kind, as the use cases see them: a `Table` on one connection.

Promises: a broken unique rule is a Conflict that names the field; a row of another scope is not seen; a row that has
not changed since it was read last is the same object, and costs next to nothing to read again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from aliquot.core import errors
from aliquot.db import codec, dialect, query, schema
from aliquot.service import ports, records

Row = TypeVar("Row")

# Any in this module: a row of any kind, or the value of a field.


@dataclass(frozen=True, slots=True)
class _Statements:
    """What is asked most, built once: building a statement takes longer than SQLite takes to answer it."""

    get: sa.Select[Any]
    insert: sa.Insert
    update: sa.Update
    delete: sa.Delete


def _statements(kind: schema.Kind) -> _Statements:
    table = kind.table
    # Bound names begin with `its_`, so that they are told from the columns that an update sets.
    mine = [table.c[name] == sa.bindparam(f"its_{name}") for name in (*codec.SCOPE, kind.key)]
    return _Statements(
        get=_reading(kind).where(*mine),
        insert=sa.insert(table),
        update=sa.update(table).where(*mine),
        delete=sa.delete(table).where(*mine),
    )


def _reading(kind: schema.Kind) -> sa.Select[Any]:
    return sa.select(*codec.reading(kind.columns, kind.table))


class Memory:
    """The rows that were read last, with the values they were made from. Shared by all connections of a store: a row is
    made from its values alone, so whoever made it made the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Any], tuple[tuple[Any, ...], Any]] = {}

    def row(self, kind: schema.Kind, values: tuple[Any, ...]) -> Any:
        """The row of these values."""
        if kind.table.name in FORGOTTEN:
            return codec.load(kind.row, kind.columns, values)
        key = (kind.table.name, values[_KEY_PLACE[kind.table.name]])
        known = self._known.get(key)
        if known is not None and known[0] == values:
            return known[1]
        row = codec.load(kind.row, kind.columns, values)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[key] = (values, row)
        return row


MOST_REMEMBERED = 50_000
"""At most so many rows are kept, of about a kilobyte each: more than there are open workloads and pods."""
FORGOTTEN = frozenset({"audit", "ledger", "past_reasons", "samples"})
"""Rows that are read by the thousand and not again soon: they would push out those that the loop asks for."""
_KEY_PLACE = {
    name: len(codec.SCOPE) + [column.name for column in kind.columns].index(kind.key)
    for name, kind in schema.KINDS.items()
}
_SELECTING: dict[tuple[str, tuple[tuple[str, str, bool], ...]], sa.Select[Any]] = {}
_STATEMENTS = {name: _statements(kind) for name, kind in schema.KINDS.items()}


class SqlTable(Generic[Row]):
    """Implements `ports.Table`."""

    def __init__(self, connection: sa.Connection, kind: schema.Kind, scope: records.Scope, *, memory: Memory) -> None:
        self._memory = memory
        self._connection = connection
        self._kind = kind
        self._table = kind.table
        self._scope = scope
        self._made = _STATEMENTS[kind.table.name]
        self.newest = 0
        """The highest number that the store gave in this transaction."""
        self.touched: set[str] = set()
        """The ids of the rows that were put or deleted in this transaction; of events, their nouns."""

    def get(self, id: str) -> Row | None:
        """The row of this id."""
        key = self._key(id)
        if key is None:
            return None
        found = self._connection.execute(self._made.get, self._its(key)).one_or_none()
        return None if found is None else self._load(found)

    def find(self, *conditions: ports.Where, **equal: object) -> Sequence[Row]:
        """All rows that match, by id."""
        wanted = _named(conditions, equal)
        statement = self._selecting(wanted)
        found = self._connection.execute(statement, self._bound(wanted))
        return [self._load(values) for values in found]

    def page(self, query_: ports.Query) -> tuple[Sequence[Row], ports.Part]:
        """A part of the rows that match, in the query's order."""
        keys = query.order(self._kind, query_.sort)
        where = self._where(query_.where)
        statement = _reading(self._kind).where(*where).order_by(*query.ordering(keys))
        if query_.after is not None:
            statement = statement.where(query.after(self._kind, keys, query_.after))
        if query_.limit is not None:
            # One more than asked for says whether something follows.
            statement = statement.limit(query_.limit + 1)
        found = self._connection.execute(statement, self._bound(query_.where)).all()
        part = found if query_.limit is None else found[: query_.limit]
        following = query.write_cursor(keys, dict(part[-1]._mapping)) if part and len(found) > len(part) else None
        return [self._load(values) for values in part], ports.Part(self._count(query_.where), following)

    def count(self, *conditions: ports.Where, **equal: object) -> int:
        """How many match."""
        return self._count(_named(conditions, equal))

    def put(self, row: Row) -> Row:
        """Insert or replace."""
        values = codec.store(row, self._kind.columns)
        if (values["tenant"], values["cluster"]) != (self._scope.tenant, self._scope.cluster):
            raise ValueError(f"a row of {values['tenant']}/{values['cluster']} does not belong into this store's scope")
        self.touched.add(values["noun" if self._kind.key == "sequence" else "id"])
        try:
            return self._number(row, values) if self._kind.key != "id" else self._upsert(row, values)
        except sa.exc.IntegrityError as error:
            raise self._conflict(error) from error

    def delete(self, id: str) -> None:
        """Remove the row, if it is there."""
        key = self._key(id)
        if key is not None:
            self.touched.add(id)
            self._connection.execute(self._made.delete, self._its(key))

    def _key(self, id: str) -> str | int | None:
        """The id as the database has it; None: no row can have it."""
        if self._kind.key == "id":
            return id
        number = int(id) if id.isascii() and id.isdigit() and len(id) < 20 else 0
        return number if 0 < number < 2**63 else None

    def _its(self, key: str | int) -> dict[str, Any]:
        return {
            "its_tenant": self._scope.tenant,
            "its_cluster": self._scope.cluster,
            f"its_{self._kind.key}": key,
        }

    def _upsert(self, row: Row, values: dict[str, Any]) -> Row:
        # Update first: what is put most often is there already, and this is the same SQL on every database.
        parameters = values | self._its(values[self._kind.key])
        if self._connection.execute(self._made.update, parameters).rowcount == 0:
            self._connection.execute(self._made.insert, values)
        return row

    def _number(self, row: Any, values: dict[str, Any]) -> Row:
        if getattr(row, self._kind.key):
            return self._upsert(row, values)
        del values[self._kind.key]
        done = self._connection.execute(self._made.insert, values)
        given = done.inserted_primary_key
        assert given is not None, "an insert of one row gives its key"
        self.newest = max(self.newest, given[0])
        numbered: Row = replace(row, **{self._kind.key: given[0]})
        return numbered

    def _conflict(self, error: sa.exc.IntegrityError) -> errors.AliquotError:
        broken = dialect.broken_columns(error)
        for rule in self._kind.rules:
            if set(rule.columns) == broken - set(codec.SCOPE):
                return errors.Conflict(rule.message, field=rule.field, code=rule.code)
        return errors.Conflict(f"the store refuses this row of {self._table.name}: {error.orig}")

    def _selecting(self, wanted: Sequence[ports.Where]) -> sa.Select[Any]:
        """The rows that match, by id; built once for each shape of conditions."""
        shape = query.shape(wanted)
        known = None if shape is None else _SELECTING.get((self._table.name, shape))
        if known is None:
            known = _reading(self._kind).where(*self._where(wanted)).order_by(self._table.c[self._kind.key])
            if shape is not None:
                _SELECTING[self._table.name, shape] = known
        return known

    def _where(self, wanted: Sequence[ports.Where]) -> list[sa.ColumnElement[bool]]:
        scoped = [self._table.c[name] == sa.bindparam(f"its_{name}") for name in codec.SCOPE]
        named = [query.condition(self._kind, one, query.bound_name(place)) for place, one in enumerate(wanted)]
        return [*scoped, *named]

    def _bound(self, wanted: Sequence[ports.Where]) -> dict[str, Any]:
        scoped = {"its_tenant": self._scope.tenant, "its_cluster": self._scope.cluster}
        return scoped | query.values(self._kind, wanted)

    def _count(self, wanted: Sequence[ports.Where]) -> int:
        statement = sa.select(sa.func.count()).select_from(self._table).where(*self._where(wanted))
        counted: int = self._connection.execute(statement, self._bound(wanted)).scalar_one()
        return counted

    def _load(self, values: sa.Row[Any]) -> Row:
        row: Row = self._memory.row(self._kind, tuple(values))
        return row


def _named(conditions: Sequence[ports.Where], equal: dict[str, object]) -> list[ports.Where]:
    return [*conditions, *(ports.Where(name, "eq", value) for name, value in equal.items())]


class SqlTransaction:
    """Implements `ports.Transaction`: the tables, on one connection."""

    def __init__(self, connection: sa.Connection, scope: records.Scope, memory: Memory) -> None:
        self._tables: dict[str, SqlTable[Any]] = {}
        self._touched: dict[str, set[str]] = {}

        def table(kind: schema.Kind) -> SqlTable[Any]:
            made = self._tables[kind.table.name] = SqlTable(connection, kind, scope, memory=memory)
            return made

        self.queues: SqlTable[records.QueueRow] = table(schema.QUEUES)
        self.workloads: SqlTable[records.WorkloadRow] = table(schema.WORKLOADS)
        self.pods: SqlTable[records.PodRow] = table(schema.PODS)
        self.promises: SqlTable[records.PromiseRow] = table(schema.PROMISES)
        self.ledger: SqlTable[records.LedgerRow] = table(schema.LEDGER)
        self.receipts: SqlTable[records.ReceiptRow] = table(schema.RECEIPTS)
        self.events: SqlTable[records.EventRow] = table(schema.EVENTS)
        self.audit: SqlTable[records.AuditRow] = table(schema.AUDIT)
        self.past_reasons: SqlTable[records.PastReasonRow] = table(schema.PAST_REASONS)
        self.samples: SqlTable[records.SampleRow] = table(schema.SAMPLES)
        self.cordons: SqlTable[records.CordonRow] = table(schema.CORDONS)
        self.devices: SqlTable[records.DeviceRow] = table(schema.DEVICES)
        self.credentials: SqlTable[records.CredentialRow] = table(schema.CREDENTIALS)
        self.facts: SqlTable[records.FactRow] = table(schema.FACTS)

    @property
    def touched(self) -> dict[str, set[str]]:
        """By table, the ids of the rows that were put or deleted."""
        return {name: table.touched for name, table in self._tables.items()} | self._touched

    def touch(self, table: str, ids: Iterable[str]) -> None:
        """Tell who keeps copies that something of these changed that is in no row of its own."""
        self._touched.setdefault(table, set()).update(ids)
