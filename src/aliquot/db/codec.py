"""The one place where a row becomes columns and columns become a row.

Promises: what is read back equals what was put, for every kind of row. Instants and spans are whole microseconds (of
UTC), so they sort as numbers and lose nothing; nested values are JSON.
"""

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from aliquot.service import records

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SCOPE = ("tenant", "cluster")
SCALARS = (str, int, bool, datetime, timedelta)

# Any below: a value of a field, whose type is known only from the hint that the functions are made from.
Convert = Callable[[Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One field of a row as a column: its SQL type, and how a value gets there and back."""

    name: str
    kind: sa.types.TypeEngine[Any]  # Any: the Python type differs from column to column
    is_nullable: bool
    is_json: bool
    store: Convert
    load: Convert


def columns(row: type) -> tuple[Column, ...]:
    """The columns of a row's fields, without those of its scope."""
    hints = typing.get_type_hints(row)
    return tuple(_column(field.name, hints[field.name]) for field in dataclasses.fields(row) if field.name != "scope")


def store(row: Any, fields: tuple[Column, ...]) -> dict[str, Any]:
    """A row as values by column, scope included."""
    values = {column.name: column.store(getattr(row, column.name)) for column in fields}
    return values | {"tenant": row.scope.tenant, "cluster": row.scope.cluster}


def load(row: type[Any], fields: tuple[Column, ...], values: Sequence[Any]) -> Any:
    """The row of these values: those of its scope, then one for each field."""
    scope = records.Scope(*values[: len(SCOPE)])
    loaded = {column.name: column.load(value) for column, value in zip(fields, values[len(SCOPE) :], strict=True)}
    return row(**loaded, scope=scope)


def reading(fields: tuple[Column, ...], table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """What to select for `load`. JSON is asked for as the text that it is, so that equal values can be told apart from
    changed ones without reading them."""
    scope = [table.c[part] for part in SCOPE]
    return [*scope, *(_as_text(table.c[one.name]) if one.is_json else table.c[one.name] for one in fields)]


def _as_text(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    return sa.type_coerce(column, sa.Text()).label(column.name)


def _column(name: str, hint: Any) -> Column:
    inner, is_nullable = _without_none(hint)
    is_json = not (isinstance(inner, type) and issubclass(inner, (*SCALARS, enum.StrEnum)))
    load = _loading(hint)
    loading = _from_text(load) if is_json else load
    return Column(name, _kind(inner, is_json=is_json), is_nullable, is_json, _storing(hint), loading)


def _from_text(convert: Convert) -> Convert:
    # Some drivers read JSON by themselves, whatever type is asked for.
    return lambda value: convert(json.loads(value) if isinstance(value, str) else value)


def _kind(hint: Any, *, is_json: bool) -> sa.types.TypeEngine[Any]:
    if is_json:
        return sa.JSON(none_as_null=True)
    if issubclass(hint, bool):
        return sa.Boolean()
    return sa.Text() if issubclass(hint, str) else sa.BigInteger()


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        members = [member for member in typing.get_args(hint) if member is not types.NoneType]
        if len(members) < len(typing.get_args(hint)):
            return (members[0] if len(members) == 1 else typing.Union[tuple(members)]), True  # noqa: UP007 - made anew
    return hint, False


def _storing(hint: Any) -> Convert:
    inner, is_nullable = _without_none(hint)
    convert = _storing_value(inner)
    if convert is _same:
        return _same
    return (lambda value: None if value is None else convert(value)) if is_nullable else convert


def _storing_value(hint: Any) -> Convert:
    if hint is datetime:
        return instant
    if hint is timedelta:
        return lambda value: value // MICROSECOND
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        parts = [_storing(part) for part in arguments if part is not Ellipsis]
        if arguments[-1] is Ellipsis:
            return lambda value: [parts[0](item) for item in value]
        return lambda value: [part(item) for part, item in zip(parts, value, strict=True)]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        one = _storing(arguments[1])
        return lambda value: {str(key): one(item) for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        fields = _fields(hint, _storing)
        return lambda value: {name: convert(getattr(value, name)) for name, convert in fields}
    if isinstance(hint, type) and hasattr(hint, "model_dump"):
        return lambda value: value.model_dump(mode="json", by_alias=True)
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return str
    return _same


def _loading(hint: Any) -> Convert:
    inner, is_nullable = _without_none(hint)
    convert = _loading_value(inner)
    if convert is _same:
        return _same
    return (lambda value: None if value is None else convert(value)) if is_nullable else convert


def _loading_value(hint: Any) -> Convert:
    if hint is datetime:
        return lambda value: EPOCH + timedelta(microseconds=value)
    if hint is timedelta:
        return lambda value: timedelta(microseconds=value)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        parts = [_loading(part) for part in arguments if part is not Ellipsis]
        if arguments[-1] is Ellipsis:
            return tuple if parts[0] is _same else lambda value: tuple(parts[0](item) for item in value)
        return lambda value: tuple(part(item) for part, item in zip(parts, value, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        one = _loading(arguments[1])
        return lambda value: {key: one(item) for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        fields, make = _fields(hint, _loading), typing.cast(Callable[..., Any], hint)  # cast: the class makes the value
        # A field that came later is not in older rows: its default stands for it.
        return lambda value: make(**{name: convert(value[name]) for name, convert in fields if name in value})
    if isinstance(hint, type) and hasattr(hint, "model_validate"):
        return typing.cast(Convert, hint.model_validate)  # cast: every shape has it
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return typing.cast(Convert, hint)  # cast: mypy takes the class for the function that makes new enums
    return _same


def _fields(hint: Any, convert: Callable[[Any], Convert]) -> list[tuple[str, Convert]]:
    hints = typing.get_type_hints(hint)
    return [(field.name, convert(hints[field.name])) for field in dataclasses.fields(hint)]


def instant(value: datetime) -> int:
    """An instant in microseconds since 1970, exactly."""
    if value.tzinfo is None:
        raise ValueError("an instant without a zone cannot be stored")
    return (value - EPOCH) // MICROSECOND


def _same(value: Any) -> Any:
    return value
