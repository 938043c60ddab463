"""Laws of a cycle, on random small clusters in which work already runs, is ending, and waits."""

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core import change, schedule
from aliquot.core.change import AddQueue, AddWorkload, RemoveWorkload, SetPriority, SetTerms
from aliquot.core.model import (
    Claim,
    Place,
    Pod,
    PodState,
    Policy,
    PoolTerms,
    Promise,
    Queue,
    Snapshot,
    Workload,
)
from aliquot.core.plan import Plan
from tests.builders import NOW, job, node, queue, snapshot

pytestmark = pytest.mark.slow
"""A law is tried on many clusters."""

EXAMPLES = settings().max_examples
"""Of the profile in use: `make prop` tries many more."""

T = TypeVar("T")
Drawn = tuple[str, str | None, int, str, int, bool, int]

LEAVES = ("a", "b", "c")

NODES = st.lists(
    st.tuples(st.sampled_from([4, 3, 2, 1, 0]), st.sampled_from(["4", "16"]), st.sampled_from(["24Gi", "80Gi"])),
    min_size=1,
    max_size=3,
)
GPU_CLAIMS = st.builds(
    Claim,
    quota=st.sampled_from([0, 1000, 2000, 4000, None]),
    weight=st.integers(0, 2),
    limit=st.sampled_from([None, None, 2000, 5000]),
)
CPU_CLAIMS = st.sampled_from([Claim(), Claim(quota=2000), Claim(quota=4000, limit=8000)])
TERMS = st.builds(PoolTerms, gpu=GPU_CLAIMS, cpu=CPU_CLAIMS, priority=st.sampled_from([100, 200]))
TREES = st.tuples(st.lists(TERMS, min_size=4, max_size=4), st.booleans())
JOBS = st.tuples(
    st.sampled_from(LEAVES),
    st.sampled_from(["1", "1", "1", "2", "0.5", "0.3", "2x0.5", "10Gi", "30Gi", None]),
    st.sampled_from([1, 1, 1, 2, 3]),
    st.sampled_from(["0", "0", "1", "3"]),
    st.sampled_from([50, 60, 100]),
    st.sampled_from([True, True, True, False]),
    st.integers(0, 90),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A snapshot in which some run and some wait, and the plan that is made of it."""

    taken: Snapshot
    made: Plan


def plan(taken: Snapshot) -> Plan:
    return schedule.schedule(taken, Policy(), NOW)


def tree(terms: list[PoolTerms], *, is_deep: bool) -> list[Queue]:
    """Three projects, or a department with two of them beside the third."""
    queues = [queue(id, parent="d" if is_deep and id != "c" else None) for id in LEAVES]
    queues += [queue("d")] if is_deep else []
    return [replace(one, terms={"default": of_one}) for one, of_one in zip(queues, terms, strict=False)]


def jobs(prefix: str, drawn: list[Drawn]) -> list[Workload]:
    return [
        job(
            f"{prefix}{index}",
            leaf,
            gpu,
            pods=pods,
            min_pods=1 if pods == 3 else None,
            cpu=cpu,
            priority=priority,
            is_preemptible=is_preemptible,
            waits=timedelta(minutes=minutes),
        )
        for index, (leaf, gpu, pods, cpu, priority, is_preemptible, minutes) in enumerate(drawn)
    ]


def carry_out(taken: Snapshot, made: Plan, *, now: datetime = NOW) -> Snapshot:
    """What a perfect machine makes of a plan in an instant: bound pods run, evicted ones are ending."""
    places = {one.place.pod: one.place for one in made.binds}
    told = {one.pod for one in made.evicts}

    def after(pod: Pod) -> Pod:
        if pod.id in places:
            return replace(pod, state=PodState.RUNNING, node=places[pod.id].node, shares=places[pod.id].shares)
        return replace(pod, state=PodState.RELEASING) if pod.id in told else pod

    def carried(workload: Workload) -> Workload:
        is_started = any(pod.id in places for pod in workload.pods)
        pods = tuple(after(pod) for pod in workload.pods)
        return replace(workload, pods=pods, started=now if is_started else workload.started)

    promises = (
        Promise(
            one.workload,
            one.places,
            made=one.due - (one.expires - one.due),
            due=one.due,
            expires=one.expires,
            waits_for=one.waits_for,
            may_evict=one.may_evict,
        )
        for one in made.nominates
    )
    return replace(taken, workloads=tuple(carried(one) for one in taken.workloads), promises=tuple(promises))


def with_more(taken: Snapshot, more: list[Workload]) -> Snapshot:
    return change.overlay(taken, [AddWorkload(one) for one in more])


def ending(taken: Snapshot, ids: set[str]) -> Snapshot:
    """These workloads are told to end by their owners."""

    def told(pod: Pod) -> Pod:
        return replace(pod, state=PodState.RELEASING) if pod.state is PodState.RUNNING else pod

    workloads = (
        replace(one, pods=tuple(told(pod) for pod in one.pods)) if one.id in ids else one for one in taken.workloads
    )
    return replace(taken, workloads=tuple(workloads))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Some jobs are started in an empty cluster, some of them are told to end, then more come."""
    terms, is_deep = draw(TREES)
    parts = [
        node(f"node-{index}", devices, cpu=cpu, device_memory=memory)
        for index, (devices, cpu, memory) in enumerate(draw(NODES))
    ]
    first = jobs("old-", draw(st.lists(JOBS, min_size=3, max_size=9)))
    start = snapshot(*parts, *tree(terms, is_deep=is_deep), *first)
    before = carry_out(start, plan(start))
    running = [one.id for one in before.workloads if one.pods[0].state is PodState.RUNNING]
    before = ending(before, set(draw(st.lists(st.sampled_from(running), max_size=2))) if running else set())
    taken = with_more(before, jobs("new-", draw(st.lists(JOBS, min_size=2, max_size=6))))
    if draw(st.booleans()):
        taken = with_more(carry_out(taken, plan(taken)), jobs("newest-", draw(st.lists(JOBS, min_size=1, max_size=3))))
    return Case(taken, plan(taken))


def taken_of_devices(places: list[tuple[Place, Pod]]) -> dict[str, tuple[int, int]]:
    """By device: its MiB and the thousandths of compute that portions take of it."""
    used: dict[str, tuple[int, int]] = {}
    for place, pod in places:
        for share in place.shares:
            mib, milli = used.get(share.device, (0, 0))
            is_portion = pod.request.gpu is not None and pod.request.gpu.mib is None
            used[share.device] = (mib + share.mib, milli + (share.milli if is_portion else 0))
    return used


def holders(case: Case, *, view: str) -> list[tuple[Place, Pod]]:
    """Who holds what: "now" with all that is still ending, "later" without it but with what is promised."""
    pods = {pod.id: pod for one in case.taken.workloads for pod in one.pods}
    told = {one.pod for one in case.made.evicts}
    found = [(one.place, pods[one.place.pod]) for one in case.made.binds]
    for pod in pods.values():
        is_leaving = pod.state is PodState.RELEASING or pod.id in told
        if pod.state is PodState.RUNNING and not (view == "later" and is_leaving):
            found.append((Place(pod.id, pod.node or "", pod.shares), pod))
        if pod.state is PodState.RELEASING and view == "now":
            found.append((Place(pod.id, pod.node or "", pod.shares), pod))
    if view == "later":
        found += [(place, pods[place.pod]) for one in case.made.nominates for place in one.places]
    return found


def room_left(case: Case, *, view: str) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Free [milli-CPU, bytes] by node and free [MiB, thousandths] by device."""
    nodes = {one.id: [one.milli_cpus, one.memory_bytes] for one in case.taken.nodes}
    devices = {device.id: [device.memory_mib, 1000] for one in case.taken.nodes for device in one.devices}
    places = holders(case, view=view)
    for place, pod in places:
        nodes[place.node][0] -= pod.request.milli_cpus
        nodes[place.node][1] -= pod.request.memory_bytes
    for id, (mib, milli) in taken_of_devices(places).items():
        devices[id][0] -= mib
        devices[id][1] -= milli
    return nodes, devices


@given(cases())
@settings(max_examples=4 * EXAMPLES)
def test_no_node_and_no_device_is_ever_given_twice(case: Case) -> None:
    for view in ("now", "later"):
        nodes, devices = room_left(case, view=view)

        assert min((amount for free in nodes.values() for amount in free), default=0) >= 0
        assert min((amount for free in devices.values() for amount in free), default=0) >= 0


@given(cases())
@settings(max_examples=2 * EXAMPLES)
def test_every_share_is_what_was_asked_on_devices_of_its_node(case: Case) -> None:
    pods = {pod.id: pod for one in case.taken.workloads for pod in one.pods}
    offers = {device.id: (device.memory_mib, one.id) for one in case.taken.nodes for device in one.devices}
    for place in [one.place for one in case.made.binds] + [
        place for one in case.made.nominates for place in one.places
    ]:
        gpu = pods[place.pod].request.gpu
        assert len({share.device for share in place.shares}) == len(place.shares) == (gpu.devices if gpu else 0)
        for share in place.shares:
            offer, of_node = offers[share.device]
            assert of_node == place.node
            assert gpu is not None
            if gpu.mib is None:
                assert (share.milli, share.mib) == (gpu.milli, offer * (gpu.milli or 0) // 1000)
            else:
                assert (share.milli, share.mib) == (-(-1000 * gpu.mib // offer), gpu.mib)


@given(cases())
@settings(max_examples=2 * EXAMPLES)
def test_a_gang_starts_with_its_minimum_or_not_at_all(case: Case) -> None:
    started = {one.workload for one in case.made.binds}
    in_place = {one.place.pod for one in case.made.binds}
    in_place |= {pod.id for one in case.taken.workloads for pod in one.pods if pod.state is PodState.RUNNING}
    in_place -= {one.pod for one in case.made.evicts}

    for workload in case.taken.workloads:
        there = sum(pod.id in in_place for pod in workload.pods)
        assert workload.id not in started or there >= workload.min_pods


def _waits(pod: Pod, bound: set[str]) -> bool:
    return pod.state is PodState.PENDING and pod.id not in bound


@given(cases())
@settings(max_examples=2 * EXAMPLES)
def test_everyone_pending_is_bound_or_waits_with_a_reason(case: Case) -> None:
    pending = {one.id for one in case.taken.workloads if any(pod.state is PodState.PENDING for pod in one.pods)}
    told = {one.workload for one in case.made.evicts}
    bound = {one.place.pod for one in case.made.binds}
    left = {one.id for one in case.taken.workloads if any(_waits(pod, bound) for pod in one.pods)}
    waiting = [one.workload for one in case.made.waits]
    promised = {one.workload for one in case.made.nominates}  # What is moved has its new place while it ends.

    assert left <= set(waiting) <= pending | told | promised
    assert len(set(waiting)) == len(waiting)
    assert promised <= set(waiting)


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=2 * EXAMPLES)
def test_the_order_of_the_input_does_not_matter(case: Case, rng: random.Random) -> None:
    def shuffled(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(rng.sample(values, len(values)))

    workloads = tuple(replace(one, pods=shuffled(one.pods)) for one in case.taken.workloads)
    other = Snapshot(
        nodes=shuffled(tuple(replace(one, devices=shuffled(one.devices)) for one in case.taken.nodes)),
        queues=shuffled(case.taken.queues),
        workloads=shuffled(workloads),
        promises=shuffled(case.taken.promises),
    )

    assert plan(other) == case.made


@given(cases(), JOBS, TERMS)
def test_a_plan_of_an_overlay_is_the_plan_of_the_same_world_built_afresh(
    case: Case, drawn: Drawn, terms: PoolTerms
) -> None:
    extra = jobs("extra-", [drawn])[0]
    other = queue("e")
    changes: list[change.Change] = [
        AddWorkload(extra),
        AddQueue(other),
        SetTerms("a", "default", terms),
    ]
    changes.append(SetPriority(extra.id, 70))
    gone = case.taken.workloads[0].id if case.taken.workloads else None
    changes += [RemoveWorkload(gone)] if gone else []

    laid_over = plan(change.overlay(case.taken, changes))

    workloads = [one for one in case.taken.workloads if one.id != gone] + [replace(extra, priority=70)]
    queues = [replace(one, terms={"default": terms}) if one.id == "a" else one for one in case.taken.queues]
    afresh = Snapshot(
        nodes=case.taken.nodes,
        queues=(other, *queues),
        workloads=tuple(workloads),
        promises=tuple(one for one in case.taken.promises if one.workload != gone),
    )
    assert laid_over == plan(afresh)


def accounts(case: Case, leaf: str) -> list[str]:
    parents = {one.id: one.parent for one in case.taken.queues}
    path = [leaf]
    while (above := parents[path[-1]]) is not None:
        path.append(above)
    return path


def held_by(case: Case, id: str, *, view: str, only_fixed: bool = False) -> list[int]:
    """[milli-GPU, milli-CPU, bytes] of a queue and all below it."""
    owner = {pod.id: one for one in case.taken.workloads for pod in one.pods}
    total = [0, 0, 0]
    for place, pod in holders(case, view=view):
        workload = owner[pod.id]
        if id in accounts(case, workload.queue) and not (only_fixed and workload.is_preemptible):
            total[0] += sum(share.milli for share in place.shares)
            total[1] += pod.request.milli_cpus
            total[2] += pod.request.memory_bytes
    return total


@given(cases())
@settings(max_examples=2 * EXAMPLES)
def test_no_limit_is_passed_by_anything_that_starts_or_is_promised(case: Case) -> None:
    for one in case.taken.queues:
        terms = one.terms_in("default")
        for view in ("now", "later"):
            held = held_by(case, one.id, view=view)
            for amount, limit in zip(held, (terms.gpu.limit, terms.cpu.limit, terms.memory.limit), strict=True):
                assert limit is None or amount <= limit


@given(cases())
@settings(max_examples=2 * EXAMPLES)
def test_work_that_may_not_be_preempted_stays_within_every_quota_and_is_no_victim(case: Case) -> None:
    workloads = {one.id: one for one in case.taken.workloads}
    assert all(workloads[one.workload].is_preemptible for one in case.made.evicts)
    for one in case.taken.queues:
        terms = one.terms_in("default")
        held = held_by(case, one.id, view="now", only_fixed=True)
        for amount, quota in zip(held, (terms.gpu.quota, terms.cpu.quota, terms.memory.quota), strict=True):
            assert quota is None or amount <= quota


@given(cases())
@settings(max_examples=4 * EXAMPLES)
def test_an_eviction_is_for_one_who_then_has_the_room(case: Case) -> None:
    served = {one.workload for one in case.made.binds} | {one.workload for one in case.made.nominates}
    waits_for = {pod for one in case.made.nominates for pod in one.waits_for}
    bound = {one.workload for one in case.made.binds}

    for one in case.made.evicts:
        assert one.beneficiary in served
        assert one.pod in waits_for or one.beneficiary in bound
        assert one.workload not in bound


@given(cases())
def test_an_undisturbed_cluster_comes_to_rest_and_no_two_evict_each_other(case: Case) -> None:
    taken, made, pairs = case.taken, case.made, set[tuple[str, str]]()
    for number in range(20):
        now = NOW + number * timedelta(seconds=10)
        made = schedule.schedule(taken, Policy(), now)
        pairs |= {(one.beneficiary, one.workload) for one in made.evicts}
        taken = ended(carry_out(taken, made, now=now), taken)

    assert not made.evicts
    assert not made.binds
    assert not any((victim, taker) in pairs for taker, victim in pairs)


def ended(taken: Snapshot, before: Snapshot) -> Snapshot:
    """What was ending before is gone now, and waits again."""
    was_ending = {pod.id for one in before.workloads for pod in one.pods if pod.state is PodState.RELEASING}

    def gone(pod: Pod) -> Pod:
        is_gone = pod.id in was_ending
        return replace(pod, state=PodState.PENDING, node=None, shares=()) if is_gone else pod

    workloads = (replace(one, pods=tuple(gone(pod) for pod in one.pods)) for one in taken.workloads)
    return replace(taken, workloads=tuple(workloads))


@given(cases())
@settings(max_examples=4 * EXAMPLES)
def test_no_single_pod_waits_that_fits(case: Case) -> None:
    promised = {one.workload for one in case.made.nominates}
    waiting = {one.workload for one in case.made.waits} - promised
    now, later = room_left(case, view="now"), room_left(case, view="later")
    for workload in case.taken.workloads:
        pending = [pod for pod in workload.pods if pod.state is PodState.PENDING]
        if workload.id not in waiting or len(workload.pods) != 1 or len(pending) != 1:
            continue
        assert not any(fits(case, one.id, workload, rooms=(now, later)) for one in case.taken.nodes)


def fits(
    case: Case,
    node_id: str,
    workload: Workload,
    *,
    rooms: tuple[tuple[dict[str, list[int]], dict[str, list[int]]], ...],
) -> bool:
    """The plainest placement: whether the only pod of a workload fits on a node, now and with all promises kept."""
    request, gpu = workload.pods[0].request, workload.pods[0].request.gpu
    of_node = next(one for one in case.taken.nodes if one.id == node_id)
    for nodes, _ in rooms:
        if request.milli_cpus and request.milli_cpus > nodes[node_id][0]:
            return False
        if request.memory_bytes and request.memory_bytes > nodes[node_id][1]:
            return False
    charges: list[int] = []
    for device in of_node.devices:
        mib = device.memory_mib * (gpu.milli or 0) // 1000 if gpu and gpu.mib is None else gpu.mib or 0 if gpu else 0
        milli = 0 if gpu is None or gpu.mib is not None else gpu.milli or 0
        if all(devices[device.id][0] >= mib and devices[device.id][1] >= milli for _, devices in rooms):
            charges.append(milli or -(-1000 * mib // device.memory_mib))
    if gpu is not None and len(charges) < gpu.devices:
        return False
    asked = [sum(sorted(charges)[: gpu.devices]) if gpu else 0, request.milli_cpus, request.memory_bytes]
    return all(has_terms(case, id, workload, asked=asked) for id in accounts(case, workload.queue))


def has_terms(case: Case, id: str, workload: Workload, *, asked: list[int]) -> bool:
    terms = next(one for one in case.taken.queues if one.id == id).terms_in("default")
    promised = [0, 0, 0]
    for kept in case.made.nominates:
        owner = next(known for known in case.taken.workloads if known.id == kept.workload)
        if id in accounts(case, owner.queue):
            pods = {pod.id: pod for pod in owner.pods}
            for place in kept.places:
                promised[0] += sum(share.milli for share in place.shares)
                promised[1] += pods[place.pod].request.milli_cpus
                promised[2] += pods[place.pod].request.memory_bytes
    held, fixed = held_by(case, id, view="now"), held_by(case, id, view="now", only_fixed=True)
    for index, bounds in enumerate((terms.gpu, terms.cpu, terms.memory)):
        if not asked[index]:
            continue
        if bounds.limit is not None and held[index] + promised[index] + asked[index] > bounds.limit:
            return False
        if not workload.is_preemptible and bounds.quota is not None and fixed[index] + asked[index] > bounds.quota:
            return False
    return True
