"""`aliquot usage`: GPU time, allocated and, where it is measured, used."""

from datetime import UTC, datetime
from typing import Any

import click

from aliquot.cli import connection, output, pages, words
from aliquot.core import errors, quantities
from aliquot.wire import records
from aliquot.wire import series as series_shapes


@click.command()
@click.option("--by", type=click.Choice(["workload", "project", "department"]), default="workload", show_default=True)
@click.option("--project", help="Of this project only.")
@click.option("--step", type=click.Choice(["hour", "day"]), help="Over time, by project or department, in such steps.")
@click.option("--since", help="From so long ago on, by project or over time: 8h, 7d.")
@pages.options(sort="-created")
@output.option
def usage(
    layout: output.Format, *, by: str, step: str | None, since: str | None, **asked: Any
) -> None:  # Any: click's values
    """Show GPU time of workloads, or summed by project; it stays when a workload is deleted."""
    listing = pages.Listing.taken_from(asked)
    start = None if since is None else datetime.now(UTC) - quantities.parse_duration(since, "since")
    _check(by, step, since)
    client = connection.open_client()
    if step is not None:
        series = client.get_usage_series(by=by, step=step, start=start)
        output.write(series, layout, lambda shown: over_time(series, shown))
        return
    if by == "workload":
        page = pages.collect(client.list_workload_usage, listing, asked)
    else:
        page = client.list_project_usage(start=start)
    output.write(page, layout, lambda shown: table(page.items, shown, now=datetime.now(UTC)))
    pages.say_rest(page, layout)


def _check(by: str, step: str | None, since: str | None) -> None:
    """Raises InvalidInput for what does not go together."""
    if step is not None and by == "workload":
        raise errors.InvalidInput(
            "--step: there is no usage of workloads over time", field="by", valid=("project", "department")
        )
    if by == "department" and step is None:
        raise errors.InvalidInput("--by department: it is summed over time only", field="step", valid=("hour", "day"))
    if since is not None and by == "workload":
        raise errors.InvalidInput("--since: usage of workloads is of all time", field="by", valid=("project",))


def over_time(series: series_shapes.UsageSeries, layout: output.Format) -> str:
    """One line for each step, one column for each project or department; used beside allocated, where measured."""
    if not series.lines:
        return "no usage in this time"
    columns = (output.Column("FROM"), *(output.Column(line.name.upper(), is_right=True) for line in series.lines))
    rows = [[words.clock(time), *(_hours(line, at) for line in series.lines)] for at, time in enumerate(series.times)]
    return f"GPU hours allocated (used)\n{output.table(columns, rows, layout)}"


def _hours(line: series_shapes.UsageLine, at: int) -> str:
    used = line.used_gpu_hours[at]
    return f"{line.allocated_gpu_hours[at]:.2f}" + ("" if used is None else f" ({used:.2f})")


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
