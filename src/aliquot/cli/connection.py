"""How commands reach the server, and how they name a workload."""

import os
import shlex
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import click
from click import shell_completion

from aliquot import client
from aliquot.client import discovery
from aliquot.core import errors

Command = TypeVar("Command", bound=Callable[..., object])
Client = client.Client
Session = client.Session

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# While a person waits for the Tab key, no answer is better than a late one.
_COMPLETION_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    """A workload by its id or name, and the project if the name alone is not enough."""

    ref: str
    project: str | None


def open_client() -> Client:
    """A client of the server that the environment or this machine names. Raises Unavailable, InvalidInput."""
    return Client.of(discovery.find(os.environ))


def find_token() -> str:
    """The token by which the server would be asked. Raises Unavailable if there is none."""
    token = os.environ.get("ALIQUOT_TOKEN")
    if token:
        return token
    file = discovery.data_folder(os.environ) / discovery.TOKEN_FILE
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise errors.Unavailable(
            f"there is no token in {file}; `aliquot up` makes one at its first start", code="no-server"
        ) from error


def is_local() -> bool:
    """Whether the server runs on this machine, so that our folder and environment mean something to it."""
    url = os.environ.get("ALIQUOT_URL")
    return not url or urllib.parse.urlsplit(url).hostname in _LOOPBACK


def target(command: Command) -> Command:
    """Give a command the argument NAME and the option --project; it gets them as `target`."""

    def take(context: click.Context, _parameter: click.Parameter, value: str) -> Target:
        return Target(value, context.meta.get("aliquot.project"))

    command = click.argument("target", metavar="NAME", callback=take, shell_complete=_names)(command)
    return click.option(
        "--project",
        is_eager=True,
        expose_value=False,
        callback=keep_project,
        help="Its project, where workloads of several have this name.",
    )(command)


def keep_project(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """Remember --project for the arguments that need it."""
    context.meta["aliquot.project"] = value


def as_command_line(command: Sequence[str]) -> str:
    """A command as one would type it."""
    return shlex.join(command)


def _names(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[shell_completion.CompletionItem]:
    try:
        with Client(*_place(), timeout=_COMPLETION_SECONDS) as asked:
            page = asked.list_workloads(limit=50, sort="-created", q=incomplete or None)
    except errors.AliquotError:
        return []
    names = dict.fromkeys(view.name for view in page.items if view.name.startswith(incomplete))
    return [shell_completion.CompletionItem(name) for name in names]


def _place() -> tuple[str, str]:
    server = discovery.find(os.environ)
    return server.url, server.token
