"""`aliquot queue`: who waits, in order, for what, and until when where that can be known."""

from datetime import UTC, datetime
from typing import Any

import click

from aliquot.cli import connection, output, pages, words
from aliquot.core import quantities
from aliquot.wire import queue as shapes


@click.command()
@click.option("--project", help="Of this project only.")
@click.option("--department", help="Of this department only.")
@click.option("--pool", help="Of this node pool only.")
@pages.limits
@output.option
def queue(layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """Show who waits, the first in line first, and until when where stated run times say so."""
    page = pages.collect(connection.open_client().list_queue, pages.Listing.taken_from(asked), asked)
    output.write(page, layout, lambda shown: table(page.items, shown, now=datetime.now(UTC)))
    pages.say_rest(page, layout)


def table(items: list[shapes.QueueEntry], layout: output.Format, *, now: datetime) -> str:
    """One line for each that waits."""
    columns = (
        output.Column("#", is_right=True),
        output.Column("NAME"),
        output.Column("PROJECT"),
        output.Column("GPU", is_right=True),
        output.Column("WAITS", is_right=True),
        output.Column("STARTS"),
        output.Column("WHY"),
        output.Column("PRIORITY", is_wide=True, is_right=True),
        output.Column("REPLICAS", is_wide=True, is_right=True),
        output.Column("PROMISED", is_wide=True),
        output.Column("WAITS FOR", is_wide=True),
        output.Column("START UNKNOWN AS", is_wide=True),
        output.Column("ID", is_wide=True),
    )
    rows = [
        [
            words.NOTHING if one.position is None else str(one.position),
            one.name,
            one.project,
            quantities.format_milli(one.milli_gpus),
            words.age(one.waiting_since, now),
            _start(one, now),
            one.reason.message if one.reason else words.NOTHING,
            str(one.priority),
            str(one.replicas),
            ", ".join(one.promised) or words.NOTHING,
            ", ".join(other.name for other in one.waits_for) or words.NOTHING,
            one.expected_unknown_because or words.NOTHING,
            one.workload,
        ]
        for one in items
    ]
    return output.table(columns, rows, layout) if rows else "nobody waits"


def _start(one: shapes.QueueEntry, now: datetime) -> str:
    return "unknown" if one.expected_start is None else f"{words.ago(one.expected_start.latest, now)} at the latest"
