"""Which nodes and devices a pod may use: taints and tolerations as Kubernetes means them, selectors, models, MIG."""

from dataclasses import replace
from typing import Literal

import pytest

from aliquot.core import constraints, mig
from aliquot.core.model import Device, GpuRequest, Node, PodRequest, Taint, Toleration
from tests import builders

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def tainted(*taints: Taint) -> Node:
    return replace(builders.node(), taints=taints)


def tolerating(*tolerations: Toleration, nodes: tuple[str, ...] | None = None, **labels: tuple[str, ...]) -> PodRequest:
    return replace(builders.request(), tolerations=tolerations, nodes=nodes, node_labels=tuple(sorted(labels.items())))


# The rules of https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/: operator Exists is a value
# of None, an empty key with Exists tolerates everything, an empty effect is every effect.
TAINT = Taint("dedicated", "vision", "NoSchedule")
TOLERATED = [
    pytest.param(TAINT, Toleration("dedicated", "vision", "NoSchedule"), True, id="key, value and effect are equal"),
    pytest.param(TAINT, Toleration("dedicated", "vision"), True, id="no effect is every effect"),
    pytest.param(TAINT, Toleration("dedicated"), True, id="no value is every value"),
    pytest.param(TAINT, Toleration(), True, id="no key and no value is every taint"),
    pytest.param(TAINT, Toleration(effect="NoSchedule"), True, id="no key, and its effect"),
    pytest.param(TAINT, Toleration("dedicated", "speech"), False, id="another value"),
    pytest.param(TAINT, Toleration("dedicated", ""), False, id="an empty value is a value"),
    pytest.param(TAINT, Toleration("gpu", "vision"), False, id="another key"),
    pytest.param(TAINT, Toleration("dedicated", "vision", "NoExecute"), False, id="another effect"),
    pytest.param(TAINT, Toleration(effect="NoExecute"), False, id="every key, and another effect"),
    pytest.param(TAINT, Toleration("", "vision"), False, id="a value needs a key"),
    pytest.param(Taint("dedicated"), Toleration("dedicated", ""), True, id="a taint without a value has an empty one"),
]


@pytest.mark.parametrize(("taint", "toleration", "is_tolerated"), TOLERATED)
def test_a_toleration_means_what_it_means_in_kubernetes(
    taint: Taint,
    toleration: Toleration,
    is_tolerated: bool,  # noqa: FBT001
) -> None:
    found = constraints.refusal(tainted(taint), tolerating(toleration))

    assert found == (None if is_tolerated else "taint")


@pytest.mark.parametrize(
    ("effect", "refused", "preferred_not"),
    [("NoSchedule", "taint", 0), ("NoExecute", "taint", 0), ("PreferNoSchedule", None, 1)],
)
def test_an_effect_keeps_pods_off_or_would_rather(effect: Effect, refused: str | None, preferred_not: int) -> None:
    node = tainted(Taint("spot", effect=effect))

    assert constraints.refusal(node, builders.request()) == refused
    assert constraints.preference(node, builders.request()) == preferred_not
    assert constraints.preference(node, tolerating(Toleration("spot"))) == 0


def test_every_taint_needs_a_toleration_of_its_own() -> None:
    node = tainted(Taint("spot"), Taint("dedicated", "vision", "NoExecute"))

    assert constraints.refusal(node, tolerating(Toleration("spot"))) == "taint"
    assert constraints.refusal(node, tolerating(Toleration("spot"), Toleration("dedicated"))) is None


def test_a_taint_is_named_as_people_write_it() -> None:
    assert constraints.describe(tainted(TAINT), builders.request()) == "dedicated=vision:NoSchedule"
    assert constraints.describe(tainted(Taint("spot")), builders.request()) == "spot:NoSchedule"


LABELLED = replace(builders.node("node-1"), labels={"zone": "a", "card": "h100"})


@pytest.mark.parametrize(
    ("nodes", "labels", "refused", "described"),
    [
        pytest.param(None, {}, None, "", id="nothing is asked"),
        pytest.param(("node-1", "node-2"), {}, None, "", id="the node is named"),
        pytest.param(("node-3", "node-2"), {}, "selector", "node node-2 or node-3", id="others are named"),
        pytest.param((), {}, "selector", "node none", id="no node is left"),
        pytest.param(None, {"zone": ("b", "a")}, None, "", id="one of the values"),
        pytest.param(None, {"zone": ("c", "b")}, "selector", "zone is b or c", id="none of the values"),
        pytest.param(None, {"rack": ("1",)}, "selector", "rack is 1", id="no such label"),
        pytest.param(None, {"card": ("h100",), "zone": ("b",)}, "selector", "zone is b", id="every label counts"),
        pytest.param(("node-1",), {"zone": ("b",)}, "selector", "zone is b", id="named, but elsewhere"),
    ],
)
def test_a_selector_chooses_nodes(
    nodes: tuple[str, ...] | None, labels: dict[str, tuple[str, ...]], refused: str | None, described: str
) -> None:
    request = tolerating(nodes=nodes, **labels)

    assert constraints.refusal(LABELLED, request) == refused
    assert constraints.describe(LABELLED, request) == described
    assert constraints.is_selected(LABELLED, request.nodes, request.node_labels) == (refused is None)


def test_a_taint_is_told_before_a_selector() -> None:
    assert constraints.refusal(tainted(TAINT), tolerating(nodes=())) == "taint"


PROFILES = mig.profiles_for("H100", 80 * 1024)
WHOLE = builders.device()
INSTANCE = replace(WHOLE, instance=PROFILES[0])
CUTTABLE = replace(WHOLE, profiles=PROFILES)


@pytest.mark.parametrize(
    ("device", "gpu", "is_suited"),
    [
        pytest.param(WHOLE, GpuRequest(), True, id="any device"),
        pytest.param(WHOLE, GpuRequest(models=("A100", "H100")), True, id="one of the models"),
        pytest.param(WHOLE, GpuRequest(models=("A100",)), False, id="another model"),
        pytest.param(WHOLE, GpuRequest(min_device_mib=80 * 1024), True, id="just as much memory"),
        pytest.param(WHOLE, GpuRequest(min_device_mib=80 * 1024 + 1), False, id="a little too small"),
        pytest.param(WHOLE, GpuRequest(milli=None, profile="1g.10gb"), False, id="an instance of a device without MIG"),
        pytest.param(INSTANCE, GpuRequest(milli=None, profile="1g.10gb"), True, id="the instance that is there"),
        pytest.param(INSTANCE, GpuRequest(milli=None, profile="2g.20gb"), False, id="another instance"),
        pytest.param(INSTANCE, GpuRequest(), False, id="an instance is no whole device"),
        pytest.param(INSTANCE, GpuRequest(milli=100), False, id="an instance is not shared"),
        pytest.param(CUTTABLE, GpuRequest(milli=None, profile="2g.20gb"), True, id="an instance that can be made"),
        pytest.param(CUTTABLE, GpuRequest(milli=None, profile="2g.35gb"), False, id="an instance of another card"),
        pytest.param(CUTTABLE, GpuRequest(), False, id="in MIG mode a device is not given whole"),
    ],
)
def test_a_device_suits_or_not(device: Device, gpu: GpuRequest, is_suited: bool) -> None:  # noqa: FBT001
    assert constraints.suits(device, gpu) == is_suited
