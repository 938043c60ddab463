"""The output of workloads over HTTP: a part of one pod's, or all of it as it comes."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response, responses, sse
from pydantic import Field

from aliquot.api import bodies, given, streams
from aliquot.service import logs as service
from aliquot.wire import base
from aliquot.wire import workloads as shapes

router = APIRouter(
    prefix="/workloads", tags=["workloads"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED
)

MAX_LINES = 10_000
MAX_OFFSET = 2**62


class LogQuery(given.PodQuery):
    """Which part of one pod's output."""

    attempt: int | None = Field(None, ge=1, le=1_000_000, description="Left out: the latest.")
    offset: int = Field(
        0, ge=-MAX_LINES, le=MAX_OFFSET, description="From this byte on; negative: so many lines from the end."
    )
    limit: int = Field(1000, ge=1, le=MAX_LINES, description="At most so many lines.")


class TextQuery(given.PodQuery):
    """Whose output, of which attempt."""

    attempt: int | None = Field(None, ge=1, le=1_000_000, description="Left out: the latest.")
    timestamps: bool = Field(False, description="Each line begins with its time.")


class FollowQuery(base.Shape):
    """Which output to follow, and from where."""

    project: str | None = Field(None, max_length=63, description=given.WHICH_PROJECT)
    index: int | None = Field(None, ge=0, le=100_000, description="Left out: all replicas.")
    tail: int | None = Field(None, ge=0, le=MAX_LINES, description="Begin with so many lines of each.")
    after: str | None = Field(None, max_length=65_536, description="As Last-Event-ID, which wins.")


@router.get("/{ref}/logs", operation_id="readLogs")
async def read_logs(
    who: given.Who, services: given.Services, ref: given.Ref, query: Annotated[LogQuery, Query()]
) -> shapes.LogChunk:
    """Some lines of one pod, and where to go on."""
    request = service.ReadRequest(index=query.index, offset=query.offset, limit=query.limit, attempt=query.attempt)
    return await services.logs.read(who, ref, request=request, project=query.project)


@router.get(
    "/{ref}/logs/text",
    operation_id="downloadLogs",
    response_class=responses.StreamingResponse,
    responses={200: {"description": "The text.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def download_logs(
    who: given.Who, services: given.Services, ref: given.Ref, query: Annotated[TextQuery, Query()]
) -> Response:
    """All output of one pod as a text file."""
    request = service.TextRequest(index=query.index, attempt=query.attempt, has_times=query.timestamps)
    name, text = await services.logs.text(who, ref, request=request, project=query.project)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return responses.StreamingResponse(text, media_type="text/plain; charset=utf-8", headers=headers)


async def _open(
    who: given.Who,
    services: given.Services,
    ref: given.Ref,
    query: Annotated[FollowQuery, Query()],
    last: streams.LastEventId = None,
) -> AsyncIterator[service.FollowedLine]:
    """What to follow. Looks for it first, as a stream that has begun cannot answer with a problem any more."""
    after = last or query.after
    if after is not None:
        service.read_cursor(after)
    first = service.ReadRequest(index=query.index or 0, limit=1)
    await services.logs.read(who, ref, request=first, project=query.project)
    request = service.FollowRequest(index=query.index, after=after, tail=query.tail)
    return services.logs.follow(who, ref, request=request, project=query.project)


@router.get("/{ref}/logs/stream", operation_id="followLogs", response_class=sse.EventSourceResponse)
async def follow_logs(
    closing: given.Closing, followed: Annotated[AsyncIterator[service.FollowedLine], Depends(_open)]
) -> AsyncIterable[shapes.LogLine]:
    """Lines as they come, over all attempts, until the workload is finished: then `event: end`."""
    async for one in streams.until(closing, followed):
        yield streams.event(one.line, id=one.cursor)  # type: ignore[misc]  # FastAPI unwraps it: its data is a LogLine
    if not closing.is_set():
        yield streams.END  # type: ignore[misc]  # as above
