"""`aliquot usage`: GPU time, allocated and, where it is measured, used."""

from datetime import UTC, datetime
from typing import Any

import click

from aliquot.cli import connection, output, pages, words
from aliquot.wire import records


@click.command()
@click.option("--by", type=click.Choice(["workload", "project"]), default="workload", show_default=True)
@click.option("--project", help="Of this project only.")
@pages.options(sort="-created")
@output.option
def usage(layout: output.Format, by: str, **asked: Any) -> None:  # Any: click's values
    """Show GPU time of workloads, or summed by project; it stays when a workload is deleted."""
    listing = pages.Listing.taken_from(asked)
    client = connection.open_client()
    if by == "workload":
        page = pages.collect(client.list_workload_usage, listing, asked)
    else:
        page = client.list_project_usage()
    output.write(page, layout, lambda shown: table(page.items, shown, now=datetime.now(UTC)))
    pages.say_rest(page, layout)


def table(items: list[records.Usage], layout: output.Format, *, now: datetime) -> str:
    """One line for each subject."""
    columns = (
        output.Column("NAME"),
        output.Column("PROJECT"),
        output.Column("GPU TIME ALLOCATED", is_right=True),
        output.Column("USED", is_right=True),
        output.Column("RAN", is_right=True),
        output.Column("LAST"),
        output.Column("ID", is_wide=True),
    )
    rows = [
        [
            one.name,
            one.project,
            words.seconds(one.allocated_gpu_seconds),
            "not measured" if one.used_gpu_seconds is None else words.seconds(one.used_gpu_seconds),
            words.seconds(one.run_seconds),
            words.ago(one.last, now),
            one.subject,
        ]
        for one in items
    ]
    return output.table(columns, rows, layout) if rows else "no usage yet"
