"""The query of every list: how many, from where, in which order, and which. A noun adds its filters as fields.

Promises: what the OpenAPI document lists is all that a list takes.
"""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from aliquot.service import paging
from aliquot.wire import base

_OWN = {"limit", "cursor", "sort"}


class ListQuery(base.Shape):
    """What every list takes."""

    limit: int = Field(100, ge=1, le=paging.MAX_LIMIT, description="At most so many on this page.")
    cursor: str | None = Field(None, max_length=4096, description="`next` of the page before.")
    sort: str | None = Field(
        None, max_length=200, description="Names of fields, separated by commas; `-` before one: descending."
    )

    def filters(self) -> dict[str, str]:
        """The noun's own fields that were given, by their names on the wire."""
        given = self.model_dump(by_alias=True, exclude=_OWN, exclude_none=True)
        return {name: str(value) for name, value in given.items()}

    def request(self) -> paging.ListRequest:
        """The same for a service."""
        names = (name.strip() for name in (self.sort or "").split(","))
        return paging.ListRequest(
            filters=self.filters(), sort=tuple(name for name in names if name), limit=self.limit, cursor=self.cursor
        )


Plain = Annotated[ListQuery, Query()]
"""The query of a list without filters."""
