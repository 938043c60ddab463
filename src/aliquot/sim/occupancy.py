"""What pods hold of the nodes and devices of a simulated cluster, kept pod by pod.

Promises: nothing is ever given out twice: `take` raises IllegalPlan where a node or a device has less than is held.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from aliquot.core.errors import AliquotError
from aliquot.core.model import WHOLE_DEVICE_MILLI, Amounts, Node, Pod


class IllegalPlan(AliquotError):
    """A plan asked for something that no cluster can do: a device given out twice, a pod that runs already."""

    code = "illegal-plan"


@dataclass(slots=True)
class Held:
    """What is held of one node; of its devices by id."""

    milli_cpus: int = 0
    memory_bytes: int = 0
    pods: int = 0
    mib: dict[str, int] = field(default_factory=dict)
    compute: dict[str, int] = field(default_factory=dict)
    milli: dict[str, int] = field(default_factory=dict)
    """What is charged for it, which is what is missing for others."""


class Occupancy:
    """By node, what is held there; and what is held in all."""

    def __init__(self) -> None:
        self._nodes: dict[str, Held] = {}
        self.milli_gpus = 0
        self.milli_cpus = 0
        self.memory_bytes = 0

    def twin(self) -> "Occupancy":
        """The same again, which goes its own way."""
        other = Occupancy()
        other.milli_gpus, other.milli_cpus = self.milli_gpus, self.milli_cpus
        other.memory_bytes = self.memory_bytes
        for id, held in self._nodes.items():
            devices = (dict(held.mib), dict(held.compute), dict(held.milli))
            other._nodes[id] = Held(held.milli_cpus, held.memory_bytes, held.pods, *devices)
        return other

    @property
    def held(self) -> Amounts:
        """What is held in all."""
        return Amounts(self.milli_gpus, self.milli_cpus, self.memory_bytes)

    def on(self, node_id: str) -> Held:
        """What is held on a node."""
        held = self._nodes.get(node_id)
        if held is None:
            held = self._nodes[node_id] = Held()
        return held

    def take(self, pod: Pod, node: Node) -> None:
        """A pod starts on a node. Raises IllegalPlan if it has no such devices, or not so much."""
        held = self.on(node.id)
        self._count(pod, held, sign=1)
        known = {device.id for device in node.devices}
        if stray := {share.device for share in pod.shares} - known:
            raise IllegalPlan(f"{node.id} has no {', '.join(sorted(stray))}")
        _check_node(node, held)
        _check_devices(node, held, {share.device for share in pod.shares})

    def give(self, pod: Pod, node_id: str) -> None:
        """A pod is gone from a node."""
        self._count(pod, self.on(node_id), sign=-1)

    def _count(self, pod: Pod, held: Held, *, sign: int) -> None:
        gpu = pod.request.gpu
        held.milli_cpus += sign * pod.request.milli_cpus
        held.memory_bytes += sign * pod.request.memory_bytes
        self.milli_cpus += sign * pod.request.milli_cpus
        self.memory_bytes += sign * pod.request.memory_bytes
        held.pods += sign
        for share in pod.shares:
            self.milli_gpus += sign * share.milli
            held.mib[share.device] = held.mib.get(share.device, 0) + sign * share.mib
            held.milli[share.device] = held.milli.get(share.device, 0) + sign * share.milli
            compute = 0 if gpu is None else gpu.compute
            held.compute[share.device] = held.compute.get(share.device, 0) + sign * compute


def _check_node(node: Node, held: Held) -> None:
    if held.milli_cpus > node.milli_cpus or held.memory_bytes > node.memory_bytes or held.pods > node.max_pods:
        amounts = f"{held.milli_cpus} milli-CPU, {held.memory_bytes} bytes, {held.pods} pods"
        raise IllegalPlan(f"{node.id} is over-used: {amounts}")


def _check_devices(node: Node, held: Held, devices: Iterable[str]) -> None:
    offered = {device.id: device.memory_mib for device in node.devices}
    for id in sorted(devices):
        mib, compute = held.mib[id], held.compute[id]
        if mib > offered[id] or compute > WHOLE_DEVICE_MILLI:
            raise IllegalPlan(f"{id} offers {offered[id]} MiB, and {mib} MiB ({compute} milli) are held")
