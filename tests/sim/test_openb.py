"""The procedure of the openb measurements, and that ours is measured as the product places."""

import pathlib
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from aliquot.core.errors import InvalidInput
from aliquot.core.model import Asked, Device, GpuRequest, Node, PodRequest, Policy, Snapshot
from aliquot.sim import intake, openb, replay, traces
from aliquot.sim.fragmentation import Fragmentation
from aliquot.sim.intake import BEGIN, Intake, Wear
from aliquot.sim.measures import Measures
from aliquot.sim.openb import Load, Served
from aliquot.sim.traces import Trace, TraceJob

SHAPES = (
    [(1000, 4000, ())] * 6
    + [(500, 3000, ()), (500, 2000, ("A",)), (300, 1000, ()), (700, 6000, ()), (0, 5000, ())] * 2
    + [(2000, 9000, ()), (4000, 20_000, ())]
)
"""Milli-GPU, milli-CPU, models."""


def request(milli: int, cpus: int, models: tuple[str, ...]) -> PodRequest:
    """A pod."""
    devices, each = (milli // 1000, 1000) if milli >= 1000 else (1, milli)
    return PodRequest(GpuRequest(devices, each, models=models) if milli else None, cpus, 2**30)


def node(index: int) -> Node:
    """Four devices of one model, or two of another with plenty of CPU."""
    count, cpus, model = (4, 24_000, "A") if index % 3 else (2, 40_000, "B")
    devices = tuple(Device(f"n{index}/{at}", at, model, 16_384) for at in range(count))
    return Node(f"n{index:02}", cpus, 2**38, devices)


def load() -> Load:
    """Twelve nodes, and pods for about as many GPUs as they have."""
    return Load(tuple(node(index) for index in range(12)), tuple(request(*shape) for shape in SHAPES * 2))


def write(folder: pathlib.Path, pods: Sequence[str]) -> None:
    """The published lists in small."""
    (folder / openb.NODES).write_text("sn,cpu_milli,memory_mib,gpu,model\nb,64000,1024,2,P100\na,96000,2048,8,G2\n")
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec", *pods]
    (folder / openb.LIST.format("tiny")).write_text("\n".join(lines) + "\n")


def test_a_workload_is_read_by_the_names_of_its_pods(tmp_path: pathlib.Path) -> None:
    write(tmp_path, ["pod-2,3152,100,1,810,", "pod-1,8000,200,2,1000,T4|G2", "pod-3,500,1,0,0,", "pod-4,500,1,0,0,"])

    found = openb.read(tmp_path, "tiny")

    assert [(one.id, len(one.devices)) for one in found.nodes] == [("b", 2), ("a", 8)]
    assert found.requests[0] == PodRequest(GpuRequest(2, 1000, models=("G2", "T4")), 8000, 200 * 2**20)
    assert found.requests[1].gpu == GpuRequest(1, 810)
    assert found.requests[2].gpu is None
    assert found.requests[2] is found.requests[3]
    assert found.capacity == 10_000


def test_a_list_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidInput, match=r"openb_node_list_gpu_node\.csv: there is no such list"):
        openb.read(tmp_path, "tiny")


def test_a_seed_makes_the_same_arrivals_and_another_seed_others() -> None:
    taken = load()

    assert openb.draw(taken, 1) == openb.draw(taken, 1)
    assert openb.draw(taken, 1).arrivals != openb.draw(taken, 2).arrivals


@pytest.mark.parametrize("seed", range(5))
def test_all_pods_come_once_and_then_copies_until_there_are_too_many(seed: int) -> None:
    taken = load()

    found = openb.draw(taken, seed).arrivals

    asked = sum(openb.size_of(one) for one in found)
    first = len(taken.requests)
    assert Counter(found[:first]) == taken.asked
    assert set(found[first:]) <= set(taken.requests)
    # The one that would pass it is judged by one of its devices, of which it asks for at most four.
    assert 1.3 * taken.capacity - 1000 < asked <= 1.3 * taken.capacity + 3000


def test_a_load_that_asks_for_too_much_by_itself_gets_no_copies() -> None:
    taken = Load((node(0),), tuple(request(2000, 1000, ()) for _ in range(3)))

    assert len(openb.draw(taken, 1).arrivals) == 3


def test_nodes_are_named_by_the_order_that_a_seed_gives_them() -> None:
    taken = load()

    found = openb.draw(taken, 3).nodes

    assert [one.id for one in found] == sorted(one.id for one in found)
    assert Counter(len(one.devices) for one in found) == Counter(len(one.devices) for one in taken.nodes)
    assert len({device.id for one in found for device in one.devices}) == taken.capacity // 1000
    assert [len(one.devices) for one in found] != [len(one.devices) for one in openb.draw(taken, 4).nodes]


class Half:
    """Takes every other pod."""

    def __init__(self) -> None:
        self.count = 0

    def place(self, request: PodRequest) -> bool:
        """Whether it was the turn of one that fits."""
        self.count += 1
        return self.count % 2 == 1


def test_allocation_is_the_mean_over_all_arrivals_that_round_to_a_per_cent() -> None:
    arrivals = [request(0, 1000, ()), request(500, 1000, ()), request(500, 1000, ()), request(1000, 1000, ())]

    found = openb.run(arrivals, Half(), 200_000)

    # 0, 0.25, 0.5 and 1 per cent were asked for, and half a GPU is the first to be held, by the third pod.
    assert found == {0: 0.0, 1: pytest.approx(100 * (500 + 500) / 2 / 200_000)}


@pytest.mark.parametrize("policy", openb.POLICIES)
def test_every_policy_places_until_nothing_fits_and_never_more_than_there_is(policy: str) -> None:
    taken = load()
    drawn = openb.draw(taken, 1)

    found = openb.run(drawn.arrivals, openb.placing_of(policy, taken, drawn, 1), taken.capacity)

    assert 60 < found[max(found)] <= 100
    assert [found[percent] for percent in sorted(found)] == sorted(found.values())


def test_a_policy_gives_the_same_again() -> None:
    taken = load()
    drawn = openb.draw(taken, 1)

    found = [openb.run(drawn.arrivals, openb.placing_of("random", taken, drawn, 7), taken.capacity) for _ in range(2)]

    assert found[0] == found[1]


def test_a_queue_that_is_seen_serves_the_largest_first_and_counts_who_started() -> None:
    small, large, no_gpu = request(1000, 1000, ()), request(4000, 1000, ()), request(0, 1000, ())
    cluster = (node(1),)

    found = openb.queue([small, small, no_gpu, large, small], cluster, 4000)

    assert found == Served(allocated=100.0, started=2, pods=5)


def test_ours_is_placed_as_the_production_loop_places_it() -> None:
    taken = load()
    drawn = openb.draw(taken, 5)
    jobs = tuple(
        TraceJob(f"pod-{index:03}", timedelta(seconds=index), None, shape_of(one))
        for index, one in enumerate(drawn.arrivals)
    )
    trace = Trace("arrivals", jobs)
    queues = intake.queues_of(trace, intake.ONE, drawn.nodes, intake.DISCIPLINES["fifo-greedy"])
    recent = tuple(Asked(one, count) for one, count in taken.asked.items())
    course = replay.Course(
        drawn.nodes,
        queues,
        Policy(actions=("allocate",)),
        Intake(trace, drawn.nodes, queues, Wear()).jobs(),
        facts=Snapshot(recent=recent),
    )
    measured = Measures(BEGIN, drawn.nodes, queues, Fragmentation([]))

    outcome = replay.replay(course, measured, lambda progress: None)

    placing = openb.placing_of("fragmentation", taken, drawn, 5)
    placed = sum(placing.place(one) for one in drawn.arrivals)
    assert (outcome.running, outcome.waiting) == (placed, len(drawn.arrivals) - placed)


def shape_of(one: PodRequest) -> traces.Shape:
    """What a trace says of a pod."""
    gpu = one.gpu
    if gpu is None:
        return traces.Shape(0, 1000, one.milli_cpus, one.memory_bytes)
    return traces.Shape(gpu.devices, gpu.milli or 0, one.milli_cpus, one.memory_bytes, gpu.models)


def test_arrivals_come_from_the_seed_alone() -> None:
    random.seed(1)
    first = openb.draw(load(), 9)
    random.seed(2)

    assert openb.draw(load(), 9) == first
