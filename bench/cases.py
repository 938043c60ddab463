"""The work on which the engine is measured: the shapes that lie beside the checkout, and shapes of our own."""

import importlib.util
import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

from aliquot.core import model
from aliquot.core.model import Claim, Device, Node, Pod, PodRequest, PodState, PoolTerms, Queue, Snapshot, Workload
from aliquot.wire.scenario import reader

SHARED = pathlib.Path(os.environ.get("ALIQUOT_SHARED", pathlib.Path(__file__).parents[2] / "shared")) / "bench"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEVICES = 8
PROJECTS = 20
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement: a cycle on a snapshot. With `after` it is the cycle on a world that is kept, after a change.
    With `asked` it is the explanation of a workload."""

    snapshot: Snapshot
    policy: model.Policy
    now: datetime
    after: Snapshot | None = None
    asked: str | None = None


def shared_shapes() -> ModuleType | None:
    """The module that writes the shapes; None where it is not there."""
    path = SHARED / "shapes.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("shapes", path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(name: str, nodes: int) -> Case:
    """The case of this name for so many nodes."""
    if name in OWN:
        return OWN[name](nodes)
    shapes = shared_shapes()
    if shapes is None:
        raise SystemExit(f"bench: no {SHARED / 'shapes.py'}, so no shape {name}")
    return _read(shapes.shape(name, nodes))


def gang_in_a_rack(nodes: int) -> Case:
    """The gang of 512 pods, which rather stays in as few racks as can be."""
    shapes = shared_shapes()
    if shapes is None:
        raise SystemExit(f"bench: no {SHARED / 'shapes.py'}, so no gang-512")
    data: dict[str, Any] = shapes.shape("gang-512", nodes)  # Any: JSON
    data["topologies"] = [{"name": "racks", "levels": ["rack"]}]
    data["workloads"][0]["topology"] = {"name": "racks", "preferred": "rack"}
    return _read(data)


def steady(nodes: int) -> Case:
    """A full cluster of 30 pods on each node; then one job ends, and one is submitted."""
    return _changed(_full(nodes, waiting=0))


def steady_and_wanted(nodes: int) -> Case:
    """The same where two more pods for each node wait, in projects that all have what they are due."""
    return _changed(_full(nodes, waiting=2))


def arrivals(nodes: int) -> Case:
    """Nine in ten devices are held; then jobs for all others are submitted at once."""
    before = _full(nodes, waiting=0, cpu_pods=0)
    leaving = nodes * DEVICES // 10
    kept = before.workloads[leaving:]
    new = [_waiting(number) for number in range(leaving)]
    return Case(replace(before, workloads=(*kept, *new)), model.Policy(), NOW)


def explain(nodes: int) -> Case:
    """A full cluster where as many wait as run; why does one of them wait?"""
    snapshot = _full(nodes, waiting=DEVICES, cpu_pods=0)
    return Case(snapshot, model.Policy(), NOW, asked=f"waiting-{nodes * DEVICES // 2}")


OWN: dict[str, Callable[[int], Case]] = {
    "gang-512-rack": gang_in_a_rack,
    "steady": steady,
    "steady-wanted": steady_and_wanted,
    "arrivals": arrivals,
    "explain": explain,
}


def _read(data: object) -> Case:
    scenario = reader.parse(data)
    return Case(scenario.snapshot, scenario.policy, scenario.now)


def _changed(before: Snapshot) -> Case:
    """A job ends, and another is submitted."""
    after = replace(before, workloads=(*before.workloads[1:], _waiting(10**6)))
    return Case(before, model.Policy(), NOW, after=after)


def _full(nodes: int, *, waiting: int, cpu_pods: int = 22) -> Snapshot:
    machines = tuple(_node(number) for number in range(nodes))
    devices = nodes * DEVICES
    queues = [_queue("all", None, devices)]
    queues += [_queue(f"project-{number}", "all", devices // PROJECTS) for number in range(PROJECTS)]
    work = [_running(number, nodes) for number in range(nodes * DEVICES)]
    work += [_service(number, nodes) for number in range(nodes * cpu_pods)]
    work += [_waiting(number) for number in range(nodes * waiting)]
    return Snapshot(machines, tuple(queues), tuple(work))


def _node(number: int) -> Node:
    devices = tuple(Device(f"node-{number}-gpu-{index}", index, "H100", 81_008) for index in range(DEVICES))
    return Node(f"node-{number}", 192_000, 2048 * GIB, devices, labels={"rack": f"rack-{number // 16}"})


def _queue(name: str, parent: str | None, devices: int) -> Queue:
    terms = PoolTerms(gpu=Claim(devices * 1000))
    return Queue(name, name, NOW - timedelta(days=30), parent, {model.DEFAULT_POOL: terms})


_GPU = PodRequest(model.GpuRequest(), 8_000, 64 * GIB)
_CPU = PodRequest(None, 1_000, 4 * GIB)


def _running(number: int, nodes: int) -> Workload:
    """A job that holds a device; jobs are dealt round the nodes."""
    node = number % nodes
    share = model.Share(f"node-{node}-gpu-{number // nodes}", 1000, 81_008)
    pod = Pod(f"running-{number}-0", 0, _GPU, PodState.RUNNING, f"node-{node}", (share,))
    return _job(f"running-{number}", pod, number, started=NOW - timedelta(hours=1))


def _service(number: int, nodes: int) -> Workload:
    """A pod without a GPU that runs."""
    pod = Pod(f"service-{number}-0", 0, _CPU, PodState.RUNNING, f"node-{number % nodes}")
    return _job(f"service-{number}", pod, number, started=NOW - timedelta(hours=1))


def _waiting(number: int) -> Workload:
    """A job that asks for a device."""
    return _job(f"waiting-{number}", Pod(f"waiting-{number}-0", 0, _GPU), number, started=None)


def _job(id: str, pod: Pod, number: int, *, started: datetime | None) -> Workload:
    created = NOW - timedelta(days=1) + timedelta(milliseconds=number)
    return Workload(id, id, f"project-{number % PROJECTS}", created, (pod,), 1, started=started)
