"""`aliquot simulate`: replays a trace in a cluster that is not there, under one policy or several. Without a server.

Promises: everything is read and checked before the first job comes, and the page is written whole or not at all; how
far it is goes to stderr; `--json` prints the report and nothing else.
"""

import os
import pathlib
import sys
import time
from datetime import timedelta

import click

from aliquot.cli import output, render, serve
from aliquot.core import errors, quantities
from aliquot.wire import simulations as shapes

NEVER = "never"
TELL_EVERY = 0.2
"""Seconds between two lines of progress on a terminal; elsewhere each is a line of its own, and fewer do."""
TELL_EVERY_LINE = 10.0


@click.command(
    epilog="Traces: openb (Alibaba's pods), itp (ElasticFlow), muri, philly (as Sia published it), shockwave, scenario."
)
@click.option("--trace", metavar="FILE", required=True, help="The trace, as its publishers wrote it.")
@click.option(
    "--format", "form", type=click.Choice(shapes.FORMATS), required=True, help="Who wrote it, and so what it means."
)
@click.option(
    "--nodes", metavar="SPEC", help="NODESxDEVICES[xMODEL], comma-separated: 8x8xH100; or a file with a list of nodes."
)
@click.option(
    "--policy",
    "policies",
    metavar="LIST",
    help="fifo-greedy (default), fifo, least-attained-service; several, comma-separated, are compared.",
)
@click.option(
    "--placement", type=click.Choice(shapes.PLACEMENTS), help="How nodes are chosen.  [default: fragmentation]"
)
@click.option(
    "--queues",
    metavar="HOW",
    help="`one` for all jobs, one for each `tenant` of the trace, or so many as a number says.  [default: one]",
)
@click.option("--jobs", "first_jobs", type=click.IntRange(min=1), help="Only the first so many jobs.")
@click.option(
    "--checkpoint",
    metavar="SPAN",
    default="0s",
    show_default=True,
    help="How often work is saved; 0s always, or `never`.",
)
@click.option("--release", metavar="SPAN", default="0s", show_default=True, help="How long evicted work takes to end.")
@click.option(
    "--quantum", metavar="SPAN", help="Of least-attained-service: how long work keeps its turn.  [default: 10m]"
)
@click.option("--html", "page", metavar="FILE", help="Write the report with charts to this file too.")
@output.option
def simulate(
    *, form: shapes.Format, policies: str | None, page: str | None, layout: output.Format, **given: str | int | None
) -> None:
    """Replay a trace by the rules of the scheduler, and report waiting, completion, use and fairness.

    The same decisions as in production, on a clock that jumps from event to event. Jobs without a run time stay.
    """
    request = shapes.Request(
        trace=str(given["trace"]),
        format=form,
        nodes=given["nodes"],
        policies=_listed(policies),
        placement=given["placement"],
        queues=given["queues"],
        first_jobs=given["first_jobs"],
        checkpoint_every=None if given["checkpoint"] == NEVER else _span(str(given["checkpoint"]), "--checkpoint"),
        release_takes=_span(str(given["release"]), "--release"),
        quantum=None if given["quantum"] is None else quantities.parse_duration(str(given["quantum"]), "--quantum"),
    )
    target = None if page is None else _target(page)
    teller = _Teller()
    found = serve.simulate(request, teller.tell)
    teller.end()
    if target is not None:
        _write(target, serve.simulation_page(found))
    output.write(found, layout, lambda _: _drawn(found))


def _drawn(found: shapes.Simulation) -> str:
    columns = [output.Column(""), *(output.Column(run.policy.upper(), is_right=True) for run in found.runs)]
    table = output.table(columns, [[name, *cells] for name, cells in serve.simulation_rows(found)])
    trace, cluster = found.trace, found.cluster
    where = f"{_count(cluster.devices, 'device')} of {_count(cluster.nodes, 'node')}"
    queues = _count(cluster.queues, "queue")
    lines = [f"{trace.name}: {_count(trace.jobs, 'job')} on {where}, {queues}, placement {found.runs[0].placement}"]
    if found.dropped:
        lines.append(
            f"{trace.dropped} could never start here, the first of them {found.dropped[0].job}: {found.dropped[0].why}"
        )
    return "\n".join(output.visible(line) for line in lines) + f"\n\n{table}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


class _Teller:
    """Says how far it is, on one line that is written anew; where nobody watches, on a line now and then."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._last = time.monotonic()
        self._width = 0

    def tell(self, at: shapes.Progress) -> None:
        now = time.monotonic()
        if now - self._last < (TELL_EVERY if self._is_watched else TELL_EVERY_LINE):
            return
        self._last = now
        passed = quantities.format_duration(at.elapsed)
        line = f"{at.policy}: {at.ended} of {at.jobs} jobs ended, {at.waiting} wait, after {passed}"
        if not self._is_watched:
            render.say(line)
            return
        print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def end(self) -> None:
        """Clear the line."""
        if self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)


def _listed(policies: str | None) -> tuple[str, ...]:
    names = tuple(part.strip() for part in policies.split(",")) if policies is not None else ()
    if len(set(names)) < len(names):
        raise errors.InvalidInput("--policy: a policy is named twice", field="--policy")
    return names


def _span(text: str, option: str) -> timedelta:
    """A span of time; unlike elsewhere none at all is one."""
    if text.strip() in {"0", "0s"}:
        return timedelta()
    return quantities.parse_duration(text, option)


def _target(page: str) -> pathlib.Path:
    """The file of the page; refused now if it could not be written later."""
    path = pathlib.Path(page)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        why = "is a folder" if path.is_dir() else "there is no such folder, or it may not be written"
        raise errors.InvalidInput(f"--html: {page}: {why}", field="--html", valid=("a file in a folder that is there",))
    return path


def _write(path: pathlib.Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
