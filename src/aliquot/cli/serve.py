"""`aliquot up`, `aliquot doctor`, and what else runs without a server: the only door from the command line to `app`.

The server is heavy to load, so it is imported when it is wanted and not when its options are read.
"""

from typing import TYPE_CHECKING

import click

from aliquot.cli import exits, output

if TYPE_CHECKING:
    from collections.abc import Callable

    from aliquot.wire import simulations
    from aliquot.wire.scenario import outcome, shape

# `settings` of app has the same defaults; they are named here so that `--help` loads none of the server.
PORT = 8265


@click.command()
@click.option("--data", metavar="DIR", help="Folder of the database, logs and work.  [default: ~/.local/share/aliquot]")
@click.option("--port", type=click.IntRange(0, 65_535), help=f"TCP port; 0 takes a free one.  [default: {PORT}]")
@click.option("--host", help="Address to listen on; anything but loopback is open to others.  [default: 127.0.0.1]")
@click.option("--devices", metavar="SPEC", help="Simulate devices where there are none: 8xH100.")
@click.option("--only", metavar="LIST", help="Offer these devices only, by index or UUID: 0,2.")
@click.option(
    "--foreign",
    type=click.Choice(["withhold", "shrink"]),
    help="A device that others use: `withhold` it, or `shrink` it to the memory that is left.  [default: withhold]",
)
@click.option("--detach", is_flag=True, help="Run in the background.")
def up(*, detach: bool, **given: str | int | None) -> None:
    """Start the server on this machine, or find the one that runs.

    It serves the Unix user who starts it, and nobody else. Without --detach it runs until Ctrl-C; jobs go on.
    """
    from aliquot.app import up as server

    server.up(server.Options(is_detached=detach, **given))  # type: ignore[arg-type]  # click gives what the options say


@click.command()
@click.option("--data", metavar="DIR", help="The data folder to look at.")
@click.pass_context
def doctor(context: click.Context, data: str | None) -> None:
    """Look for what could keep Aliquot from working here; exit code 1 if there is a problem."""
    from aliquot.app import doctor as checks

    found = checks.examine(data)
    rows = []
    for check in found:
        rows.append([check.state, check.name, check.sentence])
        if check.advice:
            rows.append(["", "", f"→ {check.advice}"])
    print(output.table([output.Column("STATE"), output.Column("CHECK"), output.Column("FOUND")], rows))
    context.exit(exits.FAILED if any(check.state == "problem" for check in found) else exits.OK)


def run_scenario(given: "shape.Scenario") -> "outcome.Outcome":
    """What comes out of a scenario."""
    from aliquot.app import scenario

    return scenario.run(given)


def check_scenario(given: "shape.Scenario") -> list[tuple[str, str, str]]:
    """What a scenario expects and does not come out: what, what was wanted, what there is."""
    from aliquot.app import scenario

    return [(one.what, one.wanted, one.got) for one in scenario.check(given)]


def simulate(
    request: "simulations.Request", on_progress: "Callable[[simulations.Progress], None]"
) -> "simulations.Simulation":
    """What comes of a trace."""
    from aliquot.app import simulate as app

    return app.run(request, on_progress)


def simulation_rows(found: "simulations.Simulation") -> list[tuple[str, list[str]]]:
    """The numbers of a simulation as text: what each is, and its value in each run."""
    from aliquot.app import simulate as app

    return app.rows(found)


def simulation_page(found: "simulations.Simulation") -> str:
    """A simulation as a page of HTML."""
    from aliquot.app import simulate as app

    return app.page(found)
