"""The life of a workload on the wire, as spans that follow each other from its submission on."""

from typing import Literal

from pydantic import AwareDatetime, Field

from aliquot.core.plan import Code
from aliquot.wire.base import Shape


class SpanReason(Shape):
    """Why it waited in this span."""

    code: Code
    message: str


class Span(Shape):
    """A time in which a workload did one thing. `to` is null while it goes on."""

    kind: Literal["waiting", "running", "suspended", "back-off", "ending"]
    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime | None = Field(None, alias="to")
    attempt: int | None = Field(None, description="Of what runs or ends: which.")
    reason: SpanReason | None = Field(None, description="Of what waits: why, as the scheduler found it.")
    places: list[str] = Field(default_factory=list, description="`node/index` of what it holds.")
    exit: str | None = Field(None, description="How the attempt ended, in words.")
    receipt: str | None = Field(None, description="Id of the receipt, where the attempt ended by an eviction.")


class Timeline(Shape):
    """All spans, the oldest first, without gaps."""

    spans: list[Span]
