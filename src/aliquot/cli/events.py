"""`aliquot events`: what happened, in order."""

from typing import Any

import click

from aliquot.cli import connection, output, pages, words
from aliquot.wire import records


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on as they come, until Ctrl-C.")
@click.option("--noun", help="Of workload, project, department, node, device or server.")
@click.option("--subject", help="Of the one with this name or id.")
@click.option("--project", help="Of this project only.")
@pages.options(sort="-sequence")
@output.option
def events(layout: output.Format, *, follow: bool, **asked: Any) -> None:  # Any: click's values
    """Show what happened, the newest last."""
    listing = pages.Listing.taken_from(asked)
    client = connection.open_client()
    page = pages.collect(client.list_events, listing, asked)
    if asked["subject"] is not None and not page.items:
        named = {**asked, "subject": None, "name": asked["subject"]}
        page = pages.collect(client.list_events, listing, named)
    if listing.sort == "-sequence":
        page = page.model_copy(update={"items": page.items[::-1]})
    output.write(page, layout, lambda shown: table(page.items, shown))
    pages.say_rest(page, layout)
    if follow:
        _follow(client, page.items[-1].sequence if page.items else 0, asked=asked, layout=layout)


def _follow(client: connection.Client, after: int, *, asked: dict[str, Any], layout: output.Format) -> None:
    wanted = {name: value for name, value in asked.items() if value is not None}
    for event in client.stream_events(after=after):
        if not all(value in _names(event, field) for field, value in wanted.items()):
            continue
        if layout is output.Format.JSON:
            print(event.model_dump_json(by_alias=True), flush=True)
        else:
            print(line(event), flush=True)


def _names(event: records.Event, field: str) -> set[str | None]:
    if field == "subject":
        return {event.subject, event.subject_name}
    return {event.noun} if field == "noun" else {event.project}


def line(event: records.Event) -> str:
    """One event as one line."""
    return f"{words.clock(event.time)}  {event.noun} {event.subject_name}  {event.message}"


def table(items: list[records.Event], layout: output.Format) -> str:
    """One line for each event."""
    columns = (
        output.Column("TIME"),
        output.Column("WHAT"),
        output.Column("CODE", is_wide=True),
        output.Column("MESSAGE"),
        output.Column("PROJECT", is_wide=True),
        output.Column("SEQUENCE", is_wide=True, is_right=True),
    )
    rows = [
        [
            words.clock(event.time),
            f"{event.noun} {event.subject_name}",
            event.code,
            event.message,
            event.project or words.NOTHING,
            str(event.sequence),
        ]
        for event in items
    ]
    return output.table(columns, rows, layout) if rows else "no events"
