"""What stands at the first instant besides nodes, queues and workloads: promises, budgets, what was asked lately."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from aliquot.core.model import Asked, Budget, Place, Pod, Policy, Promise, Snapshot
from aliquot.wire.scenario import fields, pods
from aliquot.wire.scenario.fields import Fields, Keys, Version
from aliquot.wire.scenario.places import Desk

PROMISE = fields.keys("", "workload places made due expires waitsFor mayEvict")
PLACE = fields.keys("", "pod node devices starts")
BUDGET = fields.keys("", "name pods allowed")
RECENT = Keys(frozenset(), pods.REQUEST | {"count", "namespace"})


@dataclass(frozen=True, slots=True)
class Scene:
    """What a promise may name: all that was read before it."""

    version: Version
    now: datetime
    snapshot: Snapshot
    policy: Policy
    desks: Mapping[str, Desk]


def read_promises(top: Fields, scene: Scene) -> tuple[Promise, ...]:
    """Promises that were made before the first cycle; one that waits for no pod is booked capacity."""
    workloads = {workload.id: {pod.id: pod for pod in workload.pods} for workload in scene.snapshot.workloads}
    everyone = {id: pod for own in workloads.values() for id, pod in own.items()}
    found: dict[str, Promise] = {}
    for data, path in top.items("promises"):
        one = Fields(data, path, PROMISE, scene.version)
        one.needs("workload", "places")
        own = fields.find(one.name("workload"), workloads, one.at("workload"), noun="workload")
        if one.name("workload") in found:
            fields.refuse(one.at("workload"), "has two promises")
        waits_for = one.words("waitsFor")
        for index, pod in enumerate(waits_for):
            fields.check_name(pod, everyone, f"{one.at('waitsFor')}[{index}]", noun="pod")
        made = scene.now + one.past("made")
        due = scene.now + one.offset("due", scene.policy.release_grace)
        expires = scene.now + one.offset("expires", due - scene.now + (due - made))
        for key, instant, before in (("due", due, made), ("expires", expires, due)):
            if instant < before:
                fields.refuse(one.at(key), "is earlier than it can be", valid=("made <= due <= expires",))
        found[one.name("workload")] = Promise(
            workload=one.name("workload"),
            places=tuple(_place(data, path, own, scene=scene) for data, path in one.items("places")),
            made=made,
            due=due,
            expires=expires,
            waits_for=waits_for,
            may_evict=one.flag("mayEvict", default=True),
        )
    return tuple(found.values())


def read_budgets(top: Fields, version: Version, *, snapshot: Snapshot) -> tuple[Budget, ...]:
    """Disruption budgets."""
    known = {pod.id for workload in snapshot.workloads for pod in workload.pods}
    found: dict[str, Budget] = {}
    for data, path in top.items("budgets"):
        one = Fields(data, path, BUDGET, version)
        one.needs("pods", "allowed")
        name, members = one.name(), one.words("pods")
        if name in found:
            fields.refuse_twin(one.at("name"), "budgets", name)
        for index, pod in enumerate(members):
            fields.check_name(pod, known, f"{one.at('pods')}[{index}]", noun="pod")
        found[name] = Budget(name, frozenset(members), one.whole("allowed", 0))
    return tuple(found.values())


def read_recent(top: Fields, version: Version, *, requests: pods.Requests) -> tuple[Asked, ...]:
    """What was asked lately."""
    found: list[Asked] = []
    for data, path in top.items("recent"):
        one = Fields(data, path, RECENT, version)
        found.append(Asked(requests.read(one, one.text("namespace", "default")), one.whole("count", 1, least=1)))
    return tuple(found)


def _place(data: object, path: str, own: Mapping[str, Pod], *, scene: Scene) -> Place:
    one = Fields(data, path, PLACE, scene.version)
    one.needs("pod", "node")
    pod = fields.find(one.name("pod"), own, one.at("pod"), noun="pod of this workload")
    desk = fields.find(one.name("node"), scene.desks, one.at("node"), noun="node")
    part = pods.PodPart(pod, path, one.words("devices") if one.has("devices") else None, pods.starts_of(one))
    if pod.request.gpu is None:
        if part.devices is not None:
            fields.refuse(one.at("devices"), "the pod asks for no GPU")
        return Place(pod.id, one.name("node"))
    return Place(pod.id, one.name("node"), desk.promised(pod.request.gpu, part))
