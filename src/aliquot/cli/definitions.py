"""Makes the definition of a workload out of options, a file and the caller's own surroundings.

Promises: what is wrong with it is said before anything is sent, and our own token never travels into a job.
"""

import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from aliquot.cli import render
from aliquot.core import errors, priorities, quantities
from aliquot.wire import documents, faults, workloads

Command = TypeVar("Command", bound=Callable[..., object])

_OPTIONS = (
    click.option("--name", help="Its name; made up if left out."),
    click.option("--project", help="The project that it belongs to and whose quota it uses.  [default: default]"),
    click.option("--kind", help="training (preemptible, low priority) or workspace (neither).  [default: training]"),
    click.option("--gpu", help="GPU per pod: 1, 0.5, 20Gi, 2x0.5.  [default: none]"),
    click.option("--cpu", help="CPU cores per pod: 2, 500m.  [default: not limited]"),
    click.option("--memory", help="Memory per pod: 8Gi.  [default: not limited]"),
    click.option("--replicas", type=int, help="Pods that start all together or not at all.  [default: 1]"),
    click.option("--priority", help="0 to 1000, or very-low, low, medium, high, very-high."),
    click.option("--preemptible/--not-preemptible", default=None, help="Whether others may take its place."),
    click.option("--max-run-time", help="End it after this time, summed over attempts: 2h, 90s."),
    click.option("--retries", type=int, help="Restarts after a failure; an eviction spends none.  [default: 0]"),
    click.option("--retry-back-off", help="Wait before the first retry; doubles each time.  [default: 10s]"),
    click.option("--grace-period", help="Time between TERM and KILL when it is ended.  [default: 30s]"),
    click.option("--ttl-after-finish", help="Delete it this long after it ended: 1d."),
    click.option("--working-directory", "-C", metavar="DIR", help="Where it runs.  [default: here]"),
    click.option(
        "--env", "-e", multiple=True, metavar="KEY=VALUE", help="Set a variable; KEY alone passes the caller's."
    ),
    click.option("--label", "-l", multiple=True, metavar="KEY=VALUE", help="A label to find it by."),
    click.option("--key", help="Submitting again with the same key gives the same workload, not a second one."),
    click.option("--clean", is_flag=True, help="Pass neither the caller's environment nor folder."),
)
_FIELDS = {
    "max_run_time": "maxRunTime",
    "retry_back_off": "retryBackOff",
    "grace_period": "gracePeriod",
    "ttl_after_finish": "ttlAfterFinish",
    "working_directory": "workingDirectory",
}
_NOT_FIELDS = frozenset({"env", "label", "key", "clean"})


class WithCommand(click.Command):
    """A command that takes a program after `--`; it is found as `program(context)`, apart from the arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the arguments at the first `--`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["aliquot.program"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def program(context: click.Context) -> list[str] | None:
    """What stood after `--`, None if there was none."""
    found: list[str] | None = context.meta.get("aliquot.program")
    return found


def options(command: Command) -> Command:
    """Give a command all options that describe a workload; it gets them as keyword arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def from_options(asked: Mapping[str, Any], command: Sequence[str] | None) -> dict[str, object]:  # Any: click's values
    """The fields that the options give, in the wire's words. What was not given is not there."""
    fields: dict[str, object] = {
        _FIELDS.get(name, name): value for name, value in asked.items() if name not in _NOT_FIELDS and value is not None
    }
    if command is not None:
        if not command:
            raise errors.InvalidInput(
                "command: nothing stands after `--`", field="command", valid=("-- PROGRAM ARGUMENTS",)
            )
        fields["command"] = list(command)
    if asked.get("env"):
        fields["environment"] = dict(_variable(text) for text in asked["env"])
    if asked.get("label"):
        fields["labels"] = dict(_pair(text, "label") for text in asked["label"])
    return fields


def checked_options(asked: Mapping[str, Any], command: Sequence[str] | None) -> workloads.Definition:  # Any: click's
    """A definition out of options alone; an error names the option, not the field that it becomes."""
    try:
        return checked(from_options(asked, command))
    except errors.InvalidInput as error:
        option = next((name for name, field in _FIELDS.items() if field == error.field), None)
        if option is None:
            raise
        spelled = option.replace("_", "-")
        message = error.message.replace(f"{error.field}:", f"{spelled}:")
        raise errors.InvalidInput(message, field=spelled, valid=error.valid, code=error.stable_code) from error


def from_file(name: str) -> documents.Document:
    """Read a file, or stdin for `-`. Every error names the file."""
    shown = "standard input" if name == "-" else name
    try:
        content = _content(name)
    except OSError as error:
        raise errors.InvalidInput(f"{shown}: {(error.strerror or str(error)).lower()}", field="file") from error
    try:
        return documents.parse(content)
    except errors.InvalidInput as error:
        raise _in_file(error, shown, line=None) from error


def _content(name: str) -> bytes:
    # One byte more than is allowed tells that it is too much, without reading all of a huge file.
    if name == "-":
        return sys.stdin.buffer.read(documents.MAX_BYTES + 1)
    with pathlib.Path(name).open("rb") as file:
        return file.read(documents.MAX_BYTES + 1)


def from_document(name: str, document: documents.Document, given: Mapping[str, object]) -> workloads.Definition:
    """A definition out of a file's fields and the options beside it, which win."""
    if not isinstance(document.data, dict):
        raise _in_file(
            errors.InvalidInput("expected fields and values, such as `command: [python, train.py]`"), name, line=1
        )
    both = [field for field in ("command", "script") if field in document.data and "command" in given]
    if both:
        raise errors.InvalidInput(
            f"{both[0]}: is given in {name} and after `--`", field=both[0], valid=("one of the two",)
        )
    merged = {**document.data, **given}
    for field in ("environment", "labels"):
        if isinstance(document.data.get(field), dict) and isinstance(given.get(field), dict):
            merged[field] = {**document.data[field], **given[field]}  # type: ignore[dict-item]  # looked at one line above
    try:
        return checked(merged)
    except errors.InvalidInput as error:
        raise _in_file(error, name, line=document.line_of(error.field or "")) from error


def checked(fields: Mapping[str, object]) -> workloads.Definition:
    """A definition whose amounts and durations can be read. Raises InvalidInput that names the field."""
    definition = faults.read(workloads.Definition, dict(fields))
    if (definition.command is None) == (definition.script is None):
        what = "neither is given" if definition.command is None else "both are given"
        raise errors.InvalidInput(
            f"command: exactly one of command and script is needed; {what}",
            field="command",
            valid=("command", "script"),
        )
    if definition.gpu is not None:
        quantities.parse_gpu(definition.gpu, "gpu")
    if definition.cpu is not None:
        quantities.parse_milli(definition.cpu, "cpu")
    if definition.memory is not None:
        quantities.parse_bytes(definition.memory, "memory")
    if definition.priority is not None:
        priorities.parse(definition.priority)
    for field, text in (
        ("maxRunTime", definition.max_run_time),
        ("retryBackOff", definition.retry_back_off),
        ("gracePeriod", definition.grace_period),
        ("ttlAfterFinish", definition.ttl_after_finish),
    ):
        if text is not None:
            quantities.parse_duration(text, field)
    return definition


def with_surroundings(
    definition: workloads.Definition, *, environment: Mapping[str, str], folder: str
) -> workloads.Definition:
    """The definition with the caller's folder and environment, as Slurm passes them; its own variables win."""
    passed = {name: value for name, value in environment.items() if _may_pass(name)}
    sound = {name: value for name, value in passed.items() if _is_text(name) and _is_text(value)}
    if len(sound) < len(passed):
        names = ", ".join(sorted(ascii(name) for name in passed if name not in sound))
        render.say(f"not passed, as it is not UTF-8 text: {names}")
    return definition.model_copy(
        update={
            "environment": {**sound, **definition.environment},
            "working_directory": str(pathlib.Path(folder) / (definition.working_directory or "")),
        }
    )


def _may_pass(name: str) -> bool:
    # ALIQUOT_TOKEN would let the job act as us; most others describe the job that we may run in ourselves.
    return not name.startswith("ALIQUOT_") and name not in {"CUDA_VISIBLE_DEVICES", "_"}


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # bytes that are no UTF-8 arrive in os.environ as lone surrogates
        return False
    return True


def _variable(text: str) -> tuple[str, str]:
    if "=" in text:
        return _pair(text, "env")
    value = os.environ.get(text)
    if value is None:
        raise errors.InvalidInput(f"env: {text!r} is not set here and has no value", field="env", valid=("KEY=VALUE",))
    return text, value


def _pair(text: str, field: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise errors.InvalidInput(f"{field}: {text!r} is not KEY=VALUE", field=field, valid=("KEY=VALUE",))
    return key, value


def _in_file(error: errors.InvalidInput, name: str, *, line: int | None) -> errors.InvalidInput:
    where = f"{name}, line {line}" if line else name
    separator = ", " if error.message.startswith("line ") else ": "
    return errors.InvalidInput(
        f"{where}{separator}{error.message}",
        field=error.field,
        valid=error.valid,
        details=error.details,
        code=error.stable_code,
    )
