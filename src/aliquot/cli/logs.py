"""`aliquot logs NAME`: what a workload wrote, stdout to stdout and stderr to stderr."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from aliquot.cli import connection, exits, following, output, render, terminal, waiting, words
from aliquot.core import lifecycle
from aliquot.wire import workloads as shapes

CHUNK_LINES = 1000
LOOK_SECONDS = 0.5
"""How often the workload is looked at while its log is followed."""


@click.command()
@connection.target
@click.option("--follow", "-f", is_flag=True, help="Go on as it comes, over all attempts, until the workload is over.")
@click.option("--tail", type=click.IntRange(min=0), help="Only so many lines from the end.")
@click.option("--index", type=click.IntRange(min=0), help="Of this replica only, counted from 0.")
@click.option("--attempt", type=click.IntRange(min=1), help="Of this attempt.  [default: the latest]")
@click.option("--timestamps", is_flag=True, help="Each line with the time at which it was written.")
@output.option
@click.pass_context
def logs(
    context: click.Context,
    /,
    target: connection.Target,
    *,
    follow: bool,
    timestamps: bool,
    layout: output.Format,
    **part: Any,
) -> None:  # Any: click's values
    """Print the output of a workload; with --follow the exit code is the workload's own.

    With `-o json` each line is an object on a line of its own.
    """
    client = connection.open_client()
    detail = client.get_workload(target.ref, project=target.project)
    wanted = Part(**part)
    printer = Printer(layout, is_single=detail.replicas == 1 or wanted.index is not None, has_times=timestamps)
    if follow:
        _follow(waiting.Watch(client, detail), wanted, printer)
        context.exit(_ending(client.get_workload(detail.id)))
    for index in range(detail.replicas) if wanted.index is None else [wanted.index]:
        for line in _all_lines(client, detail.id, index=index, wanted=wanted):
            printer.print(line)
    if not printer.has_printed and detail.phase is lifecycle.Phase.PENDING:
        render.say(f"{detail.name} has not started yet; `aliquot why {detail.name}` says why")


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of the output is wanted. `index` None: of all replicas; `tail` None: all of it."""

    tail: int | None
    index: int | None
    attempt: int | None


class Printer:
    """Prints lines as they are wanted."""

    def __init__(self, layout: output.Format, *, is_single: bool, has_times: bool) -> None:
        self._is_json = layout is output.Format.JSON
        self._is_single = is_single
        self._has_times = has_times
        self.has_printed = False

    def print(self, line: shapes.LogLine) -> None:
        """One line."""
        self.has_printed = True
        if self._is_json:
            print(line.model_dump_json(by_alias=True), flush=True)
            return
        if line.stream == "marker":
            render.say(f"[{line.text}]")
            return
        time = f"{words.clock(line.time)} " if self._has_times else ""
        start = "" if self._is_single else f"[{line.index}] "
        # Only where nothing stands before a line can the next one go on where a part of it stopped.
        end = "" if line.is_partial and not (start or time) else "\n"
        terminal.write(line.stream, f"{start}{time}{line.text}{end}".encode())


def _follow(watch: waiting.Watch, wanted: Part, printer: Printer) -> None:
    """Print what comes until the workload is over, and say meanwhile why nothing does."""
    feed = following.Feed(watch.client.follow_logs(watch.view.id, index=wanted.index, tail=wanted.tail))
    while not feed.is_over:
        for line in feed.take(LOOK_SECONDS):
            watch.line.clear()
            printer.print(line)
        watch.look()
    watch.line.clear()


def _all_lines(client: connection.Client, ref: str, *, index: int, wanted: Part) -> Iterator[shapes.LogLine]:
    if wanted.tail == 0:
        return
    offset = 0 if wanted.tail is None else -wanted.tail
    while True:
        chunk = client.read_logs(ref, index=index, attempt=wanted.attempt, offset=offset, limit=CHUNK_LINES)
        yield from chunk.lines
        if chunk.is_complete or not chunk.lines:
            return
        offset = chunk.next_offset


def _ending(view: shapes.WorkloadView) -> int:
    return exits.of_ending(exits.Ending(view.phase, view.outcome, view.exit_code, view.exit_signal))
