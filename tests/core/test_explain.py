"""Why a workload waits and what would start it: a world for each reason code, and random worlds against trying all."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

import hypothesis
import pytest
from hypothesis import strategies as st

from aliquot.core import change, explain
from aliquot.core import schedule as scheduler
from aliquot.core.errors import NotFound
from aliquot.core.explain import Explanation
from aliquot.core.model import (
    Affinity,
    ForeignUse,
    GpuRequest,
    Near,
    Place,
    PodState,
    Policy,
    Promise,
    Sharing,
    Snapshot,
    Taint,
    Topology,
    Workload,
)
from aliquot.core.plan import Code
from tests import builders
from tests.builders import NOW, asking, device, having, job, node, queue, releasing, running, snapshot

POLICY = Policy()
STRANGER = ForeignUse(pid=4711, user="eve", mib=70_000)


def explained(world: Snapshot, id: str = "job", policy: Policy = POLICY) -> Explanation:
    """The explanation of the workload `job`."""
    return explain.explain(world, id, policy=policy, now=NOW)


def starts(world: Snapshot, id: str = "job", policy: Policy = POLICY) -> bool:
    """Whether the workload is bound or promised in the next cycle."""
    plan = scheduler.schedule(world, policy, NOW)
    return id in {one.workload for one in plan.binds} | {one.workload for one in plan.nominates}


def full(count: int = 8, **other: object) -> Workload:
    """A workload of team-a that holds the first devices of node-1."""
    places = ",".join(str(index) for index in range(count))
    return running(job("holder", gpu=str(count), **other), f"node-1:{places}")  # type: ignore[arg-type]  # passed on


TEAM = queue("team-a", "8")


def promised(id: str, due: timedelta = timedelta(seconds=20)) -> Promise:
    """The first two devices of node-1 are promised to the only pod of a workload."""
    place = Place(f"{id}-0", "node-1", builders.shares(GpuRequest(2), "node-1", "0,1"))
    return Promise(id, (place,), made=NOW, due=NOW + due, expires=NOW + 2 * due, waits_for=("ending-0",))


# A code, a world in which `job` waits for that reason, and what the suggestion must say.
HELPED: list[tuple[Code, Snapshot, str]] = [
    (
        Code.QUEUE_LIMIT,
        snapshot(node(), queue(limit="2"), full(2), job(gpu="2")),
        "raise the GPU limit of project team-a from 2 to 4",
    ),
    (Code.QUEUE_LIMIT, snapshot(node(), queue(limit="3"), full(2), job(gpu="2")), "ask for 1 GPU instead of 2"),
    (
        Code.NON_PREEMPTIBLE_OVER_QUOTA,
        snapshot(node(), queue("team-a", "0"), job(is_preemptible=False)),
        "make it preemptible: it may then be evicted for others",
    ),
    (
        Code.OVER_FAIR_SHARE,
        snapshot(
            node(),
            queue("team-a", "4"),
            queue("team-b", "4"),
            running(job("holder", "team-b", "4"), "node-1:0,1,2,3"),
            running(job("mine", gpu="4"), "node-1:4,5,6,7"),
            job(gpu="1"),
        ),
        "raise its priority from 50 to 51",
    ),
    (Code.LARGER_THAN_ANY_NODE, snapshot(node(devices=4), TEAM, job(gpu="6")), "ask for 4 GPU instead of 6"),
    (
        Code.LARGER_THAN_ANY_NODE,
        snapshot(node(cpu="8"), TEAM, job(cpu="10")),
        "ask for 8 CPU instead of 10",
    ),
    (
        Code.LARGER_THAN_ANY_NODE,
        snapshot(node(memory="8Gi"), TEAM, job(memory="10Gi")),
        "ask for 8Gi of memory instead of 10Gi",
    ),
    (Code.LARGER_THAN_POOL, snapshot(node(devices=4), TEAM, job(pods=6)), "run 4 replicas instead of 6"),
    (
        Code.NO_DEVICE_FITS,
        snapshot(node(devices=1), TEAM, running(job("holder", gpu="0.7"), "node-1:0"), job(gpu="0.5")),
        "ask for 0.3 GPU instead of 0.5",
    ),
    (Code.NO_DEVICE_FITS, snapshot(node(devices=1), TEAM, job(gpu="90Gi")), "ask for 80Gi GPU instead of 90Gi"),
    (
        Code.DEVICE_IN_USE,
        snapshot(
            node(
                devices=[device("node-1-gpu-0"), device("node-1-gpu-1", withheld="device-in-use", foreign=(STRANGER,))]
            ),
            TEAM,
            job(gpu="2"),
        ),
        "ask for 1 GPU instead of 2",
    ),
    (
        Code.FRAGMENTED,
        snapshot(
            node(devices=2),
            TEAM,
            running(job("left", gpu="0.5", is_preemptible=False), "node-1:0"),
            running(job("right", gpu="0.5", is_preemptible=False), "node-1:1"),
            job(gpu="1"),
        ),
        "ask for 0.5 GPU instead of 1",
    ),
    (
        Code.NO_FREE_DEVICE,
        snapshot(node(devices=8), TEAM, full(8, is_preemptible=False), job(gpu="1")),
        "stop holder (of the same project)",
    ),
    (
        Code.NO_FREE_CPU,
        snapshot(node(cpu="8"), TEAM, running(job("holder", cpu="6"), "node-1:0"), job(cpu="4")),
        "ask for 2 CPU instead of 4",
    ),
    (
        Code.NO_FREE_MEMORY,
        snapshot(node(memory="8Gi"), TEAM, running(job("holder", memory="6Gi"), "node-1:0"), job(memory="4Gi")),
        "ask for 2Gi of memory instead of 4Gi",
    ),
    (Code.GANG_INCOMPLETE, snapshot(node(devices=8), TEAM, full(6), job(pods=4)), "run 2 replicas instead of 4"),
    (
        Code.NODE_UNAVAILABLE,
        snapshot(node(is_cordoned=True), TEAM, job()),
        "take the cordon from node-1",
    ),
    (
        Code.NODE_UNAVAILABLE,
        snapshot(node(devices=[device("node-1-gpu-0", withheld="cordoned")]), TEAM, job()),
        "take the cordon from device 0 of node-1",
    ),
    (
        Code.BEHIND,
        snapshot(
            node(devices=2), TEAM, releasing(job("ending"), "node-1:0"), job("first", gpu="2"), promised("first"), job()
        ),
        "raise its priority from 50 to 51",
    ),
    (
        Code.POOL_EMPTY,
        snapshot(node(pool="other"), queue("team-a", "8", pool="other"), job()),
        "submit it to pool other instead of default",
    ),
    (Code.QUEUE_HELD, snapshot(node(), replace(TEAM, is_held=True), job()), "release team-a"),
    (
        Code.TAINT,
        snapshot(replace(node(), taints=(Taint("team", "red"),)), TEAM, job()),
        "tolerate the taint team=red:NoSchedule",
    ),
    (
        Code.SELECTOR,
        snapshot(node(), TEAM, asking(job(), nodes=("node-9",))),
        "ask for no particular nodes",
    ),
    (
        Code.LARGER_THAN_ANY_NODE,
        snapshot(node(), TEAM, asking(job(), gpu=GpuRequest(models=("B200",)))),
        "accept any model of GPU",
    ),
    (
        Code.TOPOLOGY,
        replace(
            snapshot(
                replace(node("node-1", 1), labels={"rack": "a"}),
                replace(node("node-2", 1), labels={"rack": "b"}),
                TEAM,
                replace(job(pods=2, min_pods=2), near=Near("net", required="rack")),
            ),
            topologies=(Topology("net", ("rack",)),),
        ),
        "run 1 replica instead of 2",
    ),
    (
        Code.AFFINITY,
        snapshot(
            replace(node("node-1", 2), labels={"host": "one"}),
            TEAM,
            running(asking(job("holder", is_preemptible=False), labels=(("app", "x"),)), "node-1:0"),
            asking(job(), anti_affinity=(Affinity((("app", "x"),), "host"),)),
        ),
        "stop holder (of the same project)",
    ),
    (
        Code.SHARING_MODE,
        snapshot(
            node(devices=1),
            TEAM,
            running(job("holder", gpu="0.5", is_preemptible=False), "node-1:0"),
            asking(job(), gpu=GpuRequest(1, 500, sharing=Sharing.SM_SHARING, is_sharing_required=True)),
        ),
        "prefer sm-sharing instead of requiring it",
    ),
    (
        Code.NO_FREE_RESOURCE,
        snapshot(
            node(),
            TEAM,
            running(asking(job("holder", is_preemptible=False), host_ports=(80,)), "node-1:0"),
            asking(job(), host_ports=(80,)),
        ),
        "stop holder (of the same project)",
    ),
    (
        Code.PREEMPTION_DELAY,
        snapshot(
            node(devices=1),
            TEAM,
            running(job("holder", priority=10, gpu="0.5"), "node-1:0"),
            replace(job(), preemption_delay=timedelta(hours=2)),
        ),
        "ask for 0.5 GPU instead of 1",
    ),
    (
        Code.PROTECTED_MIN_RUNTIME,
        snapshot(
            node(devices=1),
            replace(TEAM, preempt_min_runtime=timedelta(hours=2)),
            running(job("holder", priority=10, gpu="0.5"), "node-1:0"),
            job(),
        ),
        "ask for 0.5 GPU instead of 1",
    ),
]

# A code, a world in which nothing that one change mends starts `job`, and what is said instead.
UNHELPED: list[tuple[Code, Snapshot, str]] = [
    (Code.NO_SUCH_QUEUE, snapshot(node(), job(queue="nowhere")), "an administrator has to make the project nowhere"),
    (Code.POOL_EMPTY, snapshot(TEAM, job()), "bring nodes into pool default"),
    (
        Code.UNMET_DEPENDENCY,
        snapshot(node(), TEAM, having(job(), unmet="volume data does not exist")),
        "it starts by itself once that is there",
    ),
    (
        Code.BACKING_OFF,
        snapshot(node(), TEAM, job(not_before=NOW + timedelta(minutes=5))),
        "it tries again by itself at 12:05:00",
    ),
    (
        Code.WAITING_FOR_RELEASE,
        snapshot(node(devices=1), TEAM, releasing(job("ending"), "node-1:0"), job()),
        "starts by itself once that is free",
    ),
    (
        Code.DEVICE_IN_USE,
        snapshot(node(devices=[device("node-1-gpu-0", withheld="device-in-use", foreign=(STRANGER,))]), TEAM, job()),
        "who runs process 4711 of eve can end it",
    ),
    (
        Code.NODE_UNAVAILABLE,
        snapshot(node(devices=[device("node-1-gpu-0", withheld="lost")]), TEAM, job()),
        "bring back what is away",
    ),
    (
        Code.NO_FREE_DEVICE,
        snapshot(
            node(devices=2),
            TEAM,
            *(running(job(f"holder-{index}", is_preemptible=False), f"node-1:{index}") for index in range(2)),
            job(gpu="2"),
        ),
        "more than one of these would have to change",
    ),
]


@pytest.mark.parametrize(("code", "world", "said"), HELPED, ids=lambda one: str(one)[:40])
def test_the_change_that_is_suggested_starts_the_workload(code: Code, world: Snapshot, said: str) -> None:
    found = explained(world)

    assert found.reason is not None
    assert found.reason.code is code
    assert found.suggestion is not None, found.no_suggestion_because
    assert found.suggestion.description == said
    assert starts(change.overlay(world, [found.suggestion.change]))


@pytest.mark.parametrize(("code", "world", "said"), UNHELPED, ids=lambda one: str(one)[:40])
def test_where_no_change_helps_it_is_said_who_can_or_until_when(code: Code, world: Snapshot, said: str) -> None:
    found = explained(world)

    assert found.reason is not None
    assert found.reason.code is code
    assert found.suggestion is None, found.suggestion
    assert said in (found.no_suggestion_because or "")


def test_a_workload_that_starts_now_has_no_reason() -> None:
    assert explained(snapshot(node(), TEAM, job())) == Explanation(reason=None)


def test_a_workload_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match="nobody"):
        explained(snapshot(node(), TEAM), "nobody")


def test_a_cycle_whose_steps_ended_says_that_the_next_one_goes_on() -> None:
    found = explained(snapshot(node(), TEAM, job()), policy=replace(POLICY, step_budget=0))

    assert found.reason is not None
    assert found.reason.code is Code.BUDGET
    assert "goes on in the next cycle" in (found.no_suggestion_because or "")


def test_every_reason_code_has_a_world() -> None:
    assert {code for code, *_ in (*HELPED, *UNHELPED)} | {Code.BUDGET} == set(Code)


def test_a_limit_of_nothing_is_the_reason_and_not_the_size_of_the_nodes() -> None:
    found = explained(snapshot(node(), queue(limit="0"), job()))

    assert found.reason is not None
    assert found.reason.code is Code.QUEUE_LIMIT


def test_who_would_be_evicted_is_named_and_left_alone_where_a_smaller_request_does() -> None:
    holder = running(job("holder", gpu="2"), "node-1:0,1")
    crowded = snapshot(node(devices=2), TEAM, holder, job(gpu="1"))
    roomy = snapshot(node(devices=3), TEAM, holder, job(gpu="2"))

    evicting, sparing = explained(crowded).suggestion, explained(roomy).suggestion

    assert evicting is not None
    assert (evicting.outcome, evicting.evicts, evicting.who_can) == ("starts-after-evictions", ("holder",), "owner")
    assert sparing is not None
    assert (sparing.outcome, sparing.evicts) == ("starts", ())
    assert sparing.description == "ask for 1 GPU instead of 2"


def test_of_those_that_could_be_stopped_the_own_project_and_the_least_work_come_first() -> None:
    world = snapshot(
        node(devices=3),
        TEAM,
        queue("team-b", "8"),
        running(job("foreign", "team-b", is_preemptible=False), "node-1:0", started=timedelta(minutes=1)),
        running(job("old", is_preemptible=False), "node-1:1", started=timedelta(hours=9)),
        running(job("young", is_preemptible=False), "node-1:2", started=timedelta(hours=1)),
        job(),
    )

    suggestion = explained(world).suggestion

    assert suggestion is not None
    assert (suggestion.description, suggestion.who_can) == ("stop young (of the same project)", "project")


# Random worlds against trying all.

GPUS = (None, "1", "1", "2", "3", "0.5", "0.3", "20Gi", "50Gi", "2x0.5")


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """A small cluster on which some work runs where the engine put it, and `job` waits with some others."""
    nodes = [
        node(
            f"node-{number}",
            [
                device(
                    f"node-{number}-gpu-{index}",
                    withheld=draw(st.sampled_from((None, None, None, None, None, "cordoned", "lost", "device-in-use"))),
                    foreign=(),
                )
                for index in range(draw(st.integers(1, 3)))
            ],
            cpu="8",
            memory="64Gi",
            is_cordoned=draw(st.integers(0, 7)) == 0,
        )
        for number in range(draw(st.integers(1, 2)))
    ]
    quotas = st.sampled_from(("0", "1", "2", "4"))
    limits = st.sampled_from((None, None, None, "1", "2", "3"))
    queues = [queue("department", draw(quotas), limit=draw(limits))]
    queues += [queue(name, draw(quotas), limit=draw(limits), parent="department") for name in ("team-a", "team-b")]
    queues.append(queue("team-c", draw(quotas)))
    early = snapshot(*nodes, *queues, *(draw(jobs(f"holder-{index}")) for index in range(draw(st.integers(0, 5)))))
    late = [draw(jobs(f"waiting-{index}")) for index in range(draw(st.integers(0, 2)))]
    return replace(started(early), workloads=(*started(early).workloads, *late, draw(jobs("job"))))


@st.composite
def jobs(draw: st.DrawFn, id: str) -> Workload:
    """A workload that waits."""
    return job(
        id,
        draw(st.sampled_from(("team-a", "team-a", "team-b", "team-c"))),
        draw(st.sampled_from(GPUS)),
        pods=draw(st.sampled_from((1, 1, 1, 2, 3))),
        cpu=draw(st.sampled_from(("0", "0", "2", "7", "9"))),
        memory=draw(st.sampled_from(("0", "0", "16Gi", "60Gi"))),
        priority=draw(st.sampled_from((25, 50, 50, 75))),
        is_preemptible=draw(st.booleans()),
        waits=timedelta(minutes=draw(st.integers(1, 90))),
    )


def started(world: Snapshot) -> Snapshot:
    """The world after one cycle: what it bound runs, what waits is not there any more."""
    places = {one.place.pod: one.place for one in scheduler.schedule(world, POLICY, NOW).binds}
    workloads = []
    for workload in world.workloads:
        pods = tuple(
            replace(pod, state=PodState.RUNNING, node=places[pod.id].node, shares=places[pod.id].shares)
            for pod in workload.pods
            if pod.id in places
        )
        if pods:
            workloads.append(replace(workload, pods=pods, started=NOW - timedelta(minutes=30)))
    return replace(world, workloads=tuple(workloads))


def everything(world: Snapshot) -> Iterator[change.Change]:
    """One change after the other, of all kinds but the end of others, on a grid; not as `explain` looks for them."""
    own = next(one for one in world.workloads if one.id == "job")
    asked = own.pods[0].request
    if asked.gpu is not None:
        yield from (change.SetGpu("job", replace(asked.gpu, devices=count)) for count in range(1, asked.gpu.devices))
        sizes = range(1, asked.gpu.milli, 30) if asked.gpu.milli else range(1, asked.gpu.mib or 1, 2000)
        for size in sizes:
            smaller = replace(asked.gpu, milli=size) if asked.gpu.milli else replace(asked.gpu, mib=size)
            yield change.SetGpu("job", smaller)
    yield from (change.SetReplicas("job", count) for count in range(1, len(own.pods)))
    yield from (change.SetCpu("job", amount) for amount in range(1, asked.milli_cpus, 500))
    yield from (change.SetMemory("job", amount) for amount in range(2**20, asked.memory_bytes, 2**32))
    yield from (change.UncordonNode(one.id) for one in world.nodes if one.is_cordoned)
    yield from (
        change.OfferDevice(one.id) for node in world.nodes for one in node.devices if one.withheld == "cordoned"
    )
    yield from (change.SetPriority("job", priority) for priority in (51, 76, 101, 999) if priority > own.priority)
    yield change.SetPreemptible("job", not own.is_preemptible)
    for one in world.queues:
        terms = one.terms_in("default")
        for amount in range(0, 16_000, 500):
            if own.queue != one.id and not (one.id == "department" and own.queue != "team-c"):
                continue
            if terms.gpu.quota is not None and amount > terms.gpu.quota:
                yield change.SetTerms(one.id, "default", replace(terms, gpu=replace(terms.gpu, quota=amount)))
            if terms.gpu.limit is not None and amount > terms.gpu.limit:
                yield change.SetTerms(one.id, "default", replace(terms, gpu=replace(terms.gpu, limit=amount)))


def evicted_with(world: Snapshot, changed: change.Change) -> set[str] | None:
    """The workloads that are evicted for `job` after a change; None if it goes on waiting."""
    plan = scheduler.schedule(change.overlay(world, [changed]), POLICY, NOW)
    if "job" not in {one.workload for one in plan.binds} | {one.workload for one in plan.nominates}:
        return None
    return {one.workload for one in plan.evicts if one.beneficiary == "job"}


def works(world: Snapshot, changes: Iterable[change.Change]) -> list[change.Change]:
    """Those that start `job`."""
    return [one for one in changes if evicted_with(world, one) is not None]


ENDS_BY_ITSELF = frozenset({Code.BACKING_OFF, Code.WAITING_FOR_RELEASE, Code.NO_SUCH_QUEUE})


@pytest.mark.slow  # Each of fifty worlds is planned dozens of times, once for each change that is tried.
@hypothesis.given(worlds())
def test_a_suggestion_always_works_and_where_any_change_does_there_is_one(world: Snapshot) -> None:
    found = explained(world)
    if found.reason is None or found.reason.code in ENDS_BY_ITSELF:
        return
    if found.suggestion is not None:
        evicted = evicted_with(world, found.suggestion.change)
        assert evicted is not None, found.suggestion
        assert evicted == set(found.suggestion.evicts)
        is_last_resort = isinstance(found.suggestion.change, change.RemoveWorkload)
        if found.suggestion.outcome == "starts" and not is_last_resort:
            return
        better = [one for one in everything(world) if evicted_with(world, one) == set()]
        assert not better, (found.suggestion.description, better[0])
        if is_last_resort:
            assert not works(world, everything(world)), found.suggestion.description
        return
    ends = (change.RemoveWorkload(one.id) for one in world.workloads if one.id != "job")
    assert not works(world, itertools.chain(everything(world), ends)), found.no_suggestion_because


def test_a_limit_of_what_it_does_not_ask_for_is_raised_for_another_to_whom_it_is_drawn() -> None:
    web = asking(job("web", gpu=None, cpu="2"), labels=(("app", "web"),))
    drawn = asking(job(gpu=None, memory="1Gi"), affinity=(Affinity((("app", "web"),), "host"),))
    here = replace(node(), labels={"host": "one"})
    world = snapshot(here, queue(cpu=builders.claim(limit="1")), web, drawn)

    suggestion = explained(world).suggestion

    assert suggestion is not None
    assert suggestion.description == "raise the CPU limit of project team-a from 1 to 2"
    assert starts(change.overlay(world, [suggestion.change]))
