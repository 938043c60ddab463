"""`aliquot run -- COMMAND`: submits a job, shows its output as it comes, and ends with its exit code.

With a terminal on both ends the job gets one too and its bytes are passed on as they are. Without, its output is passed
on line by line from the log, stdout to stdout and stderr to stderr, so that nothing is lost when the server restarts.
"""

import collections
import contextlib
import os
import pathlib
import signal
import threading
from types import FrameType
from typing import Any

import click

from aliquot.cli import connection, definitions, following, render, terminal, waiting
from aliquot.core import errors, lifecycle
from aliquot.wire import workloads as shapes

PAUSE_SECONDS = 0.1
"""Between two looks at a job that waits; a person does not notice it."""
LOOK_SECONDS = 0.5
"""Between two looks at a job that runs."""
INTERRUPT = b"\x03"
DETACH = b"\x1d"

_STARTED = frozenset({lifecycle.Phase.RUNNING, lifecycle.Phase.STARTING})


@click.command(
    cls=definitions.WithCommand,
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: the job's own; 128 + signal if it was killed; 124 time limit, 75 evicted with --no-requeue, "
    "70 exit unknown, 2 bad input, 69 no server.",
)
@definitions.options
@click.option(
    "--no-requeue", is_flag=True, help="If it is evicted, give up (exit code 75) instead of waiting for a new place."
)
@click.option("--no-stdin", is_flag=True, help="Give it no input and no terminal.")
@click.option(
    "--interactive",
    "-i",
    is_flag=True,
    help="Ctrl-C goes to the program; Ctrl-] leaves it running. Default for workspaces.",
)
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    words: tuple[str, ...],
    no_requeue: bool,
    no_stdin: bool,
    interactive: bool,
    **asked: Any,  # Any: click's values
) -> None:
    """Run a command, show its output, and end with its exit code.

    It runs with your folder and environment. Ctrl-C asks it to end; a second Ctrl-C stops waiting for it.
    """
    command = definitions.program(context)
    if command is not None and words:
        raise errors.InvalidInput(
            f"command: {words[0]!r} stands before `--`", field="command", valid=("-- PROGRAM ARGUMENTS",)
        )
    definition = definitions.checked_options(asked, command if command is not None else list(words) or None)
    stdin: terminal.Stdin = "none" if no_stdin or definition.replicas > 1 else terminal.kind_of_stdin()
    definition = prepared(definition.model_copy(update={"stdin": stdin}), is_clean=asked["clean"])
    client = connection.open_client()
    detail = client.submit_workload(definition, key=asked["key"])
    watch = waiting.Watch(client, detail, may_requeue=not no_requeue)
    is_interactive = interactive or definition.kind is shapes.Kind.WORKSPACE
    if stdin == "terminal":
        code = Dialogue(watch, is_interactive=is_interactive).run()
    else:
        code = Lines(watch, stdin=stdin, is_single=definition.replicas == 1).run()
    context.exit(code)


def prepared(definition: shapes.Definition, *, is_clean: bool) -> shapes.Definition:
    if is_clean:
        return definition
    if not connection.is_local():
        render.say("the server is on another machine: neither this folder nor this environment is passed")
        return definition
    return definitions.with_surroundings(definition, environment=os.environ, folder=_folder())


def _folder() -> str:
    # $PWD keeps the name by which the person came here; a link stays a link.
    logical = os.environ.get("PWD", "")
    return logical if logical.startswith("/") and _is_here(logical) else os.getcwd()  # noqa: PTH109  # the same, as text


def _is_here(folder: str) -> bool:
    try:
        return pathlib.Path(folder).samefile(".")
    except OSError:
        return False


class _Interrupts:
    """Counts Ctrl-C and TERM, which may come at any moment; they are acted upon in the loop."""

    def __init__(self) -> None:
        self._came = 0
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}

    def __enter__(self) -> "_Interrupts":
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def take(self) -> bool:
        """Whether there was one that was not yet taken."""
        if not self._came:
            return False
        self._came -= 1
        return True

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._came += 1


class Lines:
    """Output from the log, line by line; input, if there is any, through a pipe."""

    def __init__(self, watch: waiting.Watch, *, stdin: terminal.Stdin, is_single: bool) -> None:
        self._watch = watch
        self._stdin = stdin
        self._is_single = is_single
        self._feed = following.Feed(watch.client.follow_logs(watch.view.id))
        self._fed_attempt = 0

    def run(self) -> int:
        """Until the job is over, or the person leaves."""
        with _Interrupts() as interrupts:
            while self._take_output():
                if interrupts.take() and not self._watch.ask_to_end():
                    return self._watch.leave()
                self._watch.look()
                self._pass_input_once()
            while not self._watch.is_over:
                if interrupts.take() and not self._watch.ask_to_end():
                    return self._watch.leave()
                _pause(PAUSE_SECONDS)
                self._watch.look()
        self._watch.line.clear()
        self._watch.say_end()
        return self._watch.exit_code()

    def _take_output(self) -> bool:
        """Print what comes until it is time for the next look. False: there will be no more."""
        is_waiting = self._watch.view.phase not in _STARTED
        for line in self._feed.take(PAUSE_SECONDS if is_waiting else LOOK_SECONDS):
            self._print(line)
        return not self._feed.is_over

    def _print(self, line: shapes.LogLine) -> None:
        self._watch.line.clear()
        if line.stream == "marker":
            self._watch.line.say(f"[{line.text}]")
            return
        if self._is_single:
            terminal.write(line.stream, f"{line.text}{_end(line)}".encode())
        else:
            terminal.write(line.stream, f"[{line.index}] {line.text}\n".encode())

    def _pass_input_once(self) -> None:
        """Pass our input to the job once it runs. A later attempt has none: what was read is gone."""
        view = self._watch.view
        if self._stdin != "pipe" or view.phase is not lifecycle.Phase.RUNNING or view.attempt == self._fed_attempt:
            return
        is_first = self._fed_attempt == 0
        self._fed_attempt = view.attempt
        threading.Thread(target=self._pass_input, args=(is_first,), name="input", daemon=True).start()

    def _pass_input(self, is_first: bool) -> None:  # noqa: FBT001  # what a thread is given
        # Errors: it ended, or the server went away; the loop learns of it.
        with (
            contextlib.suppress(errors.AliquotError),
            self._watch.client.attach_workload(self._watch.view.id) as session,
        ):
            if not is_first:
                session.end_input()
                return
            with terminal.Keyboard(session, is_terminal=False):
                # The log has the output; taking it here as well keeps the session alive.
                collections.deque(session, maxlen=0)


class Dialogue:
    """The job has a terminal, and this is its other end."""

    def __init__(self, watch: waiting.Watch, *, is_interactive: bool) -> None:
        self._watch = watch
        self._is_interactive = is_interactive
        self._shown_attempt = 0

    def run(self) -> int:
        """Until the job is over, or the person leaves."""
        with _Interrupts() as interrupts:
            while not self._watch.is_over:
                if interrupts.take() and not self._watch.ask_to_end():
                    return self._watch.leave()
                if self._turn():
                    return self._watch.leave()
                self._watch.look()
        self._watch.line.clear()
        if self._shown_attempt != self._watch.view.attempt:
            self._show_log()
        self._watch.say_end()
        return self._watch.exit_code()

    def _turn(self) -> bool:
        """Wait for a new attempt, or be its terminal. True: the person has left."""
        view = self._watch.view
        if view.phase in _STARTED and view.attempt != self._shown_attempt:
            return self._converse()
        _pause(PAUSE_SECONDS)
        return False

    def _converse(self) -> bool:
        """Be the terminal of this attempt until it ends. True: the person has left."""
        view = self._watch.view
        try:
            session = self._watch.client.attach_workload(view.id)
        except (errors.Conflict, errors.NotFound):
            _pause(PAUSE_SECONDS)  # It does not run yet, or has ended just now: the next look tells.
            return False
        self._shown_attempt = view.attempt
        if self._is_interactive:
            self._watch.line.say("Ctrl-] leaves it running")
        keyboard = terminal.Keyboard(session, sieve=self._sieve, is_terminal=True)
        with session, terminal.raw(), keyboard:
            self._watch.line.is_raw = True
            try:
                for stream, data in session:
                    terminal.write(stream, data)
            except errors.Unavailable:
                if not keyboard.has_left:
                    self._watch.line.say("the connection broke; what the job writes meanwhile is in `aliquot logs`")
                    self._shown_attempt = 0
            finally:
                self._watch.line.is_raw = False
        if keyboard.has_left:
            terminal.write("stderr", b"\n")  # The program may have left the cursor anywhere.
        return keyboard.has_left

    def _sieve(self, data: bytes) -> bytes | None:
        """What of the keys goes to the job. None: leave it."""
        if self._is_interactive:
            return None if DETACH in data else data
        for _ in range(data.count(INTERRUPT)):
            if not self._watch.ask_to_end():
                return None
        return data.replace(INTERRUPT, b"")

    def _show_log(self) -> None:
        """It was too quick for us: what it wrote is in the log."""
        for line in self._watch.client.follow_logs(self._watch.view.id):
            terminal.write(line.stream, f"{line.text}{_end(line)}".encode())


def _end(line: shapes.LogLine) -> str:
    """A part of a line, such as a prompt, has no end: the next one of its stream goes on there."""
    return "" if line.is_partial else "\n"


def _pause(seconds: float) -> None:
    # Unlike a sleep, a wait returns early for nobody; a signal's handler runs meanwhile.
    threading.Event().wait(seconds)
