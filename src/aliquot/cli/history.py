"""`aliquot history`: how much was held, used and waited for, over time."""

from datetime import UTC, datetime

import click

from aliquot.cli import connection, output, words
from aliquot.core import quantities
from aliquot.wire import series as shapes


@click.command()
@click.argument("metric", type=click.Choice([str(one) for one in shapes.Metric]), default="allocated")
@click.option("--by", type=click.Choice([str(one) for one in shapes.By]), default="none", show_default=True)
@click.option("--name", help="Of --by, this one alone.")
@click.option("--since", default="1h", show_default=True, help="From so long ago on: 30m, 8h, 30d.")
@click.option("--points", type=click.IntRange(10, 2000), default=20, show_default=True, help="At most so many lines.")
@output.option
def history(metric: str, layout: output.Format, *, by: str, name: str | None, since: str, points: int) -> None:
    """Show how much was allocated, used or waited for, over time. A time without a server is empty."""
    end = datetime.now(UTC)
    start = end - quantities.parse_duration(since, "since")
    client = connection.open_client()
    found = client.get_series(metric, by=by, name=name, start=start, end=end, points=points)
    output.write(found, layout, lambda shown: table(found, shown))


def table(found: shapes.Series, layout: output.Format) -> str:
    """One line for each time, one column for each line of the chart."""
    if not found.lines:
        return "nothing was seen in this time"
    columns = (
        output.Column("TIME"),
        *(output.Column(line.name.upper(), is_right=True) for line in found.lines),
        output.Column("OF", is_right=True),
    )
    rows = [
        [words.clock(time), *(_amount(line.values[at]) for line in found.lines), _amount(found.capacity[at])]
        for at, time in enumerate(found.times)
    ]
    return f"{found.metric}, {found.unit}\n{output.table(columns, rows, layout)}"


def _amount(value: float | None) -> str:
    return words.NOTHING if value is None else f"{value:.6g}"
