"""What a scenario expects to come out."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import get_args

from aliquot.core import change, plan
from aliquot.wire.scenario import fields
from aliquot.wire.scenario.fields import Fields, Version
from aliquot.wire.scenario.shape import (
    Expectation,
    Expected,
    ExpectedEviction,
    ExpectedNode,
    ExpectedPromise,
    ExpectedReason,
    ExpectedSuggestion,
    Status,
)

EXPECTATION = fields.keys(
    "workloads pods nodes sameDevice otherDevice atMost",
    "atLeast reasons evictions suggestions promises cutOff",
)
EXPECTED = fields.keys("status node gpus tieNode")
NODE = fields.keys("idleGpus releasingGpus")
COUNTS = fields.keys("binds evictions nominations")
EVICTION = fields.keys("", "for rule says")
REASON = fields.keys("", "code says numbers blockers position")
SUGGESTION = fields.keys("", "kind says")
PROMISE = fields.keys("", "due expires")
DOES: Mapping[str, str] = {"binds": "bind", "evictions": "evict", "nominations": "nominate"}


def kind_of(change_type: type) -> str:
    """The kind of a change as an expectation names it: `set-gpu`, `offer-device`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", change_type.__name__).lower()


SUGGESTIONS = ("none", *sorted(kind_of(kind) for kind in get_args(change.Change)))


@dataclass(frozen=True, slots=True)
class Known:
    """The names that an expectation may use."""

    workloads: Collection[str]
    pods: Collection[str]
    nodes: Collection[str]


def read(top: Fields, known: Known, version: Version) -> Expectation:
    """What is expected; nothing if nothing is said."""
    if not top.has("expect"):
        return Expectation()
    one = Fields(top.data["expect"], top.at("expect"), EXPECTATION, version)
    return Expectation(
        workloads=_expected(one, "workloads", known, version=version),
        pods=_expected(one, "pods", known, version=version),
        nodes={
            name: _node(Fields(data, path, NODE, version))
            for name, data, path in _entries(one, "nodes", known.nodes, noun="node")
        },
        same_device=_groups(one, "sameDevice", known),
        other_device=_groups(one, "otherDevice", known),
        at_most=_counts(one, "atMost", version),
        at_least=_counts(one, "atLeast", version),
        reasons={
            name: _reason(data, path, known, version=version)
            for name, data, path in _entries(one, "reasons", known.workloads, noun="workload")
        },
        promises={
            name: None if data is None else _promise(Fields(data, path, PROMISE, version))
            for name, data, path in _entries(one, "promises", known.workloads, noun="workload")
        },
        evictions={
            name: _eviction(Fields(data, path, EVICTION, version), known)
            for name, data, path in _entries(one, "evictions", known.pods, noun="pod")
        },
        suggestions={
            name: _suggestion(data, path, version)
            for name, data, path in _entries(one, "suggestions", known.workloads, noun="workload")
        },
        is_cut_off=one.flag("cutOff", default=False) if one.has("cutOff") else None,
    )


def _entries(one: Fields, key: str, known: Collection[str], *, noun: str) -> list[tuple[str, object, str]]:
    found = [(name, data, f"{one.at(key)}.{name}") for name, data in one.pairs(key)]
    for name, _, path in found:
        fields.check_name(name, known, path, noun=noun)
    return found


def _expected(one: Fields, key: str, known: Known, *, version: Version) -> dict[str, Expected]:
    names = known.workloads if key == "workloads" else known.pods
    found: dict[str, Expected] = {}
    for name, data, path in _entries(one, key, names, noun=key.removesuffix("s")):
        want = Fields(data, path, EXPECTED, version)
        places = want.data.get("node")
        nodes = None
        if "node" in want.data:
            nodes = fields.as_names(places if type(places) is list else [places], want.at("node"))
            for node in nodes:
                fields.check_name(node, known.nodes, want.at("node"), noun="node")
        found[name] = Expected(
            status=want.choice("status", tuple(Status), Status.PENDING) if want.has("status") else None,
            nodes=nodes,
            milli_gpus=want.milli("gpus") if want.has("gpus") else None,
        )
    return found


def _node(want: Fields) -> ExpectedNode:
    return ExpectedNode(
        idle_milli=want.milli("idleGpus") if want.has("idleGpus") else None,
        releasing_milli=want.milli("releasingGpus") if want.has("releasingGpus") else None,
    )


def _groups(one: Fields, key: str, known: Known) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    for data, path in one.items(key):
        names = fields.as_names(data, path)
        for index, name in enumerate(names):
            fields.check_name(name, known.pods, f"{path}[{index}]", noun="pod")
        if len(names) < 2:
            fields.refuse(path, "compares two pods or more")
        found.append(names)
    return tuple(found)


def _counts(one: Fields, key: str, version: Version) -> dict[str, int]:
    if not one.has(key):
        return {}
    counts = Fields(one.data[key], one.at(key), COUNTS, version)
    return {does: counts.whole(word, 0) for word, does in DOES.items() if counts.has(word)}


def _eviction(want: Fields, known: Known) -> ExpectedEviction:
    beneficiary = want.text("for") if want.has("for") else None
    if beneficiary:
        fields.check_name(beneficiary, known.workloads, want.at("for"), noun="workload")
    rule = want.choice("rule", tuple(plan.Rule), plan.Rule.RECLAIM) if want.has("rule") else None
    return ExpectedEviction(beneficiary, rule, want.text("says") or None)


def _reason(data: object, path: str, known: Known, *, version: Version) -> ExpectedReason:
    """A code alone, or an object that says more."""
    if type(data) is not dict:
        return ExpectedReason(fields.as_choice(data, tuple(plan.Code), path))
    want = Fields(data, path, REASON, version)
    blockers = want.words("blockers") if want.has("blockers") else None
    for index, name in enumerate(blockers or ()):
        fields.check_name(name, known.workloads, f"{want.at('blockers')}[{index}]", noun="workload")
    return ExpectedReason(
        code=want.choice("code", tuple(plan.Code), plan.Code.BEHIND) if want.has("code") else None,
        says=want.text("says") or None,
        numbers={key: fields.as_text(value, f"{want.at('numbers')}.{key}") for key, value in want.pairs("numbers")},
        blockers=blockers,
        position=want.whole("position", 1, least=1) if want.has("position") else None,
    )


def _suggestion(data: object, path: str, version: Version) -> ExpectedSuggestion:
    """A kind alone, or an object that says more."""
    if type(data) is not dict:
        return ExpectedSuggestion(fields.as_choice(data, SUGGESTIONS, path))
    want = Fields(data, path, SUGGESTION, version)
    return ExpectedSuggestion(
        want.choice("kind", SUGGESTIONS, "none") if want.has("kind") else None, want.text("says") or None
    )


def _promise(want: Fields) -> ExpectedPromise:
    return ExpectedPromise(want.span_or_none("due"), want.span_or_none("expires"))
