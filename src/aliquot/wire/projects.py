"""Departments and projects on the wire: the queue tree with its terms for each node pool."""

from pydantic import AwareDatetime, Field

from aliquot.core.model import DEFAULT_POOL
from aliquot.wire.base import Amount, Name, Shape


class Claim(Shape):
    """Terms for one resource. quota null: unlimited; limit null: no ceiling."""

    quota: Amount | None = None
    weight: int = Field(1, ge=0, le=1_000_000)
    limit: Amount | None = None


class PoolTerms(Shape):
    """A queue's terms in one node pool. GPU in devices (`2`, `0.5`), CPU in cores, memory in bytes (`64Gi`)."""

    gpu: Claim = Field(default_factory=lambda: Claim(quota="0"))
    cpu: Claim = Field(default_factory=Claim)
    memory: Claim = Field(default_factory=Claim)
    priority: int = Field(100, ge=0, le=1_000_000)


class DepartmentNew(Shape):
    """A new department. A pool left out: GPU quota 0, no bound on CPU and memory."""

    name: Name
    pools: dict[Name, PoolTerms] = Field(default_factory=lambda: {DEFAULT_POOL: PoolTerms()})


class ProjectNew(DepartmentNew):
    """A new project, in the default department unless said otherwise."""

    department: Name = "default"


class PoolTermsUpdate(Shape):
    """A change of terms. A resource that is left out stays as it is; one that is given is replaced whole."""

    gpu: Claim | None = None
    cpu: Claim | None = None
    memory: Claim | None = None
    priority: int | None = Field(None, ge=0, le=1_000_000)


class QueueUpdate(Shape):
    """A change of a department's or project's terms."""

    pools: dict[Name, PoolTermsUpdate]


class PoolStanding(Shape):
    """Where a queue stands in one pool: its terms, and what the last cycle counted. Amounts as text, GPU in devices."""

    terms: PoolTerms
    fair_share: dict[str, str] = Field(default_factory=dict, description="By resource: gpu, cpu, memory.")
    held: dict[str, str] = Field(default_factory=dict)
    asked: dict[str, str] = Field(default_factory=dict, description="Held and waiting together.")


class DepartmentView(Shape):
    """A department and where it stands."""

    id: str
    name: str
    created: AwareDatetime
    pools: dict[str, PoolStanding]
    projects: int
    follows_machine: bool = Field(description="Its GPU quota is whatever the machine has, until someone sets it.")


class ProjectView(Shape):
    """A project and where it stands."""

    id: str
    name: str
    department: str
    created: AwareDatetime
    pools: dict[str, PoolStanding]
    waiting: int
    running: int
    follows_machine: bool
