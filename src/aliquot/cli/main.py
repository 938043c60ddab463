"""The command `aliquot`: finds the command that is meant and loads its module only then.

Promises: `aliquot --help` imports click and the tree of errors, nothing heavier (a test holds it to that); every error
of the tree ends as text on stderr and a documented exit code, never as a traceback.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from aliquot.cli import exits, render
from aliquot.core import errors


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives (`module:attribute`) and what the list of commands says of it."""

    where: str
    about: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Server": {
        "up": Entry("serve:up", "Start the server on this machine."),
        "down": Entry("down:down", "Stop the server; jobs that run go on."),
        "overview": Entry("overview:overview", "Show how the GPUs do, who waits for what, and what is broken."),
        "status": Entry("status:status", "Show the server, its devices and how shares are enforced."),
        "doctor": Entry("serve:doctor", "Look for what could keep Aliquot from working here."),
        "token": Entry("access:token", "Print the administrator's token."),
        "sign-in": Entry("access:sign_in", "Print a link that signs one browser in, once."),
    },
    "Jobs": {
        "run": Entry("run:run", "Run a command, show its output, and end with its exit code."),
        "submit": Entry("submit:submit", "Submit a workload from a file or from options, and return."),
        "list": Entry("workloads:list_", "List workloads."),
        "get": Entry("workloads:get", "Show one workload: pods, limits, outcome."),
        "why": Entry("why:why", "Say why a workload waits, and what would start it."),
        "queue": Entry("queue:queue", "Show who waits, in order, and until when."),
        "timeline": Entry("timelines:timeline", "Show what a workload did from its submission to now."),
        "wait": Entry("wait:wait", "Wait until a workload runs or has ended."),
        "logs": Entry("logs:logs", "Print the output of a workload."),
        "exec": Entry("execution:execute", "Run a command beside a workload that runs, with its devices."),
        "cp": Entry("files:cp", "Copy files to or from a workload's folder."),
        "top": Entry("top:top", "Show what devices and workloads use."),
        "update": Entry("workloads:update", "Change what a waiting workload asks for."),
        "suspend": Entry("workloads:suspend", "End a workload's processes for now and free its devices."),
        "resume": Entry("workloads:resume", "Let a suspended workload wait for a place again."),
        "stop": Entry("workloads:stop", "End a workload for good."),
        "delete": Entry("workloads:delete", "End a workload and remove it, its folder and its logs."),
    },
    "Organisation": {
        "projects": Entry("projects:projects", "List, create and change projects and their quota."),
        "departments": Entry("departments:departments", "List, create and change departments."),
        "nodes": Entry("nodes:nodes", "Show nodes and devices; keep some of them back."),
    },
    "Records": {
        "events": Entry("events:events", "Show what happened."),
        "receipts": Entry("receipts:receipts", "Show what evictions left behind."),
        "usage": Entry("usage:usage", "Show GPU time of workloads and projects."),
        "history": Entry("history:history", "Show what was held, used and waited for, over time."),
        "ledger": Entry("ledger:ledger", "Check that what is held adds up."),
        "audit": Entry("audit:audit", "Show who changed what."),
    },
    "Study": {
        "scenario": Entry("scenario:scenario", "Run small clusters out of files, and check what comes out."),
        "simulate": Entry("simulate:simulate", "Replay a trace in a cluster that is not there, and report."),
    },
    "Shell": {
        "completion": Entry("completion:completion", "Print the completion script for bash, zsh or fish."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Commands(click.Group):
    """The root group. It knows all commands by name and loads the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else load(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(render.unknown_command("`aliquot`", name, COMMANDS), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.about) for name, entry in entries.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except errors.AliquotError as error:
            render.complain(error)
            ctx.exit(exits.of_error(error))
        except KeyboardInterrupt:
            ctx.exit(exits.INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output has gone (`aliquot list | head -1`): there is nobody left to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(exits.PIPE_CLOSED)


def load(entry: Entry) -> click.Command:
    """Import the module of a command and take the command out of it."""
    module, _, attribute = entry.where.partition(":")
    command = getattr(importlib.import_module(f"aliquot.cli.{module}"), attribute)
    assert isinstance(command, click.Command)
    return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="The server is found by $ALIQUOT_URL and $ALIQUOT_TOKEN, else in $ALIQUOT_DATA on this machine.",
)
@click.version_option(package_name="aliquot", message="aliquot %(version)s")
def cli() -> None:
    """Share GPUs fairly, see what runs, and know why something waits."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    cli(args=arguments, prog_name="aliquot")
