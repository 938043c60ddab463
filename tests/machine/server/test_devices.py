"""A server on real devices, as far as the driver's library tells: the stub of `tests/local/nvml_stub` stands for it."""

import os
import pathlib
from collections.abc import Callable, Iterator

import pytest

from tests.local.nvml_stub import driver
from tests.machine.server import served
from tests.machine.server.served import Served

pytestmark = pytest.mark.must_have

CARD = "gpu GPU-0 name=NVIDIA_H200 total=143771 reserved=771 used=0 util=50 temp=40 power=100000"
FOREVER = "while :; do sleep 0.05; done"
Script = Callable[..., None]


@pytest.fixture
def script(tmp_path: pathlib.Path) -> Script:
    """Writes what the driver says from now on."""

    def write(*lines: str) -> None:
        draft = tmp_path / "cards.draft"
        draft.write_text("\n".join(("driver 580.65.06", CARD, *lines)) + "\n")
        draft.replace(tmp_path / "cards")

    write()
    return write


@pytest.fixture
def library(tmp_path: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the stub is the driver."""
    folder = driver.build(tmp_path_factory.mktemp("nvml"))
    return {"LD_LIBRARY_PATH": str(folder), "NVML_STUB_SCRIPT": str(tmp_path / "cards")}


@pytest.fixture
def server(tmp_path: pathlib.Path, script: Script, library: dict[str, str]) -> Iterator[Served]:
    """A server on a machine with one card."""
    assert callable(script)
    with served.serving(tmp_path / "data", more=library) as running:
        yield running


def test_a_share_that_takes_too_much_beside_another_is_found_and_ended(server: Served, script: Script) -> None:
    server.submit("greedy", FOREVER, gpu="0.5", gracePeriod="1s")
    server.submit("modest", FOREVER, gpu="0.5")
    greedy, modest = (server.wait_phase(name, "running") for name in ("greedy", "modest"))

    script(f"proc 0 compute {greedy.pods[0].pid} 90000", f"proc 0 compute {modest.pods[0].pid} 1000")
    server.wait_phase("greedy", "failed")

    events = [event for event in server.client.list_events(subject=greedy.id).items if event.code == "over-use"]
    assert greedy.guarantee == "detected"
    assert len(events) == 1
    assert "90000 MiB" in events[0].message
    assert server.client.get_workload("modest").phase == "running"


def test_a_device_that_somebody_else_uses_takes_no_work_and_the_reason_names_him(
    server: Served, script: Script
) -> None:
    script(f"proc 0 compute {os.getpid()} 5000")
    served.wait_for("the device to be withheld", lambda: server.client.list_devices().items[0].withheld)
    server.submit("waits", "true", gpu="1")
    waits = served.wait_for("its reason", lambda: server.client.get_workload("waits").reason)

    assert waits.code == "device-in-use"
    assert str(os.getpid()) in waits.message
    script()
    server.wait_phase("waits", "succeeded")


def test_a_fatal_xid_takes_the_device_out_and_leaves_an_event(server: Served, script: Script) -> None:
    script("xid 0 79")

    served.wait_for("the device to be out", lambda: server.client.list_devices().items[0].withheld == "xid")

    codes = [event.code for event in server.client.list_events(noun="device").items]
    assert "xid" in codes


def test_a_device_with_a_fatal_xid_stays_out_after_a_restart_until_somebody_brings_it_back(
    server: Served, script: Script, tmp_path: pathlib.Path, library: dict[str, str]
) -> None:
    script("xid 0 79")
    served.wait_for("the device to be out", lambda: server.client.list_devices().items[0].withheld == "xid")
    script()
    served.stop(server)

    with served.serving(tmp_path / "data", more=library) as again:
        after = again.client.list_devices().items[0].withheld
        said = again.run("nodes", "uncordon", "GPU-0")
        again.submit("back", "true", gpu="1")
        again.wait_phase("back", "succeeded")

    assert after == "cordoned"
    assert said.returncode == 0


def test_use_is_measured_and_charged(server: Served, script: Script) -> None:
    server.submit("busy", FOREVER, gpu="1")
    server.wait_phase("busy", "running")

    used = served.wait_for(
        "measured use", lambda: server.client.list_workload_usage(name="busy").items[0].used_gpu_seconds
    )

    assert used >= 1
    assert server.client.list_devices().items[0].use is not None


def test_simulated_devices_beside_a_real_one_are_refused(
    server: Served, tmp_path: pathlib.Path, library: dict[str, str]
) -> None:
    said = server.run(
        "up",
        "--data",
        str(tmp_path / "other"),
        "--port",
        "0",
        "--devices",
        "8xH100",
        "--detach",
        more=library,
    )

    assert said.returncode == 2
    assert "devices" in said.stderr
    assert "real GPUs" in said.stderr
