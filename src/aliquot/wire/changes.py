"""The stream of changes on the wire: what a page needs to keep what it shows fresh without asking again."""

from pydantic import AwareDatetime, Field

from aliquot.wire.base import Shape
from aliquot.wire.workloads import WorkloadView


class Hello(Shape):
    """The first message of a stream. What follows are the changes after `sequence`."""

    sequence: int
    time: AwareDatetime = Field(description="The server's time.")
    version: str
    started: AwareDatetime = Field(description="When the server started.")


class Beat(Shape):
    """Nothing changed, and the server lives."""

    sequence: int
    time: AwareDatetime


class Changes(Shape):
    """What changed since the last message, each row once."""

    sequence: int
    time: AwareDatetime
    workloads: list[WorkloadView] = Field(default_factory=list, description="As they are now.")
    gone_workloads: list[str] = Field(default_factory=list, description="Ids of those that no list shows any more.")
    nouns: list[str] = Field(
        default_factory=list,
        description="Other nouns of which something changed: project, department, node, device, server, receipt.",
    )
    is_reset: bool = Field(
        False, description="Too much changed, or nobody knows what: ask for everything anew. No rows are named."
    )
