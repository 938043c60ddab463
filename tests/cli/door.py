"""The command line as a test sees it: run in this process, in front of a server that nobody may reach."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from click import testing

from aliquot.cli import main


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    stdout: str
    stderr: str


class Door:
    """A port that listens and never answers: whoever connects is found waiting there."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def was_used(self) -> bool:
        """Whether anything was sent."""
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return False
        connection.close()
        return True


@contextlib.contextmanager
def closed_door() -> Iterator[Door]:
    """A server's place for commands that must be refused before anything is sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield Door(listener)


def call(*arguments: str, url: str | None = None, token: str | None = "token") -> Answer:
    """Run a command line. Without a URL it finds no server."""
    environment = {"ALIQUOT_URL": url, "ALIQUOT_TOKEN": token}
    result = testing.CliRunner().invoke(main.cli, list(arguments), env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)
