"""Reads a file in YAML or JSON that a person wrote into plain data, and remembers on which line each field stands.

Promises: a key given twice, bytes that are no UTF-8, aliases (a small file can stand for a huge one) and a file larger
than MAX_BYTES are refused with the line; numbers keep their spelling where text is wanted (command, environment).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from aliquot.core import errors
from aliquot.wire import json_lines

# Four times smaller than the API's limit for a body: a definition with a script of a million characters fits.
MAX_BYTES = 2 * 2**20
MAX_DEPTH = 20
_MAX_LIKENESS = 2**16
"""A text that begins like JSON and is not may be YAML, `{gpu: 1}`; a larger one was written by a program."""
_TEXTS = frozenset({"command", "environment", "labels"})
_NUMBER_TAGS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_TEXT_TAG = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data, and where each field of it stands."""

    data: object
    lines: Mapping[str, int]
    """Of YAML: the line of each field by its path (`environment.LR`)."""
    json: str = ""
    """Of JSON: the text."""

    def line_of(self, path: str) -> int | None:
        """The line of the field at `path`, or of the nearest thing around it that is there."""
        if self.json:
            return json_lines.line_of(self.json, path)
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path)


def parse(content: bytes, *, most_json: int = MAX_BYTES) -> Document:
    """Read YAML or JSON. Raises InvalidInput that names the line. JSON may have up to `most_json` bytes."""
    most = most_json if content[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else MAX_BYTES
    if len(content) > most:
        valid = (f"at most {most} bytes", *((f"JSON, at most {most_json} bytes",) if most < most_json else ()))
        raise errors.InvalidInput("the file is too large", valid=valid)
    text = _decode(content)
    try:
        return _parse_json(text) if text.lstrip().startswith("{") else _parse_yaml(text)
    except RecursionError as error:
        raise errors.InvalidInput("the file is nested too deeply", valid=(f"at most {MAX_DEPTH} levels",)) from error


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise errors.InvalidInput(
            f"line {line}: the byte 0x{content[error.start]:02x} is not UTF-8 text", valid=("UTF-8",)
        ) from error


def _parse_json(text: str) -> Document:
    try:
        return Document(json.loads(text, object_pairs_hook=json_lines.once), {}, text)
    except json_lines.Repeated as error:
        path, line = json_lines.line_of_repeated(text)
        raise errors.InvalidInput(f"line {line}: {path}: is given twice", field=path) from error
    except json.JSONDecodeError as error:
        wrong = errors.InvalidInput(f"line {error.lineno}: not JSON: {error.msg}")
        if len(text) > _MAX_LIKENESS:
            raise wrong from error
        try:
            return _parse_yaml(text)
        except errors.InvalidInput:
            raise wrong from error


def _parse_yaml(text: str) -> Document:
    try:
        loader = yaml.SafeLoader(text)
        if "*" in text:  # An alias has one. To look for it takes as long as all the rest.
            _refuse_aliases(text)
        node = loader.get_single_node()
        if node is None:
            return Document({}, {})
        lines: dict[str, int] = {}
        _walk(node, "", lines, depth=0)
        return Document(loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        where = f"line {at.line + 1}: " if at else ""
        raise errors.InvalidInput(f"{where}not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise errors.InvalidInput(f"not YAML: {error}") from error


def _refuse_aliases(text: str) -> None:
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise errors.InvalidInput(
                f"line {_line(event)}: the alias *{event.anchor} is not supported; write the value out"
            )


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _walk(node: yaml.Node, path: str, lines: dict[str, int], *, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise RecursionError
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            _walk(item, f"{path}[{at}]", lines, depth=depth + 1)
    elif isinstance(node, yaml.MappingNode):
        _walk_fields(node, path, lines, depth=depth)
    elif isinstance(node, yaml.ScalarNode) and path.partition(".")[0].partition("[")[0] in _TEXTS:
        node.tag = _TEXT_TAG if node.tag in _NUMBER_TAGS else node.tag


def _walk_fields(node: yaml.MappingNode, path: str, lines: dict[str, int], *, depth: int) -> None:
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise errors.InvalidInput(f"line {line}: a field's name must be plain text")
        name = f"{path}.{key.value}" if path else str(key.value)
        key.tag = _TEXT_TAG
        if key.value in seen:
            raise errors.InvalidInput(
                f"line {line}: {name} is given twice, first in line {seen[key.value]}", field=name
            )
        seen[key.value] = line
        _walk(value, name, lines, depth=depth + 1)
        lines[name] = line
