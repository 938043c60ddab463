"""Lists: what a caller may ask for, checked once, as a query of the store.

Promises: an unknown filter or sort field is refused with the valid ones; a page is never longer than MAX_LIMIT.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from aliquot.core import errors
from aliquot.service import ports
from aliquot.wire import base

Row = TypeVar("Row")
Item = TypeVar("Item")
MAX_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What a list is asked for. `sort`: names of fields, `-` before one for descending."""

    filters: Mapping[str, str] = field(default_factory=dict)
    sort: tuple[str, ...] = ()
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Listable:
    """What a noun can be filtered and sorted by, and its order where none is asked for.

    `sorts` maps the name on the wire to the field of the row. A filter that ends in `.` stands for all that start so.
    """

    filters: tuple[str, ...]
    sorts: Mapping[str, str]
    order: tuple[str, ...]


def check(request: ListRequest, listable: Listable) -> None:
    """Raises InvalidInput for what this noun has not got."""
    for name in request.filters:
        if not any(name == known or (known.endswith(".") and name.startswith(known)) for known in listable.filters):
            raise errors.InvalidInput(f"there is no filter {name!r} here", field=name, valid=listable.filters)
    for name in request.sort:
        if name.removeprefix("-") not in listable.sorts:
            raise errors.InvalidInput(
                f"sort: there is no field {name.removeprefix('-')!r} to sort by",
                field="sort",
                valid=tuple(listable.sorts),
            )
    if not 1 <= request.limit <= MAX_LIMIT:
        raise errors.InvalidInput(
            f"limit: {request.limit} is not a number of rows for one page", field="limit", valid=(f"1 to {MAX_LIMIT}",)
        )


def query(request: ListRequest, listable: Listable, where: Sequence[ports.Where]) -> ports.Query:
    """The store's query for a request that was checked."""
    names = request.sort or listable.order
    sort = tuple(("-" if name.startswith("-") else "") + listable.sorts[name.removeprefix("-")] for name in names)
    return ports.Query(where=tuple(where), sort=sort, limit=request.limit, after=request.cursor)


def part(items: Sequence[Row], request: ListRequest, show: Callable[[Row], Item]) -> base.Page[Item]:
    """A page of a list that is all there; only what is on it is put into words. The cursor is a position. Raises
    InvalidInput for another cursor."""
    cursor = request.cursor or "0"
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise errors.InvalidInput("cursor: this is not a cursor of this list", field="cursor")
    start = int(cursor)
    end = start + request.limit
    following = str(end) if end < len(items) else None
    return base.Page(items=[show(row) for row in items[start:end]], total=len(items), next=following)
