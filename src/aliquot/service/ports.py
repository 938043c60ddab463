"""The world as the use cases see it. Each port has at least two real implementations.

`Store` is kept by `db`; `Cluster` by `local` and `sim` (and later `kube`); `Clock` and `Ids` by `app` and `sim`.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeVar

from aliquot.core.model import Node, Snapshot
from aliquot.core.plan import Plan
from aliquot.service.records import (
    AuditRow,
    CordonRow,
    CredentialRow,
    DeviceRow,
    EventRow,
    FactRow,
    LedgerRow,
    PastReasonRow,
    PodRow,
    PromiseRow,
    QueueRow,
    ReceiptRow,
    SampleRow,
    WorkloadRow,
)
from aliquot.wire.nodes import DeviceUse
from aliquot.wire.workloads import LogChunk

Row = TypeVar("Row")
Result = TypeVar("Result")
Operator = Literal["eq", "ne", "in", "contains", "lt", "le", "gt", "ge", "is", "any"]


@dataclass(frozen=True, slots=True)
class Where:
    """One condition on a field of a row; `in` takes a sequence, `is` takes None, `contains` a part of a text.
    `any` takes conditions of which one must hold; its own field is only for messages."""

    field: str
    operator: Operator
    value: object


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows, in which order, which part. `sort`: fields, `-` before one for descending; the id breaks ties.
    `after` is the opaque cursor of an earlier part."""

    where: tuple[Where, ...] = ()
    sort: tuple[str, ...] = ()
    limit: int | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """About the rows that `page` returns: how many match (`total`) and the cursor of what follows (`next`)."""

    total: int
    next: str | None


class Table(Protocol[Row]):
    """The rows of one kind. Equality filters take field names: `pods.find(workload=id)`."""

    def get(self, id: str) -> Row | None:
        """The row of this id."""

    def find(self, *conditions: Where, **equal: object) -> Sequence[Row]:
        """All rows that match, by id."""

    def page(self, query: Query) -> tuple[Sequence[Row], Part]:
        """A part of the rows that match, in the query's order. Raises InvalidInput for an unknown field or cursor."""

    def count(self, *conditions: Where, **equal: object) -> int:
        """How many match."""

    def put(self, row: Row) -> Row:
        """Insert or replace. Raises Conflict where a unique rule is broken. Returns the row as stored."""

    def delete(self, id: str) -> None:
        """Remove the row, if it is there."""


class Transaction(Protocol):
    """All tables, within one transaction: everything that is written here is written, or nothing is."""

    @property
    def queues(self) -> Table[QueueRow]: ...
    @property
    def workloads(self) -> Table[WorkloadRow]: ...
    @property
    def pods(self) -> Table[PodRow]: ...
    @property
    def promises(self) -> Table[PromiseRow]: ...
    @property
    def ledger(self) -> Table[LedgerRow]: ...
    @property
    def receipts(self) -> Table[ReceiptRow]: ...
    @property
    def events(self) -> Table[EventRow]: ...
    @property
    def audit(self) -> Table[AuditRow]: ...
    @property
    def past_reasons(self) -> Table[PastReasonRow]: ...
    @property
    def samples(self) -> Table[SampleRow]: ...
    @property
    def cordons(self) -> Table[CordonRow]: ...
    @property
    def devices(self) -> Table[DeviceRow]: ...
    @property
    def credentials(self) -> Table[CredentialRow]: ...
    @property
    def facts(self) -> Table[FactRow]: ...

    def touch(self, table: str, ids: Iterable[str]) -> None:
        """Tell who keeps copies that something of these changed that is in no row of its own (`Touched.rows`)."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What some commits wrote. `commit` counts them in this process; `sequence` is that of the newest event then.

    `rows`: by table, the ids of the rows that were put or deleted; of events, their nouns.
    """

    commit: int
    sequence: int
    rows: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, table: str) -> frozenset[str]:
        """The ids of one table."""
        return self.rows.get(table, frozenset())


class Store(Protocol):
    """The database. Work is a plain function: no network call fits inside a transaction."""

    async def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` on a consistent view."""

    async def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work`, one writer at a time; commit when it returns, undo when it raises."""

    async def changes(self) -> AsyncIterator[int]:
        """Yields the newest event sequence whenever something was written (in this process); for streams."""
        yield 0  # pragma: no cover - the shape of an async generator

    def newest(self) -> Touched:
        """The last commit, without what it wrote."""

    def touched(self, commit: int) -> Touched | None:
        """What was written after a commit, in this process; None: it was too long ago."""

    def commit_before(self, sequence: int) -> int | None:
        """A commit after which is everything that was written since this event was; None: nobody knows any more."""


class Clock(Protocol):
    """The time, and waiting for it."""

    def now(self) -> datetime:
        """The present instant, with a zone."""

    async def sleep(self, span: timedelta) -> None:
        """Return after this long."""


class Ids(Protocol):
    """New ids, which sort by the time of their making."""

    def new(self) -> str:
        """A new id."""

    def secret(self) -> str:
        """256 random bits, URL-safe."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster says of itself."""

    node: str
    description: str
    """The devices, in a sentence."""
    limits: str
    """How CPU and memory limits are enforced, in words."""
    is_accepting: bool = True
    notice: str | None = None
    use: Mapping[str, DeviceUse] = field(default_factory=dict)
    """Measured use by device; a device that is not in it is not measured."""


class Terminal(Protocol):
    """A process that was opened beside a pod, or a pod's own terminal."""

    async def read(self) -> tuple[Literal["stdout", "stderr"], bytes] | None:
        """The next bytes, None at the end."""

    async def write(self, data: bytes) -> None:
        """Bytes for its standard input; empty closes it."""

    async def resize(self, rows: int, columns: int) -> None:
        """Tell it the size of the window."""

    async def wait(self) -> int:
        """Its exit code, 128 + signal if it was killed."""

    async def close(self) -> None:
        """End it (a process opened beside a pod) or let go of it (a pod's own terminal)."""


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A program to run beside a pod: same folder, environment, devices and limits."""

    argv: tuple[str, ...]
    is_terminal: bool = False
    rows: int = 24
    columns: int = 80


class Cluster(Protocol):
    """Where pods run. `local`, `sim`, later `kube`. It acts on a plan; it never chooses."""

    async def snapshot(self) -> Snapshot:
        """What is, with everything that a cycle needs. First takes in what has happened since the last one."""

    async def apply(self, plan: Plan) -> None:
        """Make it so: promises and intents durable first, then effects. Safe to repeat after a crash at any point."""

    async def changed(self, timeout: timedelta) -> None:
        """Return when something may have happened, or after `timeout`."""

    def wake(self) -> None:
        """Something was stored that a cycle should see: make `changed` return."""

    async def nodes(self) -> Sequence[Node]:
        """The nodes with all their devices, withheld ones too, cordons included."""

    async def facts(self) -> ClusterFacts:
        """What it says of itself."""


class Pods(Protocol):
    """What can be asked of pods on this cluster."""

    async def logs(self, pod: str, *, offset: int, limit: int) -> LogChunk:
        """Lines from `offset` (negative: that many lines from the end). Raises NotFound if they are gone."""

    async def exec(self, pod: str, request: ExecRequest) -> Terminal:
        """Run a program beside the pod. Raises Conflict if the pod does not run."""

    async def attach(self, pod: str) -> Terminal:
        """The pod's own standard input and output (`stdin` of its definition is not `none`)."""

    async def read_archive(self, pod: str, path: str) -> AsyncIterator[bytes]:
        """A tar stream of the file or folder at `path`, relative to the pod's working directory."""
        yield b""  # pragma: no cover - the shape of an async generator

    async def write_archive(self, pod: str, path: str, data: AsyncIterator[bytes]) -> None:
        """Unpack a tar stream into the folder `path`. Refuses members that would leave it."""
