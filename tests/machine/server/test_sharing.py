"""The main story on a real server with real processes: shares, waiting with a reason, reclaim, resume."""

import os
import pathlib
import signal

from aliquot.wire import projects
from aliquot.wire import workloads as shapes
from tests.machine.server import served
from tests.machine.server.served import Served

FOREVER = "while :; do sleep 0.05; done"


def test_two_halves_run_on_one_device_and_the_suggestion_for_a_third_starts_it(small_server: Served) -> None:
    small_server.submit("first", FOREVER, gpu="0.5")
    small_server.submit("second", FOREVER, gpu="0.5")
    first = small_server.wait_phase("first", "running")
    second = small_server.wait_phase("second", "running")
    small_server.submit("third", FOREVER, gpu="0.5")

    told = small_server.run("why", "third")
    reason = small_server.client.get_reason("third")

    assert first.pods[0].shares[0].device == second.pods[0].shares[0].device
    assert {blocker.workload for blocker in reason.blockers} == {first.id, second.id}
    assert told.returncode == 0
    assert "first" in told.stdout
    assert "second" in told.stdout
    assert reason.suggestion is not None
    assert reason.suggestion.command is not None
    applied = small_server.run(*reason.suggestion.command.split()[1:])
    assert applied.returncode == 0, applied.stderr
    small_server.wait_phase("third", "running")


def test_a_promise_outlives_the_death_of_the_server_and_takes_no_second_victim(tmp_path: pathlib.Path) -> None:
    server = served.start(tmp_path / "data", "--devices", "2xH100")
    pool = projects.PoolTerms(gpu=projects.Claim(quota="1"))
    for name in ("a", "b"):
        server.client.create_project(projects.ProjectNew(name=name, pools={"default": pool}))
    stubborn = f'trap "" TERM; while [ ! -e {tmp_path / "go"} ]; do sleep 0.05; done'
    for number in range(2):
        server.submit(f"a-{number}", stubborn, gpu="1", project="a", gracePeriod="10m")
        server.wait_phase(f"a-{number}", "running")
    server.submit("b-0", "true", gpu="1", project="b")
    before = served.wait_for("a promise", lambda: _waits_for_release(server))

    os.kill(server.pid, signal.SIGKILL)
    with served.serving(tmp_path / "data", "--devices", "2xH100") as again:
        after = served.wait_for("the promise again", lambda: _waits_for_release(again))
        (tmp_path / "go").touch()
        again.wait_phase("b-0", "succeeded")
        receipts = again.client.list_receipts().items
    server.client.close()

    assert (before, after) == ("waiting-for-release", "waiting-for-release")
    assert [(receipt.beneficiary_name, receipt.rule) for receipt in receipts] == [("b-0", "reclaim")]


def _waits_for_release(server: Served) -> str | None:
    reason = server.client.get_workload("b-0").reason
    return reason.code if reason is not None and reason.code == "waiting-for-release" else None


def test_a_borrower_gives_back_what_another_project_is_due_and_resumes_from_its_checkpoint(
    server: Served, tmp_path: pathlib.Path
) -> None:
    for name in ("a", "b"):
        pool = projects.PoolTerms(gpu=projects.Claim(quota="4"))
        server.client.create_project(projects.ProjectNew(name=name, pools={"default": pool}))
    stop_file = tmp_path / "stop"
    # Counts up, and says where it went on. A checkpoint is written whole or not at all: it may be ended at any moment.
    counting = (
        'f="$ALIQUOT_CHECKPOINT_DIR/n"; n=$(cat "$f" 2>/dev/null || echo 0); echo "from $n"; '
        f'while [ ! -e {stop_file} ]; do n=$((n+1)); echo $n >"$f.new"; mv "$f.new" "$f"; sleep 0.02; done; '
        'echo "until $n"'
    )
    for number in range(8):
        server.submit(f"a-{number}", counting, gpu="1", project="a")
    for number in range(8):
        server.wait_phase(f"a-{number}", "running")
    for number in range(4):
        server.submit(f"b-{number}", "sleep 0.3", gpu="1", project="b")
    for number in range(4):
        server.wait_phase(f"b-{number}", "succeeded")

    receipts = server.client.list_receipts().items
    assert len(receipts) == 4
    assert {receipt.rule for receipt in receipts} == {"reclaim"}
    assert {receipt.beneficiary_name for receipt in receipts} == {f"b-{number}" for number in range(4)}
    evicted = {receipt.workload_name for receipt in receipts}
    for name in sorted(evicted):
        resumed = server.wait_phase(name, "running")
        assert resumed.attempt == 2
        assert resumed.failures == 0
        line = served.wait_for("its first line", lambda name=name: next(iter(server.log(name)), None))  # type: ignore[misc]  # bound early
        assert int(line.split()[1]) > 0
    stop_file.touch()
    for number in range(8):
        assert server.wait_phase(f"a-{number}", "succeeded").exit_code == 0
    assert server.client.audit_ledger().faults == []


def test_work_is_moved_to_make_room_for_a_whole_device_and_goes_on_from_its_checkpoint(
    tmp_path: pathlib.Path,
) -> None:
    with served.serving(tmp_path / "data", "--devices", "2xH100") as server:
        _move(server, tmp_path)


def _move(server: Served, tmp_path: pathlib.Path) -> None:
    # The half that stays is not preemptible, so it is clear which one is moved.
    server.submit("stays", FOREVER, gpu="0.5", preemptible=False)
    server.wait_phase("stays", "running")
    server.submit("leaves", FOREVER, gpu="0.5", preemptible=False)
    server.wait_phase("leaves", "running")
    moving = f'f="$ALIQUOT_CHECKPOINT_DIR/seen"; cat "$f" 2>/dev/null; echo saved >"$f"; {FOREVER}'
    server.submit("moves", moving, gpu="0.5")
    before = server.wait_phase("moves", "running")
    served.wait_for("its checkpoint", (pathlib.Path(before.checkpoint_directory) / "seen").exists)
    server.client.stop_workload("leaves")
    server.wait_phase("leaves", "stopped")

    server.submit("whole", f"touch {tmp_path / 'started'}; {FOREVER}", gpu="1")
    whole = server.wait_phase("whole", "running")
    after = served.wait_for("it to run again", lambda: _runs_again(server, "moves"))

    assert whole.pods[0].shares[0].device == before.pods[0].shares[0].device
    assert (after.attempt, after.evictions, after.failures) == (2, 1, 0)
    stays = server.client.get_workload("stays")
    assert after.pods[-1].shares[0].device == stays.pods[0].shares[0].device
    served.wait_for("its first line", lambda: server.log("moves") == ["saved"])
    receipts = server.client.list_receipts().items
    assert [(one.workload_name, one.beneficiary_name, one.rule) for one in receipts] == [
        ("moves", "whole", "consolidate")
    ]
    told = server.run("receipts").stdout
    assert "consolidate" in told
    assert "its new place is promised" in told
    assert server.client.audit_ledger().faults == []


def _runs_again(server: Served, name: str) -> shapes.WorkloadDetail | None:
    found = server.client.get_workload(name)
    return found if found.phase == "running" and found.attempt == 2 else None
