"""`aliquot wait NAME`: returns when a workload runs, or has ended, and meanwhile says why it does not."""

import threading
import time

import click

from aliquot.cli import connection, exits, output, waiting, words
from aliquot.core import lifecycle, quantities
from aliquot.wire import workloads as shapes

PAUSE_SECONDS = 0.2


@click.command()
@connection.target
@click.option(
    "--for",
    "goal",
    type=click.Choice(["finished", "running"]),
    default="finished",
    show_default=True,
    help="What to wait for.",
)
@click.option("--timeout", metavar="DURATION", help="Give up after this long, with exit code 124: 90s, 2h.")
@output.option
@click.pass_context
def wait(
    context: click.Context, target: connection.Target, goal: str, *, timeout: str | None, layout: output.Format
) -> None:
    """Wait until a workload runs or has ended.

    With `--for finished` the exit code is the workload's own, as `run` gives it. With `--for running` it is 0, or that
    of a workload that ended before.
    """
    span = quantities.parse_duration(timeout, "timeout") if timeout else None
    client = connection.open_client()
    watch = waiting.Watch(client, client.get_workload(target.ref, project=target.project))
    due = None if span is None else time.monotonic() + span.total_seconds()
    pause = threading.Event()
    while not is_reached(watch.view, goal):
        if due is not None and time.monotonic() >= due:
            watch.line.say(f"{watch.view.name} is still {watch.view.phase} after {timeout}")
            context.exit(exits.TIME_LIMIT)
        pause.wait(PAUSE_SECONDS)
        watch.look()
    watch.line.clear()
    detail = client.get_workload(watch.view.id)
    output.write(detail, layout, lambda _: f"{detail.name}: {words.state(detail)}")
    context.exit(watch.exit_code() if watch.is_over else exits.OK)


def is_reached(view: shapes.WorkloadView, goal: str) -> bool:
    """Whether there is nothing more to wait for."""
    return view.phase in lifecycle.FINISHED or (goal == "running" and view.phase is lifecycle.Phase.RUNNING)
