"""Which nodes and devices a pod may use whatever is free there: taints, selectors, models, MIG.

Pure questions about one node or one device and one request. Taints and tolerations mean what they mean in Kubernetes.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from aliquot.core.model import Device, GpuRequest, Node, PodRequest, Taint, Toleration

Refusal = Literal["taint", "selector"]


def refusal(node: Node, request: PodRequest) -> Refusal | None:
    """What keeps pods with this request off the node, or None."""
    if node.taints and untolerated(node, request):
        return "taint"
    return None if is_selected(node, request.nodes, request.node_labels) else "selector"


def is_selected(node: Node, nodes: Collection[str] | None, labels: Sequence[tuple[str, Collection[str]]]) -> bool:
    """Whether a node is among `PodRequest.nodes` and has one of the values of each of `PodRequest.node_labels`."""
    if nodes is not None and node.id not in nodes:
        return False
    if not labels:
        return True
    return all(node.labels.get(key) in values for key, values in labels)


def preference(node: Node, request: PodRequest) -> int:
    """How many taints would rather keep it off."""
    return len(_untolerated(node, request, ("PreferNoSchedule",))) if node.taints else 0


def describe(node: Node, request: PodRequest) -> str:
    """What keeps it off this node, as a few words."""
    taints = untolerated(node, request)
    if taints:
        return name_of(taints[0])
    if request.nodes is not None and node.id not in request.nodes:
        return f"node {' or '.join(sorted(request.nodes)) or 'none'}"
    for key, values in request.node_labels:
        if node.labels.get(key) not in values:
            return f"{key} is {' or '.join(sorted(values))}"
    return ""


def untolerated(node: Node, request: PodRequest) -> list[Taint]:
    """The taints that keep it off this node."""
    return _untolerated(node, request, ("NoSchedule", "NoExecute"))


def name_of(taint: Taint) -> str:
    """`key=value:effect`, as it is written."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def suits(device: Device, gpu: GpuRequest) -> bool:
    """Whether the device is of a kind that the request may use."""
    if gpu.models and device.model not in gpu.models:
        return False
    if gpu.min_device_mib and device.memory_mib < gpu.min_device_mib:
        return False
    if device.instance is not None:
        return gpu.profile == device.instance.name
    if device.profiles:
        return any(profile.name == gpu.profile for profile in device.profiles)
    return gpu.profile is None


def _untolerated(node: Node, request: PodRequest, effects: tuple[str, ...]) -> list[Taint]:
    return [
        taint
        for taint in node.taints
        if taint.effect in effects and not any(_tolerates(one, taint) for one in request.tolerations)
    ]


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key == "":
        return toleration.value is None
    return toleration.key == taint.key and toleration.value in (None, taint.value)
