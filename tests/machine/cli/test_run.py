"""`aliquot run`, `exec` and `cp` in front of a real server: output, input, terminal, Ctrl-C, exit codes."""

import pathlib
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.machine.cli import screen
from tests.machine.server import served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[served.Served]:
    """One server with two simulated devices for this file: its jobs do not disturb one another."""
    with served.serving(tmp_path_factory.mktemp("run") / "data", "--devices", "2xH100") as running:
        yield running


def run(server: served.Served, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """`aliquot run` without a terminal; `given` is its input."""
    return server.run("run", *words, input=given or "")


def test_output_goes_where_the_job_wrote_it_and_its_exit_code_is_ours(server: served.Served) -> None:
    done = run(server, "--", "sh", "-c", "echo out; echo err >&2; exit 3")

    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_the_job_has_our_folder_and_environment_but_not_our_token(
    server: served.Served, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "passed")
    script = 'pwd; echo "$OURS ${ALIQUOT_TOKEN:-no token} $OWN"'

    done = server.run("run", "--env", "OWN=set", "--", "sh", "-c", script, cwd=tmp_path, input="")

    assert done.stdout == f"{tmp_path}\npassed no token set\n"


def test_input_from_a_pipe_reaches_the_job_to_its_end(server: served.Served) -> None:
    done = run(server, "--", "sort", given="b\na\nc\n")

    assert (done.returncode, done.stdout) == (0, "a\nb\nc\n")


@pytest.mark.parametrize(
    ("words", "code", "remark"),
    [
        (["--", "sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL, ""),
        (["--", "/no/such/program"], 126, "could not be started"),
        (["--max-run-time", "1s", "--", "sleep", "1000"], 124, "passed its time limit"),
    ],
    ids=["killed", "not started", "time limit"],
)
def test_an_end_that_is_not_the_job_s_own_has_its_exit_code(
    server: served.Served, words: list[str], code: int, remark: str
) -> None:
    done = run(server, *words)

    assert done.returncode == code
    assert remark in done.stderr


def test_an_evicted_job_that_may_not_be_put_back_ends_with_75(server: served.Served) -> None:
    low = subprocess.Popen(
        [served.ALIQUOT, "run", "--name", "low", "--gpu", "2", "--no-requeue", "--", "sleep", "1000"],
        env=served.environment(server.data),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    served.wait_for("low to be submitted", lambda: server.client.list_workloads(name="low").items or None)
    server.wait_phase("low", "running")

    high = run(server, "--priority", "high", "--gpu", "2", "--", "true")
    _, said = low.communicate(timeout=served.GUARD_SECONDS)

    assert (high.returncode, low.returncode) == (0, 75)
    assert "low was evicted" in said


def test_a_job_that_waits_says_why_and_stops_saying_so_when_it_starts(server: served.Served) -> None:
    server.submit("holder", "sleep 1000", gpu="2")
    server.wait_phase("holder", "running")

    with screen.opened(server.data, "run", "--gpu", "1", "--name", "late", "--", "echo", "started") as waiting:
        waiting.until("late waits")
        waiting.until("none of 2 is free")
        server.client.stop_workload("holder")
        code = waiting.end()

    assert code == 0
    assert "started\r\n" in waiting.text


def test_who_follows_the_log_of_a_job_that_waits_is_told_why(server: served.Served) -> None:
    server.submit("first", "sleep 1000", gpu="2")
    server.wait_phase("first", "running")
    server.submit("second", "echo started; exit 3", gpu="1")

    with screen.opened(server.data, "logs", "--follow", "second") as following:
        following.until("second waits")
        following.until("none of 2 is free")
        server.client.stop_workload("first")
        code = following.end()

    assert code == 3
    assert "started\r\n" in following.text


def test_in_a_terminal_the_job_has_one_and_its_first_prompt_is_there(server: served.Served) -> None:
    script = "printf 'name? '; read name; echo hello $name; stty size; exit 7"

    with screen.opened(server.data, "run", "--", "sh", "-c", script, rows=31, columns=97) as terminal:
        terminal.until("name? ")
        terminal.type("Ada\r")
        code = terminal.end()

    assert code == 7
    assert "hello Ada\r\n31 97\r\n" in terminal.text


def test_a_terminal_loses_nothing_of_much_output(server: served.Served) -> None:
    with screen.opened(server.data, "run", "--", "seq", "100000") as terminal:
        code = terminal.end()

    assert code == 0
    assert terminal.text.split() == [str(number) for number in range(1, 100_001)]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_ctrl_c_asks_the_job_to_end_and_says_so(server: served.Served, is_terminal: bool) -> None:  # noqa: FBT001
    words = ["run", "--", "sh", "-c", "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done"]
    words[1:1] = [] if is_terminal else ["--no-stdin"]

    with screen.opened(server.data, *words) as terminal:
        terminal.until("up")
        terminal.type("\x03")
        code = terminal.end()

    assert code == 9
    assert "Ctrl-C again stops waiting" in terminal.text
    assert "bye" in terminal.text


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_second_ctrl_c_stops_waiting_for_the_job(server: served.Served, is_terminal: bool) -> None:  # noqa: FBT001
    name = f"stubborn-{is_terminal}".lower()
    words = ["run", "--name", name, "--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]
    words[1:1] = [] if is_terminal else ["--no-stdin"]

    with screen.opened(server.data, *words) as terminal:
        terminal.until("up")
        terminal.type("\x03")
        terminal.until("Ctrl-C again")
        terminal.type("\x03")
        code = terminal.end()

    assert code == 130
    assert server.client.get_workload(name).phase == "stopping"


def test_an_interactive_job_gets_ctrl_c_itself_and_can_be_left(server: served.Served) -> None:
    script = "trap 'echo caught' INT; echo up; while :; do sleep 0.05; done"

    with screen.opened(server.data, "run", "-i", "--name", "shell", "--", "sh", "-c", script) as terminal:
        terminal.until("up\r\n")
        terminal.type("\x03")
        terminal.until("caught")
        terminal.type("\x1d")
        code = terminal.end()

    assert code == 130
    assert server.client.get_workload("shell").phase == "running"


def test_a_program_beside_a_job_has_its_folder_our_input_and_its_own_exit_code(
    server: served.Served, tmp_path: pathlib.Path
) -> None:
    server.submit("host", "sleep 1000", workingDirectory=str(tmp_path))
    server.wait_phase("host", "running")

    done = server.run("exec", "host", "--", "sh", "-c", "pwd; cat; echo err >&2; exit 4", input="typed\n")

    assert (done.returncode, done.stdout, done.stderr) == (4, f"{tmp_path}\ntyped\n", "err\n")


def test_files_go_to_a_job_and_come_back(server: served.Served, tmp_path: pathlib.Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "deep").mkdir(parents=True)
    (tmp_path / "here" / "deep" / "file").write_bytes(b"x" * 300_000)
    server.submit("files", "sleep 1000", workingDirectory=str(tmp_path / "there"))
    server.wait_phase("files", "running")

    sent = server.run("cp", "here", "files:copy", cwd=tmp_path)
    fetched = server.run("cp", "files:copy", "back", cwd=tmp_path)

    assert (sent.returncode, fetched.returncode) == (0, 0), sent.stderr + fetched.stderr
    assert (tmp_path / "there" / "copy" / "deep" / "file").read_bytes() == b"x" * 300_000
    assert (tmp_path / "back" / "deep" / "file").read_bytes() == b"x" * 300_000
