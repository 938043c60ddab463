"""Departments over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query, Response, status
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.wire import base, queue
from aliquot.wire import projects as shapes

router = APIRouter(
    prefix="/departments", tags=["departments"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED
)


class DepartmentQuery(lists.ListQuery):
    """Which departments."""

    name: str | None = Field(None, max_length=63, description="The whole name.")
    q: str | None = Field(None, max_length=200, description="A part of the name.")


@router.get("", operation_id="listDepartments")
async def list_departments(
    who: given.Who, services: given.Services, query: Annotated[DepartmentQuery, Query()]
) -> base.Page[shapes.DepartmentView]:
    """All departments that match, with where they stand."""
    return await services.departments.list(who, query.request())


@router.post("", operation_id="createDepartment", status_code=status.HTTP_201_CREATED)
async def create_department(
    who: given.Who, services: given.Services, new: shapes.DepartmentNew
) -> shapes.DepartmentView:
    """Create a department."""
    return await services.departments.create(who, new)


@router.get("/{ref}", operation_id="getDepartment")
async def get_department(who: given.Who, services: given.Services, ref: given.Ref) -> shapes.DepartmentView:
    """One department, with where it stands."""
    return await services.departments.get(who, ref)


@router.patch("/{ref}", operation_id="updateDepartment")
async def update_department(
    who: given.Who,
    services: given.Services,
    ref: given.Ref,
    change: shapes.QueueUpdate,
    *,
    is_dry: given.IsDry = False,
) -> shapes.DepartmentView | queue.QueuePreview:
    """Change the terms of a department. Setting its GPU quota ends its following of the machine."""
    if is_dry:
        return await services.previews.queue(who, ref, change, noun="department")
    return await services.departments.update(who, ref, change)


@router.delete(
    "/{ref}",
    operation_id="deleteDepartment",
    status_code=status.HTTP_204_NO_CONTENT,
    response_class=Response,
)
async def delete_department(who: given.Who, services: given.Services, ref: given.Ref) -> Response:
    """Remove a department; refused while something is in it."""
    await services.departments.delete(who, ref)
    return Response(status_code=status.HTTP_204_NO_CONTENT)
