"""Workloads over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response, status
from pydantic import Field

from aliquot.api import bodies, given, lists
from aliquot.wire import base
from aliquot.wire import workloads as shapes

router = APIRouter(
    prefix="/workloads", tags=["workloads"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED
)
# Not below /workloads: a workload may have any name.
counting = APIRouter(
    prefix="/workload-counts", tags=["workloads"], route_class=bodies.StrictRoute, dependencies=given.PROTECTED
)

Label = Annotated[str, Field(pattern=r"^[^=]+=.*$", max_length=600)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="The same key with the same body is done once; with another body it is a conflict.",
    ),
]


class WorkloadFilter(base.Shape):
    """Which workloads. Where several values are possible they are separated by commas."""

    project: str | None = Field(None, max_length=2000, description="One or more.")
    department: str | None = Field(None, max_length=2000, description="One or more.")
    phase: str | None = Field(None, max_length=200, description="One or more; also `unfinished` and `finished`.")
    kind: str | None = Field(None, max_length=63, description="One or more.")
    name: str | None = Field(None, max_length=63, description="The whole name.")
    actor: str | None = Field(None, max_length=200)
    q: str | None = Field(None, max_length=200, description="A part of the name or of the project's, or the id.")
    label: list[Label] | None = Field(None, max_length=20, description="`key=value`; may be given more than once.")


class WorkloadQuery(lists.ListQuery, WorkloadFilter):
    """Which workloads, and which part of them."""

    def filters(self) -> dict[str, str]:
        """Each label is a filter of its own."""
        return _with_labels(lists.ListQuery.filters(self), self.label)


@router.get("", operation_id="listWorkloads")
async def list_workloads(
    who: given.Who, services: given.Services, query: Annotated[WorkloadQuery, Query()]
) -> base.Page[shapes.WorkloadView]:
    """All workloads that match, finished ones too."""
    return await services.workloads.list(who, query.request())


@router.post(
    "",
    operation_id="submitWorkload",
    status_code=status.HTTP_201_CREATED,
    response_model=shapes.WorkloadDetail,
    responses={
        200: {"model": shapes.WorkloadDetail | shapes.DryRun, "description": "It was known by its key; or a dry run."}
    },
)
async def submit_workload(
    who: given.Who,
    services: given.Services,
    definition: shapes.Definition,
    request: Request,
    *,
    is_dry: Annotated[bool, Query(alias="dryRun", description="Only say what would happen; create nothing.")] = False,
    key: Key = None,
) -> Response:
    """Submit a workload."""
    if is_dry:
        return _json(await services.workloads.dry_run(who, definition), status.HTTP_200_OK)
    workload, is_new = await services.workloads.submit(who, definition, key=key)
    response = _json(workload, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)
    response.headers["Location"] = f"{request.url.path}/{workload.id}"
    return response


@counting.get("", operation_id="countWorkloads")
async def count_workloads(
    who: given.Who, services: given.Services, query: Annotated[WorkloadFilter, Query()]
) -> shapes.WorkloadCounts:
    """How many workloads match, by phase."""
    named = query.model_dump(by_alias=True, exclude_none=True)
    return await services.workloads.count(who, _with_labels(named, query.label))


@router.get("/{ref}", operation_id="getWorkload")
async def get_workload(
    who: given.Who, services: given.Services, ref: given.Ref, *, project: given.Project = None
) -> shapes.WorkloadDetail:
    """One workload with its definition and pods."""
    return await services.workloads.get(who, ref, project=project)


@router.patch("/{ref}", operation_id="updateWorkload")
async def update_workload(
    who: given.Who,
    services: given.Services,
    ref: given.Ref,
    change: shapes.WorkloadUpdate,
    *,
    project: given.Project = None,
    is_dry: given.IsDry = False,
) -> shapes.WorkloadDetail | shapes.DryRun:
    """Change a workload that waits or is suspended; of one that runs, the priority alone."""
    if is_dry:
        return await services.previews.workload(who, ref, change, project=project)
    return await services.workloads.update(who, ref, change, project=project)


@router.delete(
    "/{ref}",
    operation_id="deleteWorkload",
    status_code=status.HTTP_204_NO_CONTENT,
    response_class=Response,
    responses={202: {"model": shapes.WorkloadDetail, "description": "It is ending, and goes away when it has ended."}},
)
async def delete_workload(
    who: given.Who, services: given.Services, ref: given.Ref, *, project: given.Project = None
) -> Response:
    """End a workload and remove its folder and logs; its usage, events and receipts stay."""
    ending = await services.workloads.delete(who, ref, project=project)
    if ending is None:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    return _json(ending, status.HTTP_202_ACCEPTED)


@router.post("/{ref}/suspend", operation_id="suspendWorkload")
async def suspend_workload(
    who: given.Who, services: given.Services, ref: given.Ref, *, project: given.Project = None
) -> shapes.WorkloadDetail:
    """End its processes and free what it holds, until it is resumed."""
    return await services.workloads.suspend(who, ref, project=project)


@router.post("/{ref}/resume", operation_id="resumeWorkload")
async def resume_workload(
    who: given.Who, services: given.Services, ref: given.Ref, *, project: given.Project = None
) -> shapes.WorkloadDetail:
    """Let it wait for a place again."""
    return await services.workloads.resume(who, ref, project=project)


@router.post("/{ref}/stop", operation_id="stopWorkload")
async def stop_workload(
    who: given.Who, services: given.Services, ref: given.Ref, *, project: given.Project = None
) -> shapes.WorkloadDetail:
    """End it for good."""
    return await services.workloads.stop(who, ref, project=project)


@router.get("/{ref}/reason", operation_id="getReason")
async def get_reason(
    who: given.Who, services: given.Services, ref: given.Ref, *, project: given.Project = None
) -> shapes.Reason:
    """Why it waits now, with the smallest change that would start it."""
    return await services.workloads.reason(who, ref, project=project)


def _with_labels(filters: dict[str, str], labels: list[str] | None) -> dict[str, str]:
    """Each label as a filter of its own."""
    filters.pop("label", None)
    for text in labels or []:
        key, _, value = text.partition("=")
        filters[f"label.{key}"] = value
    return filters


def _json(shape: base.Shape, code: int) -> Response:
    return Response(shape.model_dump_json(by_alias=True), code, media_type="application/json")
