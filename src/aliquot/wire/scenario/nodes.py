"""Nodes and topologies of a scenario. A device is named `NODE/INDEX` everywhere outside the file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from aliquot.core.model import (
    DEFAULT_POOL,
    Amounts,
    Device,
    ForeignUse,
    MigProfile,
    Node,
    Sharing,
    Taint,
    Topology,
)
from aliquot.wire.scenario import fields, mig
from aliquot.wire.scenario.fields import Fields, Version

NODE = fields.keys(
    "name pool gpus gpuMemory gpuModel mig cpu memory pods labels taints",
    "ready trouble cordoned drained resources foreign anonymousDevices migProfiles sharing",
)
DEVICE = fields.keys("id memory", "model withheld foreign sharing migProfiles mig")
FOREIGN = fields.keys("", "gpu cpu memory pods")
PROCESS = fields.keys("", "pid user memory")
TAINT = fields.keys("key value effect")
PROFILE = fields.keys("", "name computeSlices memorySlices memory starts")
TOPOLOGY = fields.keys("name levels")

GPU_MEMORY = "81559Mi"
GPU_MODEL = "NVIDIA-H100-80GB-HBM3"
CPU = "64"
MEMORY = "512Gi"
PODS = 110
MOST_DEVICES = 1024
EFFECTS: tuple[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], ...] = (
    "NoSchedule",
    "PreferNoSchedule",
    "NoExecute",
)
WITHHELD = re.compile(r"[a-z][a-z-]*")


@dataclass(frozen=True, slots=True)
class NodePart:
    """A node, and the ids that the file gives to its devices."""

    node: Node
    names: Mapping[str, int]


def read_nodes(top: Fields, version: Version) -> dict[str, NodePart]:
    """All nodes by name."""
    found: dict[str, NodePart] = {}
    for data, path in top.items("nodes"):
        part = _node(Fields(data, path, NODE, version), version)
        if part.node.id in found:
            fields.refuse_twin(f"{path}.name", "nodes", part.node.id)
        found[part.node.id] = part
    return found


def read_topologies(top: Fields, version: Version) -> dict[str, Topology]:
    """All topologies by name."""
    found: dict[str, Topology] = {}
    for data, path in top.items("topologies"):
        one = Fields(data, path, TOPOLOGY, version)
        name, levels = one.name(), one.words("levels")
        if not levels:
            fields.refuse(one.at("levels"), "must name at least one node label")
        if name in found:
            fields.refuse_twin(one.at("name"), "topologies", name)
        found[name] = Topology(name, levels)
    return found


def _node(one: Fields, version: Version) -> NodePart:
    name = one.name()
    devices, names = _devices(one, name, version)
    foreign = Amounts()
    foreign_pods = 0
    if one.has("foreign"):
        other = Fields(one.data["foreign"], one.at("foreign"), FOREIGN, version)
        foreign = Amounts(other.milli("gpu"), other.milli("cpu"), other.size("memory"))
        foreign_pods = other.whole("pods", 0)
    return NodePart(
        Node(
            id=name,
            milli_cpus=one.milli("cpu", fields.as_milli(CPU, "cpu")),
            memory_bytes=one.size("memory", fields.as_bytes(MEMORY, "memory")),
            devices=devices,
            pool=one.text("pool", DEFAULT_POOL),
            max_pods=one.whole("pods", PODS),
            is_ready=one.flag("ready", default=True),
            is_cordoned=one.flag("cordoned", default=False),
            is_drained=one.flag("drained", default=False),
            trouble=one.text("trouble"),
            labels=dict(one.labels()),
            taints=tuple(_taint(data, path, version) for data, path in one.items("taints")),
            resources={
                key: fields.as_bytes(value, f"{one.path}.resources.{key}") for key, value in one.pairs("resources")
            },
            foreign=foreign,
            foreign_pods=foreign_pods,
            has_anonymous_devices=one.flag("anonymousDevices", default=False),
        ),
        names,
    )


def _taint(data: object, path: str, version: Version) -> Taint:
    one = Fields(data, path, TAINT, version)
    return Taint(one.name("key"), one.text("value"), one.choice("effect", EFFECTS, "NoSchedule"))


def _devices(one: Fields, node: str, version: Version) -> tuple[tuple[Device, ...], Mapping[str, int]]:
    model = one.text("gpuModel", GPU_MODEL)
    if one.data.get("mig") is not None:
        if one.has("gpus") and one.data["gpus"] not in (0, []):
            fields.refuse(one.at("mig"), "the node offers MIG instances, or whole devices (`gpus`), not both")
        return tuple(_instances(one, node, model)), {}
    plain = Device(
        id="",
        index=0,
        model=model,
        memory_mib=one.mib("gpuMemory", fields.as_mib(GPU_MEMORY, "gpuMemory")),
        sharing=_sharing(one),
        profiles=_profiles(one, version),
    )
    if plain.profiles:
        plain = replace(plain, slices=mig.slices_of(plain.profiles[0].name))
    gpus = one.data.get("gpus")
    if type(gpus) is list:
        return _listed(one, node, plain, version=version)
    count = one.whole("gpus", 0)
    if count > MOST_DEVICES:
        fields.refuse(one.at("gpus"), f"a node has at most {MOST_DEVICES} devices")
    return tuple(
        Device(
            f"{node}/{index}",
            index,
            model,
            plain.memory_mib,
            sharing=plain.sharing,
            profiles=plain.profiles,
            slices=plain.slices,
        )
        for index in range(count)
    ), {}


def _listed(one: Fields, node: str, plain: Device, *, version: Version) -> tuple[tuple[Device, ...], Mapping[str, int]]:
    found: list[Device] = []
    names: dict[str, int] = {}
    for index, (data, path) in enumerate(one.items("gpus")):
        each = Fields(data, path, DEVICE, version)
        name = each.text("id", str(index))
        if name in names:
            fields.refuse(each.at("id"), f"there are two devices {name!r} on this node", valid=fields.DIFFERENT)
        names[name] = index
        found.append(_device(each, replace(plain, id=f"{node}/{index}", index=index), version))
    return tuple(found), names


def _device(each: Fields, plain: Device, version: Version) -> Device:
    withheld = each.text("withheld") or None
    if withheld is not None and not WITHHELD.fullmatch(withheld):
        fields.refuse(
            each.at("withheld"),
            f"{fields.shown(withheld)} is not a code",
            valid=("device-in-use", "cordoned", "lost", "xid", "not-offered"),
        )
    profiles = _profiles(each, version) or plain.profiles
    instance = None
    if each.has("mig"):
        instance = mig.named(each.name("mig"), each.at("mig"))
    named = profiles[0].name if profiles else instance.name if instance else ""
    return replace(
        plain,
        model=each.text("model", plain.model),
        memory_mib=each.mib("memory", instance.memory_mib if instance else plain.memory_mib),
        withheld=withheld,
        foreign=tuple(_process(data, path, version) for data, path in each.items("foreign")),
        sharing=_sharing(each) or plain.sharing,
        profiles=profiles,
        instance=instance,
        slices=mig.slices_of(named) if named else plain.slices,
    )


def _process(data: object, path: str, version: Version) -> ForeignUse:
    one = Fields(data, path, PROCESS, version)
    return ForeignUse(one.whole("pid", 1, least=1), one.text("user", "someone"), one.mib("memory"))


def _sharing(one: Fields) -> Sharing | None:
    return one.choice("sharing", tuple(Sharing), Sharing.TIME_SLICING) if one.has("sharing") else None


def _instances(one: Fields, node: str, model: str) -> list[Device]:
    found: list[Device] = []
    for name, value in one.pairs("mig"):
        path = f"{one.at('mig')}.{name}"
        profile = mig.named(name, path)
        for _ in range(fields.as_whole(value, path)):
            index = len(found)
            found.append(
                Device(
                    f"{node}/{index}",
                    index,
                    model,
                    profile.memory_mib,
                    instance=profile,
                    slices=mig.slices_of(name),
                )
            )
    return found


def _profiles(one: Fields, version: Version) -> tuple[MigProfile, ...]:
    return tuple(_profile(data, path, version) for data, path in one.items("migProfiles"))


def _profile(data: object, path: str, version: Version) -> MigProfile:
    if type(data) is str:
        return mig.named(data, path)
    one = Fields(data, path, PROFILE, version)
    one.needs("name")
    known = mig.named(one.name(), one.at("name"))
    starts = tuple(fields.as_whole(start, place) for start, place in one.items("starts"))
    return MigProfile(
        known.name,
        one.whole("computeSlices", known.compute_slices, least=1),
        one.whole("memorySlices", known.memory_slices, least=1),
        one.mib("memory", known.memory_mib),
        starts or known.starts,
    )
