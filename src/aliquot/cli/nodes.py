"""`aliquot nodes ...`: the machine, its devices, and which of them are kept back."""

from typing import Any

import click

from aliquot.cli import connection, groups, output, pages, words
from aliquot.core import quantities
from aliquot.wire import nodes as shapes


@click.group(cls=groups.Group)
def nodes() -> None:
    """Show nodes and devices; keep some of them back."""


@nodes.command("list")
@pages.options(sort="id")
@output.option
def list_(layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """List nodes."""
    page = pages.collect(connection.open_client().list_nodes, pages.Listing.taken_from(asked), asked)
    output.write(page, layout, lambda shown: table(page.items, shown))
    pages.say_rest(page, layout)


@nodes.command("devices")
@pages.options(sort="index")
@output.option
def devices(layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """List devices: who holds them, what is withheld and why."""
    page = pages.collect(connection.open_client().list_devices, pages.Listing.taken_from(asked), asked)
    output.write(page, layout, lambda shown: device_table(page.items, shown))
    pages.say_rest(page, layout)


@nodes.command("cordon")
@click.argument("target")
@output.option
def cordon(target: str, layout: output.Format) -> None:
    """Start nothing new on a node or device; what runs there goes on.

    TARGET is a node, a device's index, node/index, or its UUID.
    """
    done = connection.open_client().cordon(target)
    output.write(done, layout, lambda _: f"{target} takes nothing new; `aliquot nodes uncordon {target}` ends that")


@nodes.command("uncordon")
@click.argument("target")
def uncordon(target: str) -> None:
    """Let a node or device take work again. TARGET as for cordon."""
    connection.open_client().uncordon(target)
    print(f"{target} takes work again")


def table(views: list[shapes.NodeView], layout: output.Format) -> str:
    """One line for each node."""
    columns = (
        output.Column("NODE"),
        output.Column("STATE"),
        output.Column("DEVICES FREE", is_right=True),
        output.Column("CPU HELD", is_right=True),
        output.Column("MEMORY HELD", is_right=True),
        output.Column("PODS", is_right=True),
        output.Column("POOL", is_wide=True),
    )
    rows = [
        [
            view.id,
            "cordoned" if view.is_cordoned else "ready" if view.is_ready else "not ready",
            f"{view.free_devices} of {view.devices}" + (f" {words.SIMULATED}" if view.is_simulated else ""),
            f"{view.held_cpus} of {view.cpus}",
            f"{view.held_memory} of {view.memory}",
            str(view.pods),
            view.pool,
        ]
        for view in views
    ]
    return output.table(columns, rows, layout)


DEVICE_COLUMNS = (
    output.Column("DEVICE"),
    output.Column("MODEL"),
    output.Column("MEMORY", is_right=True),
    output.Column("HELD", is_right=True),
    output.Column("USE"),
    output.Column("HOLDERS"),
    output.Column("WITHHELD"),
    output.Column("SHARE IS", is_wide=True),
    output.Column("UUID", is_wide=True),
)


def device_table(views: list[shapes.DeviceView], layout: output.Format) -> str:
    """One line for each device."""
    if not views:
        return "no devices: work that asks for no GPU runs here"
    return output.table(DEVICE_COLUMNS, [_device_row(view) for view in views], layout)


def _device_row(view: shapes.DeviceView) -> list[str]:
    return [
        f"{view.node}/{view.index}",
        words.device_model(view),
        words.mib(view.memory_mib),
        quantities.format_milli(view.held_milli_gpus),
        use(view),
        ", ".join(_holder(holder) for holder in view.holders) or words.NOTHING,
        view.withheld_description or view.withheld or words.NOTHING,
        view.guarantee,
        view.id,
    ]


def use(view: shapes.DeviceView) -> str:
    """What was measured, or that nothing was."""
    if view.use is None:
        return "not measured"
    busy, used = view.use.utilisation_percent, view.use.used_mib
    parts = ["" if busy is None else f"{busy}%", "" if used is None else words.mib(used)]
    return ", ".join(part for part in parts if part) or "not measured"


def _holder(holder: shapes.DeviceHolder) -> str:
    ending = ", ending" if holder.is_ending else ""
    return f"{holder.workload_name} ({quantities.format_milli(holder.milli_gpus)}{ending})"
