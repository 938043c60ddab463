"""Projects over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query, Response, status
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.wire import base, queue
from aliquot.wire import projects as shapes

router = APIRouter(prefix="/projects", tags=["projects"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED)


class ProjectQuery(lists.ListQuery):
    """Which projects."""

    department: str | None = Field(None, max_length=63)
    name: str | None = Field(None, max_length=63, description="The whole name.")
    q: str | None = Field(None, max_length=200, description="A part of the name.")


@router.get("", operation_id="listProjects")
async def list_projects(
    who: given.Who, services: given.Services, query: Annotated[ProjectQuery, Query()]
) -> base.Page[shapes.ProjectView]:
    """All projects that match, with where they stand."""
    return await services.projects.list(who, query.request())


@router.post("", operation_id="createProject", status_code=status.HTTP_201_CREATED)
async def create_project(who: given.Who, services: given.Services, new: shapes.ProjectNew) -> shapes.ProjectView:
    """Create a project."""
    return await services.projects.create(who, new)


@router.get("/{ref}", operation_id="getProject")
async def get_project(who: given.Who, services: given.Services, ref: given.Ref) -> shapes.ProjectView:
    """One project, with where it stands."""
    return await services.projects.get(who, ref)


@router.patch("/{ref}", operation_id="updateProject")
async def update_project(
    who: given.Who,
    services: given.Services,
    ref: given.Ref,
    change: shapes.QueueUpdate,
    *,
    is_dry: given.IsDry = False,
) -> shapes.ProjectView | queue.QueuePreview:
    """Change the terms of a project. Setting its GPU quota ends its following of the machine."""
    if is_dry:
        return await services.previews.queue(who, ref, change, noun="project")
    return await services.projects.update(who, ref, change)


@router.delete(
    "/{ref}",
    operation_id="deleteProject",
    status_code=status.HTTP_204_NO_CONTENT,
    response_class=Response,
)
async def delete_project(who: given.Who, services: given.Services, ref: given.Ref) -> Response:
    """Remove a project; refused while something is in it."""
    await services.projects.delete(who, ref)
    return Response(status_code=status.HTTP_204_NO_CONTENT)
