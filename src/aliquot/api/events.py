"""Events over HTTP: as a list, and as a stream that can be resumed."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, sse
from pydantic import Field

from aliquot.api import bodies, given, lists, streams
from aliquot.wire import base
from aliquot.wire import records as shapes

router = APIRouter(prefix="/events", tags=["events"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class EventQuery(lists.ListQuery):
    """Which events."""

    noun: str | None = Field(None, max_length=63)
    subject: str | None = Field(None, max_length=253, description="The id of what it happened to.")
    name: str | None = Field(None, max_length=253, description="The name of what it happened to.")
    project: str | None = Field(None, max_length=63)
    code: str | None = Field(None, max_length=63)
    after: int | None = Field(None, ge=0, le=streams.MAX_SEQUENCE, description="Only those with a greater sequence.")


class StreamQuery(base.Shape):
    """Which events to follow, and from where."""

    noun: str | None = Field(None, max_length=63)
    subject: str | None = Field(None, max_length=253, description="The id of what it happens to.")
    name: str | None = Field(None, max_length=253, description="The name of what it happens to.")
    project: str | None = Field(None, max_length=63)
    code: str | None = Field(None, max_length=63)
    after: int | None = Field(None, ge=0, le=streams.MAX_SEQUENCE, description="As Last-Event-ID, which wins.")


@router.get("", operation_id="listEvents")
async def list_events(
    who: given.Who, services: given.Services, query: Annotated[EventQuery, Query()]
) -> base.Page[shapes.Event]:
    """What happened, the newest first."""
    return await services.events.list(who, query.request())


async def _open(
    who: given.Who,
    services: given.Services,
    query: Annotated[StreamQuery, Query()],
    last: streams.LastEventId = None,
) -> AsyncIterator[shapes.Event]:
    """What to follow. Neither Last-Event-ID nor `after`: only what is new."""
    after = streams.sequence_of(last, query.after)
    return services.events.follow(who, after, filters=query.model_dump(exclude={"after"}, exclude_none=True))


@router.get("/stream", operation_id="streamEvents", response_class=sse.EventSourceResponse)
async def stream_events(
    closing: given.Closing, followed: Annotated[AsyncIterator[shapes.Event], Depends(_open)]
) -> AsyncIterable[shapes.Event]:
    """What happens, as it happens, for ever; the id of each is its sequence."""
    async for one in streams.until(closing, followed):
        yield streams.event(one, id=str(one.sequence))  # type: ignore[misc]  # FastAPI unwraps it: its data is an Event
