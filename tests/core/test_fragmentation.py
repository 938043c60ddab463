"""The cost of a place: the paper's measure where it is the paper's, and else what the plainest count says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import fragmentation
from aliquot.core.fragmentation import Expected, Nodes, Shape
from aliquot.core.model import GpuRequest, PodRequest

MODELS = ("A", "B")


@dataclass(frozen=True)
class Left:
    """What is left of one node."""

    cpus: int
    free: tuple[int, ...]
    model: str = "A"


def nodes(*left: Left) -> Nodes:
    """The same as arrays."""
    most = max(len(one.free) for one in left)
    return Nodes(
        np.array([one.cpus for one in left], np.int64),
        np.array([one.free + (0,) * (most - len(one.free)) for one in left], np.int64),
        np.array([MODELS.index(one.model) for one in left], np.int64),
    )


def expected(shapes: dict[Shape, int], *left: Left) -> Expected:
    """What is expected, in a cluster of these nodes."""
    return Expected(shapes, MODELS, nodes(*left))


def is_apt(left: Left, shape: Shape) -> bool:
    """Whether the model and the CPU allow one pod."""
    return (not shape.models or left.model in shape.models) and left.cpus >= shape.milli_cpus


def stranded(left: Left, shape: Shape) -> int:
    """The paper's measure, device by device."""
    if not is_apt(left, shape) or sum(one >= shape.milli for one in left.free) < shape.devices:
        return sum(left.free)
    return sum(one for one in left.free if one < shape.milli)


def usable(left: Left, shape: Shape) -> int:
    """Take one pod after the other until no more fits."""
    cpus, free, taken = left.cpus, list(left.free), 0
    while is_apt(Left(cpus, (), left.model), shape):
        fitting = [index for index, one in enumerate(free) if one >= shape.milli]
        if len(fitting) < shape.devices:
            break
        for index in fitting[: shape.devices]:
            free[index] -= shape.milli
        cpus -= shape.milli_cpus
        taken += shape.size
    return taken


def places(left: Left, shape: Shape) -> list[Left]:
    """What may be left of a node when the pod has gone there: for a share, one for each device that fits."""
    cpus = left.cpus - shape.milli_cpus
    fitting = [index for index, one in enumerate(left.free) if one >= shape.milli]
    if shape.devices == 1 and shape.milli < 1000:
        chosen = [[index] for index in fitting]
    else:
        chosen = [fitting[: shape.devices]] if len(fitting) >= shape.devices else []
    return [
        Left(cpus, tuple(one - shape.milli * (index in taken) for index, one in enumerate(left.free)), left.model)
        for taken in chosen
    ]


SHARES = st.builds(
    Shape, st.integers(1, 9_000), st.just(1), st.integers(1, 999), st.sampled_from([(), ("A",), ("B",), ("A", "B")])
)
WHOLES = st.builds(
    Shape, st.integers(1, 9_000), st.integers(1, 4), st.just(1000), st.sampled_from([(), ("A",), ("B",)])
)
SHAPES = SHARES | WHOLES
ASKED = st.dictionaries(SHAPES, st.integers(1, 1000), min_size=1, max_size=6)
LEFT = st.builds(
    Left,
    st.integers(0, 40_000),
    st.lists(st.sampled_from([0, 500, 1000, 1000]) | st.integers(0, 1000), min_size=1, max_size=4).map(tuple),
    st.sampled_from(MODELS),
)
CLUSTERS = st.lists(LEFT, min_size=1, max_size=5)


# The published values: the paper's simulator, pkg/utils/frag_test.go (values only). Typical pods as CPU, devices, milli
# of each, per cent of all pods; none of them asks for a model.
TYPICAL = """
    15700 1 1000 28.69;  11900 1 1000 18.93;  11400 1 1000 12.27;  1000 0 0 7.36;
    18710 1 1000 4.85;  8200 1 1000 3.79;  16400 1 1000 3.31;  9810 1 1000 1.97;
    15200 1 1000 1.87;  11200 1 1000 1.81;  14200 1 1000 1.76;  12000 0 0 1.65;
    14900 1 1000 1.39;  60200 4 1000 1.23;  64200 8 1000 1.07;  32200 4 1000 1.01;
    17400 2 1000 0.91;  30200 2 1000 0.69;  16000 1 1000 0.64;  15000 1 1000 0.59;
    64000 8 1000 0.53;  15000 0 0 0.53;  11910 1 1000 0.53;  120200 8 1000 0.48;
    11300 1 1000 0.37;  30000 2 1000 0.32;  9800 1 1000 0.32;  8000 1 1000 0.32;
    2000 1 1000 0.27;  2000 1 80 0.27;  1000 1 1000 0.27
"""


def typical() -> dict[Shape, float]:
    """The typical pods, and what part they are of all."""
    rows = [row.split() for row in TYPICAL.split(";")]
    return {Shape(int(cpu), int(devices), int(milli)): float(part) / 100 for cpu, devices, milli, part in rows}


@pytest.mark.parametrize(
    ("left", "published"),
    [
        (Left(64_000, (1000,) * 8), 887.20),
        (Left(32_000, (1000,) * 4 + (0,) * 4), 554.40),
        (Left(0, (1000,) * 4 + (0,) * 4), 4000.00),
    ],
)
def test_what_is_stranded_is_what_the_paper_says(left: Left, published: float) -> None:
    parts = typical()
    taken = expected(dict.fromkeys(parts, 1), left)

    by_shape = dict(zip(taken.shapes, taken.stranded(nodes(left))[0], strict=True))

    # To pods without a GPU all idle devices are of no use; our measure leaves them out, for that tells no node apart.
    found = sum(part * by_shape.get(shape, sum(left.free)) for shape, part in parts.items())
    assert found == pytest.approx(published, abs=0.01)


def test_shares_too_are_stranded_as_the_paper_says() -> None:
    shape, left = Shape(6_000, 1, 465), Left(1_000, (200, 1000, 1000, 500))

    found = expected({shape: 1}, left).stranded(nodes(left))

    assert 0.0933 * found[0, 0] == pytest.approx(251.91, abs=0.01)


@given(asked=ASKED, cluster=CLUSTERS)
def test_stranded_and_usable_are_what_a_plain_count_finds(asked: dict[Shape, int], cluster: list[Left]) -> None:
    taken = expected(asked, *cluster)

    assert taken.stranded(nodes(*cluster)).tolist() == [[stranded(n, s) for s in taken.shapes] for n in cluster]
    assert taken.usable(nodes(*cluster)).tolist() == [[usable(n, s) for s in taken.shapes] for n in cluster]


@given(asked=ASKED, cluster=CLUSTERS)
def test_the_cost_is_what_is_stranded_eight_times_less_what_is_usable(
    asked: dict[Shape, int], cluster: list[Left]
) -> None:
    taken = expected(asked, *cluster)
    weights = dict(zip(taken.shapes, taken.weights.tolist(), strict=True))

    found = taken.cost(nodes(*cluster)).tolist()

    assert found == [
        sum(weight * (8 * stranded(one, shape) - usable(one, shape)) for shape, weight in weights.items())
        for one in cluster
    ]


@given(asked=ASKED, cluster=CLUSTERS, shape=SHAPES | st.just(Shape(2_000, 0, 0)))
def test_a_pod_raises_the_cost_by_what_it_changes_and_a_share_takes_the_device_where_that_is_least(
    asked: dict[Shape, int], cluster: list[Left], shape: Shape
) -> None:
    taken = expected(asked, *cluster)

    costs, devices = taken.raise_of(nodes(*cluster), shape)

    for row, one in enumerate(cluster):
        after = places(one, shape) if is_apt(one, shape) else []
        if not after:
            continue
        before = int(taken.cost(nodes(one))[0])
        raised = [int(taken.cost(nodes(left))[0]) - before for left in after]
        assert costs[row] == min(raised)
        if shape.devices and shape.milli < 1000:
            fitting = [index for index, free in enumerate(one.free) if free >= shape.milli]
            keys = [(cost, one.free[index], index) for cost, index in zip(raised, fitting, strict=True)]
            assert devices[row] == min(keys)[2]


@given(asked=ASKED, cluster=CLUSTERS, data=st.data())
def test_the_weights_do_not_depend_on_the_order_in_which_shapes_and_nodes_are_told(
    asked: dict[Shape, int], cluster: list[Left], data: st.DataObject
) -> None:
    shuffled = dict(data.draw(st.permutations(list(asked.items()))))
    moved = data.draw(st.permutations(cluster))

    one, other = expected(asked, *cluster), expected(shuffled, *moved)

    assert (one.shapes, one.weights.tolist()) == (other.shapes, other.weights.tolist())


def test_a_node_in_a_large_cluster_costs_as_much_as_alone() -> None:
    # More nodes than are worked on at once: 8 devices times 128 shapes for each of 1,500 nodes.
    asked = {Shape(1000 + index, 1, 100 + index): index + 1 for index in range(fragmentation.MOST_SHAPES)}
    cluster = [
        Left(1000 * (row % 90), tuple((row * 37 + place * 211) % 1001 for place in range(8))) for row in range(1500)
    ]
    taken = expected(asked, *cluster)

    costs, devices = taken.raise_of(nodes(*cluster), Shape(0, 1, 300))

    alone = [taken.raise_of(nodes(cluster[row]), Shape(0, 1, 300)) for row in (0, 700, 1499)]
    assert [(costs[row], devices[row]) for row in (0, 700, 1499)] == [(one[0][0], one[1][0]) for one in alone]


def test_only_the_shapes_that_were_asked_most_are_looked_at() -> None:
    asked = {Shape(1000 + index, 1, 1000): 1 + index for index in range(fragmentation.MOST_SHAPES + 5)}

    taken = expected(asked, Left(96_000, (1000,) * 8))

    assert Shape(1000, 1, 1000) not in taken.shapes
    assert len(taken.shapes) == fragmentation.MOST_SHAPES


def cheapest(taken: Expected, shape: Shape, cluster: Sequence[Left]) -> Left:
    """Where a pod would go."""
    return cluster[int(taken.raise_of(nodes(*cluster), shape)[0].argmin())]


def test_who_may_go_anywhere_keeps_off_the_model_that_few_nodes_have_and_others_need() -> None:
    plenty, rare = Left(64_000, (1000,) * 8), Left(64_000, (1000,) * 8, "B")
    cluster = [rare, plenty, plenty, plenty]
    anywhere, bound = Shape(8_000, 1, 1000), Shape(8_000, 1, 1000, ("B",))

    assert cheapest(expected({anywhere: 10, bound: 10}, *cluster), anywhere, cluster) is plenty


def test_a_gpu_pod_of_little_cpu_goes_where_little_cpu_is_left() -> None:
    ample, scant = Left(48_000, (1000,) * 4), Left(4_000, (1000,) * 4)
    small, large = Shape(1_000, 1, 1000), Shape(12_000, 1, 1000)

    assert cheapest(expected({small: 1, large: 1}, ample, scant), small, [ample, scant]) is scant


def test_a_share_fills_the_device_in_which_it_leaves_nothing_too_small() -> None:
    left = Left(64_000, (1000, 600, 400))
    share = Shape(1_000, 1, 400)

    assert expected({share: 5}, left).raise_of(nodes(left), share)[1].tolist() == [2]


@pytest.mark.parametrize(
    ("gpu", "shape"),
    [
        (None, Shape(500, 0, 0)),
        (GpuRequest(devices=2, models=("B", "A")), Shape(500, 2, 1000, ("A", "B"))),
        (GpuRequest(milli=250), Shape(500, 1, 250)),
        (GpuRequest(milli=None, mib=1024), None),
        (GpuRequest(devices=2, milli=500), None),
    ],
)
def test_whole_devices_and_portions_of_one_have_a_shape(gpu: GpuRequest | None, shape: Shape | None) -> None:
    assert fragmentation.shape_of(PodRequest(gpu=gpu, milli_cpus=500)) == shape
