"""The measure of fragmentation is the one of the paper: its golden values lie beside the checkout and are not ours."""

import json
import os
import pathlib
from typing import Any

import pytest

from aliquot.core.model import Device, GpuRequest, Node, PodRequest
from aliquot.sim import fragmentation
from aliquot.sim.fragmentation import Fragmentation, Usual
from aliquot.sim.occupancy import Held

SHARED = pathlib.Path(os.environ.get("ALIQUOT_SHARED", pathlib.Path(__file__).parents[3] / "shared"))
GOLDEN = SHARED / "data" / "openb" / "frag_golden.json"


def cases() -> list[Any]:
    """One parameter for each golden value, or one that says why there is none."""
    if not GOLDEN.exists():
        return [pytest.param({}, [], id="none", marks=pytest.mark.skip("no public data beside the checkout"))]
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return [
        pytest.param(
            case, golden["typical_pods"][case["typical"]], id=f"{case['typical']}-{case['expected_frag_milli']}"
        )
        for case in golden["cases"]
    ]


def usual(pod: dict[str, Any]) -> Usual:
    """A typical pod of the golden values."""
    models = tuple(filter(None, str(pod["gpu_type"]).split("|")))
    count = pod["num_gpu"]
    gpu = GpuRequest(devices=count, milli=pod["gpu_milli"], models=models) if count else None
    return Usual(PodRequest(gpu=gpu, milli_cpus=pod["cpu_milli"]), pod["freq"])


@pytest.mark.parametrize(("case", "typical"), cases())
def test_the_golden_values_are_met_to_a_hundredth(case: dict[str, Any], typical: list[dict[str, Any]]) -> None:
    left = case["gpu_left"]
    devices = tuple(Device(f"d{index}", index, case["gpu_type"], 1) for index in range(len(left)))
    node = Node("n", case["cpu_left"], 0, devices)
    held = Held(milli={device.id: 1000 - milli for device, milli in zip(devices, left, strict=True)})

    found = Fragmentation([usual(pod) for pod in typical]).of(node, held)

    assert found == pytest.approx(case["expected_frag_milli"], abs=0.01)


def test_the_usual_work_is_the_most_frequent_that_makes_up_nearly_all() -> None:
    often, seldom, never = (PodRequest(gpu=GpuRequest(devices=count)) for count in (1, 2, 4))

    found = fragmentation.usual_of({never: 1, often: 90, seldom: 9})

    assert [(one.request, one.part) for one in found] == [(often, 90 / 99), (seldom, 9 / 99)]
