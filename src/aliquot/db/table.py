"""The rows of one kind, as the use cases see them: a `Table` on one connection.

Promises: a broken unique rule is a Conflict that names the field; a row of another scope is not seen.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from aliquot.core import errors
from aliquot.db import codec, dialect, query, schema
from aliquot.service import ports, records

Row = TypeVar("Row")

# Any in this module: a row of any kind, or the value of a field.


class SqlTable(Generic[Row]):
    """Implements `ports.Table`."""

    def __init__(self, connection: sa.Connection, kind: schema.Kind, scope: records.Scope) -> None:
        self._connection = connection
        self._kind = kind
        self._table = kind.table
        self._scope = scope
        self.newest = 0
        """The highest number that the store gave in this transaction."""

    def get(self, id: str) -> Row | None:
        """The row of this id."""
        key = self._key(id)
        if key is None:
            return None
        statement = sa.select(self._table).where(*self._scoped(), self._table.c[self._kind.key] == key)
        found = self._connection.execute(statement).mappings().one_or_none()
        return None if found is None else self._load(found)

    def find(self, *conditions: ports.Where, **equal: object) -> Sequence[Row]:
        """All rows that match, by id."""
        statement = sa.select(self._table).where(*self._where(conditions, equal))
        found = self._connection.execute(statement.order_by(self._table.c[self._kind.key])).mappings()
        return [self._load(values) for values in found]

    def page(self, query_: ports.Query) -> tuple[Sequence[Row], ports.Part]:
        """A part of the rows that match, in the query's order."""
        where = self._where(query_.where, {})
        keys = query.order(self._kind, query_.sort)
        statement = sa.select(self._table).where(*where).order_by(*query.ordering(keys))
        if query_.after is not None:
            statement = statement.where(query.after(self._kind, keys, query_.after))
        if query_.limit is not None:
            # One more than asked for says whether something follows.
            statement = statement.limit(query_.limit + 1)
        found = self._connection.execute(statement).mappings().all()
        part = found if query_.limit is None else found[: query_.limit]
        following = query.write_cursor(keys, dict(part[-1])) if part and len(found) > len(part) else None
        return [self._load(values) for values in part], ports.Part(self._count(where), following)

    def count(self, *conditions: ports.Where, **equal: object) -> int:
        """How many match."""
        return self._count(self._where(conditions, equal))

    def put(self, row: Row) -> Row:
        """Insert or replace."""
        values = codec.store(row, self._kind.columns)
        if (values["tenant"], values["cluster"]) != (self._scope.tenant, self._scope.cluster):
            raise ValueError(f"a row of {values['tenant']}/{values['cluster']} does not belong into this store's scope")
        try:
            return self._number(row, values) if self._kind.key != "id" else self._upsert(row, values)
        except sa.exc.IntegrityError as error:
            raise self._conflict(error) from error

    def delete(self, id: str) -> None:
        """Remove the row, if it is there."""
        key = self._key(id)
        if key is not None:
            mine = [*self._scoped(), self._table.c[self._kind.key] == key]
            self._connection.execute(sa.delete(self._table).where(*mine))

    def _key(self, id: str) -> str | int | None:
        """The id as the database has it; None: no row can have it."""
        if self._kind.key == "id":
            return id
        number = int(id) if id.isascii() and id.isdigit() and len(id) < 20 else 0
        return number if 0 < number < 2**63 else None

    def _upsert(self, row: Row, values: dict[str, Any]) -> Row:
        # Update first: what is put most often is there already, and this is the same SQL on every database.
        key = self._table.c[self._kind.key] == values[self._kind.key]
        changed = self._connection.execute(sa.update(self._table).where(*self._scoped(), key).values(values))
        if changed.rowcount == 0:
            self._connection.execute(sa.insert(self._table).values(values))
        return row

    def _number(self, row: Any, values: dict[str, Any]) -> Row:
        if getattr(row, self._kind.key):
            return self._upsert(row, values)
        del values[self._kind.key]
        done = self._connection.execute(sa.insert(self._table).values(values))
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

    def _where(self, conditions: Sequence[ports.Where], equal: dict[str, object]) -> list[sa.ColumnElement[bool]]:
        named = [ports.Where(name, "eq", value) for name, value in equal.items()]
        return [*self._scoped(), *(query.condition(self._kind, where) for where in (*conditions, *named))]

    def _scoped(self) -> list[sa.ColumnElement[bool]]:
        return [self._table.c.tenant == self._scope.tenant, self._table.c.cluster == self._scope.cluster]

    def _count(self, where: list[sa.ColumnElement[bool]]) -> int:
        return self._connection.execute(sa.select(sa.func.count()).select_from(self._table).where(*where)).scalar_one()

    def _load(self, values: Any) -> Row:
        row: Row = codec.load(self._kind.row, self._kind.columns, values)
        return row


class SqlTransaction:
    """Implements `ports.Transaction`: the tables, on one connection."""

    def __init__(self, connection: sa.Connection, scope: records.Scope) -> None:
        def table(kind: schema.Kind) -> SqlTable[Any]:
            return SqlTable(connection, kind, scope)

        self.queues: SqlTable[records.QueueRow] = table(schema.QUEUES)
        self.workloads: SqlTable[records.WorkloadRow] = table(schema.WORKLOADS)
        self.pods: SqlTable[records.PodRow] = table(schema.PODS)
        self.promises: SqlTable[records.PromiseRow] = table(schema.PROMISES)
        self.ledger: SqlTable[records.LedgerRow] = table(schema.LEDGER)
        self.receipts: SqlTable[records.ReceiptRow] = table(schema.RECEIPTS)
        self.events: SqlTable[records.EventRow] = table(schema.EVENTS)
        self.audit: SqlTable[records.AuditRow] = table(schema.AUDIT)
        self.cordons: SqlTable[records.CordonRow] = table(schema.CORDONS)
        self.devices: SqlTable[records.DeviceRow] = table(schema.DEVICES)
        self.credentials: SqlTable[records.CredentialRow] = table(schema.CREDENTIALS)
        self.facts: SqlTable[records.FactRow] = table(schema.FACTS)
