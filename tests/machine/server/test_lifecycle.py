"""The life of workloads on a real server: gangs, retries, limits, suspend and resume, deletion, environments."""

import json
import os
import pathlib
from collections.abc import Iterator

import pytest

from aliquot.core import errors
from aliquot.wire import workloads as shapes
from tests.machine.server import served
from tests.machine.server.served import Served

FOREVER = "while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of this file: each has names of its own."""
    folder = tmp_path_factory.mktemp("lifecycle")
    with served.serving(folder / "data", "--devices", "4xH100") as running:
        yield running


def held(server: Served) -> int:
    return sum(device.held_milli_gpus for device in server.client.list_devices().items)


def test_one_failed_replica_restarts_the_whole_gang_and_spends_one_retry(server: Served) -> None:
    # Replica 1 fails in the first attempt; replica 0 would run for ever in it.
    command = f'[ "$ALIQUOT_ATTEMPT" = 2 ] && exit 0; [ "$ALIQUOT_REPLICA" = 1 ] && exit 5; {FOREVER}'

    server.submit("gang", command, replicas=2, gpu="1", retries=1, retryBackOff="1s")
    done = server.wait_phase("gang", "succeeded", "failed")

    assert (done.phase, done.attempt, done.failures, done.evictions) == ("succeeded", 2, 1, 0)
    assert [(pod.attempt, pod.index) for pod in done.pods] == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_gang_that_does_not_fit_whole_does_not_start_in_part(server: Served) -> None:
    server.submit("holder", FOREVER, gpu="1", preemptible=False)
    server.wait_phase("holder", "running")
    server.submit("four", "true", replicas=4, gpu="1")

    reason = served.wait_for("its reason", lambda: server.client.get_workload("four").reason)

    assert held(server) == 1000
    assert reason.numbers
    server.client.stop_workload("holder")
    server.wait_phase("four", "succeeded")


def test_the_time_limit_counts_all_attempts_and_run_says_so_with_its_code(server: Served) -> None:
    said = server.run("run", "--name", "slow", "--max-run-time", "1s", "--", "sleep", "600")

    ended = server.client.get_workload("slow")
    assert (ended.phase, ended.outcome) == ("failed", "time-limit")
    assert said.returncode == 124


def test_suspend_frees_the_devices_and_resume_finds_the_checkpoint(server: Served) -> None:
    command = f'f="$ALIQUOT_CHECKPOINT_DIR/seen"; cat "$f" 2>/dev/null && exit 0; echo saved >"$f"; {FOREVER}'
    server.submit("pausing", command, gpu="2")
    server.wait_phase("pausing", "running")

    server.client.suspend_workload("pausing")
    server.wait_phase("pausing", "suspended")
    free = held(server)
    server.client.resume_workload("pausing")
    done = server.wait_phase("pausing", "succeeded")

    assert free == 0
    assert done.failures == 0
    assert server.log("pausing") == ["saved"]


def test_a_workload_goes_with_its_folder_when_its_time_to_live_is_over_and_its_usage_stays(server: Served) -> None:
    done = server.submit("brief", "true", gpu="1", ttlAfterFinish="1s")
    folder = pathlib.Path(done.checkpoint_directory).parent

    served.wait_for("it to go", lambda: server.client.list_workloads(name="brief").total == 0)
    served.wait_for("its folder to go", lambda: not folder.exists())

    assert server.client.list_workload_usage(name="brief").total == 1
    with pytest.raises(errors.NotFound):
        server.client.get_workload(done.id)


def test_deleting_what_runs_ends_it_first(server: Served) -> None:
    running = server.submit("doomed", FOREVER, gpu="1")
    server.wait_phase("doomed", "running")

    server.client.delete_workload("doomed")

    served.wait_for("it to go", lambda: server.client.list_workloads(q="doomed").total == 0)
    served.wait_for("its folder to go", lambda: not pathlib.Path(running.checkpoint_directory).parent.exists())
    assert held(server) == 0


def test_run_passes_folder_and_environment_of_the_caller_and_no_token(server: Served, tmp_path: pathlib.Path) -> None:
    said = server.run(
        "run",
        "--",
        "/bin/sh",
        "-c",
        "pwd; echo $MINE; env | grep -c ALIQUOT_TOKEN",
        cwd=tmp_path,
        more={"MINE": "yes", "ALIQUOT_TOKEN": "secret"},
    )

    assert said.stdout.split() == [str(tmp_path), "yes", "0"]


def test_a_submission_by_api_gets_a_clean_environment_and_a_folder_of_its_own(server: Served) -> None:
    os.environ["NOT_FOR_JOBS"] = "1"
    done = server.submit("clean", 'pwd; echo "${NOT_FOR_JOBS:-clean}"; echo "devices:$CUDA_VISIBLE_DEVICES"')
    del os.environ["NOT_FOR_JOBS"]

    server.wait_phase("clean", "succeeded")

    folder = pathlib.Path(done.checkpoint_directory).parent / "work"
    assert server.log("clean") == [str(folder), "clean", "devices:"]


def test_the_same_key_is_the_same_workload_and_another_body_a_conflict(server: Served) -> None:
    definition = shapes.Definition(name="keyed", command=["true"])
    first = server.client.submit_workload(definition, key="k-1")
    again = server.client.submit_workload(definition, key="k-1")

    assert again.id == first.id
    with pytest.raises(errors.Conflict) as refused:
        server.client.submit_workload(definition.model_copy(update={"gpu": "1"}), key="k-1")
    assert refused.value.stable_code == "idempotency-key-reused"


def test_a_name_is_unique_among_unfinished_workloads(server: Served) -> None:
    server.submit("only-one", FOREVER)

    with pytest.raises(errors.Conflict):
        server.submit("only-one", FOREVER)
    server.client.stop_workload("only-one")
    server.wait_phase("only-one", "stopped")
    assert server.submit("only-one", "true").name == "only-one"


def test_a_job_over_its_memory_is_told_apart_from_a_killed_one(server: Served) -> None:
    hungry = "python3 -c 'x = bytearray(300 << 20); print(len(x))'"

    server.submit("hungry", hungry, memory="64Mi")
    ended = server.wait_phase("hungry", "succeeded", "failed")

    assert (ended.phase, ended.outcome) == ("failed", "out-of-memory")


def test_a_workspace_gets_a_port_of_its_own_and_its_url_answers(server: Served) -> None:
    command = 'exec python3 -m http.server --bind 127.0.0.1 "$ALIQUOT_PORT"'
    environment = {"PATH": os.environ["PATH"]}

    server.submit("web", command, kind="workspace", environment=environment)
    found = server.wait_phase("web", "running")

    assert (found.preemptible, found.priority) == (False, 75)
    assert found.url is not None
    assert json.loads(server.run("get", "web", "-o", "json").stdout)["url"] == found.url
    fetch = ["python3", "-c", f"import urllib.request as u; print(u.urlopen('{found.url}').status)"]
    said = served.wait_for("it to answer", lambda: _tried(server, fetch))
    assert said.strip() == "200"


def _tried(server: Served, command: list[str]) -> str | None:
    done = server.run("run", "--", *command)
    return done.stdout if done.returncode == 0 else None


def test_the_events_of_a_workload_are_found_by_its_name_as_by_its_id(server: Served) -> None:
    submitted = server.submit("told", "true")
    server.wait_phase("told", "succeeded")

    by_name = server.run("events", "--subject", "told", "--json")
    by_id = server.run("events", "--subject", submitted.id, "--json")

    assert "submitted" in {one["code"] for one in json.loads(by_id.stdout)["items"]}
    assert by_name.stdout == by_id.stdout


def test_a_second_server_of_a_folder_is_refused_as_a_conflict(server: Served) -> None:
    address = server.data / "server.json"
    kept = address.read_text()
    address.unlink()  # as while the first one starts

    second = server.run("up", "--port", "0", "--detach")

    address.write_text(kept)
    assert second.returncode == 1
    assert "another server already uses" in second.stderr


def test_a_start_makes_a_token_where_the_file_holds_none(tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "token").write_bytes(b"")
    (data / "server.json").write_text("{")

    with served.serving(data) as running:
        assert running.run("status").returncode == 0
        assert len((data / "token").read_text().strip()) > 20


def test_a_copied_data_folder_neither_finds_nor_stops_the_server_of_the_other(
    server: Served, tmp_path: pathlib.Path
) -> None:
    for name in ("server.json", "token"):
        (tmp_path / name).write_bytes((server.data / name).read_bytes())

    listed = server.run("list", more={"ALIQUOT_DATA": str(tmp_path)})
    stopped = server.run("down", more={"ALIQUOT_DATA": str(tmp_path)})

    assert (listed.returncode, stopped.returncode) == (69, 69)
    assert "was copied from" in stopped.stderr
    assert served.is_answering(server)
