"""`aliquot scenario run FILE...`: small clusters out of files, without a server.

Promises: all files are read before one is run; `--json` prints one object a line and nothing else, whatever the files
expect; `--check` ends with 1 if one misses what its file expects.
"""

import pathlib
import sys
from collections.abc import Sequence

import click

from aliquot.cli import exits, groups, output, render, serve
from aliquot.core import errors, quantities
from aliquot.wire.scenario import outcome, reader
from aliquot.wire.scenario.shape import Scenario


@click.group(cls=groups.Group)
def scenario() -> None:
    """Run small clusters out of files, and check what comes out. No server is needed."""


@scenario.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line: decisions of each cycle, and the end.")
@click.option("--check", "is_check", is_flag=True, help="Compare with what each file expects; exit code 1 if missed.")
@click.pass_context
def run(context: click.Context, files: Sequence[str], *, is_json: bool, is_check: bool) -> None:
    """Run scenarios (JSON or YAML; `-` is standard input) and show what comes out."""
    if is_json and is_check:
        raise click.UsageError("--json and --check exclude each other", context)
    found = [read(name) for name in files]
    if is_check:
        missed = sum(not _check(one, name) for one, name in zip(found, files, strict=True))
        render.say(f"{len(found) - missed} of {len(found)} as expected")
        context.exit(exits.FAILED if missed else exits.OK)
    for index, one in enumerate(found):
        result = serve.run_scenario(one)
        if is_json:
            print(outcome.to_json(result))
        else:
            print(("\n" if index else "") + draw(one, result))


def read(name: str) -> Scenario:
    """A scenario out of a file, or out of standard input for `-`."""
    shown = "standard input" if name == "-" else name
    try:
        content = sys.stdin.buffer.read() if name == "-" else pathlib.Path(name).read_bytes()
    except OSError as error:
        raise errors.InvalidInput(f"{shown}: {(error.strerror or str(error)).lower()}", field="file") from error
    return reader.read(content, shown)


def draw(given: Scenario, result: outcome.Outcome) -> str:
    """What came out, for people: what was decided cycle by cycle, and how all pods ended."""
    parts = [result.scenario]
    for number, cycle in enumerate(result.cycles, start=1):
        acts = [_sentence(decision) for decision in cycle.decisions if decision.do != "wait"]
        parts.append("\n".join([f"Cycle {number}: {'' if acts else 'nothing to do'}".rstrip(), *acts]))
    rows = [
        [pod.id, str(end.status), _node(end), _devices(end), quantities.format_milli(end.milli_gpus)]
        for workload in given.snapshot.workloads
        for pod in workload.pods
        if (end := result.pods.get(pod.id)) is not None
    ]
    titles = [output.Column(title) for title in ("POD", "STATUS", "NODE", "DEVICES")]
    parts.append(output.table([*titles, output.Column("GPUS", is_right=True)], rows))
    waits = [
        [one.workload or "", str(one.reason.code), one.reason.message]
        for one in (result.cycles[-1].decisions if result.cycles else ())
        if one.reason is not None
    ]
    if waits:
        parts.append(output.table([output.Column("WAITS"), output.Column("CODE"), output.Column("WHY")], waits))
    return "\n\n".join(parts)


def _check(given: Scenario, name: str) -> bool:
    missed = serve.check_scenario(given)
    print(f"{'missed' if missed else 'ok':<8}{name}: {output.visible(given.name)}")
    for what, wanted, got in missed:
        print(f"        {what}: wanted {wanted}, got {got}")
    return not missed


def _sentence(one: outcome.Decision) -> str:
    if one.do == "evict":
        return f"  evict     {one.pod} for {one.beneficiary or 'nobody'}, by {one.rule}"
    place = one.place
    where = place.node if place else ""
    devices = " ".join(share.device for share in place.shares) if place else ""
    return f"  {one.do:<9} {one.pod} on {where}{' ' if devices else ''}{devices}"


def _node(end: outcome.PodEnd) -> str:
    return end.place.node if end.place else ""


def _devices(end: outcome.PodEnd) -> str:
    return " ".join(share.device for share in end.place.shares) if end.place else ""
