"""Pods from start to end: what they get, how their end is told, and that nothing of them is left."""

import json
import os
import pathlib
import signal
import sys
from datetime import timedelta

import pytest

from aliquot.core import errors
from aliquot.local import records
from aliquot.local.launch import Change, ExitKind
from tests.machine.runner.workbench import GUARD_SECONDS, Workbench

IGNORES_TERM = "trap '' TERM; echo ready; while :; do sleep 1000; done"
DETACHED = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        open("detached", "w").write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
while not os.path.exists("detached"):
    time.sleep(0.01)
print("ready", flush=True)
"""


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_of_the_command_is_told(bench: Workbench, code: int) -> None:
    bench.start(f"exit {code}")

    over = bench.until("ended").exit

    assert over is not None
    assert (over.kind, over.code, over.signal) == (ExitKind.EXITED, code, None)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_signal_that_killed_the_command_is_told(bench: Workbench, number: signal.Signals) -> None:
    bench.start(f"kill -{int(number)} $$")

    over = bench.until("ended").exit

    assert over is not None
    assert (over.kind, over.code, over.signal) == (ExitKind.SIGNALLED, None, number)


def test_both_streams_are_kept_apart_and_a_last_line_without_newline_too(bench: Workbench) -> None:
    bench.start("echo out; echo err >&2; printf end")

    bench.until("ended")

    assert bench.text() == "out\nend"
    assert bench.text(stream="stderr") == "err\n"


def test_the_environment_is_what_was_asked_for_and_nothing_else(bench: Workbench) -> None:
    asked = {"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "GPU-1", "ALIQUOT_POD": "p1", "ODD": "\udcff ü\n"}
    bench.start_python("import json, os; print(json.dumps({k: v for k, v in os.environ.items()}))", environment=asked)

    bench.until("ended")

    seen = json.loads(bench.text())
    assert seen.pop("ALIQUOT_RUN")
    assert {name: value for name, value in seen.items() if name not in {"LC_CTYPE"}} == asked


def test_the_command_runs_in_its_folder_with_default_signals_and_no_descriptor_of_ours(bench: Workbench) -> None:
    program = (
        "import os, signal; print(os.getcwd()); print(os.listdir('/proc/self/fd'));"
        "print([line for line in open('/proc/self/status') if line.startswith(('SigBlk', 'SigIgn'))]);"
        "print(os.getsid(0) == os.getpid())"
    )
    folder = bench.folder / "work place"
    folder.mkdir()
    # The shell does not touch signals, as Python does.
    status = "grep -E 'SigBlk|SigIgn' /proc/self/status"
    bench.start(f'{status}; {sys.executable} -I -S -c "{program}"', folder=folder)

    bench.until("ended")

    lines = bench.text().splitlines()
    # Signals 32 and 33 are the C library's own: nobody can set them, and whoever started the tests may ignore them.
    own = 0b11 << 31
    assert [int(line.split()[1], 16) & ~own for line in lines[:2]] == [0, 0]
    assert lines[2] == str(folder)
    assert lines[3] == "['0', '1', '2', '3']"  # 3 is the listing itself
    assert lines[5] == "False"  # the session is the shell's


def test_a_command_that_is_not_there_is_told_with_code_127(bench: Workbench) -> None:
    bench.runner.start(bench.launch("no-such-command", "x"))

    over = bench.until("ended").exit

    assert over is not None
    assert (over.kind, over.code) == (ExitKind.NOT_STARTED, 127)
    assert "command not found: 'no-such-command'" in over.message


def test_a_file_that_cannot_be_executed_is_told_with_code_126(bench: Workbench) -> None:
    (bench.folder / "data").write_text("no program")
    bench.runner.start(bench.launch("./data"))

    over = bench.until("ended").exit

    assert over is not None
    assert (over.kind, over.code) == (ExitKind.NOT_STARTED, 126)
    assert "cannot run './data'" in over.message


def test_a_script_whose_interpreter_is_missing_says_so(bench: Workbench) -> None:
    (bench.folder / "script").write_text("#!/no/such/interpreter\n")
    (bench.folder / "script").chmod(0o755)
    bench.runner.start(bench.launch("./script"))

    over = bench.until("ended").exit

    assert over is not None
    assert (over.kind, over.code) == (ExitKind.NOT_STARTED, 126)
    assert "interpreter" in over.message


def test_a_folder_that_is_not_there_is_told(bench: Workbench) -> None:
    bench.start("true", folder=bench.folder / "nowhere")

    over = bench.until("ended").exit

    assert over is not None
    assert (over.kind, over.code) == (ExitKind.NOT_STARTED, 126)
    assert "nowhere" in over.message


@pytest.mark.parametrize(
    ("argv", "field"), [((), "command"), (("a\0b",), "command"), (("",), "command")], ids=["none", "nul", "empty"]
)
def test_a_command_that_no_machine_could_run_is_refused(bench: Workbench, argv: tuple[str, ...], field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        bench.runner.start(bench.launch(*argv))

    assert caught.value.field == field
    assert bench.runner.observe() == {}


@pytest.mark.parametrize("pod", ["", "..", "a/b", ".hidden", "x" * 300])
def test_an_id_that_is_no_name_of_a_folder_is_refused(bench: Workbench, pod: str) -> None:
    with pytest.raises(errors.InvalidInput):
        bench.start("true", pod=pod)


def test_a_pod_told_to_end_gets_term_first_and_may_say_goodbye(bench: Workbench) -> None:
    bench.start("trap 'echo goodbye; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    bench.wait_for_text("ready")

    bench.runner.end("p1", grace=timedelta(seconds=50))

    over = bench.until("ended").exit
    assert over is not None
    assert (over.kind, over.code, over.message) == (ExitKind.EXITED, 7, "it was told to end")
    assert bench.text() == "ready\ngoodbye\n"


def test_a_pod_that_ignores_term_is_killed_after_its_grace(bench: Workbench) -> None:
    bench.start(IGNORES_TERM)
    bench.wait_for_text("ready")

    bench.runner.end("p1", grace=timedelta(seconds=0.2))

    assert bench.see().state == "running"
    assert bench.see().is_ending
    over = bench.until("ended").exit
    assert over is not None
    assert (over.kind, over.signal) == (ExitKind.SIGNALLED, signal.SIGKILL)


def test_a_second_wish_to_end_can_shorten_the_grace(bench: Workbench) -> None:
    bench.start(IGNORES_TERM)
    bench.wait_for_text("ready")
    bench.runner.end("p1", grace=timedelta(hours=1))

    bench.runner.end("p1", grace=timedelta(0))

    assert bench.until("ended").exit is not None


def test_a_stopped_process_hears_the_wish_to_end_too(bench: Workbench) -> None:
    bench.start("kill -STOP $$; sleep 1000")
    pid = bench.until("running").pid
    assert pid is not None
    bench.wait_for(lambda: "T" in pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])

    bench.runner.end("p1", grace=timedelta(hours=1))

    over = bench.until("ended").exit
    assert over is not None
    assert over.signal == signal.SIGTERM


def test_a_detached_grandchild_is_ended_with_its_pod(bench: Workbench) -> None:
    bench.start_python(DETACHED + "time.sleep(1000)")
    bench.wait_for_text("ready")
    detached = int((bench.folder / "detached").read_text())
    assert detached in bench.runner.pids("p1")
    assert bench.runner.owners()[detached] == "p1"

    bench.runner.end("p1", grace=timedelta(seconds=10))

    bench.until("ended")
    assert not pathlib.Path(f"/proc/{detached}").exists()


def test_what_outlives_its_command_is_ended_and_the_code_of_the_command_stands(bench: Workbench) -> None:
    bench.start_python(DETACHED + "sys.exit(4)")

    over = bench.until("ended").exit

    detached = int((bench.folder / "detached").read_text())
    assert over is not None
    assert (over.kind, over.code) == (ExitKind.EXITED, 4)
    assert not pathlib.Path(f"/proc/{detached}").exists()


def test_a_pod_that_was_told_to_end_before_its_start_never_runs(bench: Workbench) -> None:
    folder = bench.runner.folder("p1")
    folder.mkdir()
    # As after a crash of the server between the record of the launch and the start of a supervisor.
    launch = bench.runner._to_record(bench.launch("touch", "ran"))
    records.create(str(folder), records.LAUNCH, launch)
    assert bench.see().state == "starting"

    bench.runner.end("p1")

    over = bench.until("ended").exit
    assert over is not None
    assert over.kind is ExitKind.NOT_STARTED
    assert not (bench.folder / "ran").exists()


def test_a_pod_that_came_no_further_than_its_folder_can_be_forgotten(bench: Workbench) -> None:
    bench.runner.folder("p1").mkdir()

    bench.runner.forget("p1")

    assert not bench.runner.folder("p1").exists()


def test_to_end_or_forget_what_nobody_knows_is_no_error(bench: Workbench) -> None:
    bench.runner.end("nobody")
    bench.runner.forget("nobody")

    assert bench.runner.observe() == {}


def test_a_pod_that_is_over_can_be_forgotten_and_one_that_runs_cannot(bench: Workbench) -> None:
    bench.start("true", pod="over")
    bench.start("sleep 1000", pod="runs")
    bench.until("ended", "over")
    bench.until("running", "runs")

    bench.runner.forget("over")
    with pytest.raises(errors.Conflict):
        bench.runner.forget("runs")

    assert list(bench.runner.observe()) == ["runs"]
    assert not bench.runner.folder("over").exists()


def test_start_and_end_of_a_pod_wake_whoever_waits(bench: Workbench) -> None:
    bench.start("sleep 1000")
    while bench.see().state != "running":
        assert Change("p1", "state") in set(bench.runner.wait(GUARD_SECONDS))

    bench.runner.end("p1")

    while bench.see().state != "ended":
        assert Change("p1", "state") in set(bench.runner.wait(GUARD_SECONDS))


def test_growth_of_a_log_is_told_while_it_is_followed(bench: Workbench) -> None:
    with bench.runner.follow("p1"):
        bench.start("while :; do echo line; sleep 0.01; done")
        seen: set[Change] = set()
        while Change("p1", "log") not in seen:
            changes = set(bench.runner.wait(GUARD_SECONDS))
            assert changes
            seen |= changes

    assert "line" in bench.text()


def test_a_program_that_forks_without_end_is_ended(bench: Workbench) -> None:
    # Bounded, so that the test cannot take the machine along: each of 20 processes is replaced by its child for ever.
    program = (
        "import os\nfor _ in range(20):\n if os.fork() == 0: break\nelse: input()\n"
        "print('x', flush=True)\nwhile True:\n if os.fork(): os._exit(0)"
    )
    bench.start_python(program, stdin="pipe")
    bench.wait_for_text("x")

    bench.runner.end("p1", grace=timedelta(0))

    assert bench.until("ended").exit is not None
