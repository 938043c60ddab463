"""Errors become text here and nowhere else: what is wrong, in which field, what would be valid. Always on stderr."""

import difflib
import json
import sys
from collections.abc import Iterable

import click

from aliquot.core import errors

MOST_VALID = 24


def complain(error: errors.AliquotError) -> None:
    """Print an error: as JSON where the command prints JSON, else as text."""
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get("aliquot.format") == "json":
        print(json.dumps(as_record(error)), file=sys.stderr)
    else:
        print(as_text(error), file=sys.stderr)


def as_text(error: errors.AliquotError) -> str:
    """The message, then the field and the valid values where they are known."""
    lines = [f"Error: {error.message}"]
    if error.field and error.field not in error.message:
        lines.append(f"  field: {error.field}")
    if error.valid:
        lines.append(f"  valid: {_some(error.valid)}")
    return "\n".join(lines)


def as_record(error: errors.AliquotError) -> dict[str, object]:
    """The same for programs: the members that problem+json has, too."""
    return {
        "code": error.stable_code,
        "detail": error.message,
        "field": error.field,
        "valid": list(error.valid),
        "details": error.details,
    }


def unknown_command(where: str, name: str, known: Iterable[str]) -> str:
    """What to say of a command that does not exist: the nearest names, if any are near."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    hint = f" Did you mean {_either(near)}?" if near else ""
    return f"{where} has no command {name!r}.{hint}"


def say(text: str) -> None:
    """A remark to the person, beside the output."""
    print(text, file=sys.stderr, flush=True)


def _some(values: Iterable[str]) -> str:
    values = list(values)
    rest = len(values) - MOST_VALID
    return ", ".join(values[:MOST_VALID]) + (f" and {rest} more" if rest > 0 else "")


def _either(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
