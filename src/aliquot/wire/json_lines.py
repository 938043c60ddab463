"""Finds the line of a field in a JSON text. It is asked only when something is wrong, so reading stays fast.

Promises: the line of the field, or of the nearest thing around it that is there. Values that are not on the way are
skipped by the decoder of the standard library.
"""

import json
import re
from collections.abc import Iterator

_SPACE = re.compile(r"[ \t\n\r]*")


class Repeated(Exception):
    """A key stands twice in one object."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of its pairs, for a decoder's `object_pairs_hook`; raises Repeated."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Repeated(key)
            seen.add(key)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=once)
_PLAIN = json.JSONDecoder()


def line_of(text: str, path: str) -> int:
    """The line of the field at `path` (`nodes[2].labels.rack`), or of what is around it. The text is valid JSON."""
    at, rest = _skip(text, 0), path
    while rest:
        found = next(((key, start, value) for key, start, value in _children(text, at) if _leads(key, rest)), None)
        if found is None:
            break
        key, start, at = found
        rest = rest[len(key) :].removeprefix(".")
        if not rest:
            return _line(text, start)
    return _line(text, at)


def line_of_repeated(text: str) -> tuple[str, int]:
    """The path and the line of the first key that is given twice. There must be one."""
    at, path = _skip(text, 0), ""
    while True:
        seen: set[str] = set()
        inside = None
        for key, start, value in _children(text, at):
            full = f"{path}.{key}" if path and not key.startswith("[") else f"{path}{key}"
            if key in seen:
                return full, _line(text, start)
            seen.add(key)
            if _has_repeated(text, value):
                inside = (full, value)
                break
        if inside is None:
            return path, _line(text, at)
        path, at = inside


def _has_repeated(text: str, at: int) -> bool:
    try:
        _DECODER.raw_decode(text, at)
    except Repeated:
        return True
    return False


def _leads(key: str, path: str) -> bool:
    """Whether the path goes through this key. A key may hold dots itself."""
    return path.startswith(key) and (len(path) == len(key) or path[len(key)] in ".[")


def _children(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Of an object or a list: each key (`[3]` of a list), where it stands, and where its value stands."""
    opening = text[at]
    if opening not in "{[":
        return
    at, index = _skip(text, at + 1), 0
    while text[at] not in "]}":
        start, key = at, f"[{index}]"
        if opening == "{":
            key, at = json.decoder.scanstring(text, at + 1)  # type: ignore[attr-defined]  # it is there, without a stub
            at = _skip(text, _skip(text, at) + 1)
        yield key, start, at
        at = _skip(text, _end_of(text, at))
        at, index = _skip(text, at + 1) if text[at] == "," else at, index + 1


def _end_of(text: str, at: int) -> int:
    return _PLAIN.raw_decode(text, at)[1]


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
