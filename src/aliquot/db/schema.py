"""The tables: one for each kind of row, made from its fields, with the rules and indices that the use cases rely on.

The migrations build the same (a test compares them), so a change here needs a new one there.
"""

from dataclasses import dataclass

import sqlalchemy as sa

from aliquot.db import codec
from aliquot.service import records

# The scope comes last in every key and index. It has one value today, and without statistics SQLite takes any two
# columns that are compared for a good choice: it would read all rows of the scope and not the few of one workload.

# Names for what SQL would leave unnamed: a migration must be able to say which one it drops.
metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A unique rule: the columns under it, and what is said when it is broken."""

    columns: tuple[str, ...]
    code: str
    message: str
    field: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of row: its class, its columns, its table, its key and its unique rules by index name."""

    row: type
    columns: tuple[codec.Column, ...]
    table: sa.Table
    key: str
    rules: tuple[Rule, ...] = ()


def _kind(name: str, row: type, *extra: sa.schema.SchemaItem, key: str = "id", rules: tuple[Rule, ...] = ()) -> Kind:
    columns = codec.columns(row)
    scope = [sa.Column(part, sa.Text(), nullable=False) for part in codec.SCOPE]
    if key == "id":
        made = [sa.Column(one.name, one.kind, nullable=one.is_nullable) for one in columns]
        extra = (sa.PrimaryKeyConstraint(key, *codec.SCOPE), *extra)
        table = sa.Table(name, metadata, *scope, *made, *extra)
    else:
        # Given by the store, growing, never used twice. SQLite numbers only a column of its type INTEGER.
        counted = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
        made = [sa.Column(one.name, one.kind, nullable=one.is_nullable) for one in columns if one.name != key]
        number = sa.Column(key, counted, primary_key=True, autoincrement=True)
        table = sa.Table(name, metadata, *scope, *made, number, *extra, sqlite_autoincrement=True)
    return Kind(row, columns, table, key, rules)


def _index(*names: str) -> sa.Index:
    return sa.Index(None, *names, *codec.SCOPE)


def _partial(name: str, *names: str, where: str) -> sa.Index:
    """An index over the few rows of which this holds: what the loop asks for in every cycle must not cost more as the
    past grows."""
    condition = sa.text(where)
    return sa.Index(name, *names, *codec.SCOPE, sqlite_where=condition, postgresql_where=condition)


def _unique(name: str, *names: str, where: str | None = None) -> sa.Index:
    condition = None if where is None else sa.text(where)
    return sa.Index(name, *names, *codec.SCOPE, unique=True, sqlite_where=condition, postgresql_where=condition)


def _parent(column: str, table: str) -> sa.ForeignKeyConstraint:
    # Deferred: within a transaction the order of writing is free, at its end the parent must be there.
    return sa.ForeignKeyConstraint(
        [column, *codec.SCOPE],
        [f"{table}.{part}" for part in ("id", *codec.SCOPE)],
        deferrable=True,
        initially="DEFERRED",
    )


QUEUES = _kind(
    "queues",
    records.QueueRow,
    _unique("uq_queues_department", "name", where="department IS NULL"),
    _unique("uq_queues_project", "name", where="department IS NOT NULL"),
    _index("department"),
    _parent("department", "queues"),
    rules=(Rule(("name",), "name-taken", "the name is taken", "name"),),
)
WORKLOADS = _kind(
    "workloads",
    records.WorkloadRow,
    _unique("uq_workloads_unfinished", "project", "name", where="finished IS NULL"),
    _unique("uq_workloads_key", "actor", "key", where="key IS NOT NULL"),
    _index("phase"),
    _index("name"),
    _index("created"),
    _index("project", "created"),
    _partial("ix_workloads_open", "id", where="finished IS NULL"),
    _partial("ix_workloads_deleting", "is_deleting", where="deleted IS NULL"),
    _partial("ix_workloads_ttl", "id", where="ttl IS NOT NULL AND deleted IS NULL"),
    rules=(
        Rule(("project", "name"), "name-taken", "an unfinished workload of the project has this name", "name"),
        Rule(("actor", "key"), "idempotency-key-reused", "the idempotency key was used", "key"),
    ),
)
PODS = _kind(
    "pods",
    records.PodRow,
    _index("workload", "attempt", "index"),
    _index("phase"),
    _partial("ix_pods_open", "id", where="ended IS NULL"),
    _parent("workload", "workloads"),
)
PROMISES = _kind("promises", records.PromiseRow)
LEDGER = _kind(
    "ledger",
    records.LedgerRow,
    _unique("uq_ledger_open", "pod", "device", where="closed IS NULL"),
    _index("workload"),
    _index("project"),
    _partial("ix_ledger_open", "id", where="closed IS NULL"),
    rules=(Rule(("pod", "device"), "ledger-open-twice", "the pod has an open entry for this device", "device"),),
)
RECEIPTS = _kind("receipts", records.ReceiptRow, _index("workload"), _index("project"), _index("evicted"))
EVENTS = _kind("events", records.EventRow, _index("subject"), _index("project"), _index("noun", "code"), key="sequence")
AUDIT = _kind("audit", records.AuditRow, _index("time"), _index("subject"))
PAST_REASONS = _kind("past_reasons", records.PastReasonRow, _index("workload", "since"))
SAMPLES = _kind("samples", records.SampleRow, _index("grain", "kind", "time"))
CORDONS = _kind("cordons", records.CordonRow)
DEVICES = _kind("devices", records.DeviceRow)
CREDENTIALS = _kind("credentials", records.CredentialRow)
FACTS = _kind("facts", records.FactRow)

KINDS: dict[str, Kind] = {
    kind.table.name: kind
    for kind in (
        QUEUES,
        WORKLOADS,
        PODS,
        PROMISES,
        LEDGER,
        RECEIPTS,
        EVENTS,
        AUDIT,
        PAST_REASONS,
        SAMPLES,
        CORDONS,
        DEVICES,
        CREDENTIALS,
        FACTS,
    )
}
