"""Real devices, seen through the real bindings: the driver's library is a stub that answers what each test scripts."""

import getpass
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

from tests.local.nvml_stub import driver

pytestmark = [pytest.mark.machine, pytest.mark.must_have]

H200 = "gpu GPU-0 name=NVIDIA_H200 total=143771 reserved=700 used=4200 util=37 temp=41 power=120400"
OTHER = "gpu GPU-1 name=NVIDIA_H200 total=143771 reserved=700 used=0 util=0 temp=30 power=80000"
SIZE = 143_771 - 700


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of the compiled stub."""
    return driver.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def boot(tmp_path: pathlib.Path) -> Generator[Callable[[pathlib.Path], driver.Machine], None, None]:
    """Makes a machine whose driver lies in a folder; it has no cards until the test gives it some."""
    running: list[driver.Machine] = []

    def boot_one(folder: pathlib.Path) -> driver.Machine:
        running.append(driver.Machine(folder, tmp_path / "cards"))
        running[-1].cards("driver 580.65.06")
        return running[-1]

    yield boot_one
    for each in running:
        each.close()


@pytest.fixture
def machine(library: pathlib.Path, boot: Callable[[pathlib.Path], driver.Machine]) -> driver.Machine:
    """A machine with a driver of today."""
    return boot(library)


@pytest.fixture
def start() -> Generator[Callable[[], int], None, None]:
    """Starts processes that do nothing until the test is over; each call gives a pid."""
    running: list[subprocess.Popen[bytes]] = []

    def start_one() -> int:
        running.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        return running[-1].pid

    yield start_one
    for process in running:
        process.communicate(b"\n")


def gone() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_card_is_offered_by_its_uuid_without_what_the_driver_keeps(machine: driver.Machine) -> None:
    machine.cards("driver 580.65.06", H200)

    found = machine.ask("discover")
    reading = machine.ask("read", owned={})

    assert found["described"].startswith("1 NVIDIA H200 (driver 580.65.06); guarantee of a share: detected.")
    assert reading["devices"] == [
        {
            "id": "GPU-0",
            "index": 0,
            "model": "NVIDIA H200",
            "memory_mib": SIZE,
            "is_simulated": False,
            "guarantee": "detected",
            "withheld": None,
            "foreign": [],
            "sharing": None,
            "instance": None,
            "profiles": [],
            "slices": 7,
        }
    ]
    assert reading["use"] == {
        "GPU-0": {"utilisation_percent": 37, "used_mib": 4200, "temperature_celsius": 41, "power_watts": 120}
    }


def test_without_the_library_there_are_no_devices_and_it_says_so(
    tmp_path: pathlib.Path, boot: Callable[[pathlib.Path], driver.Machine]
) -> None:
    # An empty file under the library's name comes before whatever this machine has, and cannot be loaded.
    (tmp_path / "libnvidia-ml.so.1").touch()
    machine = boot(tmp_path)

    assert machine.ask("discover")["described"] == "no GPU (no NVIDIA driver was found); work that asks for none runs"
    assert machine.ask("read", owned={})["devices"] == []
    assert machine.ask("has") is False
    assert machine.ask("doctor")[0][:2] == ["driver", "warning"]


def test_a_driver_that_does_not_fit_its_library_is_a_problem_and_offers_nothing(machine: driver.Machine) -> None:
    machine.cards("fail nvmlInitWithFlags 18", H200)

    found = machine.ask("discover")

    assert found["described"].startswith("no GPU (the NVIDIA driver does not work: RM has detected an NVML/RM version")
    assert machine.ask("doctor")[0][:2] == ["driver", "problem"]


def test_a_library_without_a_loaded_driver_is_no_driver(machine: driver.Machine) -> None:
    machine.cards("fail nvmlInitWithFlags 9")

    machine.ask("discover")

    assert machine.ask("doctor")[0] == ["driver", "warning", "the NVIDIA driver does not work: Driver Not Loaded"]


def test_an_old_driver_without_the_second_version_of_memory_offers_the_same(
    tmp_path: pathlib.Path, boot: Callable[[pathlib.Path], driver.Machine], start: Callable[[], int]
) -> None:
    machine = boot(driver.build(tmp_path / "old", "-DOLD"))
    machine.cards("driver 470.1", H200, f"proc 0 compute {start()} 4000", f"proc 0 graphics {start()} 200")
    machine.ask("discover")

    reading = machine.ask("read", owned={os.getpid(): "pod-a"})

    # It counts the 700 MiB that it keeps as used; what no process holds is taken for them.
    assert reading["devices"][0]["memory_mib"] == SIZE
    assert reading["use"]["GPU-0"]["used_mib"] == 4200
    assert [(each["mib"], each["pod"]) for each in reading["processes"]] == [(4000, "pod-a"), (200, "pod-a")]
    assert reading["devices"][0]["guarantee"] == "detected"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ("nvmlDeviceGetUtilizationRates", "utilisation_percent"),
        ("nvmlDeviceGetTemperature", "temperature_celsius"),
        ("nvmlDeviceGetPowerUsage", "power_watts"),
    ],
)
def test_what_a_card_does_not_support_is_unknown_and_the_rest_is_told(
    machine: driver.Machine, call: str, field: str
) -> None:
    machine.cards(H200, f"fail {call} 3", "fail nvmlDeviceGetMigMode 3", "fail nvmlDeviceGetFieldValues 3")
    machine.ask("discover")

    use = machine.ask("read", owned={})["use"]["GPU-0"]

    assert [name for name, value in use.items() if value is None] == [field]


def test_use_above_100_percent_is_not_believed(machine: driver.Machine) -> None:
    machine.cards(H200.replace("util=37", "util=4200"))
    machine.ask("discover")

    assert machine.ask("read", owned={})["use"]["GPU-0"]["utilisation_percent"] is None


def test_a_card_without_the_newest_process_list_is_asked_for_the_older_one(
    machine: driver.Machine, start: Callable[[], int]
) -> None:
    machine.cards(H200, f"proc 0 compute {start()} 100", "fail nvmlDeviceGetComputeRunningProcesses_v3 13")
    machine.ask("discover")

    assert [row["mib"] for row in machine.ask("read", owned={os.getpid(): "a"})["processes"]] == [100]


def test_without_process_lists_a_share_is_advisory(machine: driver.Machine) -> None:
    lists = [f"{kind}RunningProcesses_v{n}" for kind in ("Compute", "Graphics", "MPSCompute") for n in (2, 3)]
    machine.cards(H200, *(f"fail nvmlDeviceGet{each} 3" for each in lists))

    assert machine.ask("discover")["guarantee"] == "advisory"
    assert machine.ask("read", owned={})["devices"][0]["guarantee"] == "advisory"


def test_a_process_whose_memory_is_not_reported_makes_a_share_advisory(
    machine: driver.Machine, start: Callable[[], int]
) -> None:
    machine.cards(H200, f"proc 0 compute {start()} -1")
    machine.ask("discover")

    reading = machine.ask("read", owned={os.getpid(): "pod-a"})

    assert reading["devices"][0]["guarantee"] == "advisory"
    assert reading["processes"][0]["mib"] is None


def test_a_device_that_somebody_else_computes_on_is_withheld_with_pid_and_user(
    machine: driver.Machine, start: Callable[[], int]
) -> None:
    pid, user = start(), getpass.getuser()
    machine.cards(H200, OTHER, f"proc 0 compute {pid} 2048")
    machine.ask("discover")

    reading = machine.ask("read", owned={})

    assert [device["withheld"] for device in reading["devices"]] == ["device-in-use", None]
    assert reading["devices"][0]["foreign"] == [{"pid": pid, "user": user, "mib": 2048}]
    assert reading["notes"] == {"GPU-0": f"in use by pid {pid} of {user} (2048 MiB), not started by Aliquot"}


def test_it_is_offered_with_less_memory_where_that_is_wished(machine: driver.Machine, start: Callable[[], int]) -> None:
    machine.cards(H200, f"proc 0 compute {start()} 2000", f"proc 0 compute {start()} 10")
    machine.ask("discover", foreign="shrink")

    (device,) = machine.ask("read", owned={})["devices"]

    # 2010 MiB in whole steps of 256.
    assert (device["withheld"], device["memory_mib"]) == (None, SIZE - 2048)
    assert [each["mib"] for each in device["foreign"]] == [2000, 10]


def test_a_display_server_takes_its_memory_and_not_the_device(
    machine: driver.Machine, start: Callable[[], int]
) -> None:
    machine.cards(H200, f"proc 0 graphics {start()} 300")
    machine.ask("discover")

    (device,) = machine.ask("read", owned={})["devices"]

    assert (device["withheld"], device["memory_mib"]) == (None, SIZE - 512)


def test_a_stranger_whose_memory_is_unknown_withholds_the_device_even_where_sharing_is_wished(
    machine: driver.Machine, start: Callable[[], int]
) -> None:
    machine.cards(H200, f"proc 0 compute {start()} -1")
    machine.ask("discover", foreign="shrink")

    assert machine.ask("read", owned={})["devices"][0]["withheld"] == "device-in-use"


def test_a_process_that_computes_and_draws_is_counted_once(machine: driver.Machine, start: Callable[[], int]) -> None:
    pid = start()
    machine.cards(H200, *(f"proc 0 {kind} {pid} 500" for kind in ("compute", "graphics", "mps")))
    machine.ask("discover")

    assert machine.ask("read", owned={})["devices"][0]["foreign"][0]["mib"] == 500


def test_descendants_of_what_we_started_are_not_foreign(machine: driver.Machine, start: Callable[[], int]) -> None:
    pid = start()
    machine.cards(H200, f"proc 0 compute {pid} 2048")
    machine.ask("discover")

    reading = machine.ask("read", owned={os.getpid(): "pod-a"})

    assert reading["devices"][0]["withheld"] is None
    assert reading["processes"] == [{"device": "GPU-0", "pid": pid, "mib": 2048, "pod": "pod-a"}]


def test_a_process_that_ended_between_list_and_look_is_nobodys(machine: driver.Machine) -> None:
    machine.cards(H200, f"proc 0 compute {gone()} 2048")
    machine.ask("discover")

    reading = machine.ask("read", owned={})

    assert reading["devices"][0]["withheld"] is None
    assert reading["processes"] == []


def test_memory_that_stays_after_its_process_is_gone_keeps_the_device_withheld(machine: driver.Machine) -> None:
    machine.cards(H200, f"proc 0 compute {gone()} 2048")
    machine.ask("discover")
    machine.ask("read", owned={})

    (device,) = machine.ask("read", owned={})["devices"]

    assert device["withheld"] == "device-in-use"
    assert device["foreign"][0]["user"] == "unknown"


@pytest.mark.parametrize(("code", "words"), [(15, "the GPU is lost"), (16, "needs a reset"), (999, "Unknown Error")])
def test_a_card_that_stops_answering_is_lost_under_its_name(machine: driver.Machine, code: int, words: str) -> None:
    machine.cards(H200, OTHER)
    machine.ask("discover")

    machine.cards(H200, OTHER, f"fail * {code} 0")
    reading = machine.ask("read", owned={})

    assert [(each["id"], each["withheld"]) for each in reading["devices"]] == [("GPU-0", "lost"), ("GPU-1", None)]
    assert reading["devices"][0]["memory_mib"] == SIZE
    assert words in reading["notes"]["GPU-0"]
    assert "GPU-0" not in reading["use"]


def test_a_card_that_is_lost_in_the_middle_of_a_reading_is_lost_too(machine: driver.Machine) -> None:
    machine.cards(H200)
    machine.ask("discover")

    machine.cards(H200, "fail nvmlDeviceGetComputeRunningProcesses_v3 15 0")

    assert machine.ask("read", owned={})["devices"][0]["withheld"] == "lost"


def test_a_card_that_answers_again_is_offered_again(machine: driver.Machine) -> None:
    machine.cards(H200)
    machine.ask("discover")
    machine.cards(H200, "fail nvmlDeviceGetMemoryInfo_v2 999 0")
    machine.ask("read", owned={})

    machine.cards(H200)

    assert machine.ask("read", owned={})["devices"][0]["withheld"] is None


def test_a_card_that_was_lost_before_the_start_does_not_hide_the_others(machine: driver.Machine) -> None:
    machine.cards(H200, OTHER, "fail * 15 0")
    machine.ask("discover")

    reading = machine.ask("read", owned={})

    assert [each["id"] for each in reading["devices"]] == ["GPU-1"]
    assert reading["problems"][0].startswith("GPU 0 is left out: the GPU is lost")


@pytest.mark.parametrize("xid", [48, 79, 119])
def test_a_fatal_xid_takes_the_device_out_for_good(machine: driver.Machine, xid: int) -> None:
    machine.cards(H200, OTHER)
    machine.ask("discover")

    machine.cards(H200, OTHER, f"xid 1 {xid}")
    machine.ask("read", owned={})
    reading = machine.ask("read", owned={})

    assert [each["withheld"] for each in reading["devices"]] == [None, "xid"]
    assert f"Xid {xid}:" in reading["notes"]["GPU-1"]


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 63, 94])
def test_an_xid_that_a_program_causes_leaves_the_device_in_use(machine: driver.Machine, xid: int) -> None:
    machine.cards(H200)
    machine.ask("discover")

    machine.cards(H200, f"xid 0 {xid}")

    assert machine.ask("read", owned={})["devices"][0]["withheld"] is None


def test_the_fatal_one_of_several_xids_is_not_overlooked(machine: driver.Machine) -> None:
    machine.cards(H200)
    machine.ask("discover")

    machine.cards(H200, "xid 0 31", "xid 0 45", "xid 0 95", "xid 0 43")

    assert "Xid 95" in machine.ask("read", owned={})["notes"]["GPU-0"]


def test_a_card_that_fell_off_the_bus_names_the_xid_that_came_first(machine: driver.Machine) -> None:
    machine.cards(H200)
    machine.ask("discover")

    machine.cards(H200, "xid 0 79", "fail * 15 0")
    reading = machine.ask("read", owned={})

    assert reading["devices"][0]["withheld"] == "xid"
    assert "Xid 79" in reading["notes"]["GPU-0"]


def test_a_driver_that_asks_for_a_reset_is_heard_even_if_the_xid_came_before_our_start(machine: driver.Machine) -> None:
    machine.cards(f"{H200} recovery=1")
    machine.ask("discover")

    reading = machine.ask("read", owned={})

    assert reading["devices"][0]["withheld"] == "xid"
    assert reading["notes"]["GPU-0"] == "the driver asks to reset the GPU"


def test_a_card_that_cannot_tell_of_xids_is_offered(machine: driver.Machine) -> None:
    machine.cards(f"{H200} xids=0")
    machine.ask("discover")

    assert machine.ask("read", owned={})["devices"][0]["withheld"] is None


def test_a_card_in_mig_mode_is_not_offered(machine: driver.Machine) -> None:
    machine.cards(f"{H200} mig=1")
    machine.ask("discover")

    reading = machine.ask("read", owned={})

    assert reading["devices"][0]["withheld"] == "not-offered"
    assert "MIG" in reading["notes"]["GPU-0"]


def test_only_the_named_devices_are_offered_and_a_fault_is_named_before_that(machine: driver.Machine) -> None:
    third = OTHER.replace("GPU-1", "GPU-2")
    machine.cards(H200, OTHER, third)
    machine.ask("discover", only="0")

    machine.cards(H200, OTHER, third, "fail * 15 2")
    reading = machine.ask("read", owned={})

    assert [each["withheld"] for each in reading["devices"]] == [None, "not-offered", "lost"]


def test_a_device_to_offer_that_is_not_there_is_refused_with_those_that_are(machine: driver.Machine) -> None:
    machine.cards(H200, OTHER)

    refused = machine.ask("discover", only="0,7")

    assert (refused["field"], refused["valid"]) == ("only", ["0", "1"])


def test_simulated_devices_are_refused_beside_real_ones(machine: driver.Machine) -> None:
    machine.cards(H200)

    refused = machine.ask("discover", spec="8xH100")

    assert refused["field"] == "devices"
    assert "1 NVIDIA H200" in refused["error"]
    assert machine.ask("has") is True


def test_a_driver_without_cards_lets_devices_be_simulated(machine: driver.Machine) -> None:
    found = machine.ask("discover", spec="2xL4")

    assert found["described"].startswith("2 simulated L4 (the NVIDIA driver reports no GPU)")


def test_a_share_that_is_over_used_for_three_readings_is_ended_where_it_has_a_neighbour(
    machine: driver.Machine, start: Callable[[], int]
) -> None:
    greedy, quiet = start(), start()
    asked: dict[str, Any] = {
        "owned": {greedy: "greedy", quiet: "quiet"},
        "held": {"greedy": [["GPU-0", 500, 70_000]], "quiet": [["GPU-0", 500, 70_000]]},
    }
    machine.cards(H200, f"proc 0 compute {greedy} 90000", f"proc 0 compute {quiet} 1000")
    machine.ask("discover")

    found = [machine.ask("watch", **asked) for _ in range(4)]

    assert found[0] == found[1] == found[3] == []
    ((pod, action, sentence),) = found[2]
    assert (pod, action) == ("greedy", "end")
    assert "uses 90000 MiB of device GPU-0; its share is 70000 MiB" in sentence


def test_readings_that_fail_neither_accuse_nor_acquit(machine: driver.Machine, start: Callable[[], int]) -> None:
    pid = start()
    asked: dict[str, Any] = {"owned": {pid: "greedy"}, "held": {"greedy": [["GPU-0", 500, 1000]]}}
    lines = (H200, f"proc 0 compute {pid} 2000")
    machine.cards(*lines)
    machine.ask("discover")
    before = [machine.ask("watch", **asked) for _ in range(2)]

    machine.cards(*lines, "fail * 15 0")
    between = [machine.ask("watch", **asked) for _ in range(5)]
    machine.cards(*lines)
    after = machine.ask("watch", **asked)

    assert (before, between) == ([[], []], [[]] * 5)
    assert [action for _, action, _ in after] == ["warn"]


def test_the_doctor_names_each_card_and_what_keeps_it_back(machine: driver.Machine, start: Callable[[], int]) -> None:
    third = OTHER.replace("GPU-1", "GPU-2")
    machine.cards("driver 580.65.06", H200, OTHER, third, f"proc 1 compute {start()} 9", "fail nvmlDeviceGetName 15 2")

    checks = machine.ask("doctor")

    assert ["driver", "ok", "NVIDIA driver 580.65.06"] in checks
    assert [state for name, state, _ in checks if name == "devices"] == ["problem", "ok", "warning"]


def test_the_doctor_does_not_call_the_work_of_a_running_server_foreign(machine: driver.Machine) -> None:
    ours = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=os.environ | {"ALIQUOT_RUN": "run-1"}
    )
    machine.cards(H200, f"proc 0 compute {ours.pid} 9")

    checks = machine.ask("doctor")
    ours.communicate(b"\n")

    assert [state for name, state, _ in checks if name == "devices"] == ["ok"]
