"""A program beside a workload, or the workload's own terminal, over a websocket.

Promises: reading and writing may happen in two threads; closing a session ends the program that was opened for it.
"""

import contextlib
import json
from collections.abc import Iterator
from types import TracebackType
from typing import Literal, Self

from websockets import exceptions
from websockets.sync import client as sockets

from aliquot.client import transport
from aliquot.core import errors

# A server closes a websocket on which a frame is larger than 16 MiB (uvicorn's default).
MOST_BYTES = 2**20
Stream = Literal["stdout", "stderr"]
_STREAMS: dict[int, Stream] = {1: "stdout", 2: "stderr"}


class Session:
    """An open terminal. Iterate over it for what comes; `exit_code` is set when that ends."""

    def __init__(self, socket: sockets.ClientConnection, url: str, *, until_closed: contextlib.ExitStack) -> None:
        self._socket = socket
        self._url = url
        self._until_closed = until_closed
        self.exit_code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[Stream, bytes]]:
        """What the program writes, as it comes. Raises Unavailable if the connection breaks."""
        while True:
            try:
                frame = self._socket.recv()
            except exceptions.ConnectionClosed as error:
                if self.exit_code is not None:
                    return
                raise errors.Unavailable(
                    f"the connection to {self._url} broke before the program ended", code="connection-broken"
                ) from error
            if isinstance(frame, str):
                self.exit_code = int(json.loads(frame)["exit"])
                return
            yield _STREAMS[frame[0]], frame[1:]

    def write(self, data: bytes) -> None:
        """Bytes for its standard input. What it does not read any more is dropped."""
        for start in range(0, len(data), MOST_BYTES):
            self._send(data[start : start + MOST_BYTES])

    def end_input(self) -> None:
        """There is no more standard input."""
        self._send(b"")

    def resize(self, rows: int, columns: int) -> None:
        """The window has another size."""
        self._send(json.dumps({"resize": [rows, columns]}))

    def close(self) -> None:
        """Let go."""
        self._until_closed.close()

    def _send(self, frame: bytes | str) -> None:
        try:
            self._socket.send(frame)
        except exceptions.ConnectionClosed:
            return  # The reader learns of it, with the exit code or without.


def open_session(sender: transport.Transport, call: transport.Call) -> Session:
    """Open a websocket. Raises the error with which the server denied it, or Unavailable."""
    url = f"ws{sender.url.removeprefix('http')}{transport.PREFIX}{call.path}?{transport.encode(call.query)}"
    until_closed = contextlib.ExitStack()
    try:
        connecting = sockets.connect(
            url,
            additional_headers={"Authorization": f"Bearer {sender.token}"},
            open_timeout=sender.timeout,
            max_size=None,
            compression=None,
            proxy=None if sender.is_local else True,
        )
        socket = until_closed.enter_context(connecting)
    except exceptions.InvalidStatus as error:
        raise transport.rebuild(error.response.status_code, bytes(error.response.body or b"")) from error
    except (OSError, TimeoutError, exceptions.WebSocketException) as error:
        raise errors.Unavailable(f"nothing answers at {sender.url}: {error}", code="no-server") from error
    return Session(socket, sender.url, until_closed=until_closed)
