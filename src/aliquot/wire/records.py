"""What is kept: events, audit records, usage, the ledger; and the server's own state, sign-in and problems."""

from typing import Literal

from pydantic import AwareDatetime, Field

from aliquot.core.model import Guarantee
from aliquot.wire.base import Shape


class Event(Shape):
    """Something that happened to a workload, a project, a node or a device. `sequence` grows; gaps are possible."""

    sequence: int
    time: AwareDatetime
    noun: str = Field(description="workload, project, department, node, device or server")
    subject: str
    subject_name: str
    project: str | None
    code: str
    message: str


class AuditRecord(Shape):
    """Who did what, to what, from where, with what outcome."""

    id: str
    time: AwareDatetime
    actor: str
    origin: str
    verb: str
    noun: str
    subject: str
    outcome: str
    detail: str


class Usage(Shape):
    """GPU time of one workload, or of a project: allocated, and used where it is measured."""

    subject: str
    name: str
    project: str
    allocated_gpu_seconds: int
    used_gpu_seconds: int | None = Field(None, description="None: not measured.")
    run_seconds: int
    first: AwareDatetime | None = None
    last: AwareDatetime | None = None


class LedgerAudit(Shape):
    """The ledger's audit of itself: what open entries add up to, against what living pods hold and devices offer."""

    is_balanced: bool
    open_entries: int
    held_milli_gpus: int
    ledger_milli_gpus: int
    faults: list[str]


class DeviceSummary(Shape):
    """What the machine has, in one sentence and in numbers."""

    count: int
    models: list[str]
    is_simulated: bool
    guarantee: Guarantee
    description: str


class Status(Shape):
    """What `aliquot status` shows."""

    version: str
    url: str
    pid: int
    data_directory: str
    started: AwareDatetime
    cluster: str
    node: str
    devices: DeviceSummary
    limits: str = Field(description="How CPU and memory limits are enforced here, in words.")
    user: str = Field(description="The Unix user whose work this server runs; it serves no other.")
    running: int
    waiting: int
    is_accepting: bool = Field(description="False while nothing new starts, as on a full disk.")
    notice: str | None = None


class Health(Shape):
    """The one answer that needs no token."""

    status: Literal["ok"] = "ok"
    version: str


class SignInLink(Shape):
    """A link that signs one browser in, once, before it expires."""

    url: str
    expires: AwareDatetime


class SessionNew(Shape):
    """What signs a browser in."""

    token: str = Field(min_length=1, max_length=1000, description="The administrator's token.")


class Session(Shape):
    """Who asks, and until when."""

    actor: str
    expires: AwareDatetime | None = Field(None, description="When the browser's session ends; None: asked by a token.")
    version: str


class FieldProblem(Shape):
    """What is wrong with one field."""

    field: str
    message: str
    valid: list[str] = Field(default_factory=list)


class Problem(Shape):
    """RFC 9457 problem details. `code` is stable; `errors` names the fields."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    valid: list[str] = Field(default_factory=list)
    errors: list[FieldProblem] = Field(default_factory=list)
    details: dict[str, object] = Field(default_factory=dict)
