"""`aliquot departments ...`: what projects belong to."""

from datetime import UTC, datetime
from typing import Any

import click

from aliquot.cli import connection, groups, output, pages, queues, words
from aliquot.core.model import DEFAULT_POOL
from aliquot.wire import faults
from aliquot.wire import projects as shapes


@click.group(cls=groups.Group)
def departments() -> None:
    """List, create and change departments."""


@departments.command("list")
@click.option("--pool", default=DEFAULT_POOL, show_default=True, help="The node pool whose terms are shown.")
@pages.options(sort="name")
@output.option
def list_(layout: output.Format, pool: str, **asked: Any) -> None:  # Any: click's values
    """List departments with their GPU quota and what they hold of it."""
    listing = pages.Listing.taken_from(asked)
    page = pages.collect(connection.open_client().list_departments, listing, asked)
    output.write(page, layout, lambda shown: table(page.items, shown, pool=pool))
    pages.say_rest(page, layout)


@departments.command("get")
@click.argument("name")
@output.option
def get(name: str, layout: output.Format) -> None:
    """Show a department's terms and where it stands."""
    view = connection.open_client().get_department(name)
    output.write(view, layout, lambda _: describe(view, now=datetime.now(UTC)))


@departments.command("create")
@click.argument("name")
@queues.options
@output.option
def create(name: str, layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """Create a department. What is not given: GPU quota 0, no bound on CPU and memory."""
    document = {"name": name, "pools": queues.created(asked)}
    view = connection.open_client().create_department(faults.read(shapes.DepartmentNew, document))
    output.write(view, layout, lambda _: f"department {view.name} is created\n\n{queues.terms_table(view.pools)}")


@departments.command("update")
@click.argument("name")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say who would start and who would be evicted.")
@queues.options
@output.option
def update(name: str, layout: output.Format, *, is_dry: bool, **asked: Any) -> None:  # Any: click's values
    """Change a department's terms; what is not given stays."""
    queues.demand_change(queues.changed(asked, shapes.PoolTerms()))
    client = connection.open_client()
    before = queues.standing(client.get_department(name).pools, asked["pool"]).terms
    change = shapes.QueueUpdate(pools={asked["pool"]: queues.changed(asked, before)})
    if is_dry:
        preview = client.preview_department(name, change)
        output.write(preview, layout, lambda _: queues.foresee(preview))
        return
    view = client.update_department(name, change)
    output.write(view, layout, lambda _: f"department {view.name} is changed\n\n{queues.terms_table(view.pools)}")


@departments.command("delete")
@click.argument("name")
def delete(name: str) -> None:
    """Delete a department that has no projects."""
    connection.open_client().delete_department(name)
    print(f"department {name} is deleted")


def table(views: list[shapes.DepartmentView], layout: output.Format, *, pool: str) -> str:
    """One line for each department."""
    columns = (
        output.Column("NAME"),
        *queues.COLUMNS,
        output.Column("PROJECTS", is_right=True),
        output.Column("ID", is_wide=True),
    )
    rows = [
        [
            view.name,
            *queues.cells(view.pools, pool, follows_machine=view.follows_machine),
            str(view.projects),
            view.id,
        ]
        for view in views
    ]
    return output.table(columns, rows, layout)


def describe(view: shapes.DepartmentView, *, now: datetime) -> str:
    """All that is known of a department."""
    facts = output.facts(
        [
            ("Name", f"{view.name} (id {view.id})"),
            ("Created", words.ago(view.created, now)),
            ("Projects", str(view.projects)),
            ("Quota", "follows the machine's devices, until someone sets it" if view.follows_machine else ""),
        ]
    )
    return f"{facts}\n\n{queues.terms_table(view.pools)}"
