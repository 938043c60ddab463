"""`aliquot up`: start the server here or in the background, or find the one that runs, and say where to go."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from aliquot import client
from aliquot.app import server, settings
from aliquot.client import discovery
from aliquot.core import errors, guarantees
from aliquot.core.model import Guarantee
from aliquot.local.folders import Folders


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `aliquot up`; None is not given."""

    data: str | None = None
    host: str | None = None
    port: int | None = None
    devices: str | None = None
    only: str | None = None
    foreign: str | None = None
    is_detached: bool = False


def up(options: Options) -> None:
    """Start a server and print where it is. Returns when it ends, or at once when it is detached or runs already."""
    chosen = settings.read(
        data=options.data,
        host=options.host,
        port=options.port,
        devices=options.devices,
        only=options.only,
        foreign=options.foreign,
    )
    running = _running(chosen)
    if running is not None:
        _greet_running(running)
    elif options.is_detached:
        _greet(_detached(chosen))
    else:
        server.serve(chosen, on_ready=_greet)


def _running(chosen: settings.Settings) -> discovery.Server | None:
    """The server that uses this data folder now, if it answers."""
    try:
        found = discovery.read_server(Folders(chosen.data).data)
        if found is None:
            return None
        with client.Client(found.url, found.token) as asked:
            asked.health_check()
    except errors.AliquotError:
        return None
    return found


def _detached(chosen: settings.Settings) -> server.Ready:
    """Start the server in a session of its own and wait until it answers. Raises what kept it from starting."""
    chosen.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    reader, writer = os.pipe()
    given = {f"{settings.PREFIX}{name.upper()}": str(value) for name, value in chosen if value is not None}
    with chosen.log_file.open("ab") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "aliquot.app.server", str(writer)],
            env={**os.environ, **given},
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            pass_fds=(writer,),
            start_new_session=True,
            cwd="/",
        )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as door:
        said = door.read()
    if not said:
        raise errors.Unavailable(f"the server ended while it started; its log is {chosen.log_file}")
    message = json.loads(said)
    if "fault" in message:
        process.wait()
        fault = message["fault"]
        kind = errors.InvalidInput if fault["isInput"] else errors.Conflict
        raise kind(fault["message"], field=fault["field"], valid=fault["valid"], code=fault["code"])
    process.returncode = 0  # It lives on by itself: no warning that nobody waits for it.
    return server.Ready(**message["ready"])


def _greet(ready: server.Ready) -> None:
    print(f"Aliquot runs at {ready.url} (pid {ready.pid}, data in {ready.data}).")
    print(f"  devices   {ready.devices}")
    if ready.has_devices:
        print(f"  shares    {ready.guarantee}: {guarantees.describe(Guarantee(ready.guarantee))}")
    print(f"  limits    {ready.limits}")
    print(f"  command   {_command()}")
    print(f"  sign in   {ready.sign_in}  (once, within 15 minutes)", flush=True)
    if Path(ready.data) != discovery.data_folder(os.environ):
        print(f"Other commands find it after: export ALIQUOT_DATA={shlex.quote(ready.data)}", flush=True)


def _greet_running(found: discovery.Server) -> None:
    with client.Client(found.url, found.token) as asked:
        status, link = asked.get_status(), asked.create_sign_in_link()
    print(f"Aliquot runs already at {status.url} (pid {status.pid}, data in {status.data_directory}).")
    print(f"  devices   {status.devices.description}")
    if status.devices.count:
        print(f"  shares    {status.devices.guarantee}: {guarantees.describe(status.devices.guarantee)}")
    print(f"  limits    {status.limits}")
    print(f"  command   {_command()}")
    print(f"  sign in   {link.url}  (once, within 15 minutes)", flush=True)


def _command() -> str:
    return str(Path(sys.argv[0]).absolute())
