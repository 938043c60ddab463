"""Lists for the command line: asks for page after page until there is enough, and says when there is more."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from aliquot.cli import output, render
from aliquot.wire import base

Item = TypeVar("Item", bound=base.Shape)
Command = TypeVar("Command", bound=Callable[..., object])

SHOWN = 100
PAGE = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """How much of a list, in which order. `limit` None: all of it."""

    limit: int | None = None
    sort: str | None = None

    @classmethod
    def taken_from(cls, asked: dict[str, Any]) -> "Listing":  # Any: click's values
        """Take the options of a list out of what click gives."""
        is_all, limit = asked.pop("is_all"), asked.pop("limit")
        return cls(None if is_all else limit, asked.pop("sort", None))


def limits(command: Command) -> Command:
    """Give a command `--limit` and `--all`, where the order is fixed."""
    command = click.option("--all", "is_all", is_flag=True, help="All of them, however many.")(command)
    return click.option(
        "--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="At most so many."
    )(command)


def options(*, sort: str) -> Callable[[Command], Command]:
    """Give a command `--limit`, `--all` and `--sort`."""

    def add(command: Command) -> Command:
        command = click.option("--sort", default=sort, show_default=True, help="Fields, `-` before one: descending.")(
            command
        )
        return limits(command)

    return add


def collect(
    fetch: Callable[..., base.Page[Item]], listing: Listing, filters: Mapping[str, str | None]
) -> base.Page[Item]:
    """Page after page, as one page; `next` is set if there is more than was asked for."""
    given = {name: value for name, value in filters.items() if value is not None}
    items: list[Item] = []
    cursor: str | None = None
    while True:
        wanted = PAGE if listing.limit is None else min(PAGE, listing.limit - len(items))
        page = fetch(**given, limit=wanted, cursor=cursor, sort=listing.sort)
        items += page.items
        cursor = page.next
        if cursor is None or not page.items or (listing.limit is not None and len(items) >= listing.limit):
            return page.model_copy(update={"items": items, "next": cursor})


def say_rest(page: base.Page[Item], layout: output.Format) -> None:
    """Tell a person that the list goes on."""
    if page.next is not None and layout in {output.Format.TABLE, output.Format.WIDE}:
        render.say(f"{len(page.items)} of {page.total}; --all shows the rest")
