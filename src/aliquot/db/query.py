"""From a query of the use cases to SQL: conditions, order, and cursors that go on where a page ended.

Promises: a field that a row has not is refused by name; paging by cursor neither misses nor repeats a row that stays.
None sorts before everything, on every database.
"""

import base64
import binascii
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from aliquot.core import errors
from aliquot.db import codec, schema
from aliquot.service import ports

# Any in this module: values of fields, whose types differ from field to field.


_COMPARE: Mapping[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Key:
    """One column that rows are sorted by."""

    column: sa.Column[Any]
    is_descending: bool


def condition(kind: schema.Kind, where: ports.Where, name: str) -> sa.ColumnElement[bool]:
    """One condition as SQL, whose value is bound to `name`. Raises InvalidInput for an unknown field."""
    if where.operator == "any":
        return sa.or_(*(condition(kind, one, f"{name}_{place}") for place, one in enumerate(_alternatives(where))))
    column, _ = _operand(kind, where.field)
    if where.operator == "contains":
        return column.icontains(str(where.value), autoescape=True)
    if where.operator == "in":
        return column.in_(sa.bindparam(name, expanding=True))
    if where.value is None:
        return column.is_not(None) if where.operator == "ne" else column.is_(None)
    bound = sa.bindparam(name, type_=column.type)
    if where.operator == "ne":
        return column.is_distinct_from(bound)
    if where.operator == "is":
        raise errors.InvalidInput(f"{where.field}: `is` takes nothing but None", field=where.field)
    return _COMPARE[where.operator](column, bound)


def values(kind: schema.Kind, conditions: Sequence[ports.Where]) -> dict[str, Any]:
    """The values of conditions by their bound names. Raises InvalidInput for one that is not a value of its field."""
    bound: dict[str, Any] = {}
    for name, where in _named(conditions):
        _, convert = _operand(kind, where.field)
        if where.operator == "in":
            bound[name] = [convert(item) for item in _sequence(where)]
        elif where.operator != "contains" and where.value is not None:
            bound[name] = convert(where.value)
    return bound


def bound_name(position: int) -> str:
    """The bound name of the condition at a place."""
    return f"its_{position}"


def shape(conditions: Sequence[ports.Where]) -> tuple[tuple[str, str, bool], ...] | None:
    """Equal for conditions that are the same SQL; None where the SQL depends on a value, or has too many forms."""
    if any(where.operator in {"any", "contains"} or "." in where.field for where in conditions):
        return None
    return tuple((where.field, where.operator, where.value is None) for where in conditions)


def order(kind: schema.Kind, sort: Sequence[str]) -> tuple[Key, ...]:
    """The columns to sort by, the key of the row last, so that no two rows are equal."""
    keys: list[Key] = []
    for name in (*sort, kind.key):
        bare = name.removeprefix("-")
        found = next((one for one in kind.columns if one.name == bare and not one.is_json), None)
        if found is None:
            valid = [one.name for one in kind.columns if not one.is_json]
            raise errors.InvalidInput(f"sort: rows cannot be sorted by {bare!r}", field="sort", valid=valid)
        if all(key.column.name != bare for key in keys):
            keys.append(Key(kind.table.c[bare], name.startswith("-")))
    return tuple(keys)


def ordering(keys: Sequence[Key]) -> list[sa.UnaryExpression[Any]]:
    """ORDER BY of these keys."""
    return [key.column.desc().nulls_last() if key.is_descending else key.column.asc().nulls_first() for key in keys]


def write_cursor(keys: Sequence[Key], values: Mapping[str, Any]) -> str:
    """The cursor after a row."""
    text = json.dumps([_shape(keys), [values[key.column.name] for key in keys]], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def after(kind: schema.Kind, keys: Sequence[Key], cursor: str) -> sa.ColumnElement[bool]:
    """The condition on rows that come after a cursor. Raises InvalidInput for one that is not of this order."""
    values = _read_cursor(kind, keys, cursor)
    steps: list[sa.ColumnElement[bool]] = []
    for position, key in enumerate(keys):
        equal = [before.column.is_not_distinct_from(values[place]) for place, before in enumerate(keys[:position])]
        steps.append(sa.and_(*equal, _beyond(key, values[position])))
    return sa.or_(*steps)


def _operand(kind: schema.Kind, name: str) -> tuple[sa.ColumnElement[Any], codec.Convert]:
    """What a field's name stands for: a column, a part of the scope, or with dots a text inside a JSON column."""
    first, *inner = name.split(".", maxsplit=2)
    if name in codec.SCOPE:
        return kind.table.c[name], str
    found = next((one for one in kind.columns if one.name == first), None)
    if found is None or (found.is_json and not inner) or (inner and not found.is_json):
        valid = [one.name if not one.is_json else f"{one.name}.…" for one in kind.columns]
        raise errors.InvalidInput(f"rows have no field {name!r} to look for", field=name, valid=valid)
    if not inner:
        return kind.table.c[first], _checked(found)
    if any(character in part for part in inner for character in '"\\\x00'):
        raise errors.InvalidInput(f"{name!r} cannot be looked for", field=name)
    return kind.table.c[first][tuple(inner)].as_string(), str


def _checked(column: codec.Column) -> codec.Convert:
    def convert(value: Any) -> Any:
        try:
            return column.store(value)
        except (TypeError, ValueError, AttributeError) as error:
            message = f"{column.name}: {value!r} is not a value of this field"
            raise errors.InvalidInput(message, field=column.name) from error

    return convert


def _named(conditions: Sequence[ports.Where]) -> Iterator[tuple[str, ports.Where]]:
    """Each condition that has a value of its own, with its bound name."""
    for position, where in enumerate(conditions):
        if where.operator == "any":
            for place, one in enumerate(_alternatives(where)):
                yield f"{bound_name(position)}_{place}", one
        else:
            yield bound_name(position), where


def _alternatives(where: ports.Where) -> tuple[ports.Where, ...]:
    found = where.value if isinstance(where.value, tuple) else ()
    return tuple(one for one in found if isinstance(one, ports.Where) and one.operator != "any")


def _sequence(where: ports.Where) -> Sequence[Any]:
    if isinstance(where.value, list | tuple | set | frozenset):
        return sorted(where.value, key=str)
    raise errors.InvalidInput(f"{where.field}: `in` takes a sequence of values", field=where.field)


def _beyond(key: Key, value: Any) -> sa.ColumnElement[bool]:
    if key.is_descending:
        return sa.false() if value is None else sa.or_(key.column < value, key.column.is_(None))
    return key.column.is_not(None) if value is None else key.column > value


def _shape(keys: Sequence[Key]) -> str:
    return ",".join(("-" if key.is_descending else "") + key.column.name for key in keys)


def _read_cursor(kind: schema.Kind, keys: Sequence[Key], cursor: str) -> list[Any]:
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        shape, values = json.loads(text)
        if shape == _shape(keys) and len(values) == len(keys) and all(map(_fits, keys, values)):
            return list(values)
    except (ValueError, TypeError, binascii.Error) as error:
        raise errors.InvalidInput("cursor: this is not a cursor of this list", field="cursor") from error
    message = f"cursor: this one is of a list of {kind.table.name} in another order"
    raise errors.InvalidInput(message, field="cursor")


def _fits(key: Key, value: Any) -> bool:
    if value is None:
        return bool(key.column.nullable)
    python = key.column.type.python_type
    return isinstance(value, python) and (isinstance(value, bool) == (python is bool)) and _is_storable(value)


def _is_storable(value: Any) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63
