"""Pods of a scenario: what each asks for, and the place that it holds, as the file names it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from aliquot.core import quantities
from aliquot.core.model import (
    WHOLE_DEVICE_MILLI,
    Affinity,
    GpuRequest,
    Pod,
    PodRequest,
    PodState,
    Sharing,
    Spread,
    Toleration,
)
from aliquot.wire.scenario import fields, mig, nodes
from aliquot.wire.scenario.fields import Fields, Version

POD = fields.keys(
    "name group priority state node gpu devices cpu memory nodes labels podAffinity podAntiAffinity",
    "tolerations selector spread hostPorts resources unmet releaseDue starts",
)
GPU = fields.keys(
    "portion memory mig devices",
    "compute memoryLimit computeLimit sharing sharingRequired models minMemory",
)
TOLERATION = fields.keys("", "key value effect")
SPREAD = fields.keys("", "labels topologyKey maxSkew")
_REQUEST = "gpu cpu memory nodes labels podAffinity podAntiAffinity tolerations selector spread hostPorts resources"
REQUEST = fields.keys("", _REQUEST).two
_PLAIN = frozenset({"name", "group", "priority", "state", "node", "gpu", "devices", "cpu", "memory"})
"""A pod with no other keys asks for GPU, CPU and memory alone; most of a large scenario are so."""

State = Literal["pending", "running", "releasing", "stuck-releasing", "succeeded", "failed"]
STATES: tuple[State, ...] = get_args(State)
_STATES: Mapping[State, PodState] = {
    "pending": PodState.PENDING,
    "running": PodState.RUNNING,
    "releasing": PodState.RELEASING,
    "stuck-releasing": PodState.RELEASING,
    "succeeded": PodState.SUCCEEDED,
    "failed": PodState.FAILED,
}
HOLDING = frozenset({PodState.RUNNING, PodState.RELEASING})
FORMS = ("1", "{portion: 0.5}", "{memory: 4096Mi}", "{mig: {1g.10gb: 1}}")
_MOST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class PodPart:
    """A pod without its shares; `devices` and `starts` are what the file says of the place that it holds."""

    pod: Pod
    path: str
    devices: tuple[str, ...] | None = None
    starts: tuple[int, ...] | None = None


@dataclass(slots=True)
class Requests:
    """Reads what pods ask for. Equal requests become one object, so that they are compared at once later."""

    version: Version
    nodes: Collection[str]
    _known: dict[PodRequest, PodRequest] = field(default_factory=dict)
    _plain: dict[tuple[str, str, str, str], PodRequest] = field(default_factory=dict)

    def read(self, one: Fields, namespace: str) -> PodRequest:
        """What a pod asks for."""
        if not one.data.keys() <= _PLAIN:
            request = self._read(one, namespace)
            return self._known.setdefault(request, request)
        key = (repr(one.data.get("gpu")), repr(one.data.get("cpu")), repr(one.data.get("memory")), namespace)
        found = self._plain.get(key)
        if found is None:
            request = self._read(one, namespace)
            found = self._plain[key] = self._known.setdefault(request, request)
        return found

    def _read(self, one: Fields, namespace: str) -> PodRequest:
        version = self.version
        allowed = one.words("nodes") if one.has("nodes") else None
        for index, name in enumerate(allowed or ()):
            fields.check_name(name, self.nodes, f"{one.at('nodes')}[{index}]", noun="node")
        return PodRequest(
            gpu=gpu(one, version),
            milli_cpus=one.milli("cpu"),
            memory_bytes=one.size("memory"),
            resources=tuple(
                sorted(
                    (name, amount)
                    for name, value in one.pairs("resources")
                    if (amount := fields.as_bytes(value, f"{one.at('resources')}.{name}"))
                )
            ),
            nodes=allowed,
            node_labels=_selector(one),
            tolerations=tuple(_toleration(data, path, version) for data, path in one.items("tolerations")),
            namespace=namespace,
            labels=one.labels(),
            affinity=_affinities(one, "podAffinity", version),
            anti_affinity=_affinities(one, "podAntiAffinity", version),
            spread=tuple(_spread(data, path, version) for data, path in one.items("spread")),
            host_ports=tuple(sorted(_port(data, path) for data, path in one.items("hostPorts"))),
        )


def read(one: Fields, index: int, *, request: PodRequest, now: datetime) -> PodPart:
    """One pod. What it holds is worked out later, node by node."""
    state = one.choice("state", STATES, "pending")
    holds = _STATES[state] in HOLDING
    if holds and not one.has("node"):
        fields.refuse(one.at("node"), f"is missing: a pod that is {state} holds a place")
    if not holds:
        for key in ("node", "devices", "starts"):
            if one.has(key):
                fields.refuse(one.at(key), f"a pod that is {state} holds no place", valid=("running", "releasing"))
    due = None
    if one.has("releaseDue"):
        if state != "releasing":
            fields.refuse(one.at("releaseDue"), f"a pod that is {state} is not told to end", valid=("releasing",))
        due = now + one.span("releaseDue")
    priority = one.data.get("priority")
    pod = Pod(
        id=one.name(),
        index=index,
        request=request,
        state=_STATES[state],
        node=one.name("node") if holds else None,
        release_due=due,
        group=one.text("group"),
        priority=0 if priority is None else fields.as_whole(priority, one.at("priority"), least=-(2**31)),
        is_stuck=state == "stuck-releasing",
        unmet=one.text("unmet"),
    )
    return PodPart(pod, one.path, one.words("devices") if one.has("devices") else None, starts_of(one))


def starts_of(one: Fields) -> tuple[int, ...] | None:
    """The memory slices at which MIG instances begin; None if they are not given."""
    return tuple(fields.as_whole(data, path) for data, path in one.items("starts")) if one.has("starts") else None


def gpu(one: Fields, version: Version) -> GpuRequest | None:
    """What `gpu` asks for; None for nothing."""
    value, path = one.data.get("gpu"), one.at("gpu")
    if value is None or value == 0:
        return None
    if type(value) is int:
        if not 0 < value <= nodes.MOST_DEVICES:
            fields.refuse(path, f"{value} is not a number of devices", valid=("0", f"up to {nodes.MOST_DEVICES}"))
        return GpuRequest(devices=value)
    if type(value) in {str, float} and version > 1:
        return quantities.parse_gpu(str(value), path)
    if type(value) is not dict:
        fields.refuse(path, f"{fields.shown(value)} is not a request; a share is an object", valid=FORMS)
    return _shares(Fields(value, path, GPU, version))


def _shares(one: Fields) -> GpuRequest:
    kinds = [key for key in ("portion", "memory", "mig") if one.has(key)]
    if len(kinds) > 1:
        fields.refuse(one.path, f"{' and '.join(kinds)} exclude each other", valid=FORMS)
    devices = one.whole("devices", 1, least=1)
    milli: int | None = WHOLE_DEVICE_MILLI
    mib = profile = None
    if kinds == ["portion"]:
        milli = one.milli("portion")
        if not 0 < milli <= WHOLE_DEVICE_MILLI:
            fields.refuse(one.at("portion"), "a portion is above 0 and at most 1", valid=("0.5",))
    elif kinds == ["memory"]:
        milli, mib = None, one.mib("memory")
        if not mib:
            fields.refuse(one.at("memory"), "asks for no memory", valid=("4096Mi",))
    elif kinds == ["mig"]:
        milli, (profile, devices) = None, _instances(one)
    elif not one.data.keys() - {"devices"}:
        fields.refuse(one.path, "says not what of each device", valid=FORMS)
    return GpuRequest(
        devices=devices,
        milli=milli,
        mib=mib,
        profile=profile,
        compute_milli=_portion(one, "compute"),
        memory_limit_mib=one.mib("memoryLimit") if one.has("memoryLimit") else None,
        compute_limit_milli=_portion(one, "computeLimit"),
        sharing=one.choice("sharing", tuple(Sharing), Sharing.TIME_SLICING) if one.has("sharing") else None,
        is_sharing_required=one.flag("sharingRequired", default=False),
        models=one.words("models"),
        min_device_mib=one.mib("minMemory"),
    )


def _portion(one: Fields, key: str) -> int | None:
    if not one.has(key):
        return None
    milli = one.milli(key)
    if milli > WHOLE_DEVICE_MILLI:
        fields.refuse(one.at(key), "is more than a device has", valid=("0 to 1",))
    return milli


def _instances(one: Fields) -> tuple[str, int]:
    asked = [(name, fields.as_whole(value, f"{one.at('mig')}.{name}")) for name, value in one.pairs("mig")]
    if len(asked) != 1 or not asked[0][1]:
        fields.refuse(one.at("mig"), "a pod asks for instances of one profile", valid=("{1g.10gb: 1}",))
    if one.has("devices"):
        fields.refuse(one.at("devices"), "the number of instances stands beside the profile", valid=("{1g.10gb: 2}",))
    name, count = asked[0]
    mig.named(name, f"{one.at('mig')}.{name}")
    return name, count


def _selector(one: Fields) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: list[tuple[str, tuple[str, ...]]] = []
    for label, value in one.pairs("selector"):
        path = f"{one.at('selector')}.{label}"
        values = fields.as_names(value, path) if type(value) is list else (fields.as_text(value, path),)
        found.append((label, tuple(sorted(values))))
    return tuple(sorted(found))


def _toleration(data: object, path: str, version: Version) -> Toleration:
    one = Fields(data, path, TOLERATION, version)
    return Toleration(
        one.text("key"),
        one.text("value") if one.has("value") else None,
        one.choice("effect", nodes.EFFECTS, "NoSchedule") if one.has("effect") else None,
    )


def _affinities(one: Fields, key: str, version: Version) -> tuple[Affinity, ...]:
    value, path = one.data.get(key), one.at(key)
    if value is None:
        return ()
    if type(value) is not list:
        return (_affinity(value, path),)
    if version == 1:
        fields.refuse(path, "more than one is new in version 2 of the format", valid=("{app: x, topologyKey: rack}",))
    return tuple(_affinity(data, f"{path}[{index}]") for index, data in enumerate(value))


def _affinity(data: object, path: str) -> Affinity:
    known = fields.Keys(frozenset(data if type(data) is dict else ()))
    one = Fields(data, path, known, 1)
    one.needs("topologyKey")
    labels = tuple(
        sorted(
            (name, fields.as_text(value, f"{path}.{name}")) for name, value in one.data.items() if name != "topologyKey"
        )
    )
    if not labels:
        fields.refuse(path, "names no label of pods", valid=("{app: x, topologyKey: rack}",))
    return Affinity(labels, one.name("topologyKey"))


def _spread(data: object, path: str, version: Version) -> Spread:
    one = Fields(data, path, SPREAD, version)
    one.needs("labels", "topologyKey")
    labels = one.labels()
    if not labels:
        fields.refuse(one.at("labels"), "names no label of pods", valid=("{app: x}",))
    return Spread(labels, one.name("topologyKey"), one.whole("maxSkew", 1, least=1))


def _port(data: object, path: str) -> int:
    port = fields.as_whole(data, path, least=1)
    if port > _MOST_PORT:
        fields.refuse(path, f"{port} is not a port", valid=(f"1 to {_MOST_PORT}",))
    return port
