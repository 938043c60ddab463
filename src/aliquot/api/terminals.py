"""Programs beside a workload, and its own terminal, over websockets.

The frames, both ways: binary to the server is standard input, an empty one its end; text to the server is
`{"resize": [rows, columns]}`. Binary to the client is a byte, 1 for standard output and 2 for standard error, and then
output; the last frame is the text `{"exit": code}`. What cannot be opened is denied with a problem over HTTP.
"""

import asyncio
import contextlib
import json
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, WebSocket, WebSocketDisconnect
from pydantic import Field

from aliquot.api import given
from aliquot.core import errors
from aliquot.service import ports

router = APIRouter(prefix="/workloads")

STREAMS = {"stdout": b"\x01", "stderr": b"\x02"}
MAX_SIDE = 10_000


class ExecQuery(given.PodQuery):
    """Which program, where, and whether it gets a terminal of its own."""

    command: list[str] = Field(min_length=1, max_length=1000)
    terminal: bool = False
    rows: int = Field(24, ge=1, le=MAX_SIDE)
    columns: int = Field(80, ge=1, le=MAX_SIDE)


@router.websocket("/{ref}/exec")
async def exec_workload(
    socket: WebSocket, who: given.Who, services: given.Services, ref: given.Ref, query: Annotated[ExecQuery, Query()]
) -> None:
    """Run a program beside a replica."""
    request = ports.ExecRequest(
        argv=tuple(query.command), is_terminal=query.terminal, rows=query.rows, columns=query.columns
    )
    await _serve(socket, await services.terminals.exec(who, query.target(ref), request=request))


@router.websocket("/{ref}/attach")
async def attach_workload(
    socket: WebSocket,
    who: given.Who,
    services: given.Services,
    ref: given.Ref,
    query: Annotated[given.PodQuery, Query()],
) -> None:
    """A replica's own input and output."""
    await _serve(socket, await services.terminals.attach(who, query.target(ref)))


async def _serve(socket: WebSocket, terminal: ports.Terminal) -> None:
    """Carry bytes both ways until the program ends or the client goes."""
    try:
        await socket.accept()
        inward = asyncio.create_task(_carry_in(socket, terminal))
        outward = asyncio.create_task(_carry_out(socket, terminal))
        done, rest = await asyncio.wait({inward, outward}, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for task in done:
            _raise_unless_gone(task)
    finally:
        # Also when this task is cancelled: a program beside a pod must not outlive who asked for it.
        with anyio.CancelScope(shield=True):
            await terminal.close()


async def _carry_out(socket: WebSocket, terminal: ports.Terminal) -> None:
    while (chunk := await terminal.read()) is not None:
        stream, data = chunk
        await socket.send_bytes(STREAMS[stream] + data)
    code = await terminal.wait()
    await socket.send_text(json.dumps({"exit": code}))
    await socket.close()


async def _carry_in(socket: WebSocket, terminal: ports.Terminal) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        data, text = message.get("bytes"), message.get("text")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it reads no more, and may still write
            if data is not None:
                await terminal.write(data)
        if text is not None:
            size = _size(text)
            await terminal.resize(size[0], size[1])


def _size(text: str) -> tuple[int, int]:
    try:
        asked = json.loads(text)
        rows, columns = (int(side) for side in asked["resize"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise errors.InvalidInput('a text frame must be {"resize": [rows, columns]}', field="resize") from error
    if not (1 <= rows <= MAX_SIDE and 1 <= columns <= MAX_SIDE):
        raise errors.InvalidInput("a side of a terminal is 1 to 10000", field="resize")
    return rows, columns


def _raise_unless_gone(task: asyncio.Task[None]) -> None:
    """A client that went away is no error: the sends that were under way fail then."""
    error = task.exception()
    if error is not None and not isinstance(error, WebSocketDisconnect | RuntimeError):
        raise error
