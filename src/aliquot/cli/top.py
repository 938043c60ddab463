"""`aliquot top`: devices and the workloads that hold them, with what they use; refreshed until Ctrl-C on a terminal."""

import sys
import threading
from datetime import UTC, datetime

import click

from aliquot.cli import connection, nodes, output, pages, words
from aliquot.core import quantities
from aliquot.wire import nodes as device_shapes
from aliquot.wire import workloads as shapes


@click.command()
@click.option("--once", is_flag=True, help="Print once and end, as it does where there is no terminal.")
@click.option(
    "--every", type=click.FloatRange(min=0.5), default=2.0, show_default=True, help="Seconds between two looks."
)
def top(*, once: bool, every: float) -> None:
    """Show what devices and workloads use."""
    client = connection.open_client()
    if once or not sys.stdout.isatty():
        print(screen(client))
        return
    pause = threading.Event()
    try:
        while True:
            text = screen(client)
            # Home, then each line with the rest of it cleared, then all below: no flicker, and nothing old is left.
            shown = "".join(f"{line}\x1b[K\n" for line in text.splitlines())
            print(f"\x1b[H{shown}\x1b[J", end="", flush=True)
            pause.wait(every)
    except KeyboardInterrupt:
        return


def screen(client: connection.Client) -> str:
    """What is held and used now."""
    devices = pages.collect(client.list_devices, pages.Listing(sort="index"), {}).items
    active = pages.collect(client.list_workloads, pages.Listing(sort="name"), {"phase": "starting,running"}).items
    waiting = client.list_workloads(phase="pending", limit=1).total
    return draw(devices, active, waiting=waiting, now=datetime.now(UTC))


def draw(
    devices: list[device_shapes.DeviceView], active: list[shapes.WorkloadView], *, waiting: int, now: datetime
) -> str:
    """The two tables."""
    held = quantities.format_milli(sum(device.held_milli_gpus for device in devices))
    head = f"{held} of {words.plural(len(devices), 'GPU')} held, {len(active)} running, {waiting} waiting"
    parts = [f"{head}, {words.clock(now)}"]
    if devices:
        parts.append(output.table(_DEVICE_COLUMNS, [_device(device) for device in devices]))
    if active:
        known = words.models(devices)
        parts.append(output.table(_WORKLOAD_COLUMNS, [_workload(view, known, now) for view in active]))
    return "\n\n".join(parts)


_DEVICE_COLUMNS = (
    output.Column("DEVICE"),
    output.Column("MODEL"),
    output.Column("HELD", is_right=True),
    output.Column("MEMORY HELD", is_right=True),
    output.Column("USE"),
    output.Column("WITHHELD"),
)
_WORKLOAD_COLUMNS = (
    output.Column("WORKLOAD"),
    output.Column("PROJECT"),
    output.Column("GPU"),
    output.Column("DEVICES"),
    output.Column("RUNS", is_right=True),
)


def _device(device: device_shapes.DeviceView) -> list[str]:
    return [
        f"{device.node}/{device.index}",
        words.device_model(device),
        quantities.format_milli(device.held_milli_gpus),
        f"{words.mib(device.held_mib)} of {words.mib(device.memory_mib)}",
        nodes.use(device),
        device.withheld or words.NOTHING,
    ]


def _workload(view: shapes.WorkloadView, known: dict[str, str], now: datetime) -> list[str]:
    return [
        view.name,
        view.project,
        words.gpu_of(view, known),
        ", ".join(view.devices) or words.NOTHING,
        words.age(view.started, now),
    ]
