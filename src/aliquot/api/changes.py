"""The stream of changes over HTTP."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, sse
from pydantic import Field

from aliquot.api import bodies, given, streams
from aliquot.service import changes as service
from aliquot.wire import base
from aliquot.wire import changes as shapes

router = APIRouter(prefix="/changes", tags=["changes"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class ChangesQuery(base.Shape):
    """From where to follow."""

    after: int | None = Field(None, ge=0, le=streams.MAX_SEQUENCE, description="As Last-Event-ID, which wins.")


async def _open(
    who: given.Who,
    services: given.Services,
    query: Annotated[ChangesQuery, Query()],
    last: streams.LastEventId = None,
) -> AsyncIterator[service.Message]:
    """What to follow. Neither Last-Event-ID nor `after`: only what is new."""
    return services.changes.follow(who, streams.sequence_of(last, query.after))


@router.get("/stream", operation_id="streamChanges", response_class=sse.EventSourceResponse)
async def stream_changes(
    closing: given.Closing, followed: Annotated[AsyncIterator[service.Message], Depends(_open)]
) -> AsyncIterable[shapes.Hello | shapes.Beat | shapes.Changes]:
    """What changes, for ever: `event: hello` first, then `changes` at most every 250 ms, `beat` after 5 s of silence.

    The id of each is its sequence.
    """
    async for one in streams.until(closing, followed):
        told = sse.ServerSentEvent(raw_data=one.text, id=str(one.sequence), event=one.kind)
        yield told  # type: ignore[misc]  # FastAPI unwraps it: its data is one of these shapes
