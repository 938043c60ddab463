"""Reads tables from files that others wrote: line by line, so that a file of any size needs little memory.

Promises: whatever is wrong is said with file, line and field, and with what would be valid (`InvalidInput`); a file
that is no text, has no end of lines or is empty is refused, not read in.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

from aliquot.core.errors import InvalidInput

LONGEST_LINE = 65_536
"""In characters. The longest line of a known trace has 300."""


@dataclass(slots=True)
class Table:
    """Where a reader stands in a file; `refuse` says what is wrong there."""

    name: str
    line: int = 0

    def refuse(self, why: str, *, field: str | None = None, valid: Sequence[str] = ()) -> NoReturn:
        """Say what is wrong in this line."""
        raise InvalidInput(f"{self.name}:{self.line}: {why}", field=field, valid=valid)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, and the columns to look into it."""

    table: Table
    columns: dict[str, int]
    cells: Sequence[str]

    def text(self, field: str) -> str:
        """What stands there, without spaces around it."""
        return self.cells[self.columns[field]].strip()

    def number(self, field: str, *, most: float, least: int = 0) -> float:
        """A number from 0 to `most`. What is said to be valid begins with `least`."""
        text = self.text(field)
        try:
            value = float(text)
        except ValueError:
            self.refuse(field, f"{_shown(text)} is not a number" if text else "is empty", most=most, least=least)
        if not math.isfinite(value):
            self.refuse(field, f"{_shown(text)} is not a number", most=most, least=least)
        if value < 0:
            self.refuse(field, f"{_shown(text)} is negative", most=most, least=least)
        if value > most:
            self.refuse(field, f"{_shown(text)} is too large", most=most, least=least)
        return value

    def whole(self, field: str, *, most: int, least: int = 0) -> int:
        """A whole number from `least` to `most`."""
        value = self.number(field, most=most, least=least)
        if value != int(value):
            self.refuse(field, f"{_shown(self.text(field))} is not a whole number", most=most, least=least)
        if value < least:
            self.refuse(field, f"{_shown(self.text(field))} is too small", most=most, least=least)
        return int(value)

    def refuse(self, field: str, why: str, *, most: float, least: int = 0) -> NoReturn:
        """Say what is wrong with a number."""
        self.table.refuse(f"{field}: {why}", field=field, valid=(f"a number from {least} to {most:.0f}",))


def open_text(path: Path) -> TextIO:
    """A file for `records` or `untitled`. Bytes that are no text are kept, so that their line can be named."""
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def records(name: str, stream: TextIO, *, needed: Sequence[str]) -> Iterator[Row]:
    """The rows of a file with a line of titles; other columns than the needed ones are left alone."""
    table = Table(name)
    rows = _cells(table, stream, delimiter=",")
    titles = next(rows, None)
    if titles is None:
        table.line = 1
        table.refuse("the file is empty", valid=(f"a first line with the columns {', '.join(needed)}",))
    columns: dict[str, int] = {}
    for at, title in enumerate(titles):
        title = title.strip()
        if title in columns and title in needed:
            table.refuse(f"the column {title} is there twice", field=title)
        columns.setdefault(title, at)
    missing = [title for title in needed if title not in columns]
    if missing:
        noun = "this column is" if len(missing) == 1 else "these columns are"
        table.refuse(
            f"{noun} missing: {', '.join(missing)}; found: {_shown(', '.join(titles))}",
            field=missing[0],
            valid=needed,
        )
    for cells in rows:
        if len(cells) != len(titles):
            table.refuse(
                f"{len(cells)} fields where the first line names {len(titles)}", valid=(f"{len(titles)} fields",)
            )
        yield Row(table, columns, cells)


def untitled(name: str, stream: TextIO, *, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file without titles whose fields are parted by tabs."""
    table = Table(name)
    index = {title: at for at, title in enumerate(columns)}
    for cells in _cells(table, stream, delimiter="\t"):
        if len(cells) != len(columns):
            table.refuse(
                f"{len(cells)} fields parted by tabs, not {len(columns)}", valid=(f"the fields {', '.join(columns)}",)
            )
        yield Row(table, index, cells)
    if table.line == 0:
        table.line = 1
        table.refuse("the file is empty", valid=(f"lines with the fields {', '.join(columns)}",))


def _cells(table: Table, stream: TextIO, *, delimiter: str) -> Iterator[list[str]]:
    """The fields of each line that is not empty; `table.line` is its number."""
    source = _lines(table, stream)
    is_quoted = delimiter == ","
    reader = csv.reader(source, strict=True) if is_quoted else csv.reader(source, "excel-tab", quoting=csv.QUOTE_NONE)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            table.refuse(f"is no line of a table: {error}", valid=("fields in plain text, quoted as in CSV",))
        if cells and any(cells):
            yield cells


def _lines(table: Table, stream: TextIO) -> Iterator[str]:
    while True:
        line = stream.readline(LONGEST_LINE + 1)
        if not line:
            return
        table.line += 1
        if len(line) > LONGEST_LINE:
            table.refuse("the line is too long", valid=(f"at most {LONGEST_LINE} characters",))
        if "\0" in line or not (line.isascii() or _is_unicode(line)):
            table.refuse("the file is not text", valid=("a table in plain text, in UTF-8",))
        yield line


def _is_unicode(line: str) -> bool:
    """Whether no byte of it had to be kept as it was (`open_text`)."""
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 120 else shown[:117] + "..."
