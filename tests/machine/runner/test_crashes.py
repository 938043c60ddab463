"""Whatever is killed at whatever moment: no pod runs twice, none is lost, and its end is told truthfully."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from aliquot.core import errors
from aliquot.local import processes, records
from aliquot.local.launch import ExitKind
from aliquot.local.runner import Runner
from tests.machine.runner.workbench import Workbench, is_over

STARTER = """
import pathlib, sys
from aliquot.local.launch import Launch
from aliquot.local.runner import Runner
folder = pathlib.Path(sys.argv[1])
runner = Runner(folder / "pods")
for number in range(20):
    print(number, flush=True)
    pod = f"{sys.argv[2]}-{number}"
    runner.start(Launch(pod, "w1", ("sh", "-c", f"echo x >> ran-{pod}"), folder, {"PATH": "/usr/bin:/bin"}))
sys.stdin.readline()
"""


def test_a_second_start_of_the_same_pod_runs_nothing(bench: Workbench) -> None:
    for _ in range(5):
        bench.start("echo x >> ran; sleep 0.2")
    bench.until("running")
    bench.start("echo x >> ran")
    bench.until("ended")
    bench.start("echo x >> ran")
    bench.reopen()
    bench.start("echo x >> ran")

    assert bench.see().state == "ended"
    assert (bench.folder / "ran").read_text() == "x\n"


def test_many_supervisors_at_once_for_one_pod_run_it_once(bench: Workbench) -> None:
    folder = bench.runner.folder("p1")
    folder.mkdir()
    launch = bench.runner._to_record(bench.launch("sh", "-c", "echo x >> ran"))
    records.create(str(folder), records.LAUNCH, launch)
    program = f"from aliquot.local import supervisor; supervisor.main({str(folder)!r})"

    supervisors = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(10)]
    codes = [supervisor.wait() for supervisor in supervisors]

    assert codes == [0] * 10
    assert bench.until("ended").exit is not None
    assert (bench.folder / "ran").read_text() == "x\n"


@pytest.mark.slow  # servers are started and killed, each in the middle of starting pods
def test_a_server_killed_at_any_moment_of_a_start_starts_each_pod_once(bench: Workbench) -> None:
    rng = random.Random(1)
    rounds = range(32)
    for round_ in rounds:
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER, str(bench.folder), f"r{round_}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert starter.stdout is not None
        for _ in range(rng.randint(1, 6)):
            starter.stdout.readline()
        _spin(rng.uniform(0, 0.005))
        starter.kill()
        starter.communicate()
    bench.reopen()
    intended = [f"r{round_}-{number}" for round_ in rounds for number in range(20)]
    recorded = [pod for pod in intended if (bench.runner.folder(pod) / records.LAUNCH).exists()]

    for pod in recorded:
        bench.start(f"echo x >> ran-{pod}", pod=pod)

    for pod in recorded:
        over = bench.until("ended", pod).exit
        assert over is not None
        assert (over.kind, over.code) == (ExitKind.EXITED, 0)
        assert (bench.folder / f"ran-{pod}").read_text() == "x\n"
    assert len(rounds) < len(recorded) < len(intended)
    assert not [pod for pod in set(intended) - set(recorded) if (bench.folder / f"ran-{pod}").exists()]


def test_a_new_runner_finds_the_pods_of_the_old_one_and_goes_on(bench: Workbench) -> None:
    bench.start("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 5")
    before = bench.until("running")

    bench.reopen()

    assert bench.see() == before
    (bench.folder / "go").touch()
    over = bench.until("ended").exit
    assert over is not None
    assert over.code == 5
    assert bench.text() == "one\ntwo\n"


def test_a_pod_that_ended_while_no_runner_was_there_is_told_of(bench: Workbench) -> None:
    bench.start("while [ ! -e go ]; do sleep 0.01; done; exit 6")
    bench.until("running")
    supervisor = bench.supervisor()
    bench.runner.close()
    (bench.folder / "go").touch()
    bench.wait_for(lambda: is_over(supervisor))

    bench.runner = Runner(bench.folder / "pods")

    over = bench.see().exit
    assert over is not None
    assert over.code == 6


def test_a_killed_supervisor_takes_its_pod_along_and_nobody_calls_it_a_success(bench: Workbench) -> None:
    bench.start("trap '' TERM; (setsid sleep 1000 &); sleep 1000; echo never")
    bench.wait_for(lambda: len(bench.runner.pids("p1")) >= 3)
    tree = bench.runner.pids("p1")

    bench.kill_supervisor()

    over = bench.until("ended").exit
    assert over is not None
    assert (over.kind, over.code, over.signal) == (ExitKind.UNKNOWN, None, None)
    assert all(is_over(pid) for pid in tree)


def test_a_supervisor_killed_while_no_runner_was_there_is_noticed_by_the_next(bench: Workbench) -> None:
    bench.start("(setsid sleep 1000 &); sleep 1000")
    bench.wait_for(lambda: len(bench.runner.pids("p1")) >= 3)
    tree = bench.runner.pids("p1")
    supervisor = bench.supervisor()
    bench.runner.close()
    os.kill(supervisor, signal.SIGKILL)
    bench.wait_for(lambda: is_over(supervisor))

    bench.runner = Runner(bench.folder / "pods")

    over = bench.until("ended").exit
    assert over is not None
    assert over.kind is ExitKind.UNKNOWN
    assert all(is_over(pid) for pid in tree)


def test_a_pod_whose_folder_is_gone_ends_and_leaves_no_supervisor(bench: Workbench) -> None:
    bench.start("trap '' TERM; (setsid sleep 1000 &); sleep 1000")
    bench.wait_for(lambda: len(bench.runner.pids("p1")) >= 3)
    tree, supervisor = bench.runner.pids("p1"), bench.supervisor()

    bench.runner.folder("p1").rename(bench.folder / "elsewhere")

    bench.wait_for(lambda: all(is_over(pid) for pid in [*tree, supervisor]))


def test_the_kernel_ends_the_command_with_its_supervisor_while_no_runner_is_there(bench: Workbench) -> None:
    bench.start("exec sleep 1000")
    command = bench.until("running").pid
    supervisor = bench.supervisor()
    bench.runner.close()

    os.kill(supervisor, signal.SIGKILL)

    assert command is not None
    bench.wait_for(lambda: is_over(command))
    bench.reopen()
    over = bench.until("ended").exit
    assert over is not None
    assert over.kind is ExitKind.UNKNOWN


def test_what_hid_from_its_environment_and_session_is_found_after_its_supervisor(bench: Workbench) -> None:
    bench.start("(env -i setsid sleep 1000 &); sleep 1000")
    bench.wait_for(lambda: len(bench.runner.pids("p1")) >= 3)
    tree = bench.runner.pids("p1")
    written = f"{bench.runner.folder('p1')}"
    bench.wait_for(lambda: len((records.read(written, records.TREE) or {"processes": []})["processes"]) >= 3)

    bench.kill_supervisor()

    bench.until("ended")
    assert all(is_over(pid) for pid in tree)


def test_end_of_a_pod_without_supervisor_leaves_nothing(bench: Workbench) -> None:
    bench.start("(setsid sleep 1000 &); sleep 1000")
    bench.wait_for(lambda: len(bench.runner.pids("p1")) >= 3)
    tree = bench.runner.pids("p1")

    bench.kill_supervisor()
    bench.runner.end("p1", grace=timedelta(hours=1))

    bench.until("ended")
    assert all(is_over(pid) for pid in tree)


def test_a_killed_process_tree_is_told_as_killed(bench: Workbench) -> None:
    bench.start("sleep 1000 & wait")
    bench.wait_for(lambda: len(bench.runner.pids("p1")) >= 2)

    for pid in bench.runner.pids("p1"):
        with contextlib.suppress(ProcessLookupError):  # One may end with another.
            os.kill(pid, signal.SIGKILL)

    over = bench.until("ended").exit
    assert over is not None
    assert (over.kind, over.signal, over.message) == (ExitKind.SIGNALLED, signal.SIGKILL, "")


def test_term_for_the_supervisor_ends_its_pod_in_good_order(bench: Workbench) -> None:
    bench.start("sleep 1000")
    bench.until("running")

    os.kill(bench.supervisor(), signal.SIGTERM)

    over = bench.until("ended").exit
    assert over is not None
    assert (over.kind, over.signal) == (ExitKind.SIGNALLED, signal.SIGTERM)


def test_a_supervisor_outlives_what_the_terminal_of_the_server_sends(bench: Workbench) -> None:
    bench.start("sleep 1000")
    bench.until("running")
    supervisor = bench.supervisor()

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(supervisor, number)

    assert os.getsid(supervisor) == supervisor
    assert bench.see().state == "running"
    bench.runner.end("p1")
    over = bench.until("ended").exit
    assert over is not None
    assert over.signal == signal.SIGTERM


def test_after_a_reboot_a_pod_is_lost_and_no_stranger_with_its_pid_is_touched(bench: Workbench) -> None:
    bench.start("exit 0")
    bench.until("ended")
    folder = bench.runner.folder("p1")
    stranger = subprocess.Popen(["sleep", "1000"])
    process = processes.find(stranger.pid)
    assert process is not None
    # The files as a power cut leaves them, and a stranger who now has the pid of the supervisor.
    (folder / records.EXIT).unlink()
    claim = {"pid": stranger.pid, "start": process.start, "boot": "another-boot", "at": time.time()}
    records.replace(str(folder), records.CLAIM, claim)

    bench.reopen()

    over = bench.see().exit
    assert over is not None
    assert over.kind is ExitKind.LOST
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_pid_that_is_used_again_is_not_taken_for_the_supervisor(bench: Workbench) -> None:
    bench.start("exit 0")
    bench.until("ended")
    folder = bench.runner.folder("p1")
    stranger = subprocess.Popen(["sleep", "1000"])
    (folder / records.EXIT).unlink()
    claim = {"pid": stranger.pid, "start": 1, "boot": processes.boot_id(), "at": time.time()}
    records.replace(str(folder), records.CLAIM, claim)

    bench.reopen()
    bench.runner.end("p1")

    over = bench.until("ended").exit
    assert over is not None
    assert over.kind is ExitKind.UNKNOWN
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.slow  # forty supervisors are started and killed, one after the other
def test_a_supervisor_killed_at_any_moment_never_runs_its_pod_twice_nor_calls_it_done(bench: Workbench) -> None:
    rng = random.Random(2)
    kinds = set()
    for number in range(40):
        pod = f"p{number}"
        bench.start(f"echo x >> ran-{pod}; exec sleep 1000", pod=pod)
        if number % 2:
            bench.supervisor(pod)
            _spin(rng.uniform(0, 0.02))
        else:
            _spin(rng.uniform(0, 0.06))
        supervisor = bench.runner._children[pod]
        supervisor.kill()
        supervisor.wait()
        # Killed before its claim, it may be started again; after that, never.
        bench.start("this launch is not the first, so it is not used", pod=pod)
    for number in range(40):
        pod = f"p{number}"
        bench.until("running", pod)
        bench.runner.end(pod)
        over = bench.until("ended", pod).exit
        assert over is not None
        ran = bench.folder / f"ran-{pod}"
        times = ran.read_text().count("x") if ran.exists() else 0
        assert times <= 1
        kinds.add(over.kind)

    assert ExitKind.UNKNOWN in kinds
    assert kinds <= {ExitKind.UNKNOWN, ExitKind.SIGNALLED}


@pytest.mark.slow  # a full disk is left alone for a second before the next try
def test_lines_that_found_no_room_are_counted_in_the_log_once_there_is_room_again(small_disk: pathlib.Path) -> None:
    bench = Workbench(small_disk)
    ballast = small_disk / "ballast"
    bench.start(
        "echo first; until [ -e full ]; do sleep 0.01; done; seq 300; touch wrote;"
        "until [ -e go ]; do echo more; sleep 0.05; done; echo last"
    )
    bench.wait_for_text("first")
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    # A name needs no block on this file system, and the page of the log that is begun takes some lines.
    (small_disk / "full").touch()
    bench.wait_for((small_disk / "wrote").exists)
    bench.wait_for(lambda: os.statvfs(small_disk).f_bavail == 0)
    ballast.unlink()
    bench.wait_for_text("more")
    (small_disk / "go").touch()
    bench.until("ended")

    lines = bench.lines()

    kept = [line.text for line in lines if line.stream == "stdout"]
    (remark,) = [line.text for line in lines if line.stream == "aliquot"]
    dropped, _, reason = remark.partition(" ")
    numbers = [int(text) for text in kept if text.isdecimal()]
    assert (kept[0], kept[-1]) == ("first", "last")
    assert numbers == list(range(1, len(numbers) + 1))
    assert int(dropped) >= 300 - len(numbers) > 0
    assert reason == "lines of output were dropped: No space left on device"
    bench.close()


@pytest.mark.slow  # a full disk is left alone for a second before the next try
def test_a_full_disk_stops_new_starts_and_neither_what_runs_nor_how_it_ended(small_disk: pathlib.Path) -> None:
    bench = Workbench(small_disk)
    bench.start("seq 100000; touch written; while [ ! -e go ]; do sleep 0.01; done; exit 9")
    bench.wait_for((small_disk / "written").exists)
    bench.wait_for(lambda: os.statvfs(small_disk).f_bavail == 0)

    with pytest.raises(errors.Unavailable) as caught:
        bench.start("true", pod="p2")
    (small_disk / "go").touch()
    over = bench.until("ended").exit

    assert caught.value.stable_code == "disk-full"
    assert list(bench.runner.observe()) == ["p1"]
    assert over is not None
    assert over.code == 9
    texts = [line.text for line in bench.lines() if line.stream == "stdout"]
    assert texts == [str(number + 1) for number in range(len(texts))]
    bench.close()


def _spin(seconds: float) -> None:
    """Let time pass: here the moment of the kill is the test's input."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
