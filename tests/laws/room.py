"""What holds places and what is left of nodes and devices: the rules of placement in the plainest Python.

Written from the scheduling rules alone, and on purpose without anything of the engine: the laws are judged by it.
Everything is added up anew whenever it is asked for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from aliquot.core.model import (
    Affinity,
    Device,
    GpuRequest,
    MigProfile,
    Node,
    Place,
    Pod,
    PodRequest,
    PodState,
    Share,
    Sharing,
    Snapshot,
    Spread,
    Taint,
    Workload,
)


@dataclass(frozen=True)
class Hold:
    """One pod at one place."""

    workload: Workload
    pod: Pod
    node: str
    shares: tuple[Share, ...]


def held(snapshot: Snapshot, *states: PodState) -> list[Hold]:
    """All pods in these states, at their places."""
    return [
        Hold(workload, pod, pod.node or "", pod.shares)
        for workload in snapshot.workloads
        for pod in workload.pods
        if pod.state in states
    ]


def at_places(workload: Workload, places: Iterable[Place]) -> list[Hold]:
    """Pods of a workload at places that a plan or a promise names."""
    pods = {pod.id: pod for pod in workload.pods}
    return [Hold(workload, pods[place.pod], place.node, place.shares) for place in places if place.pod in pods]


class Room:
    """The nodes of a snapshot while these pods hold their places."""

    def __init__(self, snapshot: Snapshot, holds: Iterable[Hold] = ()) -> None:
        self.snapshot = snapshot
        self.nodes = {node.id: node for node in snapshot.nodes}
        self.levels = {one.name: one.levels for one in snapshot.topologies}
        self.on_node: dict[str, list[Hold]] = {id: [] for id in self.nodes}
        self.on_device: dict[str, list[tuple[Share, Hold]]] = {}
        for hold in holds:
            self.add(hold)

    def add(self, hold: Hold) -> None:
        """It holds its place."""
        self.on_node.setdefault(hold.node, []).append(hold)
        for share in hold.shares:
            self.on_device.setdefault(share.device, []).append((share, hold))

    def remove(self, hold: Hold) -> None:
        """It holds it no longer."""
        self.on_node[hold.node].remove(hold)
        for share in hold.shares:
            self.on_device[share.device].remove((share, hold))

    def holds(self) -> list[Hold]:
        """All that holds places."""
        return [hold for holds in self.on_node.values() for hold in holds]

    def used(self, device: str) -> list[Share]:
        """What is held of a device."""
        return [share for share, _ in self.on_device.get(device, ())]

    # Where a pod fits.

    def takes(self, node: Node, workload: Workload, pod: Pod) -> bool:
        """Whether the node lets it in: all but its devices and its gang."""
        request = pod.request
        if not is_usable(node) or pod.unmet:
            return False
        if node.pool not in (workload.pool, *workload.fallback_pools):
            return False
        return is_chosen(node, request) and self._has_amounts(node, request) and self.is_sociable(node, request)

    def _has_amounts(self, node: Node, request: PodRequest) -> bool:
        left = self.left_of(node)
        asked = {"cpu": request.milli_cpus, "memory": request.memory_bytes, "pods": 1, **dict(request.resources)}
        if any(amount > left.get(name, 0) for name, amount in asked.items() if amount):
            return False
        taken = {port for hold in self.on_node[node.id] for port in hold.pod.request.host_ports}
        return not taken & set(request.host_ports)

    def left_of(self, node: Node) -> dict[str, int]:
        """What is free of the node, by resource; negative where more is held than there is."""
        left = {"cpu": node.milli_cpus, "memory": node.memory_bytes, "pods": node.max_pods, **node.resources}
        left["cpu"] -= node.foreign.milli_cpus
        left["memory"] -= node.foreign.memory_bytes
        left["pods"] -= node.foreign_pods
        for hold in self.on_node[node.id]:
            left["cpu"] -= hold.pod.request.milli_cpus
            left["memory"] -= hold.pod.request.memory_bytes
            left["pods"] -= 1
            for name, amount in hold.pod.request.resources:
                left[name] = left.get(name, 0) - amount
        return left

    def choices(self, node: Node, request: PodRequest) -> Iterator[tuple[Share, ...]]:
        """Every way to take its shares of the node's devices; equal devices are told apart once."""
        if request.gpu is None:
            yield ()
            return
        offers = [(self._likeness(device), self.offers(device, request.gpu)) for device in node.devices]
        yield from _subsets([(key, shares) for key, shares in offers if shares], request.gpu.devices)

    def grants(self, node: Node, request: PodRequest, shares: Iterable[Share]) -> bool:
        """Whether these very shares can be had here."""
        devices = {device.id: device for device in node.devices}
        return request.gpu is None or all(one in self.offers(devices[one.device], request.gpu) for one in shares)

    def offers(self, device: Device, gpu: GpuRequest) -> list[Share]:
        """Every share that would serve this request on this device."""
        if device.withheld is not None or device.memory_mib <= 0 or device.memory_mib < gpu.min_device_mib:
            return []
        if gpu.models and device.model not in gpu.models:
            return []
        if gpu.profile is not None:
            return self._instances(device, gpu.profile)
        if device.instance is not None or device.profiles:
            return []
        share = share_of(gpu, device)
        if share is None:
            return []
        has_memory = sum(one.mib for one in self.used(device.id)) + share.mib <= device.memory_mib
        if not has_memory or self.compute_used(device.id) + gpu.compute > 1000:
            return []
        if gpu.is_whole:
            return [share] if not self.used(device.id) else []
        mode = self._mode_for(device, gpu)
        return [] if mode is None else [replace(share, sharing=mode if mode is Sharing.SM_SHARING else None)]

    def _instances(self, device: Device, name: str) -> list[Share]:
        used = self.used(device.id)
        if device.instance is not None:
            share = Share(device.id, charge_of(device.instance, device), device.memory_mib)
            return [share] if device.instance.name == name and not used else []
        profile = next((one for one in device.profiles if one.name == name), None)
        if profile is None:
            return []
        charge = charge_of(profile, device)
        options = [Share(device.id, charge, profile.memory_mib, start) for start in profile.starts]
        return [one for one in options if not instances_clash(device, [*self._cuts(device.id), (one, profile)])]

    def _cuts(self, device: str) -> list[tuple[Share, MigProfile]]:
        """The instances on a device in MIG mode."""
        known = {one.name: one for node in self.nodes.values() for at in node.devices for one in at.profiles}
        return [
            (share, known[hold.pod.request.gpu.profile])
            for share, hold in self.on_device.get(device, ())
            if hold.pod.request.gpu is not None and hold.pod.request.gpu.profile in known
        ]

    def modes(self, device: str) -> set[Sharing]:
        """The sharing modes in use on it: whole devices and instances are not shared."""
        return {
            share.sharing or Sharing.TIME_SLICING
            for share, hold in self.on_device.get(device, ())
            if (gpu := hold.pod.request.gpu) is not None and not gpu.is_whole and gpu.profile is None
        }

    def _mode_for(self, device: Device, gpu: GpuRequest) -> Sharing | None:
        """The mode in which a share would be there; None if it may not be."""
        there = self.modes(device.id) | ({device.sharing} if device.sharing else set())
        if gpu.sharing is not None and gpu.is_sharing_required:
            return gpu.sharing if there <= {gpu.sharing} else None
        if not there:
            return gpu.sharing or Sharing.TIME_SLICING
        return min(there) if len(there) == 1 else None

    def compute_used(self, device: str) -> int:
        """Milli-GPU of compute that is held of it."""
        gpus = [hold.pod.request.gpu for _, hold in self.on_device.get(device, ())]
        return sum(gpu.compute for gpu in gpus if gpu is not None and gpu.profile is None)

    def _likeness(self, device: Device) -> tuple[object, ...]:
        used = sorted((one.mib, one.start is None, one.start or 0) for one in self.used(device.id))
        fixed = (device.model, device.memory_mib, device.withheld, device.instance, device.profiles, device.slices)
        modes = tuple(sorted(self.modes(device.id)))
        return (*fixed, device.sharing, modes, self.compute_used(device.id), tuple(used))

    # Who else is where.

    def is_sociable(self, node: Node, request: PodRequest) -> bool:
        """Whether pods that are there already, and the pod itself, bear each other."""
        return (
            all(self._is_near(node, request, term) for term in request.affinity)
            and not any(self.meets(node, term, request.namespace) for term in request.anti_affinity)
            and not self._is_unwelcome(node, request)
            and all(self.is_even(node, request, spread) for spread in request.spread)
        )

    def _is_near(self, node: Node, request: PodRequest, term: Affinity) -> bool:
        if term.topology_key not in node.labels:
            return False
        if self.meets(node, term, request.namespace):
            return True
        here = [one for one in self.nodes.values() if one.pool == node.pool]
        is_first = not any(self.meets(one, term, request.namespace) for one in here)
        return is_first and is_labelled(request, term.labels)

    def meets(self, node: Node, term: Affinity, namespace: str) -> bool:
        """Whether a pod of the term is in the same domain as this node; a pool knows nothing of others."""
        value = node.labels.get(term.topology_key)
        if value is None:
            return False
        return any(
            hold.pod.request.namespace == namespace and is_labelled(hold.pod.request, term.labels)
            for other in self.nodes.values()
            if other.pool == node.pool and other.labels.get(term.topology_key) == value
            for hold in self.on_node[other.id]
        )

    def _is_unwelcome(self, node: Node, request: PodRequest) -> bool:
        return any(
            hold.pod.request.namespace == request.namespace
            and is_labelled(request, term.labels)
            and term.topology_key in node.labels
            and other.pool == node.pool
            and other.labels.get(term.topology_key) == node.labels[term.topology_key]
            for other in self.nodes.values()
            for hold in self.on_node[other.id]
            for term in hold.pod.request.anti_affinity
        )

    def is_even(self, node: Node, request: PodRequest, spread: Spread) -> bool:
        """Whether one more here stays within the skew."""
        if spread.topology_key not in node.labels:
            return False
        counts = self.spread_counts(request, spread, node.pool)
        own = 1 if is_labelled(request, spread.labels) else 0
        here = counts[node.labels[spread.topology_key]]
        return here + own - min(counts.values()) <= spread.max_skew

    def spread_counts(self, request: PodRequest, spread: Spread, pool: str) -> Counter[str]:
        """By value of the label, how many pods of the term are there, on nodes of the pool that the pod may choose."""
        counts: Counter[str] = Counter()
        for node in self.nodes.values():
            value = node.labels.get(spread.topology_key)
            if value is None or node.pool != pool or not is_selected(node, request):
                continue
            counts[value] += sum(
                hold.pod.request.namespace == request.namespace and is_labelled(hold.pod.request, spread.labels)
                for hold in self.on_node[node.id]
            )
        return counts

    # What is wrong.

    def overused(self) -> list[str]:
        """Devices and nodes of which more is held than there is, each with what is wrong."""
        wrong = []
        for node in self.nodes.values():
            wrong += [f"{name} of {node.id}" for name, left in sorted(self.left_of(node).items()) if left < 0]
            ports = [port for hold in self.on_node[node.id] for port in hold.pod.request.host_ports]
            wrong += [f"host ports of {node.id}"] if len(ports) > len(set(ports)) else []
            for device in node.devices:
                wrong += [f"{what} of {device.id}" for what in self._overused_of(device)]
        return wrong

    def _overused_of(self, device: Device) -> list[str]:
        used = self.used(device.id)
        wrong = []
        if sum(one.mib for one in used) > device.memory_mib:
            wrong.append("memory")
        if self.compute_used(device.id) > 1000:
            wrong.append("compute")
        if device.instance is not None and len(used) > 1:
            wrong.append("instance")
        is_cut_wrongly = instances_clash(device, self._cuts(device.id)) or any(one.start is None for one in used)
        if device.profiles and is_cut_wrongly:
            wrong.append("slices")
        if len(self.modes(device.id) | ({device.sharing} if device.sharing and self.modes(device.id) else set())) > 1:
            wrong.append("sharing mode")
        return wrong

    def domain(self, topology: str, level: str, node: str) -> tuple[str, ...] | None:
        """The domain that a node is in: the labels from the widest level down to this one."""
        levels = self.levels.get(topology, ())
        labels = self.nodes[node].labels if node in self.nodes else {}
        if level not in levels or any(one not in labels for one in levels):
            return None
        return tuple(labels[one] for one in levels[: levels.index(level) + 1])


def share_of(gpu: GpuRequest, device: Device) -> Share | None:
    """What one share by portion or memory is on an empty device; None if it is too small."""
    if gpu.mib is None:
        milli = gpu.milli or 0
        return Share(device.id, max(milli, gpu.compute), device.memory_mib * milli // 1000)
    if gpu.mib > device.memory_mib:
        return None
    by_memory = -(-1000 * gpu.mib // device.memory_mib)
    return Share(device.id, max(by_memory, gpu.compute), gpu.mib)


def charge_of(profile: MigProfile, device: Device) -> int:
    """What a MIG instance is charged."""
    return 1000 * profile.compute_slices // device.slices


def instances_clash(device: Device, cuts: Sequence[tuple[Share, MigProfile]]) -> bool:
    """Whether instances overlap, begin where they may not, or need more compute than there is."""
    taken: set[int] = set()
    for share, profile in cuts:
        if share.start is None or share.start not in profile.starts:
            return True
        slices = set(range(share.start, share.start + profile.memory_slices))
        if slices & taken:
            return True
        taken |= slices
    return sum(profile.compute_slices for _, profile in cuts) > device.slices


def is_usable(node: Node) -> bool:
    """Whether anything new may start there."""
    return node.is_ready and not node.is_cordoned and not node.is_drained


def is_chosen(node: Node, request: PodRequest) -> bool:
    """Whether the node is one that the pod selects and whose taints it bears."""
    return is_selected(node, request) and all(
        taint.effect == "PreferNoSchedule" or is_tolerated(taint, request) for taint in node.taints
    )


def is_selected(node: Node, request: PodRequest) -> bool:
    """Whether the pod's selectors name the node."""
    if request.nodes is not None and node.id not in request.nodes:
        return False
    return all(node.labels.get(key) in values for key, values in request.node_labels)


def is_tolerated(taint: Taint, request: PodRequest) -> bool:
    """Whether one of its tolerations is for this taint."""
    return any(
        one.key in ("", taint.key) and one.value in (None, taint.value) and one.effect in (None, taint.effect)
        for one in request.tolerations
    )


def is_labelled(request: PodRequest, labels: tuple[tuple[str, str], ...]) -> bool:
    """Whether the pod has these labels."""
    return set(labels) <= set(request.labels)


def _subsets(offers: list[tuple[object, list[Share]]], count: int) -> Iterator[tuple[Share, ...]]:
    if count == 0:
        yield ()
        return
    tried: list[object] = []
    for index, (key, shares) in enumerate(offers):
        if key in tried:
            continue
        tried.append(key)
        for share in shares:
            for rest in _subsets(offers[index + 1 :], count - 1):
                yield (share, *rest)
