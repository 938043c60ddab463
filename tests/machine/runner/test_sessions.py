"""Processes opened inside a running pod, and the pod's own input, output and terminal."""

import json
import os
import select
import signal
from datetime import timedelta

import pytest

from aliquot.core import errors
from aliquot.local import sessions
from tests.machine.runner.workbench import GUARD_SECONDS, Workbench


def read_until(descriptor: int, text: str) -> str:
    """Read from a descriptor until the text came (or the end)."""
    data = b""
    while text.encode() not in data:
        assert select.select([descriptor], [], [], GUARD_SECONDS)[0], data
        try:
            piece = os.read(descriptor, 4096)
        except OSError:  # EIO: the terminal is closed at its other end
            piece = b""
        if not piece:
            break
        data += piece
    return data.decode()


def receive_until(attachment: sessions.Attachment, text: str) -> str:
    """Take output until the text came."""
    data = b""
    while text.encode() not in data:
        output = attachment.receive(GUARD_SECONDS)
        assert output is not None, data
        data += output.data
    return data.decode()


def test_a_process_inside_a_pod_shares_its_environment_and_folder_and_tells_its_code(bench: Workbench) -> None:
    folder = bench.folder / "inside"
    folder.mkdir()
    bench.start("sleep 1000", folder=folder, environment={"PATH": os.environ["PATH"], "KEY": "value"})
    bench.until("running")

    with bench.runner.exec(
        "p1", ["sh", "-c", "pwd; echo $KEY $TERM; cat; exit 3"], environment={"TERM": "x"}
    ) as session:
        assert session.stdin is not None
        assert session.pid in bench.runner.pids("p1")
        os.write(session.stdin, b"typed\n")
        session.close_stdin()
        seen = read_until(session.stdout, "typed\n")
        result = session.result(GUARD_SECONDS)

    assert seen == f"{folder}\nvalue x\ntyped\n"
    assert result == sessions.Ended(3, None)


def test_a_process_inside_a_pod_may_have_a_terminal_of_its_own_that_changes_size(bench: Workbench) -> None:
    bench.start("sleep 1000")
    bench.until("running")

    with bench.runner.exec("p1", ["sh"], has_terminal=True) as session:
        assert session.stdin is not None
        session.resize(50, 132)
        os.write(session.stdin, b"stty size; tty; echo done-$((1+1))\n")
        seen = read_until(session.stdout, "done-2")
        os.write(session.stdin, b"exit 4\n")
        result = session.result(GUARD_SECONDS)

    assert "50 132" in seen
    assert "/dev/pts/" in seen
    assert result == sessions.Ended(4, None)


def test_control_c_in_the_terminal_of_a_session_reaches_its_foreground_process(bench: Workbench) -> None:
    bench.start("sleep 1000")
    bench.until("running")

    with bench.runner.exec("p1", ["sh", "-c", "echo ready; exec sleep 1000"], has_terminal=True) as session:
        assert session.stdin is not None
        read_until(session.stdout, "ready")
        os.write(session.stdin, b"\x03")
        result = session.result(GUARD_SECONDS)

    assert result == sessions.Ended(None, signal.SIGINT)
    assert bench.see().state == "running"


def test_a_process_inside_a_pod_ends_with_it(bench: Workbench) -> None:
    bench.start("sleep 1000")
    bench.until("running")

    with bench.runner.exec("p1", ["sleep", "1000"]) as session:
        bench.runner.end("p1", grace=timedelta(seconds=30))
        result = session.result(GUARD_SECONDS)
        bench.until("ended")

    assert result is not None
    assert result.code is None


def test_a_session_that_hangs_up_takes_its_process_with_it(bench: Workbench) -> None:
    bench.start("sleep 1000")
    bench.until("running")
    session = bench.runner.exec("p1", ["sleep", "1000"])
    assert session.pid in bench.runner.pids("p1")

    session.close()

    bench.wait_for(lambda: session.pid not in bench.runner.pids("p1"))
    assert bench.see().state == "running"


def test_a_command_that_is_not_there_is_refused_with_its_code(bench: Workbench) -> None:
    bench.start("sleep 1000")
    bench.until("running")

    with pytest.raises(errors.InvalidInput) as caught:
        bench.runner.exec("p1", ["no-such-command"])

    assert caught.value.details == {"code": 127}


@pytest.mark.parametrize("pod", ["p1", "nobody"])
def test_nothing_can_be_opened_in_a_pod_that_does_not_run(bench: Workbench, pod: str) -> None:
    bench.start("exit 0")
    bench.until("ended")

    with pytest.raises(errors.Conflict) as caught:
        bench.runner.exec(pod, ["true"])

    assert caught.value.stable_code == "pod-not-running"


def test_a_pod_with_an_input_reads_what_whoever_is_attached_writes(bench: Workbench) -> None:
    bench.start("echo ready; cat; echo over >&2", stdin="pipe")
    bench.until("running")

    with bench.runner.attach("p1") as attachment:
        assert attachment.stdin is not None
        os.write(attachment.stdin, b"typed\n")
        seen = receive_until(attachment, "typed\n")
        attachment.close_stdin()
        bench.until("ended")

    assert seen.endswith("typed\n")
    assert bench.text() == "ready\ntyped\n"
    assert bench.text(stream="stderr") == "over\n"


def test_a_pod_with_a_terminal_has_one_that_changes_size_and_takes_control_c(bench: Workbench) -> None:
    bench.start_python(
        "import json, os, sys\n"
        "print(json.dumps([os.isatty(n) for n in range(3)]), flush=True)\n"
        "sys.stdin.readline()\n"
        "print('size', tuple(os.get_terminal_size()), flush=True)\n"
        "import time; time.sleep(1000)",
        stdin="pty",
    )
    bench.wait_for_text("[")

    with bench.runner.attach("p1") as attachment:
        assert attachment.stdin is not None
        attachment.resize(40, 100)
        os.write(attachment.stdin, b"\n")
        receive_until(attachment, "size (100, 40)")
        os.write(attachment.stdin, b"\x03")
        over = bench.until("ended").exit

    assert json.loads(bench.text().splitlines()[0]) == [True, True, True]
    assert over is not None
    assert (over.code, over.signal) in {(None, signal.SIGINT), (1, None), (130, None)}
    assert "KeyboardInterrupt" in bench.text()


def test_a_program_that_asks_for_its_size_before_anybody_is_attached_is_not_told_zero(bench: Workbench) -> None:
    bench.start("stty size", stdin="pty")

    bench.until("ended")

    assert bench.text().split() == ["24", "80"]


def test_one_who_is_attached_and_does_not_read_holds_nobody_up(bench: Workbench) -> None:
    bench.start("read go; seq 60000", stdin="pipe")
    bench.until("running")

    with bench.runner.attach("p1") as attachment:
        assert attachment.stdin is not None
        os.write(attachment.stdin, b"go\n")
        over = bench.until("ended").exit
        while attachment.receive(GUARD_SECONDS) is not None:
            pass

    assert over is not None
    assert over.code == 0
    assert bench.text().splitlines()[-1] == "60000"


def test_a_pod_without_input_reads_its_end_at_once(bench: Workbench) -> None:
    bench.start("cat; echo over")

    bench.until("ended")

    assert bench.text() == "over\n"


def test_twenty_pods_lose_no_line_of_what_they_write_while_runners_come_and_go(bench: Workbench) -> None:
    pods = [f"p{number}" for number in range(20)]
    for pod in pods:
        bench.start("i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done", pod=pod)
    for _ in range(5):
        bench.reopen()

    for pod in pods:
        bench.until("ended", pod)

    wanted = [str(number) for number in range(2000)]
    assert all(bench.text(pod).splitlines() == wanted for pod in pods)
