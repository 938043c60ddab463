"""`aliquot receipts`: for whom, by which rule and at what cost each eviction happened."""

from datetime import UTC, datetime
from typing import Any

import click

from aliquot.cli import connection, output, pages, words
from aliquot.core import quantities
from aliquot.wire import workloads as shapes


@click.command()
@click.option("--workload", help="Of this workload only.")
@click.option("--project", help="Of this project only.")
@pages.options(sort="-evicted")
@output.option
def receipts(layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """Show what evictions left behind, the newest first."""
    page = pages.collect(connection.open_client().list_receipts, pages.Listing.taken_from(asked), asked)
    output.write(page, layout, lambda shown: table(page.items, shown, now=datetime.now(UTC)))
    pages.say_rest(page, layout)


def table(items: list[shapes.Receipt], layout: output.Format, *, now: datetime) -> str:
    """One line for each eviction."""
    columns = (
        output.Column("EVICTED"),
        output.Column("WORKLOAD"),
        output.Column("FOR"),
        output.Column("RULE"),
        output.Column("GPU", is_right=True),
        output.Column("LOST AT MOST", is_right=True),
        output.Column("WHY"),
        output.Column("TRIED FIRST", is_wide=True),
        output.Column("POD", is_wide=True),
    )
    rows = [
        [
            words.ago(receipt.evicted, now),
            receipt.workload_name,
            receipt.beneficiary_name or words.NOTHING,
            receipt.rule,
            quantities.format_milli(receipt.milli_gpus),
            words.seconds(receipt.ran_seconds),
            receipt.explanation,
            "; ".join(receipt.rejected) or words.NOTHING,
            receipt.pod,
        ]
        for receipt in items
    ]
    return output.table(columns, rows, layout) if rows else "no evictions"
