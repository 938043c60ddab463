"""Gives the pods that hold places their devices: those that the file names, else any that are free.

Promises: no device and no node holds more than it offers; the same symbol on a node is the same device, and two symbols
are two. What does not fit is refused with the pod.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aliquot.core import fitting, mig
from aliquot.core.model import WHOLE_DEVICE_MILLI, Device, GpuRequest, Node, PodRequest, Share, Sharing
from aliquot.wire.scenario import fields
from aliquot.wire.scenario.nodes import NodePart
from aliquot.wire.scenario.pods import PodPart


def assign(parts: Iterable[PodPart], desks: "Mapping[str, Desk]") -> dict[str, tuple[Share, ...]]:
    """The shares of every pod that holds a place, by its id. Pods that name their devices choose first."""
    by_node: dict[str, list[PodPart]] = {}
    for part in parts:
        if part.pod.node is not None:
            by_node.setdefault(part.pod.node, []).append(part)
    found: dict[str, tuple[Share, ...]] = {}
    for name, held in by_node.items():
        desk = fields.find(name, desks, f"{held[0].path}.node", noun="node")
        for part in held:
            desk.seat(part)
        for part in sorted(held, key=lambda part: part.devices is None):
            if part.pod.request.gpu is not None:
                found[part.pod.id] = desk.shares(part.pod.request.gpu, part)
            elif part.devices is not None:
                fields.refuse(f"{part.path}.devices", "the pod asks for no GPU")
    return found


@dataclass(slots=True)
class Use:
    """What is taken of one device. `name`: the symbol by which the file knows it."""

    device: Device
    mib: int = 0
    compute: int = 0
    slices: int = 0
    sharers: int = 0
    mode: Sharing | None = None
    name: str | None = None

    def share(self, gpu: GpuRequest, start: int | None) -> Share | None:
        """A share of it, if there is room."""
        share = fitting.share_of(gpu, self.device)
        if share is None:
            return None
        if gpu.profile is not None and self.device.instance is None:
            return self._instance(gpu.profile, share, start)
        if self.device.profiles or (self.device.instance is not None) != (gpu.profile is not None):
            return None
        takes_all = gpu.is_whole or gpu.profile is not None
        if takes_all and self.sharers:
            return None
        if self.mib + share.mib > self.device.memory_mib or self.compute + gpu.compute > WHOLE_DEVICE_MILLI:
            return None
        mode = None if takes_all else self._mode(gpu)
        if mode is not None and self.mode not in {None, mode}:
            return None
        return Share(share.device, share.milli, share.mib, None, mode if mode is Sharing.SM_SHARING else None)

    def take(self, gpu: GpuRequest, share: Share) -> None:
        """Enter a share."""
        self.sharers += 1
        if share.start is not None:
            self.slices |= self._mask(gpu.profile or "", share.start)
            return
        takes_all = gpu.is_whole or gpu.profile is not None
        self.mib += share.mib
        self.compute += WHOLE_DEVICE_MILLI if takes_all else gpu.compute
        if not takes_all:
            self.mode = share.sharing or Sharing.TIME_SLICING

    def _mode(self, gpu: GpuRequest) -> Sharing:
        if gpu.sharing is not None and gpu.is_sharing_required:
            return gpu.sharing
        return self.mode or self.device.sharing or gpu.sharing or Sharing.TIME_SLICING

    def _instance(self, profile: str, share: Share, start: int | None) -> Share | None:
        made = next(one for one in self.device.profiles if one.name == profile)
        if start is None:
            start = mig.start_for(made, self.slices, self.device.profiles)
        if start is None or start not in made.starts or mig.mask(made, start) & self.slices:
            return None
        return Share(share.device, share.milli, share.mib, start)

    def _mask(self, profile: str, start: int) -> int:
        return mig.mask(next(one for one in self.device.profiles if one.name == profile), start)


@dataclass(slots=True)
class Room:
    """CPU, memory, places for pods and other resources of a node that are left."""

    milli_cpus: int
    memory_bytes: int
    pods: int
    resources: dict[str, int]
    ports: set[int] = field(default_factory=set)


class Desk:
    """Seats the pods of one node."""

    def __init__(self, part: NodePart) -> None:
        self._node: Node = part.node
        self._names = part.names
        self._uses = [Use(device) for device in part.node.devices]
        node = part.node
        self._room = Room(
            node.milli_cpus - node.foreign.milli_cpus,
            node.memory_bytes - node.foreign.memory_bytes,
            node.max_pods - node.foreign_pods,
            dict(node.resources),
        )

    def seat(self, part: PodPart) -> None:
        """Take CPU, memory and the rest for a pod, or refuse it."""
        request, room = part.pod.request, self._room
        room.milli_cpus -= request.milli_cpus
        room.memory_bytes -= request.memory_bytes
        room.pods -= 1
        for name, amount in request.resources:
            room.resources[name] = room.resources.get(name, 0) - amount
        lacking = self._lacking(request)
        room.ports.update(request.host_ports)
        if lacking:
            fields.refuse(f"{part.path}.node", f"node {self._node.id!r} has no {lacking} left for this pod")

    def shares(self, gpu: GpuRequest, part: PodPart) -> tuple[Share, ...]:
        """The shares of a pod, taken."""
        starts = part.starts or ()
        if part.starts is not None and (gpu.profile is None or len(starts) != gpu.devices):
            fields.refuse(f"{part.path}.starts", f"one for each of {gpu.devices} MIG instances is needed")
        if part.devices is not None:
            uses = self._named(gpu, part, part.devices)
            found = self._take(gpu, uses, starts)
            if found is None:
                fields.refuse(f"{part.path}.devices", f"node {self._node.id!r} has no room there for this pod")
            return found
        found = self._take(gpu, self._any(gpu, starts), starts)
        if found is None:
            fields.refuse(f"{part.path}.node", f"node {self._node.id!r} has no device left for this pod")
        return found

    def promised(self, gpu: GpuRequest, part: PodPart) -> tuple[Share, ...]:
        """The shares of a place that is promised: of the devices that are named, whoever holds them now, else of free
        ones, which are taken."""
        if part.devices is None:
            return self.shares(gpu, part)
        uses = self._named(gpu, part, part.devices)
        found = [share for use in uses if (share := Use(use.device).share(gpu, None)) is not None]
        if len(found) < gpu.devices:
            fields.refuse(f"{part.path}.devices", "the pod does not fit there, even when nothing else is there")
        if part.starts is None:
            return tuple(found)
        if gpu.profile is None or len(part.starts) != len(found):
            fields.refuse(f"{part.path}.starts", f"one for each of {gpu.devices} MIG instances is needed")
        return tuple(replace(share, start=start) for share, start in zip(found, part.starts, strict=True))

    def _lacking(self, request: PodRequest) -> str:
        room = self._room
        if room.milli_cpus < 0:
            return "CPU"
        if room.memory_bytes < 0:
            return "memory"
        if room.pods < 0:
            return "place for a pod"
        if room.ports & set(request.host_ports):
            return "free host port"
        return next((name for name, amount in room.resources.items() if amount < 0), "")

    def _named(self, gpu: GpuRequest, part: PodPart, names: Sequence[str]) -> list[Use]:
        is_mig = any(use.device.profiles for use in self._uses)
        if len(names) != gpu.devices and not is_mig:
            fields.refuse(f"{part.path}.devices", f"names {len(names)} devices; the pod holds {gpu.devices}")
        found: list[Use] = []
        for index, name in enumerate(names):
            use = self._use(name, gpu)
            if use is None:
                path = f"{part.path}.devices[{index}]"
                fields.refuse(path, f"node {self._node.id!r} has no device left to be {name!r}")
            found.append(use)
        return found * gpu.devices if is_mig and len(found) == 1 else found

    def _use(self, name: str, gpu: GpuRequest) -> Use | None:
        if name in self._names:
            return self._uses[self._names[name]]
        known = next((use for use in self._uses if use.name == name), None)
        if known is not None:
            return known
        for use in self._uses:
            if use.name is None and not use.sharers and not self._names and use.share(gpu, None) is not None:
                use.name = name
                return use
        return None

    def _any(self, gpu: GpuRequest, starts: Sequence[int]) -> list[Use]:
        """Free devices first, so that nothing is shared that the file does not say; then those with room."""
        start = starts[0] if starts else None
        fitting_uses = [use for use in self._uses if use.share(gpu, start) is not None]
        fitting_uses.sort(key=lambda use: (bool(use.sharers) and not use.device.profiles, use.name is not None))
        if gpu.profile is not None and len(fitting_uses) < gpu.devices:
            return [use for use in fitting_uses for _ in range(gpu.devices)]
        return fitting_uses[: gpu.devices]

    def _take(self, gpu: GpuRequest, uses: Sequence[Use], starts: Sequence[int]) -> tuple[Share, ...] | None:
        found: list[Share] = []
        for index, use in enumerate(uses):
            if len(found) == gpu.devices:
                break
            share = use.share(gpu, starts[index] if starts else None)
            if share is None and len(uses) == gpu.devices:
                return None
            if share is not None:
                use.take(gpu, share)
                found.append(share)
        return tuple(found) if len(found) == gpu.devices else None
