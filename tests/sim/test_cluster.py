"""The simulated cluster does what a real one does: acts on plans, loses what an eviction loses, keeps its store."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from aliquot.core import schedule as scheduler
from aliquot.core.model import Node, PodState, Policy, Queue, Workload
from aliquot.core.plan import Bind, Evict, Plan, Rule
from aliquot.service import loop
from aliquot.sim import runner
from aliquot.sim.clock import VirtualClock
from aliquot.sim.cluster import SimCluster
from aliquot.sim.ids import CountedIds
from aliquot.sim.occupancy import IllegalPlan
from aliquot.sim.runner import Simulation
from aliquot.sim.script import Cordon, Event, Happening, Job, Offer, SetQueue, Stop, Submit, Uncordon, Withhold
from tests.builders import NOW, job, node, queue
from tests.sim import laws

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def simulation(
    nodes: Sequence[Node] = (node(),), queues: Sequence[Queue] = (queue("team-a", "4"), queue("team-b", "4"))
) -> Simulation:
    """A cluster at noon, with nothing on it, and all laws watching."""
    clock = VirtualClock(NOW)
    cluster = SimCluster(clock, nodes=nodes, queues=queues)
    cluster.watchers.append(laws.Watch())
    return Simulation(cluster, clock, loop.Planner(Policy()))


def submitted(
    workload: Workload, run_time: timedelta | None = HOUR, checkpoint_every: timedelta | None = None
) -> Submit:
    """Its processes take ten seconds to end."""
    return Submit(Job(workload, run_time, checkpoint_every))


async def pods(world: Simulation, id: str) -> list[PodState]:
    """The states of a workload's pods; none if it is over."""
    snapshot = await world.cluster.snapshot()
    return [pod.state for one in snapshot.workloads if one.id == id for pod in one.pods]


async def when(world: Simulation, later: timedelta, *happenings: Happening) -> None:
    """Live until so long after noon, then let these happen and run one cycle."""
    await runner.run_until(world, NOW + later)
    for one in happenings:
        world.cluster.happen(one)
    await loop.run_cycle(world.cluster, world.planner, world.clock)


async def test_a_borrower_gives_back_and_resumes_from_its_checkpoint() -> None:
    world = simulation()
    keeper = submitted(job("keeper", gpu="4", priority=75), run_time=None)
    borrower = submitted(job("borrower", gpu="4"), run_time=10 * HOUR, checkpoint_every=HOUR)
    owner = submitted(job("owner", "team-b", "4"), run_time=2 * HOUR)

    await when(world, timedelta(0), keeper, borrower)
    await when(world, 90 * MINUTE, owner)
    evicted = await pods(world, "borrower")
    promise = world.cluster.world.promises["owner"]
    await runner.run_until(world, NOW + 4 * HOUR)

    assert evicted == [PodState.RELEASING]
    assert promise.waits_for == ("borrower-0",)
    assert await pods(world, "owner") == []
    assert await pods(world, "borrower") == [PodState.RUNNING]
    # Of ten hours one is saved and half an hour lost; the owner was done at 3:30:10.
    assert world.cluster.counts.lost_time == 30 * MINUTE
    await runner.run_until(world, NOW + 12 * HOUR + 30 * MINUTE + timedelta(seconds=9))
    assert await pods(world, "borrower") == [PodState.RUNNING]
    await runner.run_until(world, NOW + 12 * HOUR + 30 * MINUTE + timedelta(seconds=10))
    assert await pods(world, "borrower") == []
    assert await pods(world, "keeper") == [PodState.RUNNING]
    laws.ledger_is_even(world.cluster.world)


async def test_work_without_a_checkpoint_begins_anew() -> None:
    world = simulation()

    keeper = submitted(job("keeper", gpu="4", priority=75), run_time=None)
    await when(world, timedelta(0), keeper, submitted(job("borrower", gpu="4"), run_time=2 * HOUR))
    await when(world, HOUR, submitted(job("owner", "team-b", "4"), run_time=HOUR))
    await runner.run_until(world, NOW + 4 * HOUR)

    assert await pods(world, "borrower") == [PodState.RUNNING]
    assert world.cluster.counts.lost_time == HOUR


async def test_a_plan_that_is_applied_twice_does_nothing_the_second_time() -> None:
    world = simulation()
    world.cluster.happen(submitted(job(gpu="8")))
    plan = scheduler.schedule(await world.cluster.snapshot(), world.policy, NOW)

    await world.cluster.apply(plan)
    after = await world.cluster.snapshot()
    world.cluster.watchers.clear()
    await world.cluster.apply(plan)

    assert await world.cluster.snapshot() == after
    assert world.cluster.counts.started == 1
    laws.ledger_is_even(world.cluster.world)


async def test_a_device_is_never_given_out_twice() -> None:
    world = simulation(nodes=(node(devices=1),))
    world.cluster.watchers.clear()
    for id in ("one", "two"):
        world.cluster.happen(submitted(job(id)))
    first = scheduler.schedule(await world.cluster.snapshot(), world.policy, NOW)
    place = first.binds[0].place

    await world.cluster.apply(first)
    other = "two" if first.binds[0].workload == "one" else "one"
    twice = type(place)(f"{other}-0", place.node, place.shares)

    with pytest.raises(IllegalPlan, match="node-1-gpu-0 offers 81920 MiB, and 163840 MiB"):
        await world.cluster.apply(Plan(binds=(Bind(other, twice),)))


async def test_a_gang_is_never_left_with_less_than_its_minimum() -> None:
    world = simulation()
    world.cluster.watchers.clear()
    await when(world, timedelta(0), submitted(job("gang", pods=4)))

    with pytest.raises(IllegalPlan, match="gang would be left with 3 pods of at least 4"):
        await world.cluster.apply(Plan(evicts=(Evict("gang", "gang-3", "other", Rule.PREEMPT, "by mistake"),)))


async def test_pods_above_the_minimum_wait_again_while_the_rest_runs_on() -> None:
    world = simulation()
    world.cluster.watchers.clear()
    await when(world, timedelta(0), submitted(job("elastic", pods=4, min_pods=2), run_time=2 * HOUR))

    await world.cluster.apply(Plan(evicts=(Evict("elastic", "elastic-3", "other", Rule.PREEMPT, "to try it"),)))
    world.clock.set(NOW + timedelta(seconds=10))

    assert await pods(world, "elastic") == [PodState.RUNNING] * 3 + [PodState.PENDING]


async def test_a_promise_outlives_a_restart_and_the_day_goes_on_the_same() -> None:
    world = simulation()
    await when(world, timedelta(0), *(submitted(job(f"borrower-{index}", gpu="4")) for index in range(2)))
    await when(world, MINUTE, submitted(job("owner", "team-b", "4")))
    assert list(world.cluster.world.promises) == ["owner"]

    restarted = world.after_restart()
    assert await restarted.cluster.snapshot() == await world.cluster.snapshot()
    for one in (world, restarted):
        await runner.run_until(one, NOW + 5 * HOUR)

    assert world.cluster.counts == restarted.cluster.counts
    assert world.cluster.counts.finished == 3


async def test_what_runs_on_a_lost_device_waits_again_and_nothing_starts_there() -> None:
    world = simulation(nodes=(node(devices=2),))
    await when(world, timedelta(0), submitted(job("two", gpu="2"), run_time=None))

    await when(world, MINUTE, Withhold("node-1-gpu-1", "lost"))
    waiting = await pods(world, "two")
    await when(world, 2 * MINUTE, Offer("node-1-gpu-1"))

    assert waiting == [PodState.PENDING]
    assert await pods(world, "two") == [PodState.RUNNING]
    assert world.cluster.counts.lost_workloads == 1
    laws.ledger_is_even(world.cluster.world)


async def test_a_lost_device_takes_what_is_ending_with_it() -> None:
    world = simulation(nodes=(node(devices=1),))
    await when(world, timedelta(0), submitted(job(), run_time=None))

    await when(world, MINUTE, Stop("job"), Withhold("node-1-gpu-0", "lost"))
    await runner.run_until(world, NOW + HOUR)

    assert await pods(world, "job") == []
    laws.ledger_is_even(world.cluster.world)


async def test_a_device_in_use_by_a_stranger_keeps_what_runs_and_takes_nothing_new() -> None:
    world = simulation(nodes=(node(devices=1),))
    await when(world, timedelta(0), submitted(job("first", gpu="0.5"), run_time=None))

    await when(world, MINUTE, Withhold("node-1-gpu-0", "device-in-use"), submitted(job("second", gpu="0.5")))

    assert await pods(world, "first") == [PodState.RUNNING]
    assert await pods(world, "second") == [PodState.PENDING]
    assert (await world.cluster.nodes())[0].devices[0].foreign[0].user == "stranger"


async def test_a_cordoned_node_takes_nothing_new_until_it_is_given_back() -> None:
    world = simulation()
    await when(world, timedelta(0), Cordon("node-1"), submitted(job(), run_time=None))
    kept_out = await pods(world, "job")

    await when(world, MINUTE, Uncordon("node-1"))

    assert kept_out == [PodState.PENDING]
    assert await pods(world, "job") == [PodState.RUNNING]


async def test_a_stopped_workload_is_over_once_its_processes_have_ended() -> None:
    world = simulation()
    await when(world, timedelta(0), submitted(job("runs"), run_time=None), submitted(job("waits", "nowhere")))

    await when(world, MINUTE, Stop("runs"), Stop("waits"), Stop("nobody"))
    ending = (await pods(world, "runs"), await pods(world, "waits"))
    await runner.run_until(world, NOW + HOUR)

    assert ending == ([PodState.RELEASING], [])
    assert await pods(world, "runs") == []
    assert world.cluster.counts.stopped == 2


async def test_a_new_quota_takes_effect_in_the_next_cycle() -> None:
    world = simulation()
    borrowers = [submitted(job(f"borrower-{index}"), run_time=None) for index in range(8)]
    await when(world, timedelta(0), *borrowers)
    await when(world, MINUTE, SetQueue(queue("team-c", "0", weight=0)), submitted(job("late", "team-c")))
    before = world.cluster.counts.evicted_workloads

    await when(world, 2 * MINUTE, SetQueue(queue("team-c", "1", weight=0)))

    assert (before, world.cluster.counts.evicted_workloads) == (0, 1)


async def test_the_production_loop_runs_on_it_and_wakes_when_something_happens() -> None:
    world = simulation()
    world.cluster.plan_ahead([Event(NOW + MINUTE, submitted(job("late")))])
    plans: list[Plan] = []
    task = asyncio.create_task(
        loop.run(world.cluster, world.planner, world.clock, listeners=loop.Listeners(plans.append))
    )

    await world.clock.advance(timedelta(seconds=1))
    first = len(plans)
    world.cluster.happen(submitted(job("now")))
    await world.clock.advance(timedelta(0))
    woken = len(plans)
    await world.clock.advance(MINUTE)
    task.cancel()

    assert (first, woken) == (1, 2)
    assert plans[1].binds[0].workload == "now"
    assert "late" in {one.workload for plan in plans for one in plan.binds}


async def test_it_says_what_it_is() -> None:
    facts = await simulation().cluster.facts()

    assert facts.description == "8 simulated devices on 1 simulated nodes"


async def test_sleepers_wake_at_their_time_and_in_their_order() -> None:
    clock = VirtualClock(NOW)
    woken: list[tuple[str, timedelta]] = []

    async def sleep(name: str, span: timedelta) -> None:
        await clock.sleep(span)
        woken.append((name, clock.now() - NOW))

    tasks = [
        asyncio.create_task(sleep(name, span))
        for name, span in (("late", 2 * HOUR), ("first", HOUR), ("second", HOUR), ("none", timedelta(0)))
    ]
    await clock.advance(90 * MINUTE)
    assert woken == [("none", timedelta(0)), ("first", HOUR), ("second", HOUR)]
    assert await clock.leap()
    await asyncio.gather(*tasks)

    assert woken[-1] == ("late", 2 * HOUR)
    assert not await clock.leap()


async def test_the_clock_does_not_jump_over_a_sleeper_or_back() -> None:
    clock = VirtualClock(NOW)
    task = asyncio.create_task(clock.sleep(HOUR))
    await clock.advance(timedelta(0))

    for instant in (NOW + 2 * HOUR, NOW - HOUR):
        with pytest.raises(ValueError, match="cannot jump"):
            clock.set(instant)
    task.cancel()


def test_ids_come_out_the_same_in_each_run_and_sort_by_their_making() -> None:
    one, other = CountedIds(), CountedIds()

    ids = [one.new() for _ in range(12)]

    assert ids == [other.new() for _ in range(12)] == sorted(ids)
    assert one.secret() == other.secret() != one.secret()
