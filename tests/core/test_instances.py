"""MIG instances and sharing modes in a cycle: where they go, their charge, and what is said where they do not fit."""

from dataclasses import replace
from datetime import timedelta

import pytest

from aliquot.core import explain, fitting, mig
from aliquot.core.model import (
    Device,
    GpuRequest,
    MigProfile,
    Place,
    PodState,
    Policy,
    Promise,
    Share,
    Sharing,
    Snapshot,
    Workload,
)
from aliquot.core.plan import Code, Plan, Rule
from tests.builders import NOW, Part, asking, device, job, node, queue, running, snapshot
from tests.core.outcomes import GRACE, code_of, evicted, nominated, plan

PROFILES = mig.profiles_for("H100", 81_920)
CUT = replace(device("node-1-gpu-0"), profiles=PROFILES)


def named(name: str) -> MigProfile:
    return next(one for one in PROFILES if one.name == name)


def fixed(index: int, profile: str) -> Device:
    """An instance that is there for good."""
    one = named(profile)
    return replace(device(f"node-1-gpu-{index}"), memory_mib=one.memory_mib, instance=one)


def instance(id: str, profile: str, queue: str = "a", devices: int = 1, **more: int) -> Workload:
    return asking(job(id, queue, **more), gpu=GpuRequest(devices, None, profile=profile))  # type: ignore[arg-type]  # ints only


def held(workload: Workload, profile: str, start: int | None, device_id: str = "node-1-gpu-0") -> Workload:
    """The workload, running on an instance."""
    one = named(profile)
    share = Share(device_id, mig.charge(one, 7), one.memory_mib, start)
    held = running(workload, "node-1")
    return replace(held, pods=(replace(held.pods[0], shares=(share,)),))


def shares_of(made: Plan) -> list[tuple[str, int, int | None]]:
    """By pod, where its instance begins and what it is charged."""
    return [(one.workload, share.milli, share.start) for one in made.binds for share in one.place.shares]


def why(taken: Snapshot, id: str = "job") -> str:
    return next(one.reason.message for one in plan(taken).waits if one.workload == id)


def suggested(taken: Snapshot, id: str = "job") -> str:
    found = explain.explain(taken, id, policy=Policy(), now=NOW).suggestion
    return "" if found is None else found.description


# Instances that are made


def test_instances_are_made_one_after_the_other_and_charged_by_their_compute() -> None:
    made = plan(snapshot(node(devices=[CUT]), queue("a", "1"), instance("one", "3g.40gb"), instance("two", "4g.40gb")))

    assert sorted(shares_of(made)) == [("one", 428, 4), ("two", 571, 0)]


def test_no_more_instances_are_made_than_the_slices_allow() -> None:
    gang = instance("gang", "2g.20gb", pods=4)
    taken = snapshot(node(devices=[CUT]), queue("a", "8"), gang)

    assert not plan(taken).binds
    assert len(plan(snapshot(node(devices=[CUT]), queue("a", "8"), instance("gang", "2g.20gb", pods=3))).binds) == 3


def test_an_instance_keeps_off_the_slices_of_those_that_run() -> None:
    made = plan(snapshot(node(devices=[CUT]), queue("a", "8"), held(instance("old", "3g.40gb"), "3g.40gb", 0),
                         instance("new", "3g.40gb")))  # fmt: skip

    assert shares_of(made) == [("new", 428, 4)]


def test_where_the_slices_are_taken_it_is_said_and_a_smaller_instance_is_suggested() -> None:
    taken = snapshot(
        node(devices=[CUT]), queue("a", "8"), held(instance("old", "3g.40gb"), "3g.40gb", 4), instance("job", "7g.80gb")
    )

    assert code_of(plan(taken), "job") is Code.NO_DEVICE_FITS
    assert why(taken).endswith("no GPU has the memory slices for it free, one after the other")
    assert suggested(taken) == "ask for 4g.40gb GPU instead of 7g.80gb"


def test_two_instances_of_one_pod_are_on_two_devices() -> None:
    other = replace(CUT, id="node-1-gpu-1", index=1)

    made = plan(snapshot(node(devices=[CUT, other]), queue("a", "8"), instance("job", "1g.10gb", devices=2)))

    assert {share.device for one in made.binds for share in one.place.shares} == {CUT.id, other.id}


def test_smaller_instances_are_suggested_where_fewer_are_not_enough() -> None:
    devices = [replace(CUT, id=f"node-1-gpu-{index}", index=index) for index in range(2)]
    old = [held(instance(f"old{one.index}", "1g.10gb"), "1g.10gb", 6, one.id) for one in devices]
    taken = snapshot(node(devices=devices), queue("a", "8"), *old, instance("job", "7g.80gb", devices=2))

    assert suggested(taken) == "ask for 2x4g.40gb GPU instead of 2x7g.80gb"


def test_an_instance_with_as_much_memory_and_less_compute_is_smaller() -> None:
    old = held(instance("old", "1g.10gb", is_preemptible=0), "1g.10gb", 0)
    taken = snapshot(node(devices=[CUT]), queue("a", "8"), old, instance("job", "4g.40gb"))

    assert suggested(taken) == "ask for 3g.40gb GPU instead of 4g.40gb"


def test_a_device_in_mig_mode_takes_nothing_else() -> None:
    taken = snapshot(node(devices=[CUT]), queue("a", "8"), job(queue="a"))

    assert code_of(plan(taken), "job") is Code.LARGER_THAN_ANY_NODE
    assert "only MIG instances are offered by the nodes" in why(taken)


def test_no_device_offers_the_instance_that_is_asked_for() -> None:
    taken = snapshot(node(), queue("a", "8"), instance("job", "1g.10gb"))

    assert "there is no GPU for such an instance in the nodes" in why(taken)
    assert "needs 1 MIG instance 1g.10gb" in why(taken)


def test_a_device_in_mig_mode_does_not_offer_the_instances_of_another_card() -> None:
    taken = snapshot(node(devices=[CUT]), queue("a", "8"), instance("job", "1g.5gb"))

    assert not plan(taken).binds
    assert suggested(taken) == "ask for 1g.10gb GPU instead of 1g.5gb"


def test_a_higher_priority_has_an_instance_ended_for_its_own() -> None:
    low = held(instance("low", "7g.80gb", priority=10), "7g.80gb", 0)

    made = plan(snapshot(node(devices=[CUT]), queue("a", "8"), low, instance("urgent", "1g.10gb", priority=100)))

    assert evicted(made) == ["low-0"]
    assert nominated(made) == ["urgent"]


def test_work_is_moved_to_other_slices_where_that_makes_room() -> None:
    old = held(instance("old", "1g.10gb"), "1g.10gb", 0)

    made = plan(snapshot(node(devices=[CUT]), queue("a", "8"), old, instance("job", "4g.40gb")))

    assert [(one.pod, one.rule) for one in made.evicts] == [("old-0", Rule.CONSOLIDATE)]
    assert {one.workload: one.places[0].shares[0].start for one in made.nominates} == {"job": 0, "old": 4}


def test_promised_slices_are_kept_and_taken_at_their_place() -> None:
    old = held(instance("old", "3g.40gb"), "3g.40gb", 0)
    pod = replace(old.pods[0], state=PodState.RELEASING, release_due=NOW + GRACE)
    ending = replace(old, pods=(pod,))
    following = instance("following", "7g.80gb")
    place = Place("following-0", "node-1", (Share(CUT.id, 1000, 81_920, 0),))
    promise = Promise("following", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE, waits_for=("old-0",))
    others: list[Part] = [queue("a", "8"), following, promise, instance("small", "1g.10gb")]

    made = plan(snapshot(node(devices=[CUT]), ending, *others), after=timedelta(seconds=1))
    after = plan(snapshot(node(devices=[CUT]), *others), after=timedelta(seconds=2))

    assert [(one.workload, one.due) for one in made.nominates] == [("following", NOW + GRACE)]
    assert shares_of(after) == [("following", 1000, 0)]


# Instances that are there


def test_a_fixed_instance_goes_whole_to_who_asks_for_it() -> None:
    devices = [fixed(0, "1g.10gb"), fixed(1, "2g.20gb"), fixed(2, "1g.10gb")]
    taken = snapshot(node(devices=devices), queue("a", "8"), *[instance(f"a{index}", "1g.10gb") for index in range(3)])

    made = plan(taken)

    assert sorted(share.device for one in made.binds for share in one.place.shares) == ["node-1-gpu-0", "node-1-gpu-2"]
    assert {share.milli for one in made.binds for share in one.place.shares} == {142}
    assert code_of(made, "a2") is Code.NO_DEVICE_FITS


def test_where_no_fixed_instance_is_free_a_smaller_one_that_is_there_is_suggested() -> None:
    devices = [fixed(0, "2g.20gb"), fixed(1, "1g.10gb")]
    old = held(instance("old", "2g.20gb"), "2g.20gb", None)
    taken = snapshot(node(devices=devices), queue("a", "8"), old, instance("job", "2g.20gb"))

    assert suggested(taken) == "ask for 1g.10gb GPU instead of 2g.20gb"


def test_a_gang_takes_as_many_fixed_instances_as_there_are() -> None:
    devices = [fixed(index, "1g.10gb") for index in range(3)]

    assert len(plan(snapshot(node(devices=devices), queue("a", "8"), instance("gang", "1g.10gb", pods=3))).binds) == 3
    assert not plan(snapshot(node(devices=devices), queue("a", "8"), instance("gang", "1g.10gb", pods=4))).binds


def test_a_fixed_instance_is_free_again_when_who_has_it_is_told_to_end() -> None:
    low = held(instance("low", "1g.10gb", priority=10), "1g.10gb", None)
    taken = snapshot(
        node(devices=[fixed(0, "1g.10gb")]), queue("a", "8"), low, instance("urgent", "1g.10gb", priority=99)
    )

    assert (evicted(plan(taken)), nominated(plan(taken))) == (["low-0"], ["urgent"])


# Sharing modes


def sharing(id: str, mode: Sharing | None, *, is_required: bool = True, milli: int = 500) -> Workload:
    return asking(job(id, "a"), gpu=GpuRequest(1, milli, sharing=mode, is_sharing_required=is_required))


def modes_of(made: Plan) -> list[tuple[str, str, Sharing | None]]:
    return sorted((one.workload, share.device, share.sharing) for one in made.binds for share in one.place.shares)


def test_those_who_share_in_other_ways_are_on_other_devices() -> None:
    taken = snapshot(
        node(devices=2), queue("a", "8"), sharing("one", Sharing.SM_SHARING), sharing("two", Sharing.TIME_SLICING)
    )

    made = modes_of(plan(taken))

    assert [mode for _, _, mode in made] == [Sharing.SM_SHARING, None]
    assert len({device for _, device, _ in made}) == 2


def test_who_only_prefers_a_way_of_sharing_joins_the_device_as_it_is() -> None:
    first = sharing("first", Sharing.SM_SHARING)
    joiner = sharing("joiner", Sharing.TIME_SLICING, is_required=False)

    made = modes_of(plan(snapshot(node(devices=1), queue("a", "8"), first, joiner)))

    assert [mode for _, _, mode in made] == [Sharing.SM_SHARING, Sharing.SM_SHARING]


@pytest.mark.parametrize("of_the_pool", [Sharing.SM_SHARING, Sharing.TIME_SLICING])
def test_the_way_of_sharing_of_a_pool_binds_all(of_the_pool: Sharing) -> None:
    only = replace(device("node-1-gpu-0"), sharing=of_the_pool)
    taken = snapshot(
        node(devices=[only]), queue("a", "8"), sharing("sm", Sharing.SM_SHARING), sharing("time", Sharing.TIME_SLICING),
        sharing("any", None),
    )  # fmt: skip

    assert {id for id, _, _ in modes_of(plan(taken))} == {"sm" if of_the_pool is Sharing.SM_SHARING else "time", "any"}


def test_a_device_can_be_shared_another_way_as_soon_as_who_has_it_has_ended() -> None:
    low = replace(running(sharing("low", Sharing.SM_SHARING), "node-1:0"), priority=10)
    share = replace(low.pods[0].shares[0], sharing=Sharing.SM_SHARING)
    low = replace(low, pods=(replace(low.pods[0], shares=(share,)),))
    urgent = replace(sharing("urgent", Sharing.TIME_SLICING), priority=100)

    made = plan(snapshot(node(devices=1), queue("a", "8"), low, urgent))

    assert (evicted(made), nominated(made)) == (["low-0"], ["urgent"])


def test_compute_of_a_share_is_bounded_apart_from_its_memory() -> None:
    greedy = asking(job("greedy", "a"), gpu=GpuRequest(1, 100, compute_milli=800))
    taken = snapshot(node(devices=1), queue("a", "8"), greedy, asking(job("job", "a"), gpu=GpuRequest(1, 300)))

    made = plan(taken)

    assert [(one.workload, share.milli) for one in made.binds for share in one.place.shares] == [("greedy", 800)]
    assert suggested(taken) == "ask for 0.2 GPU instead of 0.3"


def test_less_compute_is_suggested_where_that_is_what_is_short() -> None:
    first = asking(job("first", "a"), gpu=GpuRequest(1, 100, compute_milli=800))
    taken = snapshot(
        node(devices=1), queue("a", "8"), first, asking(job("job", "a"), gpu=GpuRequest(1, 300, compute_milli=400))
    )

    assert suggested(taken) == "ask for 0.2 of the compute of a GPU instead of 0.4"


def test_a_device_with_too_little_memory_is_named() -> None:
    taken = snapshot(node(), queue("a", "8"), asking(job("job", "a"), gpu=GpuRequest(min_device_mib=100_000)))

    assert "no GPU with 100000 MiB or more that it may use is in the nodes" in why(taken)


def test_a_promise_of_slices_that_somebody_holds_for_longer_is_dropped() -> None:
    old = held(instance("old", "3g.40gb"), "3g.40gb", 0)
    following = instance("following", "4g.40gb")
    place = Place("following-0", "node-1", (Share(CUT.id, 571, 40_960, 0),))
    promise = Promise("following", (place,), NOW, NOW + GRACE, NOW + 2 * GRACE)

    made = plan(snapshot(node(devices=[CUT]), queue("a", "8"), old, following, promise))

    assert [one.places for one in made.nominates if one.workload == "following"] != [(place,)] or evicted(made)


@pytest.mark.parametrize("reason", ["another way of sharing", "another model"])
def test_a_promise_of_a_device_that_does_not_suit_any_more_is_dropped(reason: str) -> None:
    asker = sharing("asker", Sharing.SM_SHARING)
    gone = replace(asker, pods=(replace(asker.pods[0], request=replace(asker.pods[0].request)),))
    there = device("node-1-gpu-0")
    if reason == "another model":
        gone = asking(job("asker", "a"), gpu=GpuRequest(models=("B200",)))
        share = Share(there.id, 1000, 81_920)
    else:
        there = replace(there, sharing=Sharing.TIME_SLICING)
        share = Share(there.id, 500, 40_960, sharing=Sharing.SM_SHARING)
    promise = Promise("asker", (Place("asker-0", "node-1", (share,)),), NOW, NOW + GRACE, NOW + 2 * GRACE)

    made = plan(snapshot(node(devices=[there]), queue("a", "8"), gone, promise))

    assert not made.binds
    assert not made.nominates


def test_shares_are_spread_over_devices_where_the_policy_says_so() -> None:
    taken = snapshot(node(devices=2), queue("a", "8"), *[job(f"a{n}", "a", "0.5") for n in range(2)])

    made = plan(taken, policy=Policy(gpu_placement="spread"))

    assert {share.device for one in made.binds for share in one.place.shares} == {"node-1-gpu-0", "node-1-gpu-1"}


def test_a_device_that_offers_no_memory_takes_no_share() -> None:
    taken = snapshot(node(devices=[device("node-1-gpu-0", memory="0")]), queue("a", "8"), job("a1", "a", "1Gi"))

    assert not plan(taken).binds


def test_instances_on_request_and_instances_that_are_there_stand_side_by_side() -> None:
    there = replace(fixed(1, "2g.20gb"), id="node-2-gpu-1")
    taken = snapshot(
        node(devices=[CUT]), node("node-2", [there]), queue("a", "8"),
        *[instance(f"a{n}", "2g.20gb") for n in range(4)],
    )  # fmt: skip

    made = plan(taken)

    assert len(made.binds) == 4
    assert {one.place.node for one in made.binds} == {"node-1", "node-2"}


def test_a_device_that_lacks_an_instance_offers_no_share_of_that_kind() -> None:
    assert fitting.share_of(GpuRequest(1, None, profile="9g.90gb"), CUT) is None
    assert fitting.share_of(GpuRequest(1, None, profile="1g.10gb"), device("node-1-gpu-0")) is None


def test_a_device_in_mig_mode_that_offers_no_memory_makes_no_instance() -> None:
    empty = replace(CUT, memory_mib=0)

    assert not plan(snapshot(node(devices=[empty]), queue("a", "8"), instance("job", "1g.10gb"))).binds
