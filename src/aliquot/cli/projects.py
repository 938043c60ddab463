"""`aliquot projects ...`: whose quota workloads use."""

from datetime import UTC, datetime
from typing import Any

import click

from aliquot.cli import connection, groups, output, pages, queues, words
from aliquot.core.model import DEFAULT_POOL
from aliquot.wire import faults
from aliquot.wire import projects as shapes


@click.group(cls=groups.Group)
def projects() -> None:
    """List, create and change projects and their quota."""


@projects.command("list")
@click.option("--department", help="Of this department only.")
@click.option("--pool", default=DEFAULT_POOL, show_default=True, help="The node pool whose terms are shown.")
@pages.options(sort="name")
@output.option
def list_(layout: output.Format, pool: str, **asked: Any) -> None:  # Any: click's values
    """List projects with their GPU quota and what they hold of it."""
    listing = pages.Listing.taken_from(asked)
    page = pages.collect(connection.open_client().list_projects, listing, asked)
    output.write(page, layout, lambda shown: table(page.items, shown, pool=pool))
    pages.say_rest(page, layout)


@projects.command("get")
@click.argument("name")
@output.option
def get(name: str, layout: output.Format) -> None:
    """Show a project's terms and where it stands."""
    view = connection.open_client().get_project(name)
    output.write(view, layout, lambda _: describe(view, now=datetime.now(UTC)))


@projects.command("create")
@click.argument("name")
@click.option("--department", default="default", show_default=True, help="The department that it belongs to.")
@queues.options
@output.option
def create(name: str, department: str, layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """Create a project. What is not given: GPU quota 0, no bound on CPU and memory."""
    document = {"name": name, "department": department, "pools": queues.created(asked)}
    view = connection.open_client().create_project(faults.read(shapes.ProjectNew, document))
    output.write(view, layout, lambda _: f"project {view.name} is created\n\n{queues.terms_table(view.pools)}")


@projects.command("update")
@click.argument("name")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say who would start and who would be evicted.")
@queues.options
@output.option
def update(name: str, layout: output.Format, *, is_dry: bool, **asked: Any) -> None:  # Any: click's values
    """Change a project's terms; what is not given stays."""
    queues.demand_change(queues.changed(asked, shapes.PoolTerms()))
    client = connection.open_client()
    before = queues.standing(client.get_project(name).pools, asked["pool"]).terms
    change = shapes.QueueUpdate(pools={asked["pool"]: queues.changed(asked, before)})
    if is_dry:
        preview = client.preview_project(name, change)
        output.write(preview, layout, lambda _: queues.foresee(preview))
        return
    view = client.update_project(name, change)
    output.write(view, layout, lambda _: f"project {view.name} is changed\n\n{queues.terms_table(view.pools)}")


@projects.command("delete")
@click.argument("name")
def delete(name: str) -> None:
    """Delete a project that has no unfinished workloads."""
    connection.open_client().delete_project(name)
    print(f"project {name} is deleted")


def table(views: list[shapes.ProjectView], layout: output.Format, *, pool: str) -> str:
    """One line for each project."""
    columns = (
        output.Column("NAME"),
        output.Column("DEPARTMENT"),
        *queues.COLUMNS,
        output.Column("RUNNING", is_right=True),
        output.Column("WAITING", is_right=True),
        output.Column("ID", is_wide=True),
    )
    rows = [
        [
            view.name,
            view.department,
            *queues.cells(view.pools, pool, follows_machine=view.follows_machine),
            str(view.running),
            str(view.waiting),
            view.id,
        ]
        for view in views
    ]
    return output.table(columns, rows, layout)


def describe(view: shapes.ProjectView, *, now: datetime) -> str:
    """All that is known of a project."""
    facts = output.facts(
        [
            ("Name", f"{view.name} (id {view.id})"),
            ("Department", view.department),
            ("Created", words.ago(view.created, now)),
            ("Workloads", f"{view.running} running, {view.waiting} waiting"),
            ("Quota", "follows the machine's devices, until someone sets it" if view.follows_machine else ""),
        ]
    )
    return f"{facts}\n\n{queues.terms_table(view.pools)}"
