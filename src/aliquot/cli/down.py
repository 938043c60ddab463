"""`aliquot down`: ends the server of this machine and waits until it is gone. Jobs go on; the next `up` finds them."""

import json
import os
import pathlib
import select
import signal

import click

from aliquot.client import discovery
from aliquot.core import errors


@click.command()
@click.option("--data", metavar="DIR", help="The data folder of the server.  [default: where `up` puts it]")
@click.option(
    "--timeout", type=click.IntRange(min=1), default=30, show_default=True, help="Seconds to wait for its end."
)
def down(data: str | None, timeout: int) -> None:
    """Stop the server on this machine; jobs that run go on."""
    folder = pathlib.Path(data).expanduser().absolute() if data else discovery.data_folder(os.environ)
    pid = _read_pid(folder / discovery.ADDRESS_FILE)
    handle = _open_process(pid)
    if handle is None:
        print(f"no server runs on {folder}")
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        is_gone, _, _ = select.select([handle], [], [], timeout)
    except ProcessLookupError:
        is_gone = [handle]
    finally:
        os.close(handle)
    if not is_gone:
        raise errors.AliquotError(f"the server (pid {pid}) has not ended within {timeout} s")
    print(f"the server (pid {pid}) has ended; jobs that run go on")


def _read_pid(file: pathlib.Path) -> int | None:
    try:
        address = json.loads(file.read_text(encoding="utf-8"))
        pid, home = int(address["pid"]), str(address.get("dataDirectory", file.parent))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise errors.AliquotError(f"{file} cannot be read: {error}") from error
    discovery.refuse_copy(file.parent, home)
    return pid


def _open_process(pid: int | None) -> int | None:
    """A handle of the server's process; None if it is gone, or if its number is another program's by now."""
    if pid is None:
        return None
    try:
        handle = os.pidfd_open(pid)
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (ProcessLookupError, FileNotFoundError):
        return None
    if b"aliquot" in command:
        return handle
    os.close(handle)
    return None
