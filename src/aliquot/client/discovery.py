"""Finds the server: the one that the environment names, else the one of this machine's data folder.

Promises: reads two small files at most and connects to nothing; whoever cannot be found is told where it was looked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aliquot.core import errors

ADDRESS_FILE = "server.json"
TOKEN_FILE = "token"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is, and what lets one in."""

    url: str
    token: str = field(repr=False)


def find(environ: Mapping[str, str]) -> Server:
    """ALIQUOT_URL with ALIQUOT_TOKEN, else the server of the data folder. Raises InvalidInput, Unavailable."""
    url = environ.get("ALIQUOT_URL")
    if url:
        token = environ.get("ALIQUOT_TOKEN")
        if not token:
            raise errors.InvalidInput(
                f"ALIQUOT_URL is set to {url}, but ALIQUOT_TOKEN is not set; "
                "`aliquot token` on the server's machine shows it",
                field="ALIQUOT_TOKEN",
            )
        return Server(_checked(url), token)
    folder = data_folder(environ)
    found = read_server(folder)
    if found is None:
        raise errors.Unavailable(
            f"no server runs here: {folder / ADDRESS_FILE} does not exist; "
            "`aliquot up` starts one, or set ALIQUOT_URL and ALIQUOT_TOKEN",
            code="no-server",
        )
    return found


def data_folder(environ: Mapping[str, str]) -> Path:
    """The data folder that a server started in this environment uses."""
    chosen = environ.get("ALIQUOT_DATA")
    if chosen:
        return Path(chosen).expanduser().absolute()
    shared = environ.get("XDG_DATA_HOME", "")
    # A relative value is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
    base = Path(shared) if shared.startswith("/") else Path(environ.get("HOME") or "~").expanduser() / ".local/share"
    return base / "aliquot"


def read_server(data: Path) -> Server | None:
    """The server that says it runs on this data folder; None if none does. Raises Unavailable if it is not ours."""
    try:
        address = json.loads((data / ADDRESS_FILE).read_text(encoding="utf-8"))
        url, home = str(address["url"]), str(address.get("dataDirectory", data))
        token = (data / TOKEN_FILE).read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise errors.Unavailable(
            f"the server of {data} is another user's: {error.filename} cannot be read", code="no-server"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise errors.Unavailable(f"{data / ADDRESS_FILE} cannot be understood", code="no-server") from error
    refuse_copy(data, home)
    if not token.isascii() or not token.isprintable() or not token:
        raise errors.Unavailable(
            f"{data / TOKEN_FILE} holds no token; `aliquot down` and `aliquot up` make a new one", code="no-server"
        )
    return Server(url, token)


def refuse_copy(data: Path, home: str) -> None:
    """Raises Unavailable if this folder's address file came from another one, `home`: its server is not of this one."""
    if not _is_same(data, home):
        raise errors.Unavailable(
            f"no server runs on {data}: its {ADDRESS_FILE} was copied from {home}", code="no-server"
        )


def _is_same(data: Path, home: str) -> bool:
    try:
        return str(data) == home or data.samefile(home)
    except (OSError, ValueError):
        return False


def _checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise errors.InvalidInput(
            f"ALIQUOT_URL: {url!r} is no address", field="ALIQUOT_URL", valid=("http://HOST:PORT",)
        )
    return url
