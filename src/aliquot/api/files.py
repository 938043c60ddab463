"""The files of a running workload over HTTP: tar streams out of its folder and into it."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, responses, status
from pydantic import Field
from starlette import exceptions

from aliquot.api import bodies, given

router = APIRouter(
    prefix="/workloads", tags=["workloads"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED
)

MEDIA_TYPE = "application/x-tar"
_TAR = {"content": {MEDIA_TYPE: {"schema": {"type": "string", "contentMediaType": MEDIA_TYPE}}}}


class FileQuery(given.PodQuery):
    """Which file or folder."""

    path: str = Field(min_length=1, max_length=4096, description="Relative to the workload's working directory.")


@router.get(
    "/{ref}/files",
    operation_id="readFiles",
    response_class=responses.StreamingResponse,
    responses={200: {"description": "A tar stream.", **_TAR}},
)
async def read_files(
    who: given.Who, services: given.Services, ref: given.Ref, query: Annotated[FileQuery, Query()]
) -> Response:
    """The file or folder at the path as a tar stream."""
    chunks = await services.terminals.read_files(who, query.target(ref), path=query.path)
    return responses.StreamingResponse(chunks, media_type=MEDIA_TYPE)


@router.put(
    "/{ref}/files",
    operation_id="writeFiles",
    status_code=status.HTTP_204_NO_CONTENT,
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, **_TAR}},
)
async def write_files(
    who: given.Who,
    services: given.Services,
    ref: given.Ref,
    query: Annotated[FileQuery, Query()],
    request: Request,
) -> Response:
    """Unpack a tar stream into the folder at the path."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise exceptions.HTTPException(415, f"send a tar stream, as Content-Type: {MEDIA_TYPE}")
    await services.terminals.write_files(who, query.target(ref), path=query.path, data=request.stream())
    return Response(status_code=status.HTTP_204_NO_CONTENT)
