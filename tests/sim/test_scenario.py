"""Scenarios run on the scheduler itself: what passes between cycles, what is looked at, and what counts as missed."""

import json

import pytest

from aliquot.sim import scenario as runner
from aliquot.wire.scenario import outcome, reader
from aliquot.wire.scenario.shape import Scenario, Status

FULL = """
nodes: [{name: n0, gpus: 2}]
queues: [{name: lent, gpu: {quota: 0}}, {name: owner, gpu: {quota: 2}}]
workloads:
- {name: old, queue: lent, pods: [{name: o, state: running, node: n0, gpu: 2}]}
- {name: new, queue: owner, pods: [{name: n, gpu: 2}]}
"""


def read(text: str) -> Scenario:
    """A scenario of version 2."""
    return reader.read(f"format: aliquot-scenario/2\n{text}".encode(), "cluster.yaml")


def statuses(result: outcome.Outcome) -> dict[str, Status]:
    """The status of each pod."""
    return {name: end.status for name, end in result.pods.items()}


def done(result: outcome.Outcome) -> list[list[str]]:
    """What was decided, cycle by cycle, waits apart."""
    return [[f"{one.do} {one.pod}" for one in cycle.decisions if one.do != "wait"] for cycle in result.cycles]


def test_one_cycle_shows_its_plan() -> None:
    result = runner.run(read(f"mode: one-cycle{FULL}"))

    assert done(result) == [["evict o", "nominate n"]]
    assert statuses(result) == {"o": Status.EVICTED, "n": Status.NOMINATED}
    assert (result.pods["n"].milli_gpus, result.pods["n"].devices) == (2000, frozenset({"n0/0", "n0/1"}))
    assert result.nodes["n0"] == outcome.NodeEnd(idle_milli=0, releasing_milli=2000)


def test_settling_goes_on_until_nothing_changes() -> None:
    result = runner.run(read(FULL))

    assert done(result) == [["evict o", "nominate n"], ["bind n"], []]
    assert statuses(result) == {"o": Status.PENDING, "n": Status.RUNNING}
    assert result.nodes["n0"] == outcome.NodeEnd(idle_milli=0, releasing_milli=0)


def test_settling_ends_after_the_most_cycles() -> None:
    result = runner.run(read(f"maxCycles: 1{FULL}"))

    assert done(result) == [["evict o", "nominate n"]]
    assert statuses(result) == {"o": Status.PENDING, "n": Status.PENDING}


def test_an_evicted_pod_may_be_gone_for_good() -> None:
    result = runner.run(read(f"onEvict: delete{FULL}"))

    assert statuses(result) == {"o": Status.EVICTED, "n": Status.RUNNING}
    assert result.pods["o"].place is None


def test_a_releasing_pod_waits_again_and_one_that_is_stuck_stays() -> None:
    result = runner.run(
        read(
            "nodes: [{name: n0, gpus: 2}]\n"
            "queues: [{name: q}]\n"
            "workloads:\n"
            "- {name: going, queue: q, pods: [{name: g, state: releasing, node: n0, gpu: 1}]}\n"
            "- {name: stuck, queue: q, pods: [{name: s, state: stuck-releasing, node: n0, gpu: 1}]}\n"
            "- {name: large, queue: q, priority: 60, pods: [{name: l, gpu: 2}]}\n"
        )
    )

    assert statuses(result) == {"g": Status.RUNNING, "s": Status.STUCK_RELEASING, "l": Status.PENDING}


def test_a_promise_that_is_only_kept_is_no_new_decision() -> None:
    result = runner.run(
        read(
            "mode: one-cycle\n"
            "nodes: [{name: n0, gpus: 1}]\n"
            "queues: [{name: q}]\n"
            "workloads:\n"
            "- {name: going, queue: q, pods: [{name: g, state: stuck-releasing, node: n0, gpu: 1, devices: [d]}]}\n"
            "- {name: next, queue: q, pods: [{name: n, gpu: 1}]}\n"
            "promises: [{workload: next, places: [{pod: n, node: n0, devices: [d]}], due: 10m}]\n"
        )
    )

    assert done(result) == [[]]


def test_a_shared_device_is_releasing_when_all_its_pods_are_and_an_instance_counts_by_its_slices() -> None:
    result = runner.run(
        read(
            "mode: one-cycle\n"
            "nodes: [{name: n0, gpus: 3}, {name: n1, mig: {1g.10gb: 2, 3g.40gb: 1}}]\n"
            "queues: [{name: q}]\n"
            "workloads:\n"
            "- name: j\n"
            "  queue: q\n"
            "  minPods: 1\n"
            "  pods:\n"
            "  - {name: a, state: releasing, node: n0, gpu: 0.5, devices: [x]}\n"
            "  - {name: b, state: running, node: n0, gpu: 0.5, devices: [x]}\n"
            "  - {name: c, state: releasing, node: n0, gpu: 0.5, devices: [y]}\n"
            "  - {name: d, state: releasing, node: n1, gpu: {mig: {3g.40gb: 1}}}\n"
        )
    )

    assert result.nodes == {"n0": outcome.NodeEnd(1000, 1000), "n1": outcome.NodeEnd(2 * 142, 428)}


STEPS = """
nodes: [{name: n0, gpus: 1}, {name: n1, gpus: 1}]
queues: [{name: q, gpu: {quota: 2}}]
workloads:
- {name: first, queue: q, maxRunTime: 1h, pods: [{name: f, gpu: 1}]}
- {name: second, queue: q, pods: [{name: s, gpu: 1}]}
- {name: third, queue: q, pods: [{name: t, gpu: 1}]}
"""


@pytest.mark.parametrize(
    ("cycles", "found"),
    [
        ("[{at: 0s}]", {"f": "running", "s": "running", "t": "pending"}),
        ("[{at: 0s}, {at: 59m}]", {"f": "running", "s": "running", "t": "pending"}),
        ("[{at: 0s}, {at: 60m}]", {"f": "failed", "s": "running", "t": "running"}),
        ("[{at: 0s}, {ended: {s: succeeded}}]", {"f": "running", "s": "succeeded", "t": "running"}),
        ("[{at: 0s}, {removed: [first]}]", {"f": "evicted", "s": "running", "t": "running"}),
        ("[{submitted: []}, {submitted: [first]}]", {"f": "pending", "s": "running", "t": "running"}),
        ("[{nodes: {n1: {cordoned: true}}}]", {"f": "running", "s": "pending", "t": "pending"}),
        ("[{nodes: {n1: {ready: false}}}]", {"f": "running", "s": "pending", "t": "pending"}),
        ("[{queues: {q: {held: true}}}]", {"f": "pending", "s": "pending", "t": "pending"}),
        ("[{at: 0s}, {queues: {q: {drained: true}}}]", {"f": "pending", "s": "pending", "t": "pending"}),
        (
            "[{nodes: {n1: {drained: true}}}, {nodes: {n1: {drained: false}}}]",
            {"f": "running", "s": "running", "t": "pending"},
        ),
    ],
)
def test_time_passes_and_things_happen_from_outside(cycles: str, found: dict[str, str]) -> None:
    result = runner.run(read(f"{STEPS}cycles: {cycles}"))

    assert statuses(result) == found


def test_a_gang_below_its_minimum_becomes_stale_as_time_passes() -> None:
    text = (
        "nodes: [{name: n0, gpus: 1}]\n"
        "queues: [{name: q}]\n"
        "workloads:\n"
        "- {name: j, queue: q, pods: [{name: a, state: running, node: n0, gpu: 1}, {name: b, state: failed}]}\n"
    )

    early = runner.run(read(f"{text}cycles: [{{at: 0s}}, {{at: 59s}}]"))
    late = runner.run(read(f"{text}cycles: [{{at: 0s}}, {{at: 60s}}]"))

    assert (statuses(early)["a"], statuses(late)["a"]) == (Status.RUNNING, Status.PENDING)


def test_limits_on_evictions_count_down() -> None:
    text = (
        "nodes: [{name: n0, gpus: 2}]\n"
        "queues: [{name: lent, gpu: {quota: 0}, evictionsLeft: 1}, {name: owner, gpu: {quota: 2}}]\n"
        "workloads:\n"
        "- {name: a, queue: lent, pods: [{name: a, state: running, node: n0, gpu: 1}]}\n"
        "- {name: b, queue: lent, pods: [{name: b, state: running, node: n0, gpu: 1}]}\n"
        "- {name: c, queue: owner, pods: [{name: c, gpu: 1}]}\n"
        "- {name: d, queue: owner, pods: [{name: d, gpu: 1}]}\n"
    )

    result = runner.run(read(text))

    assert list(statuses(result).values()).count(Status.RUNNING) == 2
    assert sum(decision.do == "evict" for cycle in result.cycles for decision in cycle.decisions) == 1


EXPECTATIONS = [
    ("workloads: {new: {status: running, node: n0, gpus: 2}}", []),
    ("workloads: {new: {status: pending}}", ["workload new: status: wanted pending, got running"]),
    ("pods: {n: {node: [n1]}}", ["pod n: node: wanted n1, got n0"]),
    ("pods: {o: {node: n0}}", ["pod o: node: wanted n0, got none"]),
    ("pods: {n: {gpus: 0.5}}", ["pod n: gpus: wanted 0.5, got 2"]),
    ("nodes: {n0: {idleGpus: 1, releasingGpus: 0}}", ["node n0: idleGpus: wanted 1, got 0"]),
    ("nodes: {n1: {releasingGpus: 2}}", ["node n1: releasingGpus: wanted 2, got 1"]),
    ("sameDevice: [[n, n2]]", ["pods n, n2: devices: wanted one in common, got n0/0, n0/1; n1/0"]),
    ("otherDevice: [[n, o]]", []),
    ("atMost: {evictions: 0, binds: 1}", ["evict decisions: wanted at most 0, got 1"]),
    ("atLeast: {nominations: 2}", ["nominate decisions: wanted at least 2, got 1"]),
    ("reasons: {old: over-fair-share}", []),
    ("reasons: {old: behind}", ["workload old: reason: wanted behind, got over-fair-share"]),
    ("reasons: {new: behind}", ["workload new: reason: wanted behind, got it does not wait"]),
    ("reasons: {old: {says: 1 GPU, numbers: {free: 0}, blockers: [stuck, new], position: 1}}", []),
    ("reasons: {old: {says: 2 cores}}", ["workload old: reason says: wanted 2 cores, got needs 2 whole GPUs"]),
    ("reasons: {old: {numbers: {free: 1, x: 1}}}", ["workload old: reason: free: wanted 1", "workload old: reason: x"]),
    ("reasons: {old: {blockers: []}}", ["workload old: in its way: wanted nobody, got new, stuck"]),
    ("reasons: {old: {position: 2}}", ["workload old: place in line: wanted 2, got 1"]),
    ("promises: {new: null, old: null}", []),
    ("promises: {new: {due: 30s}}", ["workload new: promise: wanted yes, got no"]),
    ("evictions: {o: {says: over its quota}}", []),
    ("evictions: {o: {says: by lot}}", ["pod o: eviction says: wanted by lot, got owner holds"]),
    ("suggestions: {old: {says: anything}}", ["workload old: suggestion says: wanted anything, got "]),
    ("evictions: {o: {for: new, rule: reclaim}}", []),
    (
        "evictions: {o: {for: old, rule: preempt}}",
        ["pod o: evicted for: wanted old, got new", "pod o: evicted by: wanted"],
    ),
    ("evictions: {n: {}}", ["pod n: eviction: wanted one, got none"]),
    ("suggestions: {new: set-gpu}", ["workload new: suggestion: wanted set-gpu, got none"]),
    ("cutOff: true", ["cut off by its budget: wanted yes, got no"]),
    ("cutOff: false", []),
]


MORE = """
nodes: [{name: n1, gpus: 1}, {name: n0, gpus: 2}]
queues: [{name: lent, gpu: {quota: 0}}, {name: owner, gpu: {quota: 2}}]
workloads:
- {name: old, queue: lent, pods: [{name: o, state: running, node: n0, gpu: 2}]}
- {name: new, queue: owner, pods: [{name: n, gpu: 2}]}
- {name: stuck, queue: lent, pods: [{name: n2, state: stuck-releasing, node: n1, gpu: 1}]}
"""


@pytest.mark.parametrize(("expect", "messages"), EXPECTATIONS, ids=[expect for expect, _ in EXPECTATIONS])
def test_what_is_expected_is_compared(expect: str, messages: list[str]) -> None:
    missed = runner.check(read(f"{MORE}expect: {{{expect}}}"))

    found = [f"{one.what}: wanted {one.wanted}, got {one.got}" for one in missed]
    assert [one[: len(message)] for one, message in zip(found, messages, strict=True)] == messages


def test_each_instant_has_an_expectation_of_its_own() -> None:
    cycles = "[{expect: {pods: {s: {status: pending}}}}, {at: 60m, expect: {pods: {f: {status: failed}}}}]"

    missed = runner.check(read(f"{STEPS}cycles: {cycles}"))

    assert [one.what for one in missed] == ["cycles[0]: pod s: status"]


def test_the_change_that_would_start_a_workload_is_compared() -> None:
    text = (
        "nodes: [{name: n0, gpus: 1}]\n"
        "queues: [{name: q, gpu: {quota: 4}}]\n"
        "workloads: [{name: big, queue: q, pods: [{name: b, gpu: 2}]}]\n"
    )

    assert runner.check(read(f"{text}expect: {{suggestions: {{big: set-gpu}}}}")) == []


def test_when_a_promise_falls_due_and_expires_is_compared() -> None:
    text = f"mode: one-cycle{FULL}"

    assert runner.check(read(f"{text}expect: {{promises: {{new: {{due: 30s, expires: 1m}}}}}}")) == []
    missed = runner.check(read(f"{text}expect: {{promises: {{new: {{due: 31s}}}}}}"))
    assert [(one.what, one.wanted, one.got) for one in missed] == [
        ("workload new: promise due", "0:00:31", "0:00:30"),
    ]


def test_what_is_printed_has_the_shape_of_the_format() -> None:
    printed = json.loads(outcome.to_json(runner.run(read(f"name: x\nmode: one-cycle{FULL}"))))

    assert printed["scenario"] == "x"
    assert printed["final"]["pods"]["n"] == {
        "status": "nominated",
        "node": "n0",
        "devices": ["n0/0", "n0/1"],
        "gpus": 2.0,
    }
    assert printed["final"]["nodes"] == {"n0": {"idleGpus": 0.0, "releasingGpus": 2.0}}
    evict, nominate, wait = printed["cycles"][0]["decisions"]
    assert evict == {"do": "evict", "pod": "o", "for": "new", "rule": "reclaim"}
    assert nominate == {"do": "nominate", "pod": "n", "node": "n0", "devices": ["n0/0", "n0/1"], "gpus": 2.0}
    assert (wait["do"], wait["workload"], wait["reason"]["code"]) == ("wait", "new", "waiting-for-release")
