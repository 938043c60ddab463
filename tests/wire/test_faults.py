"""What a person is told of a document that is not right: the field as they wrote it, why, and what would do."""

from typing import Any

import pytest

from aliquot.core import errors
from aliquot.wire import base, faults, projects, workloads

JOB = {"command": ["true"]}

CASES: list[tuple[type[base.Shape], Any, str | None, str, tuple[str, ...]]] = [  # Any: documents of every kind
    (workloads.Definition, JOB | {"replicas": 0}, "replicas", "must be at least 1", ()),
    (workloads.Definition, JOB | {"replicas": 1.5}, "replicas", "must be a whole number", ()),
    (workloads.Definition, JOB | {"kind": "x"}, "kind", "must be one of", ("workspace", "training")),
    (workloads.Definition, JOB | {"stdin": "tty"}, "stdin", "must be one of", ("none", "pipe", "terminal")),
    (workloads.Definition, JOB | {"priority": [1]}, "priority", "must be a whole number or text", ()),
    (workloads.Definition, {"command": ["a", 1]}, "command[1]", "must be text", ()),
    (workloads.Definition, JOB | {"name": "No"}, "name", "lower-case letters", ()),
    (workloads.Definition, JOB | {"name": "a\n"}, "name", "lower-case letters", ()),
    (workloads.Definition, JOB | {"labels": {"team": 3}}, "labels.team", "must be text", ()),
    (workloads.Definition, JOB | {"environment": {"a=b": "c"}}, "environment.a=b", "the name of a variable", ()),
    (workloads.Definition, JOB | {"gpu": True}, "gpu", "must be text", ()),
    (workloads.Definition, ["true"], None, "must be a mapping", ()),
    (projects.ProjectNew, {}, "name", "is missing", ()),
    (
        projects.ProjectNew,
        {"name": "a", "pools": {"default": {"gpu": {"quota": []}}}},
        "pools.default.gpu.quota",
        "must be text",
        (),
    ),
    (
        projects.ProjectNew,
        {"name": "a", "pools": {"default": {"gpux": {}}}},
        "pools.default.gpux",
        "did you mean `gpu`?",
        ("cpu", "gpu", "memory", "priority"),
    ),
    (projects.ProjectNew, {"name": "a", "pools": {"NO": {}}}, "pools.NO", "lower-case letters", ()),
]


@pytest.mark.parametrize(("model", "document", "field", "words", "valid"), CASES)
def test_a_document_that_is_not_right_names_the_field_and_what_is_valid(
    model: type[base.Shape], document: object, field: str | None, words: str, valid: tuple[str, ...]
) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        faults.read(model, document)

    assert caught.value.field == field
    assert words in caught.value.message
    assert set(valid) <= set(caught.value.valid)


def test_an_unknown_field_lists_the_known_ones_and_suggests_the_nearest() -> None:
    with pytest.raises(errors.InvalidInput, match="there is no field `comand` here; did you mean `command`") as caught:
        faults.read(workloads.Definition, {"comand": ["true"]})

    assert {"command", "workingDirectory", "ttlAfterFinish"} <= set(caught.value.valid)


def test_all_fields_at_fault_are_named_in_one_error() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        faults.read(workloads.Definition, {"replicas": 0, "retries": -1, "kind": "x"})

    listed = caught.value.details["errors"]
    assert isinstance(listed, list)
    assert [one["field"] for one in listed] == ["kind", "replicas", "retries"]
    assert all(field in caught.value.message for field in ("kind", "replicas", "retries"))


def test_a_document_that_is_right_is_read() -> None:
    assert faults.read(workloads.Definition, JOB | {"gpu": 0.5}).gpu == "0.5"
