"""Every code by which a workload can wait, with the sentence, the numbers and the holders that the snapshot proves."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import schedule
from aliquot.core.model import (
    Affinity,
    ForeignUse,
    GpuRequest,
    Near,
    Pod,
    PodState,
    Policy,
    Promise,
    Sharing,
    Snapshot,
    Taint,
    Topology,
    Workload,
)
from aliquot.core.plan import Code, Reason
from tests import builders
from tests.builders import NOW, asking, device, having, job, node, queue, releasing, running, snapshot

EVE = ForeignUse(4711, "eve", 30_000)


def why(taken: Snapshot, workload: str = "job", *, policy: Policy | None = None) -> Reason:
    made = schedule.schedule(taken, policy or Policy(), NOW)
    return next(one.reason for one in made.waits if one.workload == workload)


CASES: dict[str, tuple[Snapshot, Code, str]] = {
    "unknown project": (
        snapshot(node(), queue("a"), job(queue="b")),
        Code.NO_SUCH_QUEUE,
        "project 'b' does not exist; there are a",
    ),
    "a department": (
        snapshot(node(), queue("d"), queue("a", parent="d"), job(queue="d")),
        Code.NO_SUCH_QUEUE,
        "d is a department; workloads belong to a project in it",
    ),
    "over the limit": (
        snapshot(node(), queue(limit="4"), running(job("old", gpu="4"), "node-1:0,1,2,3"), job(gpu="2")),
        Code.QUEUE_LIMIT,
        "project team-a holds 4 GPUs, this asks 2 GPUs, and the limit is 4 GPUs",
    ),
    "over the limit of the department": (
        snapshot(node(), queue("d", limit="1"), queue(parent="d"), running(job("old"), "node-1:0"), job()),
        Code.QUEUE_LIMIT,
        "department d holds 1 GPU, this asks 1 GPU, and the limit is 1 GPU",
    ),
    "over the limit of memory": (
        snapshot(node(), queue(memory=builders.claim(limit="1Gi", is_memory=True)), job(gpu=None, memory="2Gi")),
        Code.QUEUE_LIMIT,
        "project team-a holds no memory, this asks 2Gi of memory, and the limit is 1Gi of memory",
    ),
    "not preemptible beyond the quota": (
        snapshot(node(), queue(gpu="0"), job(is_preemptible=False)),
        Code.NON_PREEMPTIBLE_OVER_QUOTA,
        "project team-a holds 0 GPUs in work that may not be preempted, this asks 1 GPU, and the quota is 0 GPUs",
    ),
    "over the fair share": (
        snapshot(
            node(devices=2),
            queue("a", "1"),
            queue("b", "1"),
            running(job("a1", "a"), "node-1:0"),
            running(job("b1", "b"), "node-1:1"),
            job(queue="b"),
        ),
        Code.OVER_FAIR_SHARE,
        (
            "needs 1 whole GPU; none of 2 is free; b holds 1 GPU and its fair share is 1 GPU, so it takes from no "
            "other project"
        ),
    ),
    "more GPUs than any node": (
        snapshot(node(devices=2), queue(), job(gpu="4")),
        Code.LARGER_THAN_ANY_NODE,
        "needs 4 GPUs on one node; the largest node of pool default has 2",
    ),
    "more CPU than any node": (
        snapshot(node(cpu="4"), queue(), job(cpu="5")),
        Code.LARGER_THAN_ANY_NODE,
        "needs 5 CPUs on one node; the largest node of pool default has 4 CPUs",
    ),
    "more memory than any node": (
        snapshot(node(memory="4Gi"), queue(), job(memory="5Gi")),
        Code.LARGER_THAN_ANY_NODE,
        "needs 5Gi of memory on one node; the largest node of pool default has 4Gi of memory",
    ),
    "no one node has it all": (
        snapshot(node("node-1", 8, cpu="1"), node("node-2", 0, cpu="64"), queue(), job(cpu="8")),
        Code.LARGER_THAN_ANY_NODE,
        "no one node of pool default has all that a pod of it needs, even when empty",
    ),
    "more pods than the pool": (
        snapshot(node(devices=2), queue(), job(pods=3)),
        Code.LARGER_THAN_POOL,
        "it starts 3 pods at once (3 GPUs in all); pool default cannot hold them even when empty",
    ),
    "more memory than any device": (
        snapshot(node(), queue(), job(gpu="100Gi")),
        Code.NO_DEVICE_FITS,
        "needs 100Gi of GPU memory; the largest GPU of pool default offers 81920 MiB",
    ),
    "no device has the share free": (
        snapshot(node(devices=1), queue(), running(job("old", gpu="0.75"), "node-1:0"), job(gpu="0.5")),
        Code.NO_DEVICE_FITS,
        "needs 0.5 of a GPU; the best single GPU, node-1-gpu-0, has 20480 of its 81920 MiB free",
    ),
    "used from outside": (
        snapshot(node(devices=[device(withheld="device-in-use", foreign=(EVE,))]), queue(), job()),
        Code.DEVICE_IN_USE,
        "a GPU that it needs is used by others: process 4711 of eve holds 30000 MiB of node-1-gpu-0",
    ),
    "pieces on two nodes": (
        snapshot(
            node("node-1", 4),
            node("node-2", 4),
            queue(),
            running(job("old-1", gpu="2", is_preemptible=False), "node-1:0,1"),
            running(job("old-2", gpu="2", is_preemptible=False), "node-2:0,1"),
            job(gpu="4"),
        ),
        Code.FRAGMENTED,
        "needs 4 whole GPUs on one node; the most that is free on one is 2, on node-1",
    ),
    "pieces of two devices": (
        snapshot(
            node(devices=2),
            queue(),
            running(job("old-1", gpu="0.5", is_preemptible=False), "node-1:0"),
            running(job("old-2", gpu="0.5", is_preemptible=False), "node-1:1"),
            job(),
        ),
        Code.FRAGMENTED,
        "needs 1 whole GPU; none of 2 is wholly free, what is free lies in pieces of 1 GPU together",
    ),
    "CPU here and a GPU there": (
        snapshot(
            node("node-1", 1, cpu="8"),
            node("node-2", 1, cpu="8"),
            queue(),
            running(job("gpu", is_preemptible=False), "node-1:0"),
            running(job("cpu", gpu=None, cpu="8", is_preemptible=False), "node-2"),
            job(cpu="4"),
        ),
        Code.FRAGMENTED,
        "no one node has all that it needs free together, though each part is free somewhere",
    ),
    "a held queue": (
        snapshot(node(), replace(queue(), is_held=True), job()),
        Code.QUEUE_HELD,
        "team-a is held: nothing new starts in it until an administrator releases it",
    ),
    "a department that is drained": (
        snapshot(node(), replace(queue("d"), is_drained=True), queue(parent="d"), job()),
        Code.QUEUE_HELD,
        "d is drained: nothing new starts in it until an administrator releases it",
    ),
    "a volume that is not there": (
        snapshot(node(), queue(), having(job(), unmet="volume data does not exist")),
        Code.UNMET_DEPENDENCY,
        "volume data does not exist",
    ),
    "a taint everywhere": (
        snapshot(replace(node(), taints=(Taint("team", "red"),)), queue(), job()),
        Code.TAINT,
        "it does not tolerate what keeps pods off the nodes it may use: team=red:NoSchedule",
    ),
    "a label nowhere": (
        snapshot(node(), queue(), asking(job(), node_labels=(("disk", ("ssd",)),))),
        Code.SELECTOR,
        "no node is one that it asks for: disk is ssd",
    ),
    "one rack for all": (
        replace(
            snapshot(
                replace(node("node-1", 1), labels={"rack": "a"}),
                replace(node("node-2", 1), labels={"rack": "b"}),
                queue(),
                replace(job(pods=2), near=Near("net", required="rack")),
            ),
            topologies=(Topology("net", ("rack",)),),
        ),
        Code.TOPOLOGY,
        "its pods must share one rack; no rack of pool default holds them even when empty",
    ),
    "kept away by others": (
        snapshot(
            replace(node(), labels={"host": "one"}),
            queue(),
            running(asking(job("old"), labels=(("app", "x"),)), "node-1:0"),
            asking(job(), anti_affinity=(Affinity((("app", "x"),), "host"),)),
        ),
        Code.AFFINITY,
        "1 node with room is closed to it by the rules about which pods may be near each other",
    ),
    "another way of sharing": (
        snapshot(
            node(devices=1),
            queue(),
            running(job("old", gpu="0.5", is_preemptible=False), "node-1:0"),
            asking(job(), gpu=GpuRequest(1, 500, sharing=Sharing.SM_SHARING, is_sharing_required=True)),
        ),
        Code.SHARING_MODE,
        "it requires sm-sharing; every GPU with room for it is shared in another way",
    ),
    "a host port in use": (
        snapshot(
            node(),
            queue(),
            running(asking(job("old", is_preemptible=False), host_ports=(80,)), "node-1:0"),
            asking(job(), host_ports=(80,)),
        ),
        Code.NO_FREE_RESOURCE,
        "needs 1 of port/80 on one node; the most that is free is 0 on node-1",
    ),
    "not yet allowed to evict": (
        snapshot(
            node(devices=1),
            queue(),
            running(job("old", priority=10), "node-1:0"),
            replace(job(), preemption_delay=timedelta(hours=2)),
        ),
        Code.PREEMPTION_DELAY,
        "nothing is free for it, and it may evict others only after 2030-01-01T13:00:00+00:00",
    ),
    "not yet long enough": (
        snapshot(
            node(devices=1),
            replace(queue(), preempt_min_runtime=timedelta(hours=2)),
            running(job("old", priority=10), "node-1:0"),
            job(),
        ),
        Code.PROTECTED_MIN_RUNTIME,
        "needs 1 whole GPU; none of 1 is free; what it could evict has not run for its minimum run time yet",
    ),
    "all devices held": (
        snapshot(node(devices=1), queue(), running(job("old"), "node-1:0"), job()),
        Code.NO_FREE_DEVICE,
        "needs 1 whole GPU; none of 1 is free",
    ),
    "a share where all is held": (
        snapshot(node(devices=1), queue(), running(job("old"), "node-1:0"), job(gpu="0.5")),
        Code.NO_FREE_DEVICE,
        "needs 0.5 of a GPU; none of 1 is free",
    ),
    "all CPU held": (
        snapshot(node(cpu="4"), queue(), running(job("old", gpu=None, cpu="3"), "node-1"), job(cpu="2")),
        Code.NO_FREE_CPU,
        "needs 2 CPUs on one node; the most that is free is 1 CPU on node-1",
    ),
    "all memory held": (
        snapshot(node(memory="4Gi"), queue(), running(job("old", gpu=None, memory="3Gi"), "node-1"), job(memory="2Gi")),
        Code.NO_FREE_MEMORY,
        "needs 2Gi of memory on one node; the most that is free is 1Gi of memory on node-1",
    ),
    "part of the gang fits": (
        snapshot(node(devices=4), queue(), running(job("old"), "node-1:0"), job(pods=4)),
        Code.GANG_INCOMPLETE,
        "it starts its 4 pods at once or not at all; 3 would fit now",
    ),
    "a pod of the gang is lost": (
        snapshot(
            node(),
            queue(),
            replace(job(pods=2), pods=(Pod("x", 0, builders.request(), PodState.FAILED), job().pods[0])),
        ),
        Code.GANG_INCOMPLETE,
        "it starts with 2 pods or not at all; only 1 can run",
    ),
    "room is being freed": (
        snapshot(node(devices=1), queue(), releasing(job("old"), "node-1:0"), job()),
        Code.WAITING_FOR_RELEASE,
        "its room is being freed: it waits until old has ended, by 2030-01-01T12:00:20+00:00 at the latest",
    ),
    "an empty pool": (snapshot(node(), queue(), job(pool="lab")), Code.POOL_EMPTY, "no node is in pool lab"),
    "a cordoned node": (
        snapshot(node(is_cordoned=True), queue(), job()),
        Code.NODE_UNAVAILABLE,
        "what it needs is there but takes no work now: node node-1 is cordoned",
    ),
    "a node that is not ready": (
        snapshot(node(is_ready=False), queue(), job()),
        Code.NODE_UNAVAILABLE,
        "what it needs is there but takes no work now: node node-1 is not ready",
    ),
    "a device that is withheld": (
        snapshot(node(devices=[device(withheld="xid")]), queue(), job()),
        Code.NODE_UNAVAILABLE,
        "what it needs is there but takes no work now: node-1-gpu-0 is withheld (xid)",
    ),
    "no place for one more pod": (
        snapshot(node(max_pods=1), queue(), running(job("old"), "node-1:0"), job()),
        Code.NODE_UNAVAILABLE,
        "every node that could take it runs as many pods as it may (1 on node-1)",
    ),
    "backing off": (
        snapshot(node(), queue(), job(not_before=NOW + timedelta(seconds=40))),
        Code.BACKING_OFF,
        "it failed and is tried again at 2030-01-01T12:00:40+00:00",
    ),
}


@pytest.mark.parametrize(("taken", "code", "message"), CASES.values(), ids=CASES.keys())
def test_the_reason_names_what_is_in_the_way(taken: Snapshot, code: Code, message: str) -> None:
    reason = why(taken)

    assert (reason.code, reason.message) == (code, message)


def unlike(*gpus: str) -> Workload:
    """A gang of one pod for each of these requests."""
    asks = [builders.request(gpu) for gpu in gpus]
    pods = [Pod(id=f"job-{index}", index=index, request=ask) for index, ask in enumerate(asks)]
    return replace(job(pods=len(gpus)), pods=tuple(pods))


def test_whole_devices_leave_no_memory_to_a_share() -> None:
    cordoned = node("node-2", devices=2, is_cordoned=True)

    reason = why(snapshot(node(devices=1), cordoned, queue(), unlike("50Gi", "1", "1", "1")))

    assert reason.code is Code.LARGER_THAN_POOL


def test_a_node_that_takes_no_work_is_blamed_only_if_the_gang_would_fit_with_it() -> None:
    cordoned = node("node-2", devices=1, is_cordoned=True)

    never = why(snapshot(node(devices=1), cordoned, queue(), unlike("0.6", "0.7", "0.55")))
    later = why(snapshot(node(devices=1), cordoned, queue(), unlike("0.6", "0.7", "0.3")))

    assert (never.code, never.numbers["fitting"]) == (Code.GANG_INCOMPLETE, 1)
    assert later.code is Code.NODE_UNAVAILABLE


def test_a_node_that_takes_no_work_is_blamed_by_the_one_pod_that_only_it_could_hold() -> None:
    crew = unlike("0.6", "0.7", "0.55", "2")
    cordoned = node("node-2", devices=2, is_cordoned=True)

    made = why(snapshot(node(devices=1), node("node-3", devices=1), cordoned, queue(), crew))
    none_left = why(snapshot(cordoned, node("node-1", devices=()), queue(), unlike("0.6", "0.7", "0.55")))

    assert made.code is Code.NODE_UNAVAILABLE
    assert none_left.code is Code.NODE_UNAVAILABLE


def test_that_no_rack_will_ever_hold_a_gang_is_said_only_where_counting_proves_it() -> None:
    def needing_a_rack(*gpus: str) -> Reason:
        crew = replace(unlike(*gpus), near=Near("net", required="rack"))
        racks = [replace(node(f"node-{name}", devices=2), labels={"rack": name}) for name in ("a", "b")]
        return why(replace(snapshot(*racks, queue(), crew), topologies=(Topology("net", ("rack",)),)))

    assert needing_a_rack("0.6", "0.7", "0.8").message == (
        "its pods must share one rack; no rack of pool default holds them even when empty"
    )
    assert needing_a_rack("0.6", "0.7", "0.55").message == "its pods must share one rack; no rack has room for them now"


def test_a_pod_that_would_become_the_core_of_semi_preemptible_work_must_fit_the_quota() -> None:
    gang = replace(unlike("2", "0.5"), min_pods=1, is_preemptible=False, is_semi_preemptible=True)
    later = replace(running(job("grown", gpu="0.5", pods=2, min_pods=1), "node-1:0"), is_semi_preemptible=True)
    later = replace(later, is_preemptible=False)
    taken = snapshot(node(devices=3), queue(gpu="1"), gang)

    made = schedule.schedule(taken, Policy(), NOW)
    grown = schedule.schedule(snapshot(node(devices=1), queue(gpu="0.5"), later), Policy(), NOW)

    assert [one.place.pod for one in made.binds] == ["job-1"]
    assert why(taken).message == (
        "project team-a holds 0.5 GPU in work that may not be preempted, this asks 1.5 GPUs, and the quota is 1 GPU"
    )
    assert [one.place.pod for one in grown.binds] == ["grown-1"]


def test_the_room_that_is_free_is_promised_to_another() -> None:
    held = snapshot(node(devices=2), queue(), releasing(job("old"), "node-1:0"), job("pair", gpu="2"))
    made = schedule.schedule(held, Policy(), NOW)
    promise = made.nominates[0]
    stored = Promise(
        "pair", promise.places, NOW, promise.due, promise.expires, promise.waits_for, may_evict=promise.may_evict
    )

    reason = why(replace(held, workloads=(*held.workloads, job()), promises=(stored,)))

    assert reason.code is Code.BEHIND
    assert reason.message == "the room that is or becomes free is promised to pair"
    assert [one.workload for one in reason.blockers] == ["pair"]


def test_the_steps_of_the_cycle_ended_first() -> None:
    taken = snapshot(node(), queue(), job())

    reason = why(taken, policy=Policy(step_budget=0))

    assert reason.code is Code.BUDGET
    assert reason.numbers == {"stepBudget": 0}


def test_every_code_has_a_case_here() -> None:
    shown = {code for _, code, _ in CASES.values()}

    assert shown | {Code.BEHIND, Code.BUDGET} == set(Code)


def test_the_holders_are_named_the_oldest_first() -> None:
    taken = snapshot(
        node(devices=2),
        queue(),
        running(job("young", waits=timedelta(minutes=1)), "node-1:0"),
        running(job("old", gpu="0.5"), "node-1:1"),
        running(job("other", gpu="0.5", waits=timedelta(minutes=2)), "node-1:1"),
        job(),
    )

    reason = why(taken)

    assert [(one.workload, one.description) for one in reason.blockers] == [
        ("old", "old holds 0.5 GPU"),
        ("other", "other holds 0.5 GPU"),
        ("young", "young holds 1 GPU"),
    ]


def test_at_most_ten_holders_are_listed_and_all_are_counted() -> None:
    olds = [running(job(f"old-{n:02}"), f"node-1:{n}") for n in range(12)]

    reason = why(snapshot(node(devices=12), queue(), *olds, job()))

    assert len(reason.blockers) == 10
    assert reason.numbers["holders"] == 12


def test_holders_from_outside_are_named_with_pid_and_user() -> None:
    devices = [device("node-1-gpu-0", withheld="device-in-use", foreign=(EVE,)), device("node-1-gpu-1")]

    reason = why(snapshot(node(devices=devices), queue(), running(job("old"), "node-1:1"), job()))

    assert [one.description for one in reason.blockers] == [
        "old holds 1 GPU",
        "process 4711 of eve holds 30000 MiB of node-1-gpu-0",
    ]


def test_one_project_alone_is_never_told_of_fair_shares() -> None:
    taken = snapshot(node(devices=1), queue(gpu="1"), running(job("old"), "node-1:0"), job())

    assert why(taken).code is Code.NO_FREE_DEVICE
