"""What all shapes share: camelCase outside, snake_case inside, unknown fields refused, values frozen."""

import re
from datetime import datetime
from typing import Annotated, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel


class Shape(BaseModel):
    """The base of everything that crosses the process border."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


Item = TypeVar("Item")


class Page(Shape, Generic[Item]):
    """A part of a list. `next` is the cursor of the following page, None at the end; `total` counts all that match."""

    items: list[Item]
    total: int
    next: str | None = None


def _amount_text(value: object) -> object:
    """A YAML file may say `gpu: 0.5` or `cpu: 2` without quotes; what is read is text. A boolean is no amount."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def _instant_text(value: object) -> object:
    """A bare number would be read as seconds since 1970: it is no instant that a person wrote."""
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?[\d.]+\s*", value):
        raise ValueError("must be an instant with its zone, as 2026-12-01T12:00:00Z")
    return value


Asked = Annotated[AwareDatetime, BeforeValidator(_instant_text)]
"""An instant in a query (RFC 3339)."""
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""Lower-case letters, digits and `-`, at most 63, as a DNS label, so that it can name a Kubernetes object later."""
Amount = Annotated[str, BeforeValidator(_amount_text), StringConstraints(max_length=64)]
"""A quantity as a person writes it; `core.quantities` reads it."""
Instant = AwareDatetime | datetime
