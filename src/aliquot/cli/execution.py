"""`aliquot exec NAME -- COMMAND`: a program beside a workload that runs, in its folder, with its devices and limits."""

import contextlib

import click

from aliquot.cli import connection, definitions, terminal
from aliquot.core import errors


@click.command("exec", cls=definitions.WithCommand, context_settings={"allow_interspersed_args": False})
@connection.target
@click.option("--index", type=click.IntRange(min=0), default=0, show_default=True, help="In this replica.")
@click.option("--no-stdin", is_flag=True, help="Give it no input and no terminal.")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@click.pass_context
def execute(
    context: click.Context, target: connection.Target, *, index: int, no_stdin: bool, words: tuple[str, ...]
) -> None:
    """Run a command beside a workload that runs, with its devices; its exit code is ours."""
    command = [*words, *(definitions.program(context) or [])]
    if not command:
        raise errors.InvalidInput("command: no command is given", field="command", valid=("-- COMMAND",))
    kind = "none" if no_stdin else terminal.kind_of_stdin()
    rows, columns = terminal.size()
    session = connection.open_client().exec_workload(
        target.ref,
        command,
        project=target.project,
        index=index,
        terminal=kind == "terminal",
        rows=rows,
        columns=columns,
    )
    context.exit(_converse(session, kind))


def _converse(session: connection.Session, kind: terminal.Stdin) -> int:
    with contextlib.ExitStack() as stack:
        stack.enter_context(session)
        if kind == "terminal":
            stack.enter_context(terminal.raw())
        if kind == "none":
            session.end_input()
        else:
            stack.enter_context(terminal.Keyboard(session, is_terminal=kind == "terminal"))
        for stream, data in session:
            terminal.write(stream, data)
    assert session.exit_code is not None, "a session that ends without an exit code raises"
    return session.exit_code
