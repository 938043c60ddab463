"""On small clusters the engine does nearly as well as brute force, and the oracles themselves are right.

`python -m tests.laws.optimum` compares many more worlds and prints how far it is.
"""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from aliquot.core import fairshare
from aliquot.core.model import ActionName, Group, Near, Pod, PodRequest, Topology, Workload
from tests.builders import NOW, job, node, queue, running, snapshot
from tests.laws import amounts, gangs, optimum
from tests.laws.amounts import Claimant
from tests.laws.optimum import Distance
from tests.laws.room import Room

WORLDS = range(9_000_000, 9_000_150)


@pytest.mark.slow
def test_gangs_start_nearly_wherever_there_is_a_way() -> None:
    """Slow: all places of all pods are tried."""
    distance = optimum.compare_gangs(WORLDS)

    assert distance.compared > 50
    assert distance.share >= Fraction(95, 100), str(distance)


@pytest.mark.slow
@pytest.mark.parametrize("action", ["reclaim", "preempt"])
def test_victims_are_nearly_always_the_least_loss(action: ActionName) -> None:
    """Slow: all sets of victims are tried."""
    distance = optimum.compare_victims(WORLDS, action)

    assert distance.compared > 15
    assert distance.share >= Fraction(95, 100), str(distance)
    assert distance.most_extra <= 1, str(distance)


def test_a_distance_counts_what_is_not_equal() -> None:
    distance = Distance()
    distance.add(1, is_equal=True)
    distance.add(2, is_equal=False, extra=3)

    assert (distance.share, distance.most_extra, distance.worst) == (Fraction(1, 2), 3, (2,))


def test_a_single_pod_starts_just_where_the_oracle_finds_a_place() -> None:
    """The same verdict for any request in any world."""
    distance = optimum.compare_gangs(WORLDS, least_pods=1)

    assert distance.compared > 50
    assert distance.missed <= distance.compared // 20


# Fair share.


def shares(total: int, *claimants: Claimant, k: tuple[int, int] = (0, 1)) -> dict[str, Fraction]:
    return amounts.divide(Fraction(total), claimants, usage_weight=k)[1]


def test_what_is_left_goes_by_weight() -> None:
    found = shares(9, Claimant("a", 9, 0, weight=1), Claimant("b", 9, 0, weight=2))

    assert found == {"a": 3, "b": 6}


def test_who_has_used_more_gets_less_of_what_is_left() -> None:
    """10 GPUs, equal weights, use 0.8 and 0.2: with k = 1 the weights are 0.2 and 0.8."""
    a, b = Claimant("a", 10, 0, usage=800_000), Claimant("b", 10, 0, usage=200_000)

    assert shares(10, a, b, k=(1, 1)) == {"a": 2, "b": 8}
    assert shares(10, a, b, k=(1, 2)) == {"a": Fraction(7, 2), "b": Fraction(13, 2)}


def test_if_all_weights_become_zero_the_plain_ones_hold() -> None:
    found = shares(6, Claimant("a", 6, 0, weight=1, usage=1), k=(5, 1))

    assert found == {"a": 6}


def random_claimants(number: int) -> list[Claimant]:
    rng = random.Random(number)
    return [
        Claimant(
            id,
            rng.randint(0, 9_000),
            rng.choice((None, 0, 1_000, 2_500, 4_001)),
            rng.randint(0, 3),
            rng.choice((100, 100, 200)),
            rng.choice((0, 1, 333_333, 700_001)),
        )
        for id in "abcd"[: rng.randint(1, 4)]
    ]


@pytest.mark.parametrize("number", range(100))
def test_the_fast_division_is_that_of_the_oracle(number: int) -> None:
    claimants = random_claimants(number)
    guaranteed, share = amounts.divide(Fraction(8_000), claimants)

    found = fairshare.divide(
        8_000,
        [fairshare.Claimant(one.id, one.wanted, one.quota, one.weight, priority=one.priority) for one in claimants],
    )

    for one in claimants:
        assert abs(found[one.id].share - share[one.id]) <= len(claimants)
        assert abs(found[one.id].guaranteed - guaranteed[one.id]) < 1
    assert sum(one.share for one in found.values()) <= 8_000


# Placement.


def near(level: str, count: int) -> Workload:
    return replace(job("gang", pods=count), near=Near("net", required=level))


def test_the_oracle_keeps_a_gang_in_one_domain() -> None:
    nodes = [replace(node(id, 2), labels={"rack": id}) for id in ("node-1", "node-2")]
    parts = replace(snapshot(*nodes, queue()), topologies=(Topology("net", ("rack",)),))

    two, three = near("rack", 2), near("rack", 3)

    assert gangs.place(Room(parts), two, two.pods) is not None
    assert gangs.place(Room(parts), three, three.pods) is None


def test_the_oracle_finds_a_place_only_by_going_back() -> None:
    """The first pod fits both nodes, the second only the one that comes first."""
    parts = snapshot(node("node-1", 1), node("node-2", 1), queue())
    plain = PodRequest(gpu=job().pods[0].request.gpu)
    choosy = replace(plain, nodes=("node-1",))
    gang = Workload("gang", "gang", "team-a", NOW, (Pod("a", 0, plain), Pod("b", 1, choosy)), 2)

    found = gangs.place(Room(parts), gang, gang.pods)

    assert found is not None
    assert {hold.pod.id: hold.node for hold in found} == {"a": "node-2", "b": "node-1"}


def test_the_oracle_says_when_it_is_too_hard() -> None:
    parts = snapshot(node("node-1", 8), node("node-2", 8), queue())
    gang = job("gang", pods=9, gpu="2")

    with pytest.raises(gangs.TooHard):
        gangs.place(Room(parts), gang, gang.pods, steps=5)


def test_the_next_step_of_a_tree_is_what_a_minimum_lacks_then_one_more() -> None:
    tree = Group("", 1, (Group("a", 1), Group("b", 2)))
    pods = tuple(replace(pod, group="abb"[pod.index]) for pod in job("gang", pods=3).pods)
    gang = replace(job("gang", pods=3), pods=pods, gang=tree, min_pods=1)
    started = replace(gang, pods=(running(replace(gang, pods=pods[:1]), "node-1:0").pods[0], *pods[1:]))

    assert [[pod.id for pod in one] for one in gangs.chunks(gang)] == [["gang-0"], ["gang-1", "gang-2"]]
    assert [[pod.id for pod in one] for one in gangs.chunks(started)] == [["gang-1", "gang-2"]]
