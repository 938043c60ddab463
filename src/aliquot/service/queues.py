"""Departments and projects are one tree of queues: what both nouns share, and the ready default.

Promises: the first start makes a department and a project `default` whose quota is the machine, and never again.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import replace

from aliquot.core import errors, lifecycle
from aliquot.core.model import DEFAULT_POOL, Amounts, Claim, PoolTerms
from aliquot.service import access, audit, find, paging, ports, records, terms
from aliquot.wire import projects as shapes

DEFAULT = "default"
STANDINGS = "standings"
"""The fact in which the cluster keeps what the last cycle counted: by pool, queue id, and `fair_share|held|asked`."""
_MADE = "default-made"

SORTS = {"name": "name", "created": "created"}
DEPARTMENTS = paging.Listable(filters=("name", "q"), sorts=SORTS, order=("name",))
PROJECTS = paging.Listable(filters=("name", "q", "department"), sorts=SORTS, order=("name",))

Standings = Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]


async def ensure_default(store: ports.Store, *, clock: ports.Clock, ids: ports.Ids) -> None:
    """Create the default department and project at the first start; later it does nothing."""
    now = clock.now()
    # Nothing until the cluster sets it to what the machine has: it does so at its first look.
    none_yet = {DEFAULT_POOL: PoolTerms(gpu=Claim(quota=0))}
    department = records.QueueRow(ids.new(), DEFAULT, now, terms=none_yet, follows_machine=True)
    project = replace(department, id=ids.new(), department=department.id)
    journal = audit.Journal(clock, ids)

    def work(tx: ports.Transaction) -> None:
        if tx.facts.get(_MADE) is not None:
            return
        tx.facts.put(records.FactRow(_MADE, now.isoformat()))
        for noun, row in (("department", department), ("project", project)):
            if tx.queues.count(find.level(noun), name=DEFAULT) == 0:
                tx.queues.put(row)
                noted = audit.Noted("created", "was made for the first start", row.name)
                journal.record(tx, access.LOOP, change=audit.Change("create", noun, row.id), noted=noted)

    await store.write(work)


def conditions(request: paging.ListRequest, noun: str) -> list[ports.Where]:
    """What a list of departments or projects asks for, but for the department."""
    where = [find.level(noun)]
    for name, value in request.filters.items():
        if name == "q":
            where.append(ports.Where("name", "contains", value))
        elif name == "name":
            where.append(ports.Where("name", "eq", value))
    return where


def refuse_taken(tx: ports.Transaction, name: str, noun: str) -> None:
    """Raises Conflict if there is one of this name."""
    if tx.queues.count(find.level(noun), name=name):
        raise errors.Conflict(f"name: there is a {noun} {name} already", field="name", code="name-taken")


def changed(row: records.QueueRow, change: shapes.QueueUpdate) -> records.QueueRow:
    """The row with other terms. Who sets a GPU quota does not want it to follow the machine any more."""
    if not change.pools:
        raise errors.InvalidInput(
            "pools: no pool is named, so nothing would change", field="pools", valid=(DEFAULT_POOL,)
        )
    sets_gpu = any(given.gpu is not None for given in change.pools.values())
    return replace(
        row, terms=terms.changed(row.terms, change.pools), follows_machine=row.follows_machine and not sets_gpu
    )


def describe(change: shapes.QueueUpdate) -> str:
    """What a change says, for events."""
    said: list[str] = []
    for pool, given in change.pools.items():
        for name in sorted(given.model_fields_set):
            value = getattr(given, name)
            if isinstance(value, shapes.Claim):
                quota = "unlimited" if value.quota is None else value.quota
                value = f"quota {quota}, weight {value.weight}, limit {value.limit or 'none'}"
            if value is not None:
                said.append(f"{name} {value} in pool {pool}")
    return "; ".join(said)


def standings(tx: ports.Transaction) -> Standings:
    """What the last cycle counted; empty before the first."""
    row = tx.facts.get(STANDINGS)
    return {} if row is None else _read_standings(row.value)


def pools(row: records.QueueRow, counted: Standings) -> dict[str, shapes.PoolStanding]:
    """Where a queue stands, by pool."""
    names = sorted({*row.terms, *(pool for pool, queues in counted.items() if row.id in queues)} or {DEFAULT_POOL})
    return {name: _standing(row, name, counted.get(name, {}).get(row.id, {})) for name in names}


def count_active(tx: ports.Transaction, project: str) -> int:
    """How many workloads of a project have processes."""
    phases = tuple(lifecycle.ACTIVE | lifecycle.ENDING)
    return tx.workloads.count(ports.Where("phase", "in", phases), project=project)


@functools.lru_cache(maxsize=2)  # Each row of a list asks for the same.
def _read_standings(text: str) -> Standings:
    found: Standings = json.loads(text)
    return found


def _standing(row: records.QueueRow, pool: str, counted: Mapping[str, Mapping[str, int]]) -> shapes.PoolStanding:
    def amounts(name: str) -> dict[str, str]:
        found = counted.get(name)
        if found is None:
            return {}
        return terms.show_amounts(Amounts(found["gpu"], found["cpu"], found["memory"]))

    return shapes.PoolStanding(
        terms=terms.show(row.terms.get(pool, PoolTerms())),
        fair_share=amounts("fair_share"),
        held=amounts("held"),
        asked=amounts("asked"),
    )
