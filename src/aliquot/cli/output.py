"""How a command answers: as a table for people, or in the wire's own shapes for programs.

Promises: the JSON and YAML are exactly what the API sends; a table that is piped has no colours and is never cut.
"""

import enum
import json
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import rich.console
import rich.table
import rich.text
import yaml

from aliquot.wire import base

Command = TypeVar("Command", bound=Callable[..., object])


class Format(enum.StrEnum):
    """What `-o` takes. WIDE is a table with all columns."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def option(command: Command) -> Command:
    """Give a command `-o FORMAT` and `--json`; it gets the parameter `layout`."""
    command = click.option(
        "--json", "is_json", is_flag=True, expose_value=False, callback=_set_json, help="Short for -o json."
    )(command)
    return click.option(
        "-o",
        "--output",
        "layout",
        type=click.Choice([str(known) for known in Format]),
        default="table",
        callback=_to_format,
        help="How to print: table for people, the rest for programs.",
    )(command)


def write(shape: base.Shape, layout: Format, draw: Callable[[Format], str]) -> None:
    """Print a shape: as it is for programs, as `draw` shows it for people."""
    match layout:
        case Format.JSON:
            print(shape.model_dump_json(by_alias=True, indent=2))
        case Format.YAML:
            print(yaml.safe_dump(_plain(shape), sort_keys=False, allow_unicode=True), end="")
        case _:
            text = draw(layout)
            if text:
                print(text)


class Column:
    """A column of a table: its title, whether only `-o wide` shows it, whether numbers stand right-aligned."""

    def __init__(self, title: str, *, is_wide: bool = False, is_right: bool = False, style: str | None = None) -> None:
        self.title = title
        self.is_wide = is_wide
        self.is_right = is_right
        self.style = style


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], layout: Format = Format.TABLE) -> str:
    """Rows under titles. On a terminal it fits its width, folding what is too long; piped, each row is one line."""
    shown = [at for at, column in enumerate(columns) if layout is Format.WIDE or not column.is_wide]
    columns = [columns[at] for at in shown]
    rows = [[visible(row[at]) for at in shown] for row in rows]
    # All columns do not fit a terminal anyway: one line each, which the terminal wraps or a pager scrolls.
    if sys.stdout.isatty() and layout is not Format.WIDE:
        return _drawn(columns, rows)
    return _aligned(columns, rows)


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """`Title  value` lines, the values under one another; pairs without a value are left out."""
    pairs = [(title, visible(value)) for title, value in pairs if value]
    width = max((len(title) for title, _ in pairs), default=0)
    indent = "\n" + " " * (width + 2)
    return "\n".join(f"{title:<{width}}  {value.replace(chr(10), indent)}" for title, value in pairs)


def visible(text: str) -> str:
    """What people wrote, with characters that would steer a terminal shown as their escapes."""
    return "".join(_escaped(mark) if mark < " " or mark > "~" else mark for mark in text)


def _escaped(mark: str) -> str:
    is_steering = mark not in "\n\t" and unicodedata.category(mark) in {"Cc", "Cf", "Zl", "Zp"}
    return mark.encode("unicode_escape").decode("ascii") if is_steering else mark


def _drawn(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    drawn = rich.table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        drawn.add_column(
            column.title,
            justify="right" if column.is_right else "left",
            overflow="fold",
            no_wrap=False,
            style=column.style,
        )
    for row in rows:
        drawn.add_row(*(rich.text.Text(cell, style=_style(cell)) for cell in row))
    console = rich.console.Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _aligned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    lines = [[column.title for column in columns], *[[" ".join(cell.split()) for cell in row] for row in rows]]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column.is_right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    )


_STYLES = {
    "running": "green",
    "starting": "green",
    "succeeded": "dim",
    "pending": "yellow",
    "failed": "red",
    "failing": "red",
    "evicting": "magenta",
}


def _style(cell: str) -> str:
    return _STYLES.get(cell.partition(" ")[0], "")


def _plain(shape: base.Shape) -> Any:  # Any: what JSON can hold
    return json.loads(shape.model_dump_json(by_alias=True))


def _to_format(context: click.Context, _parameter: click.Parameter, value: str) -> Format:
    chosen = Format(context.meta.get("aliquot.format", value))
    context.meta["aliquot.format"] = str(chosen)
    return chosen


def _set_json(context: click.Context, _parameter: click.Parameter, value: object) -> None:
    if value:
        context.meta["aliquot.format"] = "json"
