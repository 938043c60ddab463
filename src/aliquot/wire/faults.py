"""Says what is wrong with a document a person wrote: which field, as they wrote it, why, and what would do.

Promises: pydantic's words for its own innards (union members, `[key]`, class names) never reach a person; every field
is named by its path in the document (`pools.default.gpu.quota`, `command[2]`); a field that does not exist lists those
that do, the nearest first in the message.
"""

import difflib
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pydantic
from pydantic_core import ErrorDetails

from aliquot.core import errors
from aliquot.wire import base, records

Model = TypeVar("Model", bound=base.Shape)

_WORDS = {
    "missing": "is missing",
    "string_type": "must be text",
    "string_unicode": "must be valid Unicode",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of names to values",
    "model_attributes_type": "must be a mapping of names to values",
}
_PATTERNS = {
    base.NAME_PATTERN: "must be 1 to 63 lower-case letters, digits or `-`, with a letter or digit first and last",
    r"^[^=\x00]+$": "must be the name of a variable: not empty, without `=`",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
    "greater_than": ("more than", "gt"),
    "less_than": ("less than", "lt"),
}
_LENGTHS = {
    "string_too_long": ("must not be longer than {} characters", "max_length"),
    "string_too_short": ("must have at least {} characters", "min_length"),
    "too_short": ("must have at least {} entries", "min_length"),
    "too_long": ("must not have more than {} entries", "max_length"),
}


def read(model: type[Model], document: object) -> Model:
    """The document as this shape. Raises InvalidInput that names the first field at fault; `details` has them all."""
    try:
        return model.model_validate(document)
    except pydantic.ValidationError as error:
        raise refusal(explain(error.errors(), document, model=model)) from error


def refusal(problems: Sequence[records.FieldProblem]) -> errors.InvalidInput:
    """One error for all that is wrong."""
    sentences = "; ".join(": ".join(part for part in (one.field, one.message) if part) for one in problems)
    first = problems[0]
    listed = [problem.model_dump(by_alias=True) for problem in problems]
    return errors.InvalidInput(sentences, field=first.field or None, valid=first.valid, details={"errors": listed})


def explain(found: Iterable[ErrorDetails], document: object, *, model: object = None) -> list[records.FieldProblem]:
    """One problem for each field at fault, in the order of the document's shape."""
    problems: list[records.FieldProblem] = []
    for error in found:
        path = _path_in(document, error["loc"], error["type"])
        one = _problem(error, path, model)
        is_member = len(path) < len(error["loc"]) and "[key]" not in error["loc"]
        if is_member and problems and problems[-1].field == one.field:
            # Each member of a union gives its own error: whatever one of them would take is valid.
            one = one.model_copy(update={"message": _either(problems.pop().message, one.message)})
        problems.append(one)
    return merge(problems)


def merge(problems: Iterable[records.FieldProblem]) -> list[records.FieldProblem]:
    """One problem for each field, with all that is wrong with it."""
    merged: dict[str, records.FieldProblem] = {}
    for one in problems:
        before = merged.get(one.field)
        if before is None:
            merged[one.field] = one
        elif one.message not in before.message:
            merged[one.field] = before.model_copy(update={"message": f"{before.message}; {one.message}"})
    return list(merged.values())


def write_path(path: Sequence[str | int]) -> str:
    """`("command", 2)` as `command[2]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _either(before: str, other: str) -> str:
    return before if other in before else f"{before} or {other.removeprefix('must be ')}"


def _path_in(document: object, location: Sequence[str | int], kind: str) -> list[str | int]:
    """The steps of pydantic's location that are in the document; the rest name its own innards."""
    path: list[str | int] = []
    here = document
    for position, step in enumerate(location):
        is_missing = kind == "missing" and position == len(location) - 1
        if _holds(here, step):
            here = here[step]  # type: ignore[index]  # _holds has looked
        elif not is_missing:
            continue
        path.append(step)
    return path


def _holds(document: object, step: str | int) -> bool:
    if isinstance(document, Mapping):
        return step in document
    return isinstance(document, list) and isinstance(step, int) and 0 <= step < len(document)


def _problem(error: ErrorDetails, path: list[str | int], model: object) -> records.FieldProblem:
    kind, context, valid = error["type"], error.get("ctx", {}), list[str]()
    if kind == "extra_forbidden":
        valid = fields_at(model, path[:-1])
        message = _unknown(str(path[-1]) if path else "", valid)
    elif kind in {"enum", "literal_error"}:
        valid = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        message = f"must be one of {', '.join(valid)}"
    elif kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        message = f"must be {words} {context[key]}"
    elif kind in _LENGTHS:
        words, key = _LENGTHS[kind]
        message = words.format(context[key])
    elif kind == "string_pattern_mismatch":
        message = _PATTERNS.get(str(context["pattern"]), f"must match {context['pattern']}")
    else:
        message = _WORDS.get(kind) or _plain(error["msg"])
    return records.FieldProblem(field=write_path(path), message=message, valid=valid)


def _plain(message: str) -> str:
    message = message.removeprefix("Value error, ").replace("Input should be", "must be")
    return message[:1].lower() + message[1:]


def _unknown(name: str, valid: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, valid, n=1)
    return f"there is no field `{name}` here" + (f"; did you mean `{near[0]}`?" if near else "")


def fields_at(model: object, path: Sequence[str | int]) -> list[str]:
    """The fields a document may have at `path`, as they are written; empty where any name will do."""
    found = list(_shapes(model))
    for step in path:
        found = [inner for shape in found for inner in _inside(shape, step)]
    names = {field.alias or name for shape in found if _is_shape(shape) for name, field in shape.model_fields.items()}
    return sorted(names)


def _is_shape(kind: Any) -> bool:  # Any: a type or one of typing's own objects
    return isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _shapes(kind: Any) -> Iterable[Any]:  # Any: a type or one of typing's own objects
    """The members of a union, without what Annotated adds."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        yield from _shapes(typing.get_args(kind)[0])
    elif origin in {typing.Union, types.UnionType}:
        for member in typing.get_args(kind):
            yield from _shapes(member)
    else:
        yield kind


def _inside(shape: Any, step: str | int) -> Iterable[Any]:  # Any: a type or one of typing's own objects
    if _is_shape(shape):
        for name, field in shape.model_fields.items():
            if step in {name, field.alias}:
                yield from _shapes(field.annotation)
    elif typing.get_origin(shape) in {dict, list}:
        yield from _shapes(typing.get_args(shape)[-1])
