"""What is told when something is killed from outside, and that its device is free afterwards."""

import os
import pathlib
import signal

import pytest

from aliquot.local import processes
from tests.machine.server import served
from tests.machine.server.served import Served

FOREVER = "while :; do sleep 0.05; done"


def is_free(server: Served) -> bool:
    return all(device.held_milli_gpus == 0 for device in server.client.list_devices().items)


def test_a_killed_process_is_told_as_killed_and_its_device_is_free(small_server: Served) -> None:
    small_server.submit("victim", f"exec sh -c '{FOREVER}'", gpu="1")
    pid = small_server.wait_phase("victim", "running").pods[0].pid
    assert pid is not None

    os.kill(pid, signal.SIGKILL)
    ended = small_server.wait_phase("victim", "failed")

    assert (ended.outcome, ended.exit_signal) == ("failed", signal.SIGKILL)
    served.wait_for("the device to be free", lambda: is_free(small_server))


def test_a_killed_supervisor_means_exit_unknown_never_success(small_server: Served) -> None:
    small_server.submit("orphan", FOREVER, gpu="1")
    pid = small_server.wait_phase("orphan", "running").pods[0].pid
    assert pid is not None
    process = processes.find(pid)
    assert process is not None

    os.kill(process.parent, signal.SIGKILL)
    ended = small_server.wait_phase("orphan", "failed")

    assert ended.outcome == "exit-unknown"
    served.wait_for("the job's process to be gone", lambda: processes.find(pid) is None)
    served.wait_for("the device to be free", lambda: is_free(small_server))


def test_run_passes_the_exit_code_through_and_128_and_the_signal(small_server: Served) -> None:
    exited = small_server.run("run", "--gpu", "0.5", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 7")
    killed = small_server.run("run", "--gpu", "0.5", "--", "/bin/sh", "-c", "kill -9 $$")

    assert (exited.returncode, exited.stdout) == (7, "out\n")
    assert "err\n" in exited.stderr
    assert killed.returncode == 128 + signal.SIGKILL


def test_a_full_disk_stops_new_starts_and_never_the_ledger(tmp_path: pathlib.Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=128m none {disk}") != 0:
        pytest.skip("a small disk of its own can be mounted only by root")
    try:
        more = {"ALIQUOT_SERVER_LEAST_FREE_MIB": "80"}
        with served.serving(disk / "data", "--devices", "1xH100", more=more) as server:
            server.submit("before", FOREVER, gpu="0.5")
            server.wait_phase("before", "running")
            (disk / "filler").write_bytes(b"0" * (80 << 20))

            server.submit("after", "true", gpu="0.5")
            waiting = served.wait_for("its reason", lambda: server.client.get_workload("after").reason)
            status = server.client.get_status()
            server.client.stop_workload("before")
            server.wait_phase("before", "stopped")
            audit = server.client.audit_ledger()
            (disk / "filler").unlink()
            server.wait_phase("after", "succeeded")

        assert waiting.code == "node-unavailable"
        assert "less than 80 MiB are free" in waiting.message
        assert status.is_accepting is False
        assert "MiB are free" in (status.notice or "")
        assert (audit.is_balanced, audit.open_entries) == (True, 0)
    finally:
        os.system(f"umount -l {disk}")


def test_a_server_whose_data_folder_is_removed_ends_and_says_so(tmp_path: pathlib.Path) -> None:
    running = served.start(tmp_path / "data", "--devices", "1xH100")
    running.client.close()
    server = processes.find(running.pid)
    assert server is not None

    (tmp_path / "data").rename(tmp_path / "away")

    served.wait_for("the server to end", lambda: not processes.is_same_alive(server.pid, server.start))
    logs = "".join(path.read_text() for path in (tmp_path / "state" / "aliquot").iterdir())
    assert "the data folder is gone or was replaced" in logs


def test_a_second_server_for_the_same_folder_is_found_not_started(small_server: Served) -> None:
    said = small_server.run("up", "--data", str(small_server.data), "--detach")

    assert said.returncode == 0
    assert "runs already" in said.stdout
