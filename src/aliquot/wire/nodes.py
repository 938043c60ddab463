"""Nodes and devices on the wire."""

from pydantic import AwareDatetime, Field

from aliquot.core.model import Guarantee
from aliquot.wire.base import Shape


class ForeignUse(Shape):
    """A process that Aliquot did not start and that holds memory of the device."""

    pid: int
    user: str
    mib: int


class DeviceUse(Shape):
    """What was measured. Of a simulated device nothing is measured, so there is none of this."""

    utilisation_percent: int | None = None
    used_mib: int | None = None
    temperature_celsius: int | None = None
    power_watts: int | None = None


class DeviceHolder(Shape):
    """A pod that holds a share."""

    workload: str
    workload_name: str
    project: str
    pod: str
    milli_gpus: int
    mib: int
    is_ending: bool


class DeviceView(Shape):
    """A GPU and who holds it."""

    id: str
    node: str
    index: int
    model: str
    memory_mib: int
    is_simulated: bool
    guarantee: Guarantee
    guarantee_description: str
    withheld: str | None = Field(
        None, description="Why nothing new starts here: device-in-use, cordoned, lost, xid, not-offered."
    )
    withheld_description: str | None = None
    foreign: list[ForeignUse] = Field(default_factory=list)
    held_milli_gpus: int
    held_mib: int
    holders: list[DeviceHolder]
    use: DeviceUse | None = Field(None, description="None: not measured.")


class NodeView(Shape):
    """A machine."""

    id: str
    pool: str
    is_ready: bool
    is_cordoned: bool
    cpus: str
    memory: str
    held_cpus: str
    held_memory: str
    pods: int
    devices: int
    free_devices: int
    is_simulated: bool


class Cordon(Shape):
    """A device or node that takes nothing new, by whom and since when."""

    target: str
    actor: str
    since: AwareDatetime


class MapNode(Shape):
    """A node of the device map: its devices are `count` entries of the columns, from `first` on."""

    id: str
    pool: str
    rack: str | None = Field(None, description="Where it stands, if its labels say so.")
    is_ready: bool
    is_cordoned: bool
    first: int
    count: int


class DeviceMap(Shape):
    """All devices in columns, one entry each, for drawing. Much smaller than as many objects."""

    version: str = Field(description="Changes with the content; also the ETag.")
    time: AwareDatetime
    projects: list[str] = Field(description="Names, which `holders` points into.")
    models: list[str] = Field(description="Names, which `model` points into.")
    nodes: list[MapNode]
    model: list[int]
    held: list[int] = Field(description="Thousandths of the device.")
    use: list[int] = Field(description="Per cent; -1: not measured.")
    state: list[int] = Field(description="0 free, 1 held, 2 withheld, 3 lost.")
    holders: list[int] = Field(
        description="Triples, one after the other: a device, a project, and the thousandths that it holds there."
    )
