"""A scenario that is wrong is refused with file, line, field and what is valid, and nothing of it is used."""

import json

import pytest

from aliquot.core import errors
from aliquot.wire import documents
from aliquot.wire.scenario import reader

GOOD = """\
format: aliquot-scenario/2
name: one of each
now: 2026-01-01T00:00:00Z
mode: settle
policy: {gpuPlacement: binpack}
nodes:
- {name: n0, gpus: 2, cpu: "8", memory: 64Gi, labels: {rack: r1}, taints: [{key: k, effect: NoSchedule}]}
- {name: n1, mig: {1g.10gb: 2}}
topologies:
- {name: t0, levels: [zone, rack]}
queues:
- {name: top}
- {name: a, parent: top, gpu: {quota: 1, weight: 2, limit: 2}}
- {name: b, parent: top, usage: {gpu: 0.25}}
workloads:
- name: j0
  queue: a
  created: -60s
  started: -60s
  groups:
  - {name: lead, min: 1}
  - {name: rest, groups: [{name: x, min: 1}, {name: y, min: 0}]}
  pods:
  - {name: j0-0, group: lead, state: running, node: n0, gpu: 1, devices: [d0]}
  - {name: j0-1, group: x, state: running, node: n0, gpu: {portion: 0.5}, devices: [d1]}
- name: j1
  queue: b
  topology: {name: t0, required: rack}
  pods:
  - {name: j1-0, gpu: {mig: {1g.10gb: 1}}}
promises:
- {workload: j1, places: [{pod: j1-0, node: n1}], made: -10s, due: 10s, waitsFor: [j0-0]}
budgets:
- {name: all, pods: [j0-0], allowed: 0}
cycles:
- {at: 0s}
- {at: 60s, ended: {j0-1: failed}}
expect:
  workloads: {j1: {status: pending}}
"""

# What is replaced in the good one, by what, and how the refusal begins.
BAD = [
    # keys and kinds
    ("mode: settle", "mood: settle", "line 4: mood: there is no field `mood` here; did you mean `mode`?"),
    ("mode: settle", "mode: forever", "line 4: mode: 'forever' is not known"),
    ("aliquot-scenario/2", "aliquot-scenario/3", "line 1: format: 'aliquot-scenario/3' is not known; did you mean"),
    ("format: aliquot-scenario/2\n", "", "line 1: format: is missing"),
    ("aliquot-scenario/2", "aliquot-scenario/1", "line 31: promises: is new in version 2 of the format; begin"),
    ("now: 2026-01-01T00:00:00Z", "now: soon", "line 3: now: 'soon' is not an instant"),
    ("now: 2026-01-01T00:00:00Z", "now: 0001-01-01T00:00:00Z", "line 3: now: '0001-01-01 00:00:00+00:00' is far off"),
    ("mode: settle", "maxCycles: 0", "line 4: maxCycles: 0 is not a whole number from 1 on"),
    ("{gpuPlacement: binpack}", "{gpuPlacement: best}", "line 5: policy.gpuPlacement: 'best' is not known"),
    ("{gpuPlacement: binpack}", "{staleGangGrace: never}", "line 5: policy.staleGangGrace: 'never' is not a span of"),
    ("{gpuPlacement: binpack}", "[binpack]", "line 5: policy: must be an object, keys and values"),
    ("{gpuPlacement: binpack}", "{usageWeight: 1/0}", "line 5: policy.usageWeight: '1/0' divides by zero"),
    ("mode: settle", "actions: [allocate, rest]", "line 4: actions[1]: 'rest' is not known"),
    ("mode: settle", "mode: settle\nmode: one-cycle", "line 5: mode is given twice, first in line 4"),
    # nodes
    ("name: n1, mig", "name: n0, mig", "line 8: nodes[1].name: there are two nodes 'n0'"),
    ("{name: n0, gpus: 2", "{name: n0, gpus: -1", "line 7: nodes[0].gpus: -1 is not a whole number from 0 on"),
    ("{name: n0, gpus: 2", "{name: n0, gpus: 5000", "line 7: nodes[0].gpus: a node has at most 1024 devices"),
    ("{name: n0, gpus: 2", "{name: n0, gpus: two", "line 7: nodes[0].gpus: 'two' is not a whole number"),
    ('cpu: "8"', "cpu: eight", "line 7: nodes[0].cpu: 'eight' is not an amount"),
    ('cpu: "8"', "cpu: -8", "line 7: nodes[0].cpu: '-8' is not an amount"),
    ('cpu: "8"', "cpu: true", "line 7: nodes[0].cpu: True is not an amount"),
    ('cpu: "8"', "gpuMemory: 1.5Ki", "line 7: nodes[0].gpuMemory: '1.5Ki' is not in whole MiB"),
    ("labels: {rack: r1}", "labels: [rack]", "line 7: nodes[0].labels: must be an object, names and values"),
    ("effect: NoSchedule", "effect: Never", "line 7: nodes[0].taints[0].effect: 'Never' is not known"),
    ("mig: {1g.10gb: 2}", "mig: {9g.1gb: 2}", "line 8: nodes[1].mig.9g.1gb: '9g.1gb' is not the name of a MIG profile"),
    (
        "mig: {1g.10gb: 2}",
        "mig: {1g.10gb: 2}, gpus: 1",
        "line 8: nodes[1].mig: the node offers MIG instances, or whole",
    ),
    (
        "mig: {1g.10gb: 2}",
        "mig: {5g.10gb: 2}",
        "line 8: nodes[1].mig.5g.10gb: '5g.10gb' is not the name of a MIG profile",
    ),
    ("mig: {1g.10gb: 2}", "gpus: [{withheld: 7}]", "line 8: nodes[1].gpus[0].withheld: '7' is not a code"),
    ("created: -60s", "fallbackPools: [gold]", "line 18: workloads[0].fallbackPools[0]: there is no pool 'gold'"),
    (
        "created: -60s",
        "preemptible: true\n  preemptibility: preemptible",
        "line 18: workloads[0].preemptible: excludes",
    ),
    ("created: -60s", "minPods: 1", "line 18: workloads[0].minPods: excludes `groups`"),
    ("  topology: {name: t0, required: rack}", "  minGroups: 1", "line 28: workloads[1].minGroups: needs `groups`"),
    ("name: j1-0, gpu", "name: j1-0, releaseDue: 5s, gpu", "line 30: workloads[1].pods[0].releaseDue: a pod that is"),
    (
        "name: j1-0, gpu",
        "name: j1-0, podAffinity: {topologyKey: x}, gpu",
        "line 30: workloads[1].pods[0].podAffinity: names",
    ),
    (
        "{portion: 0.5}",
        "{portion: 0.5, compute: 2}",
        "line 25: workloads[0].pods[1].gpu.compute: is more than a device",
    ),
    (
        "{1g.10gb: 1}}",
        "{1g.10gb: 1}, devices: 2}",
        "line 30: workloads[1].pods[0].gpu.devices: the number of instances",
    ),
    ("{at: 0s}", "{at: 0s, submitted: [j1]}, {submitted: [j1]}", "line 36: not YAML"),
    (
        "{at: 0s}\n",
        "{submitted: [j1]}\n- {submitted: [j1]}\n",
        "line 37: cycles[1].submitted[0]: 'j1' is submitted twice",
    ),
    ("mig: {1g.10gb: 2}", "gpus: [{id: x}, {id: x}]", "line 8: nodes[1].gpus[1].id: there are two devices 'x'"),
    ("levels: [zone, rack]", "levels: []", "line 10: topologies[0].levels: must name at least one node label"),
    # queues
    ("name: b, parent", "name: a, parent", "line 14: queues[2].name: there are two queues 'a'"),
    (
        "name: b, parent: top",
        "name: b, parent: tip",
        "line 14: queues[2].parent: there is no queue 'tip'; did you mean",
    ),
    (
        "- {name: top}",
        "- {name: top, parent: b}",
        "line 12: queues[0].parent: the queues are a circle, not a tree: top -> b",
    ),
    ("weight: 2", "weight: -2", "line 13: queues[1].gpu.weight: -2 is not a whole number from 0 on"),
    ("quota: 1,", "quota: 0.0001,", "line 13: queues[1].gpu.quota: '0.0001' is finer than a thousandth"),
    ("{gpu: 0.25}", "{gpu: 1/3}", "line 14: queues[2].usage.gpu: a part of the pool is in whole millionths"),
    ("- {name: top}", "- {name: top, holdAfter: -1s}", "line 12: queues[0].holdAfter: '-1s' is negative"),
    # workloads
    ("name: j1\n", "name: j0\n", "line 26: workloads[1].name: there are two workloads 'j0'"),
    ("queue: a\n", "queue: c\n", "line 17: workloads[0].queue: there is no queue 'c'"),
    ("queue: a\n", "queue: top\n", "line 17: workloads[0].queue: 'top' has queues below it; only leaves take"),
    ("queue: a\n", "priority: 1\n", "line 16: workloads[0].queue: is missing"),
    ("created: -60s", "created: 60s", "line 18: workloads[0].created: '60s' is in the future"),
    ("created: -60s", "staleFor: -60s", "line 18: workloads[0].staleFor: '-60s' is negative"),
    ("created: -60s", "preemptionDelay: -1s", "line 18: workloads[0].preemptionDelay: '-1s' is negative"),
    ("created: -60s", "created: -999999d", "line 18: workloads[0].created: '-999999d' is longer than a hundred years"),
    ("created: -60s", "priority: high", "line 18: workloads[0].priority: 'high' is not a whole number"),
    ("created: -60s", "preemptible: maybe", "line 18: workloads[0].preemptible: 'maybe' is neither true nor false"),
    ("created: -60s", "pool: gold", "line 18: workloads[0].pool: there is no pool 'gold'"),
    ("required: rack", "required: row", "line 28: workloads[1].topology.required: there is no level 'row'"),
    ("{name: t0, required", "{name: t9, required", "line 28: workloads[1].topology.name: there is no topology 't9'"),
    (", required: rack", "", "line 28: workloads[1].topology: says neither what is required nor what is preferred"),
    ("  pods:\n  - {name: j1-0, gpu: {mig: {1g.10gb: 1}}}", "  pods: []", "line 29: workloads[1].pods: must have at"),
    # groups
    ("{name: y, min: 0}", "{name: x, min: 0}", "line 20: workloads[0].groups: there are two groups 'x'"),
    ("name: rest, groups", "name: rest, min: 1, groups", "line 22: workloads[0].groups[1].min: the group has groups"),
    (
        "name: rest, groups",
        "name: rest, minGroups: 3, groups",
        "line 22: workloads[0].groups[1].minGroups: 3 of 2 groups",
    ),
    (
        "{name: lead, min: 1}",
        "{name: lead, minGroups: 1}",
        "line 21: workloads[0].groups[0].minGroups: the group has no",
    ),
    ("group: lead, ", "", "line 24: workloads[0].pods[0].group: is missing: the workload has groups"),
    ("group: lead", "group: rest", "line 24: workloads[0].pods[0].group: 'rest' has groups below it; pods name a leaf"),
    (
        "group: lead",
        "group: leed",
        "line 24: workloads[0].pods[0].group: there is no group 'leed'; did you mean `lead`?",
    ),
    ("name: j1-0, gpu", "name: j1-0, group: x, gpu", "line 30: workloads[1].pods[0].group: the workload has no groups"),
    # pods
    ("name: j0-1", "name: j0-0", "line 25: workloads[0].pods[1].name: there are two pods 'j0-0'"),
    ("state: running, node: n0, gpu: 1", "state: up, gpu: 1", "line 24: workloads[0].pods[0].state: 'up' is not known"),
    (
        "state: running, node: n0, gpu: 1",
        "node: n0, gpu: 1",
        "line 24: workloads[0].pods[0].node: a pod that is pending",
    ),
    ("running, node: n0, gpu: 1", "running, gpu: 1", "line 24: workloads[0].pods[0].node: is missing: a pod that is"),
    ("node: n0, gpu: 1", "node: n9, gpu: 1", "line 24: workloads[0].pods[0].node: there is no node 'n9'"),
    (
        "node: n0, gpu: 1,",
        "node: n0, gpu: 3,",
        "line 24: workloads[0].pods[0].devices: names 1 devices; the pod holds 3",
    ),
    (
        "gpu: 1, devices: [d0]",
        "gpu: 3",
        "line 24: workloads[0].pods[0].node: node 'n0' has no device left for this pod",
    ),
    ("gpu: 1, devices: [d0]", "cpu: 9", "line 24: workloads[0].pods[0].node: node 'n0' has no CPU left for this pod"),
    ("gpu: 1, devices: [d0]", "memory: 1Ti", "line 24: workloads[0].pods[0].node: node 'n0' has no memory left for"),
    (
        "devices: [d1]",
        "devices: [d0]",
        "line 25: workloads[0].pods[1].devices: node 'n0' has no room there for this pod",
    ),
    ("devices: [d0]", "devices: [d0, d0]", "line 24: workloads[0].pods[0].devices[1]: 'd0' is given twice"),
    (
        "{portion: 0.5}",
        "{portion: 1.5}",
        "line 25: workloads[0].pods[1].gpu.portion: a portion is above 0 and at most 1",
    ),
    (
        "{portion: 0.5}",
        "{portion: 0.5, memory: 1Gi}",
        "line 25: workloads[0].pods[1].gpu: portion and memory exclude each",
    ),
    ("{portion: 0.5}", "{devices: 2}", "line 25: workloads[0].pods[1].gpu: says not what of each device"),
    ("{portion: 0.5}", "1.5", "line 25: workloads[0].pods[1].gpu: '1.5' is not a GPU request"),
    ("{portion: 0.5}", "true", "line 25: workloads[0].pods[1].gpu: True is not a request; a share is an object"),
    ("{portion: 0.5}", "2xhalf", "line 25: workloads[0].pods[1].gpu: '2xhalf' is not an amount"),
    ("{portion: 0.5}", "{memory: 0}", "line 25: workloads[0].pods[1].gpu.memory: asks for no memory"),
    (
        "{1g.10gb: 1}}",
        "{1g.10gb: 1, 2g.20gb: 1}}",
        "line 30: workloads[1].pods[0].gpu.mig: a pod asks for instances of one",
    ),
    (
        "name: j1-0, gpu",
        "name: j1-0, nodes: [n7], gpu",
        "line 30: workloads[1].pods[0].nodes[0]: there is no node 'n7'",
    ),
    (
        "name: j1-0, gpu",
        "name: j1-0, hostPorts: [0], gpu",
        "line 30: workloads[1].pods[0].hostPorts[0]: 0 is not a whole",
    ),
    (
        "name: j1-0, gpu",
        "name: j1-0, podAffinity: {app: x}, gpu",
        "line 30: workloads[1].pods[0].podAffinity.topologyKey: is",
    ),
    (
        "name: j1-0, gpu",
        "name: j1-0, spread: [{labels: {}, topologyKey: zone}], gpu",
        "line 30: workloads[1].pods[0].spread[0].labels: names no label of pods",
    ),
    # what stands besides
    ("workload: j1,", "workload: j9,", "line 32: promises[0].workload: there is no workload 'j9'"),
    ("{pod: j1-0,", "{pod: j0-0,", "line 32: promises[0].places[0].pod: there is no pod of this workload 'j0-0'"),
    ("due: 10s", "due: -20s", "line 32: promises[0].due: is earlier than it can be"),
    ("[j0-0], allowed", "[j9-0], allowed", "line 34: budgets[0].pods[0]: there is no pod 'j9-0'"),
    # cycles and expectation
    ("- {at: 0s}", "- {at: 90s}", "line 37: cycles[1].at: is before the cycle above it"),
    ("{j0-1: failed}", "{j0-1: running}", "line 37: cycles[1].ended.j0-1: 'running' is not known"),
    ("{at: 0s}", "{at: 0s, submitted: [j0]}", "line 36: cycles[0].submitted[0]: 'j0' has pods that do not wait"),
    ("{at: 0s}", "{at: 0s, queues: {z: {held: true}}}", "line 36: cycles[0].queues.z: there is no queue 'z'"),
    ("{j1: {status", "{j2: {status", "line 39: expect.workloads.j2: there is no workload 'j2'"),
    ("status: pending", "status: waiting", "line 39: expect.workloads.j1.status: 'waiting' is not known"),
    ("  workloads: {j1: {status: pending}}", "  reasons: {j1: bored}", "line 39: expect.reasons.j1: 'bored' is not"),
    (
        "  workloads: {j1: {status: pending}}",
        "  reasons: {j1: {blockers: [j7]}}",
        "line 39: expect.reasons.j1.blockers[0]: there is no workload 'j7'",
    ),
    (
        "  workloads: {j1: {status: pending}}",
        "  suggestions: {j1: {kind: magic}}",
        "line 39: expect.suggestions.j1.kind: 'magic' is not known",
    ),
    (
        "  workloads: {j1: {status: pending}}",
        "  promises: {j1: {due: never}}",
        "line 39: expect.promises.j1.due: 'never' is not",
    ),
]


def refusal(text: str) -> errors.InvalidInput:
    """Why a scenario is refused."""
    with pytest.raises(errors.InvalidInput) as caught:
        reader.read(text.encode(), "cluster.yaml")
    return caught.value


def test_the_scenario_that_the_others_are_made_of_is_good() -> None:
    scenario = reader.read(GOOD.encode(), "cluster.yaml")

    assert [workload.id for workload in scenario.snapshot.workloads] == ["j0", "j1"]
    assert [promise.workload for promise in scenario.snapshot.promises] == ["j1"]


@pytest.mark.parametrize(("old", "new", "message"), BAD, ids=[f"{new} for {old}"[:60] for old, new, _ in BAD])
def test_a_wrong_field_is_named_with_its_line(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) >= 1

    error = refusal(GOOD.replace(old, new, 1))

    assert error.message.replace(",", "", 1).startswith(f"cluster.yaml {message}")


@pytest.mark.parametrize(
    ("old", "new", "valid"),
    [
        ("queue: a\n", "queue: c\n", ("top", "a", "b")),
        ("queue: a\n", "queue: top\n", ("a", "b")),
        ("mode: settle", "mode: forever", ("settle", "one-cycle")),
        ("group: lead", "group: rest", ("lead", "x", "y")),
        ("node: n0, gpu: 1", "node: n9, gpu: 1", ("n0", "n1")),
        ("name: n1, mig", "name: n0, mig", ("names that differ",)),
        ("name: j1", "name: j0", ("names that differ",)),
        ("name: top", "name: top, parent: a", ("a queue that is not below this one", "null")),
    ],
)
def test_what_would_be_valid_is_listed(old: str, new: str, valid: tuple[str, ...]) -> None:
    assert refusal(GOOD.replace(old, new, 1)).valid == valid


def test_where_a_file_has_no_queue_that_is_said() -> None:
    error = refusal("format: aliquot-scenario/2\nworkloads: [{name: j, queue: q, pods: [{name: j-0}]}]\n")

    assert error.message == "cluster.yaml, line 2: workloads[0].queue: there is no queue 'q'"
    assert error.valid == ("the name of a queue of this file, which has none",)


def listed(workloads: list[dict[str, object]]) -> str:
    """A scenario with these workloads and one queue, a line for each part."""
    parts = {"format": "aliquot-scenario/2", "queues": [{"name": "q"}], "workloads": workloads}
    return "{" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in parts.items()) + "}"


@pytest.mark.parametrize("workloads", [[{}] * 1_000_000, [{"pods": [{}] * 1_000_000}]], ids=["workloads", "pods"])
def test_a_million_are_refused_before_any_is_read(workloads: list[dict[str, object]]) -> None:
    error = refusal(listed(workloads))

    assert error.message == "cluster.yaml, line 3: workloads: there are 1000000 pods"
    assert error.valid == ("at most 250000 pods; `aliquot simulate` replays longer lists of jobs",)


def test_a_large_file_should_be_json() -> None:
    error = refusal("format: aliquot-scenario/2\n# " + "x" * documents.MAX_BYTES)

    assert error.message == "cluster.yaml: the file is too large"
    assert error.valid == ("at most 2097152 bytes", "JSON, at most 268435456 bytes")


TEXTS = [
    (
        '{"format": "aliquot-scenario/1",\n "nodes": [{"name": "n0",\n  "gpus": "x"}]}',
        "line 3: nodes[0].gpus: 'x' is not",
    ),
    (
        '{"format": "aliquot-scenario/1",\n "nodes": [{"name": "a"},\n  {"name": "a"}]}',
        "line 3: nodes[1].name: there are",
    ),
    (
        '{"format": "aliquot-scenario/1", "nodes": [\n {"name": "a",\n  "name": "b"}]}',
        "line 3: nodes[0].name: is given",
    ),
    ('{"format": "aliquot-scenario/1",\n "nodes": [{}]}', "line 2: nodes[0].name: is missing"),
    ('{"format": "aliquot-scenario/1",\n "nodes": [{"name": "a"}}', "line 2: not JSON"),
    (
        '{"format": "aliquot-scenario/1",\n "nodes": [{"name": "a", "labels": {"x/y.z": []}}]}',
        "line 2: nodes[0].labels.x/y.z",
    ),
    ("[]", "a scenario is an object"),
    ("", "format: is missing"),
]


@pytest.mark.parametrize(("text", "message"), TEXTS, ids=[message for _, message in TEXTS])
def test_json_is_refused_with_the_line_too(text: str, message: str) -> None:
    assert message in refusal(text).message.replace("cluster.yaml, ", "")


def test_each_key_of_version_two_is_refused_in_version_one() -> None:
    text = json.dumps({"format": "aliquot-scenario/1", "cycles": [{"at": "1s"}]})

    assert "cycles: is new in version 2 of the format; begin with `format: aliquot-scenario/2`" in refusal(text).message


FULL = [
    ("gpus: 1", "{gpu: 0.5, devices: [a]}, {gpu: 1}", "pods[1].node: node 'n0' has no device left for this pod"),
    ("gpus: 1", "{gpu: 0.6}, {gpu: 0.6}", "pods[1].node: node 'n0' has no device left for this pod"),
    (
        "gpus: 1",
        "{gpu: 0.5, devices: [a]}, {gpu: 0.5, devices: [b]}",
        "pods[1].devices[0]: node 'n0' has no device left",
    ),
    ("gpus: 1", "{gpu: 90Gi}", "pods[0].node: node 'n0' has no device left for this pod"),
    ("gpus: 1", "{cpu: 1, devices: [a]}", "pods[0].devices: the pod asks for no GPU"),
    ("gpus: 1", "{gpu: 1, starts: [0]}", "pods[0].starts: one for each of 1 MIG instances is needed"),
    ("gpus: 1", "{gpu: {mig: {1g.10gb: 1}}}", "pods[0].node: node 'n0' has no device left for this pod"),
    ("mig: {1g.10gb: 1}", "{gpu: 1}", "pods[0].node: node 'n0' has no device left for this pod"),
    ("mig: {1g.10gb: 1}", "{gpu: {mig: {1g.10gb: 2}}}", "pods[0].node: node 'n0' has no device left for this pod"),
    (
        "gpus: 1, migProfiles: [3g.40gb]",
        "{gpu: {mig: {3g.40gb: 1}}, starts: [0]}, {gpu: {mig: {3g.40gb: 1}}, starts: [0]}",
        "pods[1].node: node 'n0' has no device left for this pod",
    ),
    (
        "gpus: 1, migProfiles: [3g.40gb]",
        "{gpu: {mig: {3g.40gb: 1}}, devices: [a], starts: [2]}",
        "pods[0].devices: node 'n0' has no room there for this pod",
    ),
    (
        "gpus: 1",
        "{gpu: 0.2}, {gpu: {portion: 0.2, sharing: sm-sharing, sharingRequired: true}}",
        "pods[1].node: node 'n0' has no device left for this pod",
    ),
    ("pods: 1", "{cpu: 1}, {cpu: 1}", "pods[1].node: node 'n0' has no place for a pod left for this pod"),
    (
        "pods: 9",
        "{hostPorts: [80]}, {hostPorts: [80]}",
        "pods[1].node: node 'n0' has no free host port left for this pod",
    ),
    ("resources: {hca: 1}", "{resources: {hca: 2}}", "pods[0].node: node 'n0' has no hca left for this pod"),
    ("foreign: {cpu: 60}", "{cpu: 5}", "pods[0].node: node 'n0' has no CPU left for this pod"),
]


@pytest.mark.parametrize(("node", "pods", "message"), FULL, ids=[f"{pods} on {node}"[:60] for node, pods, _ in FULL])
def test_a_node_that_holds_more_than_it_offers_is_refused(node: str, pods: str, message: str) -> None:
    parts = [f"  - {{name: p{at}, state: running, node: n0, {one}" for at, one in enumerate(split(pods))]
    text = "\n".join(
        [
            "format: aliquot-scenario/2",
            f"nodes: [{{name: n0, {node}}}]",
            "queues: [{name: q}]",
            "workloads:",
            "- name: j",
            "  queue: q",
            "  pods:",
            *parts,
        ]
    )

    assert f"workloads[0].{message}" in refusal(text).message


def split(pods: str) -> list[str]:
    """The pods of a text, each without its opening brace."""
    return [one.removeprefix("{") for one in pods.replace("}, {", "}\n{").split("\n")]
