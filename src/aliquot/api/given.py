"""What every route is given: who asks, the services, and the sign that the server is about to end.

Promises: a route that takes `Who` is reached only by an actor whom the guard (`aliquot.api.guard`) let in.
"""

import asyncio
from typing import Annotated

from fastapi import Depends, Path, Query, Security, security
from pydantic import Field
from starlette import requests

from aliquot.api import services
from aliquot.service import access, terminals
from aliquot.wire import base

COOKIE = "aliquot_session"
WHICH_PROJECT = "Name of the project, where workloads of several have one name."

_bearer = security.HTTPBearer(
    auto_error=False, scheme_name="token", description="The administrator's token: `aliquot token` shows it."
)
_cookie = security.APIKeyCookie(
    name=COOKIE,
    auto_error=False,
    scheme_name="session",
    description="A browser's session, by a sign-in link. What changes something must come from the same origin.",
)


def actor(connection: requests.HTTPConnection) -> access.Actor:
    """The actor whom the guard found. The security schemes beside it are for the OpenAPI document alone."""
    found: access.Actor = connection.state.actor
    return found


def all_services(connection: requests.HTTPConnection) -> services.Services:
    """The services of this app."""
    found: services.Services = connection.app.state.services
    return found


def closing(connection: requests.HTTPConnection) -> asyncio.Event:
    """Set when the server is about to end: streams end then."""
    found: asyncio.Event = connection.app.state.closing
    return found


Who = Annotated[access.Actor, Depends(actor)]
Services = Annotated[services.Services, Depends(all_services)]
Closing = Annotated[asyncio.Event, Depends(closing)]

PROTECTED = [Security(_bearer), Security(_cookie)]
"""For a router whose routes need a token or a session, so that the OpenAPI document says so."""

IsDry = Annotated[bool, Query(alias="dryRun", description="Only say what would happen; change nothing.")]
Ref = Annotated[str, Path(min_length=1, max_length=200, description="A name or an id.")]
Project = Annotated[str | None, Query(max_length=63, description=WHICH_PROJECT)]


class PodQuery(base.Shape):
    """Which replica of a workload, and whose."""

    project: str | None = Field(None, max_length=63, description=WHICH_PROJECT)
    index: int = Field(0, ge=0, le=100_000, description="Which replica, from 0.")

    def target(self, ref: str) -> terminals.Target:
        """The same for a service."""
        return terminals.Target(ref=ref, project=self.project, index=self.index)
