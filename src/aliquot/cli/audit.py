"""`aliquot audit`: who changed what, from where, with what outcome."""

from typing import Any

import click

from aliquot.cli import connection, output, pages, words
from aliquot.wire import records


@click.command()
@click.option("--noun", help="Of workload, project, department, node or device.")
@click.option("--subject", help="Of this one only.")
@click.option("--actor", help="By this actor only.")
@pages.options(sort="-time")
@output.option
def audit(layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """Show who changed what, the newest first."""
    page = pages.collect(connection.open_client().list_audit_records, pages.Listing.taken_from(asked), asked)
    output.write(page, layout, lambda shown: table(page.items, shown))
    pages.say_rest(page, layout)


def table(items: list[records.AuditRecord], layout: output.Format) -> str:
    """One line for each change."""
    columns = (
        output.Column("TIME"),
        output.Column("ACTOR"),
        output.Column("FROM"),
        output.Column("DID"),
        output.Column("OUTCOME"),
        output.Column("DETAIL"),
        output.Column("ID", is_wide=True),
    )
    rows = [
        [
            words.clock(one.time),
            one.actor,
            one.origin,
            f"{one.verb} {one.noun} {one.subject}",
            one.outcome,
            one.detail,
            one.id,
        ]
        for one in items
    ]
    return output.table(columns, rows, layout) if rows else "no changes yet"
