"""A real server on loopback for tests: the production API over whatever services a test builds, in a thread."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import fastapi
import uvicorn

from aliquot import client
from aliquot.api import app as api
from aliquot.api import services

TOKEN = "token-of-the-tests"
GUARD_SECONDS = 60

Build = Callable[[], contextlib.AbstractAsyncContextManager[services.Services]]
"""Opens the services inside the server's event loop and closes them there."""


@dataclass(frozen=True)
class Live:
    """A server that answers at `url`. `loop` is where its services live."""

    url: str
    app: fastapi.FastAPI
    loop: asyncio.AbstractEventLoop
    stop: Callable[[], None]
    token: str = TOKEN

    def client(self, *, token: str | None = None) -> client.Client:
        """A new client of it, with its token unless another is given."""
        return client.Client(self.url, self.token if token is None else token)


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()


class _Thread(threading.Thread):
    """The event loop of a server, with the services in it."""

    def __init__(self, build: Build, listener: socket.socket) -> None:
        super().__init__(name="live-server")
        self._build = build
        self._listener = listener
        self._server: _Server | None = None
        self._app: fastapi.FastAPI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self.fault: BaseException | None = None

    def run(self) -> None:
        """Serve until it is told to end."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self.fault = error
            raise
        finally:
            self._ready.set()

    def begin(self) -> Live:
        """Start, and return when the server answers."""
        self.start()
        assert self._ready.wait(GUARD_SECONDS), "the server did not start"
        if self._app is None or self._loop is None:
            self.join()
            raise self.fault or AssertionError("the server ended at once")
        port = self._listener.getsockname()[1]
        return Live(f"http://127.0.0.1:{port}", self._app, self._loop, self.end)

    def end(self) -> None:
        """End as the real server does: first its streams, then itself. Again does nothing."""
        if self.is_alive() and self._server is not None and self._app is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(api.end_streams, self._app)
            self._server.should_exit = True
            self.join(GUARD_SECONDS)
        assert not self.is_alive(), "the server did not end"

    async def _serve(self) -> None:
        async with self._build() as built:
            await built.access.ensure_token(TOKEN)
            self._app = api.create_app(built)
            self._server = _Server(uvicorn.Config(self._app, log_config=None, access_log=False), self._ready)
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._listener])


@contextlib.contextmanager
def serve(build: Build, *, port: int = 0) -> Iterator[Live]:
    """Run the API over these services until the block ends."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    thread = _Thread(build, listener)
    try:
        yield thread.begin()
    finally:
        thread.end()
        listener.close()
