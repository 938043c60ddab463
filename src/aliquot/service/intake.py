"""A submitted definition, read once: every amount, span and priority exact, everything else checked.

Promises: pure; a fault names its field and what would do. What is read is what is stored and planned.
"""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from datetime import timedelta

from aliquot.core import errors, priorities, quantities
from aliquot.core.model import PodRequest
from aliquot.service import records
from aliquot.wire import workloads as shapes

LONGEST = timedelta(days=3650)
"""No span is longer: every instant that is reckoned with it can be written down."""
OURS = re.compile(r"ALIQUOT_.*|CUDA_VISIBLE_DEVICES")
"""Variables that a definition cannot set. They are left out silently, because a job that submits another one passes its
own environment on; and a token must never be stored."""
_PRIORITIES = {shapes.Kind.WORKSPACE: "high", shapes.Kind.TRAINING: "low"}
_MOST_LABELS = 64


@dataclass(frozen=True, slots=True)
class Intake:
    """A definition and what it says, exactly."""

    definition: shapes.Definition
    request: PodRequest
    priority: int
    is_preemptible: bool
    grace: timedelta
    back_off: timedelta
    max_run_time: timedelta | None
    ttl: timedelta | None


def read(definition: shapes.Definition) -> Intake:
    """Check it and read it. Raises InvalidInput."""
    _check_program(definition)
    _check_labels(definition.labels)
    kept = {name: value for name, value in definition.environment.items() if not OURS.fullmatch(name)}
    preemptible = definition.preemptible
    priority = _PRIORITIES[definition.kind] if definition.priority is None else definition.priority
    return Intake(
        definition=definition.model_copy(update={"environment": kept}),
        request=_request(definition),
        priority=priorities.parse(priority),
        is_preemptible=definition.kind is shapes.Kind.TRAINING if preemptible is None else preemptible,
        grace=_span(definition.grace_period, "gracePeriod"),
        back_off=_span(definition.retry_back_off, "retryBackOff"),
        max_run_time=_optional_span(definition.max_run_time, "maxRunTime"),
        ttl=_optional_span(definition.ttl_after_finish, "ttlAfterFinish"),
    )


def changed(row: records.WorkloadRow, change: shapes.WorkloadUpdate) -> Intake:
    """What a workload says after a change; what the change leaves out stays."""
    given = {name: value for name in change.model_fields_set if (value := getattr(change, name)) is not None}
    return read(row.definition.model_copy(update=given))


def with_changes(row: records.WorkloadRow, change: shapes.WorkloadUpdate) -> records.WorkloadRow:
    """The row after a change."""
    taken = changed(row, change)
    return replace(
        row,
        definition=taken.definition,
        request=taken.request,
        priority=taken.priority,
        is_preemptible=taken.is_preemptible,
    )


def body_hash(definition: shapes.Definition) -> str:
    """Equal for equal definitions, in whatever order their fields were written."""
    text = json.dumps(definition.model_dump(mode="json", by_alias=True), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def make_name(kind: shapes.Kind, id: str) -> str:
    """A name for a workload that was given none, from the random end of its id."""
    tail = re.sub(r"[^a-z0-9]", "", id.lower())[-8:]
    return f"{kind}-{tail}"


def _check_program(definition: shapes.Definition) -> None:
    if (definition.command is None) == (definition.script is None):
        said = "neither" if definition.command is None else "both"
        raise errors.InvalidInput(
            f"command: {said} of command and script is given; give one of them",
            field="command",
            valid=("command", "script"),
        )
    for index, argument in enumerate(definition.command or ()):
        _without_nul(argument, f"command[{index}]")
    if definition.command is not None and not definition.command[0]:
        raise errors.InvalidInput("command[0]: the name of the program is empty", field="command[0]")
    _without_nul(definition.script or "", "script")
    for name, value in definition.environment.items():
        _without_nul(value, f"environment.{name}")
    folder = definition.working_directory
    if folder is not None:
        _without_nul(folder, "workingDirectory")
        if not folder.startswith("/") or len(folder) > 4096:
            raise errors.InvalidInput(
                f"workingDirectory: {folder[:60]!r} is not an absolute path",
                field="workingDirectory",
                valid=("/a/path",),
            )


def _check_labels(labels: dict[str, str]) -> None:
    if len(labels) > _MOST_LABELS:
        raise errors.InvalidInput(f"labels: there are {len(labels)}; at most {_MOST_LABELS} are kept", field="labels")
    for name in labels:
        # A quote could not be written in the path by which the store looks for a label.
        if not 1 <= len(name) <= 128 or any(character in name for character in '"\\\x00'):
            raise errors.InvalidInput(
                f"labels: {name[:60]!r} cannot be the name of a label",
                field="labels",
                valid=("1 to 128 characters, no quotes, no backslash",),
            )


def _request(definition: shapes.Definition) -> PodRequest:
    gpu = None if definition.gpu is None else quantities.parse_gpu(definition.gpu)
    return PodRequest(
        gpu=gpu,
        milli_cpus=0 if definition.cpu is None else _some(quantities.parse_milli(definition.cpu, "cpu"), "cpu"),
        memory_bytes=(
            0 if definition.memory is None else _some(quantities.parse_bytes(definition.memory, "memory"), "memory")
        ),
    )


def _some(amount: int, field: str) -> int:
    if amount == 0:
        raise errors.InvalidInput(f"{field}: it asks for none; leave {field} out for no bound", field=field)
    return amount


def _span(text: str, field: str) -> timedelta:
    span = quantities.parse_duration(text, field)
    if span > LONGEST:
        raise errors.InvalidInput(f"{field}: {text!r} is longer than ten years", field=field, valid=("up to 3650d",))
    return span


def _optional_span(text: str | None, field: str) -> timedelta | None:
    return None if text is None else _span(text, field)


def _without_nul(text: str, field: str) -> None:
    if "\x00" in text:
        raise errors.InvalidInput(f"{field}: it contains a NUL character, which no program can be given", field=field)
