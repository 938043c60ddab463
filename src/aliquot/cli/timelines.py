"""`aliquot timeline NAME`: what a workload did from its submission to now."""

from datetime import UTC, datetime

import click

from aliquot.cli import connection, output, words
from aliquot.wire import timelines as shapes


@click.command()
@connection.target
@output.option
def timeline(target: connection.Target, layout: output.Format) -> None:
    """Show what a workload did from its submission to now: waits with their reasons, runs, evictions."""
    found = connection.open_client().get_timeline(target.ref, project=target.project)
    output.write(found, layout, lambda shown: table(found.spans, shown, now=datetime.now(UTC)))


def table(spans: list[shapes.Span], layout: output.Format, *, now: datetime) -> str:
    """One line for each span."""
    columns = (
        output.Column("FROM"),
        output.Column("FOR", is_right=True),
        output.Column("WHAT"),
        output.Column("WHERE"),
        output.Column("HOW"),
        output.Column("RECEIPT", is_wide=True),
    )
    rows = [
        [
            words.clock(span.start),
            words.age(span.start, span.end or now),
            span.kind if span.attempt is None else f"{span.kind}, attempt {span.attempt}",
            ", ".join(span.places) or words.NOTHING,
            span.exit or (span.reason.message if span.reason else words.NOTHING),
            span.receipt or words.NOTHING,
        ]
        for span in spans
    ]
    return output.table(columns, rows, layout)
