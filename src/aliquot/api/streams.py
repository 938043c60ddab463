"""Server-sent events: how a stream ends with its client, with the server, or because there is no more to say.

Promises: a client that goes away frees its stream; a server that ends does not wait for its streams; a stream that is
complete says `event: end`, so that a client which comes back does so only for one that was cut.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import Header, sse

from aliquot.core import errors
from aliquot.wire import base

MAX_SEQUENCE = 2**62
Item = TypeVar("Item")

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=65_536, description="Go on after the event with this id.")
]
END = sse.ServerSentEvent(event="end", raw_data="null")


def event(shape: base.Shape, *, id: str) -> sse.ServerSentEvent:
    """One shape as an event."""
    return sse.ServerSentEvent(raw_data=shape.model_dump_json(by_alias=True), id=id)


def sequence_of(last: str | None, after: int | None) -> int | None:
    """Where a stream goes on: Last-Event-ID, else `after`. Raises InvalidInput for what is no sequence."""
    if last is None:
        return after
    if not (last.isascii() and last.isdecimal()) or int(last[:20]) > MAX_SEQUENCE:
        raise errors.InvalidInput("Last-Event-ID is not the id of an event", field="Last-Event-ID")
    return int(last)


async def until(closing: asyncio.Event, source: AsyncIterator[Item]) -> AsyncIterator[Item]:
    """The items of `source` until it ends or `closing` is set; then `source` is closed."""
    end = asyncio.ensure_future(closing.wait())
    step: asyncio.Future[Item] | None = None
    try:
        while True:
            step = asyncio.ensure_future(_next(source))
            await asyncio.wait({step, end}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                return
            try:
                item = step.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        # Shielded, as a client that went away has this task cancelled again at every wait.
        with anyio.CancelScope(shield=True):
            await _drop(end)
            await _drop(step)
            if isinstance(source, AsyncGenerator):
                await source.aclose()


async def _next(source: AsyncIterator[Item]) -> Item:
    return await anext(source)


async def _drop(task: asyncio.Future[Any] | None) -> None:  # Any: its result is of no interest
    """Cancel, and wait until it is gone."""
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait({task})
