"""Builds the web application from services. It starts nothing and reads no setting: `aliquot.app` does.

Promises: every route is under /api/v1 but the page and the way into it; what cannot be answered is a problem;
`end_streams` makes every stream end, which a server that waits for its connections needs before it can end itself.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import fastapi
from starlette.middleware import gzip

from aliquot.api import (
    audit,
    changes,
    departments,
    description,
    events,
    files,
    guard,
    ledger,
    logs,
    nodes,
    overview,
    page,
    problems,
    projects,
    queue,
    receipts,
    series,
    server,
    services,
    sign_in,
    terminals,
    timelines,
    usage,
    workloads,
)

PREFIX = "/api/v1"
FastAPI = fastapi.FastAPI
"""What `create_app` returns, for those who may not import FastAPI themselves."""
LEAST_PACKED = 1024
"""Answers of so many bytes and more are sent gzipped to who takes that, at the level that costs least time."""
UNPACKED = (*gzip.DEFAULT_EXCLUDED_CONTENT_TYPES, files.MEDIA_TYPE)
"""Streams of events must arrive at once, and files in a tar stream may be anything."""
_NOUNS = (
    server,
    changes,
    overview,
    series,
    queue,
    workloads,
    timelines,
    logs,
    files,
    terminals,
    departments,
    projects,
    nodes,
    events,
    receipts,
    usage,
    ledger,
    audit,
    sign_in,
)


@dataclass(frozen=True, slots=True)
class ApiConfig:
    """How the API is served. `hosts`: the names, without port, under which it is spoken to beside loopback ones."""

    hosts: frozenset[str] = frozenset()


def assemble() -> fastapi.FastAPI:
    """All routes, without services behind them: enough to describe the API."""
    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=f"{PREFIX}/openapi.json", redirect_slashes=False)
    for noun in _NOUNS:
        app.include_router(noun.router, prefix=PREFIX)
    app.include_router(workloads.counting, prefix=PREFIX)
    app.include_router(sign_in.opening, prefix=PREFIX)
    app.include_router(sign_in.pages)
    app.include_router(page.pages)  # The last one: it takes what nobody else does.
    problems.register(app)
    document: list[dict[str, Any]] = []  # Any: a JSON document

    def describe_once() -> dict[str, Any]:  # Any: a JSON document
        if not document:
            document.append(description.describe(app))
        return document[0]

    app.openapi = describe_once  # type: ignore[method-assign]  # FastAPI's own way to replace the document
    return app


def create_app(services: services.Services, *, config: ApiConfig | None = None) -> fastapi.FastAPI:
    """The application."""
    app = assemble()
    app.state.services = services
    app.state.closing = asyncio.Event()
    app.add_middleware(gzip.GZipMiddleware, minimum_size=LEAST_PACKED, compresslevel=1, exclude_content_types=UNPACKED)
    app.add_middleware(guard.Guard, services=services, hosts=(config or ApiConfig()).hosts)
    return app


def end_streams(app: fastapi.FastAPI) -> None:
    """Make all event and log streams end. To be called in the server's event loop, as soon as it is told to end."""
    app.state.closing.set()
