"""`aliquot status`: the server, what it has, and how it enforces what it gives."""

from datetime import UTC, datetime

import click

from aliquot.cli import connection, output, words
from aliquot.core import guarantees
from aliquot.wire import records


@click.command()
@output.option
def status(layout: output.Format) -> None:
    """Show the server, its devices and how shares are enforced."""
    found = connection.open_client().get_status()
    output.write(found, layout, lambda _: describe(found, now=datetime.now(UTC)))


def describe(status: records.Status, *, now: datetime) -> str:
    """The status in words."""
    devices = status.devices
    share = f"{devices.guarantee}: {guarantees.describe(devices.guarantee)}" if devices.count else ""
    return output.facts(
        [
            (
                "Server",
                f"{status.url} (version {status.version}, pid {status.pid}, up {words.age(status.started, now)})",
            ),
            ("Data", status.data_directory),
            ("Serves", f"the Unix user {status.user}, and nobody else"),
            ("Node", f"{status.node} of cluster {status.cluster}"),
            ("Devices", _devices(devices)),
            ("Shares", share),
            ("Limits", status.limits),
            ("Workloads", f"{status.running} running, {status.waiting} waiting"),
            ("Starts", "" if status.is_accepting else "nothing new for now"),
            ("Notice", status.notice or ""),
        ]
    )


def _devices(devices: records.DeviceSummary) -> str:
    text = devices.description
    return f"{text} {words.SIMULATED}" if devices.is_simulated and "simulated" not in text else text
