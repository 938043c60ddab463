"""Reads a scenario out of the bytes of a file, in JSON or YAML.

Promises: the whole file is read before anything is used; what is wrong is said with file, line, field and what is
valid. A file of many thousand workloads should be JSON: YAML is read by a reader made for small ones.
"""

from dataclasses import replace
from datetime import UTC, datetime

from aliquot.core import errors
from aliquot.core.model import DEFAULT_POOL, Policy, Snapshot
from aliquot.wire import documents
from aliquot.wire.scenario import (
    expectation,
    fields,
    nodes,
    places,
    pods,
    policy,
    queues,
    standing,
    steps,
    workloads,
)
from aliquot.wire.scenario.fields import Fields, Version
from aliquot.wire.scenario.shape import Mode, OnEvict, Scenario

SCENARIO = fields.keys(
    "format name now onEvict mode maxCycles actions policy nodes topologies queues workloads expect origin notes"
    " strictness",
    "promises budgets recent cycles",
)
MOST_JSON = 2**28
FORMATS = (f"{fields.FORMAT}1", f"{fields.FORMAT}2")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAX_CYCLES = 10


def read(content: bytes, name: str) -> Scenario:
    """A scenario. Raises InvalidInput, which says `name`, the line, the field, and what is valid."""
    document: documents.Document | None = None
    try:
        document = documents.parse(content, most_json=MOST_JSON)
        return parse(document.data)
    except errors.InvalidInput as error:
        line = document.line_of(error.field or "") if document is not None else None
        where = f"{name}, line {line}" if line else name
        separator = ", " if error.message.startswith("line ") else ": "
        raise errors.InvalidInput(
            f"{where}{separator}{error.message}", field=error.field, valid=error.valid, details={"file": name}
        ) from error


def parse(data: object) -> Scenario:
    """A scenario out of plain data."""
    if type(data) is not dict:
        fields.refuse("", "a scenario is an object, keys and values", valid=("format", "name", "nodes", "queues"))
    version = _version(data)
    top = Fields(data, "", SCENARIO, version)
    now, rules = _now(top), policy.read(top, version)
    snapshot = _snapshot(top, version, now=now, rules=rules)
    known = expectation.Known(
        workloads={workload.id for workload in snapshot.workloads},
        pods={pod.id for workload in snapshot.workloads for pod in workload.pods},
        nodes={node.id for node in snapshot.nodes},
    )
    return Scenario(
        name=top.text("name", "a scenario"),
        now=now,
        snapshot=snapshot,
        policy=rules,
        mode=top.choice("mode", tuple(Mode), Mode.SETTLE),
        max_cycles=top.whole("maxCycles", MAX_CYCLES, least=1),
        on_evict=top.choice("onEvict", tuple(OnEvict), OnEvict.REQUEUE),
        steps=steps.read(top, steps.Stock(snapshot, known), version),
        expect=expectation.read(top, known, version),
    )


def _snapshot(top: Fields, version: Version, *, now: datetime, rules: Policy) -> Snapshot:
    parts = nodes.read_nodes(top, version)
    pools = sorted({DEFAULT_POOL, *(part.node.pool for part in parts.values())})
    tree = queues.read(top, version, now=now, pools=pools)
    around = workloads.Surroundings(
        version=version,
        now=now,
        nodes=parts,
        queues=tree,
        inner_queues=queues.inner(tree),
        topologies=nodes.read_topologies(top, version),
        pools=frozenset((*pools, *(pool for queue in tree.values() for pool in queue.terms))),
    )
    desks = {name: places.Desk(part) for name, part in parts.items()}
    requests = pods.Requests(version, parts)
    found = Snapshot(
        nodes=tuple(part.node for part in parts.values()),
        queues=tuple(tree.values()),
        workloads=workloads.read(top, around, requests=requests, desks=desks),
        topologies=tuple(around.topologies.values()),
    )
    if version == 1:
        return found
    return replace(
        found,
        promises=standing.read_promises(top, standing.Scene(version, now, found, rules, desks)),
        budgets=standing.read_budgets(top, version, snapshot=found),
        recent=standing.read_recent(top, version, requests=requests),
    )


def _version(data: dict[str, object]) -> Version:
    given = data.get("format")
    if given is None:
        fields.refuse("format", "is missing", valid=FORMATS)
    return 1 if fields.as_choice(given, FORMATS, "format") == FORMATS[0] else 2


def _now(top: Fields) -> datetime:
    value = top.data.get("now")
    if value is None:
        return NOW
    if type(value) is str:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            fields.refuse("now", f"{fields.shown(value)} is not an instant", valid=("2026-01-01T00:00:00Z",))
    if type(value) is not datetime:
        fields.refuse("now", f"{fields.shown(value)} is not an instant", valid=("2026-01-01T00:00:00Z",))
    found = value if value.tzinfo else value.replace(tzinfo=UTC)
    if not 1970 <= found.year <= 2500:
        fields.refuse("now", f"{fields.shown(str(found))} is far off", valid=("1970 to 2500",))
    return found.astimezone(UTC)
