"""Finding what a person names: a workload, a project, a department, by id or by name.

Promises: a name that is not there is a NotFound that lists near ones; a name that could mean several is a Conflict.
"""

import difflib
from collections.abc import Sequence

from aliquot.core import errors
from aliquot.service import ports, records

NEWEST = 500
"""Near names are looked for among this many of the newest workloads."""


def workload(tx: ports.Transaction, ref: str, *, project: str | None = None) -> records.WorkloadRow:
    """By id; or by name the unfinished one, else the latest."""
    scope = None if project is None else queue(tx, project, noun="project")
    row = tx.workloads.get(ref)
    if row is not None and is_visible(row) and (scope is None or row.project == scope.id):
        return row
    equal: dict[str, object] = {"name": ref, "deleted": None}
    if scope is not None:
        equal["project"] = scope.id
    named = [row for row in tx.workloads.find(**equal) if is_visible(row)]
    best = [row for row in named if row.finished is None] or named
    if not best:
        raise _no_workload(tx, ref, scope)
    projects = sorted({row.project for row in best})
    if len(projects) > 1:
        names = sorted(queue_name(tx, id) for id in projects)
        raise errors.Conflict(
            f"several workloads are called {ref}, in the projects {', '.join(names)}; say which project",
            field="project",
            valid=names,
            code="ambiguous",
        )
    return max(best, key=lambda row: (row.created, row.id))


def is_visible(row: records.WorkloadRow) -> bool:
    """Whether it is still there for people: what was deleted after its end is not."""
    return row.deleted is None and not (row.is_deleting and row.finished is not None)


def hidden(tx: ports.Transaction) -> list[ports.Where]:
    """The conditions of a list of workloads on what is still there."""
    going = (row for row in tx.workloads.find(is_deleting=True, deleted=None) if not is_visible(row))
    return [ports.Where("deleted", "is", None), *(ports.Where("id", "ne", row.id) for row in going)]


def queue(tx: ports.Transaction, ref: str, *, noun: str, field: str | None = None) -> records.QueueRow:
    """A project or department by name or id. With a `field`, as a part of an input: then InvalidInput."""
    named = tx.queues.find(level(noun), name=ref)
    row = named[0] if named else tx.queues.get(ref)
    if row is not None and (row.department is None) == (noun == "department"):
        return row
    near = near_names(ref, [one.name for one in tx.queues.find(level(noun))])
    hint = f"; did you mean {near[0]}?" if near and near[0] != ref and _is_near(ref, near[0]) else ""
    message = f"there is no {noun} {ref!r}{hint}"
    if field is not None:
        raise errors.InvalidInput(f"{field}: {message}", field=field, valid=near, code=f"no-such-{noun}")
    raise errors.NotFound(message, field=noun, valid=near)


def queue_name(tx: ports.Transaction, id: str) -> str:
    """The name of a project or department, also of one that was deleted."""
    row = tx.queues.get(id)
    if row is not None:
        return row.name
    events, _ = tx.events.page(ports.Query((ports.Where("subject", "eq", id),), ("-sequence",), limit=1))
    return events[0].subject_name if events else id


def near_names(ref: str, names: Sequence[str], *, most: int = 5) -> list[str]:
    """The names most like `ref`; where none is like it, the first ones, so that a person sees what there is."""
    unique = sorted(set(names))
    return difflib.get_close_matches(ref, unique, n=most) or unique[:most]


def level(noun: str) -> ports.Where:
    """The condition on queues that they are projects, or departments."""
    return ports.Where("department", "is" if noun == "department" else "ne", None)


def _is_near(ref: str, name: str) -> bool:
    return bool(difflib.get_close_matches(ref, [name]))


def _no_workload(tx: ports.Transaction, ref: str, scope: records.QueueRow | None) -> errors.NotFound:
    where = [ports.Where("deleted", "is", None)]
    if scope is not None:
        where.append(ports.Where("project", "eq", scope.id))
    rows, _ = tx.workloads.page(ports.Query(tuple(where), ("-created",), limit=NEWEST))
    near = difflib.get_close_matches(ref, sorted({row.name for row in rows if is_visible(row)}), n=5)
    inside = "" if scope is None else f" in project {scope.name}"
    hint = f"; did you mean {near[0]}?" if near else ""
    return errors.NotFound(f"there is no workload {ref!r}{inside}{hint}", field="workload", valid=near)
