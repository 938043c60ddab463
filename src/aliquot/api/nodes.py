"""Nodes, devices and cordons over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response, status
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.wire import base
from aliquot.wire import nodes as shapes

router = APIRouter(tags=["nodes"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)

Target = Annotated[
    str,
    Path(min_length=1, max_length=300, description="A node's id, a device's UUID, its index, or `node/index`."),
]


Seen = Annotated[str | None, Header(alias="If-None-Match", max_length=4096, description="The ETag of what is known.")]


class NodeQuery(lists.ListQuery):
    """Which nodes."""

    pool: str | None = Field(None, max_length=63)


class DeviceQuery(lists.ListQuery):
    """Which devices."""

    node: str | None = Field(None, max_length=253)
    model: str | None = Field(None, max_length=200)


@router.get("/nodes", operation_id="listNodes")
async def list_nodes(
    who: given.Who, services: given.Services, query: Annotated[NodeQuery, Query()]
) -> base.Page[shapes.NodeView]:
    """All nodes."""
    return await services.nodes.list(who, query.request())


@router.get("/nodes/{ref}", operation_id="getNode")
async def get_node(
    who: given.Who, services: given.Services, ref: Annotated[str, Path(min_length=1, max_length=253)]
) -> shapes.NodeView:
    """One node by its id."""
    return await services.nodes.get(who, ref)


@router.get("/devices", operation_id="listDevices")
async def list_devices(
    who: given.Who, services: given.Services, query: Annotated[DeviceQuery, Query()]
) -> base.Page[shapes.DeviceView]:
    """All devices, with who holds them."""
    return await services.nodes.devices(who, query.request())


@router.get(
    "/devices/map",
    operation_id="getDeviceMap",
    response_model=shapes.DeviceMap,
    responses={304: {"description": "It is as in If-None-Match."}},
)
async def get_device_map(who: given.Who, services: given.Services, seen: Seen = None) -> Response:
    """All devices in columns, for drawing 100,000 of them. Has an ETag."""
    found = await services.device_map.get(who)
    mark = f'W/"{found.version}"'
    headers = {"ETag": mark, "Cache-Control": "private, no-cache"}
    if mark in {one.strip() for one in (seen or "").split(",")}:
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(found.model_dump_json(by_alias=True), headers=headers, media_type="application/json")


@router.post("/cordons/{target:path}", operation_id="cordon")
async def cordon(who: given.Who, services: given.Services, target: Target) -> shapes.Cordon:
    """Let nothing new start on a node or device; what runs there goes on."""
    return await services.nodes.cordon(who, target)


@router.delete(
    "/cordons/{target:path}",
    operation_id="uncordon",
    status_code=status.HTTP_204_NO_CONTENT,
    response_class=Response,
)
async def uncordon(who: given.Who, services: given.Services, target: Target) -> Response:
    """Let it take work again."""
    await services.nodes.uncordon(who, target)
    return Response(status_code=status.HTTP_204_NO_CONTENT)
