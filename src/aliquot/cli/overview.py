"""`aliquot overview`: how the GPUs do, who waits for what, and what is broken."""

import click

from aliquot.cli import connection, output, words
from aliquot.core import quantities
from aliquot.wire import overview as shapes


@click.command()
@output.option
def overview(layout: output.Format) -> None:
    """Show how the GPUs do, who waits for what, and what is broken."""
    found = connection.open_client().get_overview()
    output.write(found, layout, lambda _: describe(found))


def describe(found: shapes.Overview) -> str:
    """The whole in a few tables."""
    gpus = found.devices
    used = "not measured" if gpus.used_milli_gpus is None else f"{_gpus(gpus.used_milli_gpus)} on {gpus.measured}"
    facts = [
        ("GPUs", gpus.description),
        ("Held", f"{_gpus(gpus.held_milli_gpus)} of {gpus.count}; {gpus.free} free, {gpus.withheld} take nothing new"),
        ("Used", used),
        ("Workloads", ", ".join(f"{count} {phase}" for phase, count in found.phases.items()) or "none unfinished"),
        *((one.name.capitalize(), f"{one.status}: {one.message}") for one in found.health),
    ]
    parts = [output.facts(facts)]
    if found.waiting:
        parts.append(output.table(_WAITING, [_group(one) for one in found.waiting]))
    if found.departments:
        parts.append(output.table(_DEPARTMENTS, [_department(one) for one in found.departments]))
    if found.idle:
        parts.append(output.table(_IDLE, [_idle(one) for one in found.idle]))
    return "\n\n".join(parts)


_WAITING = (
    output.Column("WAITS FOR"),
    output.Column("WORKLOADS", is_right=True),
    output.Column("GPU", is_right=True),
    output.Column("SINCE"),
    output.Column("SUCH AS"),
)
_DEPARTMENTS = (
    output.Column("DEPARTMENT"),
    output.Column("GPU QUOTA", is_right=True),
    output.Column("FAIR SHARE", is_right=True),
    output.Column("HELD", is_right=True),
    output.Column("ASKED", is_right=True),
    output.Column("RUNNING", is_right=True),
    output.Column("WAITING", is_right=True),
)
_IDLE = (
    output.Column("HELD BUT IDLE"),
    output.Column("DEVICE"),
    output.Column("GPU", is_right=True),
    output.Column("USE", is_right=True),
    output.Column("SINCE"),
)


def _group(one: shapes.WaitingGroup) -> list[str]:
    example = f"{one.example.name}: {one.example.message}"
    return [one.code, str(one.workloads), _gpus(one.milli_gpus), words.clock(one.oldest), example]


def _department(one: shapes.DepartmentTotals) -> list[str]:
    quota = None if one.quota_milli_gpus is None else _gpus(one.quota_milli_gpus)
    amounts = (one.fair_share_milli_gpus, one.held_milli_gpus, one.asked_milli_gpus)
    return [one.name, words.quota(quota), *map(_gpus, amounts), str(one.running), str(one.waiting)]


def _idle(one: shapes.IdleHolding) -> list[str]:
    name = f"{one.workload_name} ({one.project})"
    return [name, one.device, _gpus(one.milli_gpus), f"{one.utilisation_percent} %", words.clock(one.since)]


def _gpus(milli: int) -> str:
    return quantities.format_milli(milli)
