"""`aliquot submit`: hands in a workload from a file or from options, and returns at once."""

from typing import Any

import click

from aliquot.cli import connection, definitions, output, run, waiting, words
from aliquot.core import errors, lifecycle
from aliquot.wire import workloads as shapes


@click.command(cls=definitions.WithCommand)
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@definitions.options
@click.option("--dry-run", is_flag=True, help="Say what submitting would do now, and create nothing.")
@output.option
@click.pass_context
def submit(
    context: click.Context,
    /,
    *,
    file: str | None,
    dry_run: bool,
    layout: output.Format,
    **asked: Any,  # Any: click's values
) -> None:
    """Submit a workload from FILE (YAML or JSON, - for stdin), or from options: submit --gpu 1 -- COMMAND.

    Options win over what the file says. It runs with your folder and environment, unless --clean is given.
    """
    command = definitions.program(context)
    if file is not None:
        given = definitions.from_options(asked, command)
        shown = "standard input" if file == "-" else file
        definition = definitions.from_document(shown, definitions.from_file(file), given)
    elif command is not None:
        definition = definitions.checked_options(asked, command)
    else:
        raise errors.InvalidInput(
            "command: neither a file nor a command is given", field="command", valid=("FILE", "-- COMMAND")
        )
    definition = run.prepared(definition, is_clean=asked["clean"])
    client = connection.open_client()
    if dry_run:
        answer = client.dry_run_workload(definition)
        output.write(answer, layout, lambda _: words.foresee(answer, "created"))
        return
    detail = client.submit_workload(definition, key=asked["key"])
    output.write(detail, layout, lambda _: taken_in(detail))


def taken_in(detail: shapes.WorkloadDetail) -> str:
    """What to say of one that was taken in."""
    if detail.phase is lifecycle.Phase.PENDING and detail.reason is not None:
        return f"{detail.name} is submitted. {waiting.why(detail)}"
    return f"{detail.name} is submitted; `aliquot logs -f {detail.name}` shows its output"
