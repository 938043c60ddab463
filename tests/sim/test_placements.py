"""The rules that ours is measured beside do what the paper says of them."""

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from aliquot.core.model import Device, GpuRequest, Node, PodRequest
from aliquot.sim import placements
from aliquot.sim.placements import Descent, Placements, Room


def node(name: str, devices: int = 2, *, cpus: int = 32_000, model: str = "A", memory: int = 1000) -> Node:
    """A machine."""
    return Node(name, cpus, memory, tuple(Device(f"{name}/{at}", at, model, 16_000) for at in range(devices)))


def share(milli: int, *, cpus: int = 1000, models: tuple[str, ...] = ()) -> PodRequest:
    """A part of one device."""
    return PodRequest(GpuRequest(milli=milli, models=models), cpus)


def whole(devices: int = 1, *, cpus: int = 1000) -> PodRequest:
    """Whole devices."""
    return PodRequest(GpuRequest(devices), cpus)


NO_GPU = PodRequest(None, 4000)


def left(rule: str, nodes: Sequence[Node], *requests: PodRequest) -> list[list[int]]:
    """What is left of each device of each node, once all were placed."""
    placing = Placements(nodes, placements.rule_of(rule, nodes, Counter(requests)), random.Random(1))
    placed = [placing.place(request) for request in requests]
    assert all(placed)
    return [[int(one) for one in free] for free in placing.room.free]


@pytest.mark.parametrize("rule", placements.NAMES)
@pytest.mark.parametrize(
    "request_",
    [
        PodRequest(None, 33_000),
        PodRequest(None, 0, 1001),
        whole(3),
        share(400, models=("B",)),
        PodRequest(GpuRequest(1), 33_000),
    ],
)
def test_no_rule_places_what_does_not_fit(rule: str, request_: PodRequest) -> None:
    nodes = [node("one"), node("two")]

    placing = Placements(nodes, placements.rule_of(rule, nodes, {request_: 1}), random.Random(1))

    assert not placing.place(request_)
    assert placing.room.free.tolist() == [[1000, 1000], [1000, 1000]]


@pytest.mark.parametrize("rule", placements.NAMES)
def test_every_rule_fills_a_cluster_of_equal_shares_and_then_says_no(rule: str) -> None:
    nodes = [node("one"), node("two")]
    placing = Placements(nodes, placements.rule_of(rule, nodes, {share(500): 1}), random.Random(1))

    placed = [placing.place(share(500)) for _ in range(9)]

    assert placed == [True] * 8 + [False]
    assert placing.room.free.tolist() == [[0, 0], [0, 0]]
    assert placing.room.cpus.tolist() == [28_000, 28_000]


@pytest.mark.parametrize("rule", ["dot-product", "clustering", "packing", "best-fit"])
def test_a_share_takes_the_tightest_device(rule: str) -> None:
    assert left(rule, [node("one", 3)], share(300), share(800), share(150)) == [[700, 50, 1000]]


@pytest.mark.parametrize("rule", placements.NAMES)
def test_whole_devices_are_the_first_that_are_free(rule: str) -> None:
    assert left(rule, [node("one", 4)], share(300), whole(2))[0].count(0) == 2


def test_best_fit_takes_the_node_with_least_left() -> None:
    assert left("best-fit", [node("large", 8, cpus=96_000), node("small", 2)], share(500)) == [
        [1000] * 8,
        [500, 1000] + [0] * 6,
    ]


def test_best_fit_stretches_its_scores_over_the_nodes_that_fit() -> None:
    # 87 and 88 of 100 would be told apart; so are they when stretched to 0 and 100.
    nodes = [node("roomier", 1, cpus=32_000), node("tighter", 1, cpus=30_000)]

    assert left("best-fit", nodes, whole()) == [[1000], [0]]


def test_dot_product_takes_the_node_with_least_left_of_what_is_asked() -> None:
    # Half a GPU of 8 or of 2: the score is 95 on the large node and 99 on the small one.
    assert left("dot-product", [node("large", 8, cpus=96_000), node("small", 2)], whole(2, cpus=16_000))[1][:2] == [
        0,
        0,
    ]


def test_packing_takes_used_devices_then_used_nodes_then_free_ones() -> None:
    nodes = [node("one", 2), node("two", 2)]

    assert left("packing", nodes, share(500), share(500), whole(), share(600)) == [[0, 0], [400, 1000]]


def test_clustering_puts_like_to_like() -> None:
    nodes = [node("one", 4), node("two", 4)]

    assert left("clustering", nodes, share(500), whole(), share(400), whole()) == [
        [100, 1000, 1000, 1000],
        [0, 0, 1000, 1000],
    ]


def test_clustering_takes_a_node_with_none_of_its_kind_last() -> None:
    nodes = [node("devices", 2), node("shares", 2), node("empty", 2)]
    first = [whole(), share(500)]

    # Two devices are a kind of their own.
    assert left("clustering", nodes, *first, whole(2)) == [[0, 1000], [500, 1000], [0, 0]]


@pytest.mark.parametrize("rule", ["packing", "clustering"])
def test_packing_and_clustering_do_not_care_where_pods_without_a_gpu_go(rule: str) -> None:
    nodes = [node("one"), node("two")]
    placing = Placements(nodes, placements.rule_of(rule, nodes, {NO_GPU: 1}), random.Random(1))

    placing.place(whole(2))
    placing.place(NO_GPU)

    assert placing.room.cpus.tolist() == [27_000, 32_000]


def test_random_uses_all_that_fits() -> None:
    nodes = [node(f"n{at}", 2) for at in range(4)]
    placing = Placements(nodes, placements.rule_of("random", nodes, {}), random.Random(1))

    for _ in range(12):
        placing.place(share(300))

    assert all(min(free) < 1000 for free in placing.room.free.tolist())


def test_descent_goes_where_the_expected_fragmentation_grows_least() -> None:
    # To pods for a whole device the half that is left is lost already: a share of it costs nothing.
    nodes = [node("free", 1), node("half", 1)]
    asked = {whole(): 9, share(500): 1}
    placing = Placements(nodes, placements.rule_of("fgd", nodes, asked), random.Random(1))
    placing.room.free[1, 0] = 500

    placing.place(share(500))

    assert placing.room.free.tolist() == [[1000], [0]]


@pytest.mark.parametrize("request_", [whole(2), NO_GPU])
def test_descent_places_whole_devices_and_pods_without_any(request_: PodRequest) -> None:
    nodes = [node("one"), node("two")]
    placing = Placements(nodes, placements.rule_of("fgd", nodes, {request_: 1}), random.Random(1))

    assert placing.place(request_)


def test_the_fragmentation_of_descent_is_the_published_one() -> None:
    # Of 10 pods 7 ask for a whole device, 2 for 465 milli and more CPU than the node has left, 1 for no device.
    asked = {whole(): 7, share(465, cpus=6000): 2, NO_GPU: 1}
    room = Room([node("n", 3, cpus=1000)])

    found = Descent(asked, room).fragmentation(np.array([[200, 1000, 500]]), np.array([1000]), room.model)

    assert found.tolist() == pytest.approx([0.7 * 700 + 0.2 * 1700 + 0.1 * 1700])


def test_descent_looks_at_the_most_frequent_requests_that_make_up_nearly_all() -> None:
    asked = {whole(): 96, share(465, cpus=6000): 4}
    room = Room([node("n", 1, cpus=1000)])

    found = Descent(asked, room).fragmentation(np.array([[1000]]), np.array([1000]), room.model)

    assert found.tolist() == [0]


def test_an_unknown_rule_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no rule is called best; there are random, .*fgd"):
        placements.rule_of("best", [], {})
