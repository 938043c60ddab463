"""`aliquot why NAME`: why a workload waits, with the numbers, who is in the way, and what would start it."""

import click

from aliquot.cli import connection, output, words
from aliquot.core import lifecycle
from aliquot.wire import workloads as shapes

WHO = {"owner": "you", "project": "whoever runs the project", "administrator": "an administrator"}


@click.command()
@connection.target
@output.option
def why(target: connection.Target, layout: output.Format) -> None:
    """Say why a workload waits, and what would start it."""
    client = connection.open_client()
    detail = client.get_workload(target.ref, project=target.project)
    if detail.phase is not lifecycle.Phase.PENDING and layout in {output.Format.TABLE, output.Format.WIDE}:
        print(not_waiting(detail))
        return
    reason = client.get_reason(detail.id)
    output.write(reason, layout, lambda _: describe(detail.name, reason))


def not_waiting(view: shapes.WorkloadView) -> str:
    """What to say of one that does not wait."""
    if view.phase in lifecycle.FINISHED:
        return f"{view.name} does not wait: it is over ({words.state(view)})"
    if view.phase is lifecycle.Phase.SUSPENDED:
        return f"{view.name} does not wait: it is suspended; `aliquot resume {view.name}` lets it wait for a place"
    held = f" on {', '.join(view.devices)}" if view.devices else ""
    return f"{view.name} does not wait: it is {view.phase}{held}"


def describe(name: str, reason: shapes.Reason) -> str:
    """A reason in words."""
    place = f" (number {reason.position} in line)" if reason.position is not None else ""
    lines = [f"{name} waits{place}: {reason.message}"]
    facts = output.facts(
        [
            ("code", reason.code),
            ("numbers", ", ".join(f"{_spaced(key)} {value}" for key, value in reason.numbers.items())),
            ("in the way", "\n".join(blocker.description for blocker in reason.blockers)),
        ]
    )
    lines += [f"  {line}" for line in facts.splitlines()]
    lines += ["", *_what_helps(reason)]
    return "\n".join(lines)


def _what_helps(reason: shapes.Reason) -> list[str]:
    suggestion = reason.suggestion
    if suggestion is None:
        return [f"No single change starts it: {reason.no_suggestion_because or 'none was found'}."]
    lines = [f"To start it, {WHO[suggestion.who_can]} can: {suggestion.description}"]
    if suggestion.command:
        lines.append(f"  {suggestion.command}")
    if suggestion.outcome == "starts-after-evictions":
        lines.append(f"It starts then in the place of: {', '.join(suggestion.evicts)}.")
    return lines


def _spaced(key: str) -> str:
    """`freeDevices` and `free_devices` as `free devices`."""
    return (
        "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in key)
        .replace("_", " ")
        .replace("-", " ")
    )
