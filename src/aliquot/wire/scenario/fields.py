"""Reads the fields of one object of a scenario, each once and by its kind.

Promises: whatever is wrong is said with the path of the field and what would be valid; a key that is not known is
refused with the nearest that is. The heavy lists of a scenario have many thousand objects, so nothing here is done
twice and no text is read twice (amounts repeat).
"""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NoReturn, TypeVar

from aliquot.core import errors, quantities

Version = Literal[1, 2]
Choice = TypeVar("Choice", bound=str)
Thing = TypeVar("Thing")

FORMAT = "aliquot-scenario/"
SPANS = ("90s", "30m", "1h30m", "2d")
DIFFERENT = ("names that differ",)
_SPAN = re.compile(r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9})(?:\.([0-9]{1,6}))?s?)?")
_LONGEST = timedelta(days=36_500)
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that an object may have, in version 1 of the format and since version 2."""

    one: frozenset[str]
    two: frozenset[str] = frozenset()

    def of(self, version: Version) -> frozenset[str]:
        """Those of a version."""
        return self.one if version == 1 else self.one | self.two


def keys(one: str, two: str = "") -> Keys:
    """Keys from two texts of words."""
    return Keys(frozenset(one.split()), frozenset(two.split()))


class Fields:
    """An object of the file, and the path to it."""

    __slots__ = ("data", "path")

    def __init__(self, data: object, path: str, known: Keys, version: Version) -> None:
        if type(data) is not dict:
            refuse(path, "must be an object, keys and values", valid=sorted(known.of(version)))
        self.data: Mapping[str, object] = data
        self.path = path
        if not data.keys() <= known.one:
            self._check_keys(known, version)

    def at(self, key: str) -> str:
        """The path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether it is given, and not null."""
        return self.data.get(key) is not None

    def name(self, key: str = "name") -> str:
        """A text that must be there and not be empty."""
        value = self.data.get(key)
        if type(value) is not str or not value:
            if type(value) is int:
                return str(value)
            refuse(self.at(key), "is missing" if value is None else "must be a name", valid=("a text",))
        return value

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.data.get(key)
        if value is None:
            return default
        return as_text(value, self.at(key))

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.data.get(key)
        if value is None:
            return default
        if type(value) is not bool:
            refuse(self.at(key), f"{shown(value)} is neither true nor false", valid=("true", "false"))
        return value

    def whole(self, key: str, default: int, *, least: int = 0) -> int:
        """A whole number, not below `least`."""
        value = self.data.get(key)
        return default if value is None else as_whole(value, self.at(key), least=least)

    def choice(self, key: str, choices: Collection[Choice], default: Choice) -> Choice:
        """One of a few words."""
        value = self.data.get(key)
        if value is None:
            return default
        return as_choice(value, choices, self.at(key))

    def span(self, key: str, default: timedelta = timedelta()) -> timedelta:
        """A span of time that is not negative."""
        value = self.data.get(key)
        return default if value is None else as_span(value, self.at(key))

    def span_or_none(self, key: str) -> timedelta | None:
        """A span of time that is not negative; None if it is not given."""
        value = self.data.get(key)
        return None if value is None else as_span(value, self.at(key))

    def offset(self, key: str, default: timedelta) -> timedelta:
        """A span of time before (negative) or after an instant."""
        value = self.data.get(key)
        return default if value is None else as_span(value, self.at(key), is_signed=True)

    def past(self, key: str) -> timedelta:
        """The span from now to an instant that is not in the future; zero or negative."""
        span = self.offset(key, timedelta())
        if span > timedelta():
            refuse(self.at(key), f"{shown(self.data[key])} is in the future", valid=("-60s", "0s"))
        return span

    def milli(self, key: str, default: int = 0) -> int:
        """Thousandths of a core or a device, or of anything that is counted so."""
        value = self.data.get(key)
        return default if value is None else as_milli(value, self.at(key))

    def size(self, key: str, default: int = 0) -> int:
        """An amount of memory in bytes."""
        value = self.data.get(key)
        return default if value is None else as_bytes(value, self.at(key))

    def mib(self, key: str, default: int = 0) -> int:
        """An amount of memory in whole MiB."""
        value = self.data.get(key)
        return default if value is None else as_mib(value, self.at(key))

    def items(self, key: str) -> Iterator[tuple[object, str]]:
        """The entries of a list, each with its path."""
        value = self.data.get(key)
        path = self.at(key)
        return ((one, f"{path}[{index}]") for index, one in enumerate(as_list(value, path)))

    def pairs(self, key: str) -> Iterable[tuple[str, object]]:
        """The entries of an object whose keys are names."""
        value = self.data.get(key)
        if value is None:
            return ()
        if type(value) is not dict:
            refuse(self.at(key), "must be an object, names and values")
        return value.items()

    def words(self, key: str) -> tuple[str, ...]:
        """A list of names."""
        value = self.data.get(key)
        return () if value is None else as_names(value, self.at(key))

    def labels(self, key: str = "labels") -> tuple[tuple[str, str], ...]:
        """Names and texts, sorted by name."""
        if self.data.get(key) is None:
            return ()
        path = self.at(key)
        return tuple(sorted((name, as_text(value, f"{path}.{name}")) for name, value in self.pairs(key)))

    def needs(self, *needed: str) -> None:
        """Refuse the object if one of these is not given."""
        for key in needed:
            if self.data.get(key) is None:
                refuse(self.at(key), "is missing")

    def _check_keys(self, known: Keys, version: Version) -> None:
        valid = known.of(version)
        for key in self.data:
            if key in valid:
                continue
            if key in known.two:
                refuse(self.at(key), f"is new in version 2 of the format; begin with `format: {FORMAT}2`")
            refuse(self.at(key), f"there is no field `{key}` here{nearest(key, valid)}", valid=sorted(valid))


def refuse(path: str, why: str, *, valid: Iterable[str] = ()) -> NoReturn:
    """Say what is wrong with a field."""
    raise errors.InvalidInput(f"{path}: {why}" if path else why, field=path or None, valid=tuple(valid))


def refuse_twin(path: str, noun: str, name: str) -> NoReturn:
    """Say that a name is taken: `noun` is what there would be two of."""
    refuse(path, f"there are two {noun} {name!r}", valid=DIFFERENT)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...?`, if a known name is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def find(name: str, known: Mapping[str, Thing], path: str, *, noun: str) -> Thing:
    """What a name stands for; refused with the nearest if there is nothing of this name."""
    check_name(name, known, path, noun=noun)
    return known[name]


def check_name(name: str, known: Collection[str], path: str, *, noun: str) -> None:
    """Refuse a name that nothing has."""
    if name not in known:
        valid = known or (f"the name of a {noun} of this file, which has none",)
        refuse(path, f"there is no {noun} {shown(name)}{nearest(name, known)}", valid=valid)


def shown(value: object) -> str:
    """A value as it is quoted in an error."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def as_text(value: object, path: str) -> str:
    """A text; YAML takes `rack: 1` for a number, which is meant as text."""
    if type(value) is str:
        return value
    if type(value) is int or type(value) is float:
        return str(value)
    refuse(path, f"{shown(value)} is not a text", valid=("a text",))


def as_list(value: object, path: str) -> list[object]:
    """A list; null is an empty one."""
    if value is None:
        return []
    if type(value) is not list:
        refuse(path, "must be a list")
    return value


def as_names(value: object, path: str) -> tuple[str, ...]:
    """A list of texts, none of them twice."""
    found = tuple(as_text(one, f"{path}[{index}]") for index, one in enumerate(as_list(value, path)))
    if len(set(found)) < len(found):
        index = next(index for index, one in enumerate(found) if one in found[:index])
        refuse(f"{path}[{index}]", f"{shown(found[index])} is given twice")
    return found


def as_whole(value: object, path: str, *, least: int = 0) -> int:
    """A whole number, not below `least`."""
    if type(value) is not int or value < least or value > 2**62:
        refuse(path, f"{shown(value)} is not a whole number from {least} on", valid=(f"{least}, {least + 1}, ...",))
    return value


def as_choice(value: object, choices: Collection[Choice], path: str) -> Choice:
    """One of a few words."""
    for choice in choices:
        if value == choice:
            return choice
    refuse(path, f"{shown(value)} is not known{nearest(str(value), choices)}", valid=choices)


_spans: dict[str, timedelta] = {}
_millis: dict[str, int] = {}
_sizes: dict[str, int] = {}
_MOST_KEPT = 10_000


def as_span(value: object, path: str, *, is_signed: bool = False) -> timedelta:
    """A span of time: `90s`, `1h30m`, or plain seconds; `-60s` where it may be negative."""
    text = _written(value, path, valid=SPANS)
    found = _spans.get(text)
    if found is None:
        found = _remember(_spans, text, _span(text, path))
    if found < timedelta() and not is_signed:
        refuse(path, f"{shown(text)} is negative", valid=SPANS)
    return found


def as_milli(value: object, path: str) -> int:
    """Thousandths."""
    text = _written(value, path, valid=("2", "0.5", "500m"))
    found = _millis.get(text)
    return _remember(_millis, text, quantities.parse_milli(text, path)) if found is None else found


def as_bytes(value: object, path: str) -> int:
    """Bytes."""
    text = _written(value, path, valid=("512Mi", "64Gi", "2G"))
    found = _sizes.get(text)
    return _remember(_sizes, text, quantities.parse_bytes(text, path)) if found is None else found


def as_mib(value: object, path: str) -> int:
    """Whole MiB."""
    size = as_bytes(value, path)
    if size % _MIB:
        refuse(path, f"{shown(value)} is not in whole MiB", valid=("4096Mi", "20Gi"))
    return size // _MIB


def as_fraction(value: object, path: str) -> Fraction:
    """A number that is not negative, exact: `0.25`, `1/3`."""
    text = _written(value, path, valid=("0.25", "1/3"))
    parts = [part.strip() for part in text.split("/")]
    if not all(re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", part) for part in parts) or len(parts) > 2:
        refuse(path, f"{shown(text)} is not a number from 0 on", valid=("0.25", "1/3"))
    above, below = (Fraction(Decimal(part)) for part in (*parts, "1")[:2])
    if not below:
        refuse(path, f"{shown(text)} divides by zero", valid=("0.25", "1/3"))
    return above / below


def _written(value: object, path: str, *, valid: Iterable[str]) -> str:
    if type(value) is str:
        return value
    if type(value) is int or type(value) is float:
        return repr(value)
    refuse(path, f"{shown(value)} is not an amount", valid=valid)


def _span(text: str, path: str) -> timedelta:
    bare = text.strip()
    match = _SPAN.fullmatch(bare.removeprefix("-"))
    if match is None or not any(match.groups()):
        refuse(path, f"{shown(text)} is not a span of time", valid=SPANS)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    micros = int((match.group(5) or "").ljust(6, "0"))
    span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    if span > _LONGEST:
        refuse(path, f"{shown(text)} is longer than a hundred years", valid=SPANS)
    return -span if bare.startswith("-") else span


def _remember(kept: dict[str, Thing], text: str, value: Thing) -> Thing:
    if len(kept) < _MOST_KEPT:
        kept[text] = value
    return value
