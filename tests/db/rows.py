"""Strategies for every kind of row, made from the types of its fields."""

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from aliquot.service import records
from aliquot.wire import workloads

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
INSTANTS = st.datetimes(timezones=st.just(UTC))
SPANS = st.timedeltas(-timedelta(days=10**7), timedelta(days=10**7))
DEFINITIONS = st.builds(
    workloads.Definition,
    name=st.none() | st.just("a-name"),
    kind=st.sampled_from(workloads.Kind),
    command=st.lists(TEXT, min_size=1, max_size=3),
    environment=st.dictionaries(st.text("ABC_", min_size=1, max_size=5), TEXT, max_size=2),
    replicas=st.integers(1, 1000),
    gpu=st.none() | st.just("0.5"),
    priority=st.none() | st.integers(0, 1000) | st.just("high"),
    preemptible=st.none() | st.booleans(),
    labels=st.dictionaries(TEXT, TEXT, max_size=2),
)
KINDS: tuple[type, ...] = (
    records.QueueRow,
    records.WorkloadRow,
    records.PodRow,
    records.PromiseRow,
    records.LedgerRow,
    records.ReceiptRow,
    records.EventRow,
    records.AuditRow,
    records.CordonRow,
    records.DeviceRow,
    records.CredentialRow,
    records.FactRow,
)


def row(kind: type) -> st.SearchStrategy[Any]:  # Any: a row of this kind
    """Any row of a kind, in the default scope."""
    return _built(kind, scope=st.just(records.Scope()))


def _built(kind: type, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    fields = {field.name: values(hints[field.name]) for field in dataclasses.fields(kind)}
    return st.builds(kind, **fields | given)


def values(hint: Any) -> st.SearchStrategy[Any]:  # Any: a type or one of typing's own objects
    """Any value of a field with this type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return st.one_of(*(st.none() if one is types.NoneType else values(one) for one in arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, values(arguments[1]), max_size=3)
    return _plain(hint)


def _plain(hint: Any) -> st.SearchStrategy[Any]:
    simple = {
        str: TEXT,
        int: INTEGERS,
        bool: st.booleans(),
        datetime: INSTANTS,
        timedelta: SPANS,
        workloads.Definition: DEFINITIONS,
    }
    if hint in simple:
        return simple[hint]
    return st.sampled_from(hint) if issubclass(hint, enum.StrEnum) else _built(hint)
