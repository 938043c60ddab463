"""A rule: a sentence of `docs/explanation/scheduling-rules.md`, cases that show it, and ways to take it out.

The engine with a rule taken out is the real one with one function, method or table of `aliquot.core` replaced.
"""

import builtins
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from aliquot.sim import scenario, verdict
from aliquot.wire.scenario import reader
from aliquot.wire.scenario.shape import Scenario

CASES = Path(__file__).with_name("cases")


@dataclass(frozen=True, slots=True)
class Without:
    """A rule, or a part of it, is taken out: `attribute` of a module or class is `broken` instead."""

    target: Any
    attribute: str
    broken: Any
    more: tuple["Without", ...] = ()
    """What else is replaced: some rules are asked twice, first quickly for many and then of each."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence of the rules, word for word; the cases that show it; and ways to take it, or a part of it, out.

    With each way at least one of the cases fails, and each case fails in at least one way.
    """

    sentence: str
    cases: tuple[str, ...]
    ways: tuple[Without, ...]


def rule(sentence: str, cases: str, *ways: Without) -> Rule:
    """A rule, with its cases as a text of names."""
    return Rule(sentence, tuple(cases.split()), ways)


def without(target: Any, attribute: str, broken: Any) -> Without:
    """A way to take a rule out."""
    return Without(target, attribute, broken)


def around(target: Any, attribute: str, wrap: Callable[[Any], Any]) -> Without:
    """The same, by what is made of the original."""
    return Without(target, attribute, wrap(getattr(target, attribute)))


@functools.cache
def case(name: str) -> Scenario:
    """A case by its name."""
    path = CASES / f"{name}.yaml"
    return reader.read(path.read_bytes(), str(path))


def missed(name: str) -> list[verdict.Missed]:
    """What of a case does not come out as it is expected, by the engine as it is now."""
    return scenario.check(case(name))


def missed_without(way: Without, name: str) -> list[verdict.Missed]:
    """The same while a rule is taken out."""
    with pytest.MonkeyPatch.context() as patch:
        for one in (way, *way.more):
            # A name of the language itself, such as `sorted`, is no attribute of a module until it is replaced there.
            patch.setattr(one.target, one.attribute, one.broken, raising=not hasattr(builtins, one.attribute))
        return missed(name)


def together(first: Without, *more: Without) -> Without:
    """Several replacements that are one way."""
    return replace(first, more=more)
