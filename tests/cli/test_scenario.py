"""`aliquot scenario run`: what it prints, and how it ends."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.cli import door
from tests.house import sources

EXAMPLES = sorted((sources.ROOT / "examples" / "scenarios").glob("*.yaml"))
SMALL = """\
format: aliquot-scenario/1
name: one job on one device
nodes: [{name: n0, gpus: 1}]
queues: [{name: q}]
workloads:
- {name: a, queue: q, pods: [{name: a-0, gpu: 1}]}
- {name: b, queue: q, pods: [{name: b-0, gpu: 1}]}
expect: {pods: {a-0: {status: running}, b-0: {status: STATUS}}}
"""


@pytest.fixture
def small(tmp_path: pathlib.Path) -> pathlib.Path:
    """A scenario that comes out as expected."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("STATUS", "pending"))
    return path


def test_people_see_what_was_decided_how_it_ended_and_why_something_waits(small: pathlib.Path) -> None:
    answer = door.call("scenario", "run", str(small))

    lines = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    assert answer.code == 0
    assert "bind a-0 on n0 n0/0" in lines
    assert "a-0 running n0 n0/0 1" in lines
    assert any(line.startswith("b no-free-device") for line in lines)


def test_programs_get_one_object_a_line_whatever_is_expected(small: pathlib.Path, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SMALL.replace("STATUS", "running").replace("one job", "another job"))

    answer = door.call("scenario", "run", "--json", str(small), str(other))

    assert (answer.code, answer.stderr) == (0, "")
    assert [json.loads(line)["scenario"] for line in answer.stdout.splitlines()] == [
        "one job on one device",
        "another job on one device",
    ]


def test_a_check_says_what_was_wanted_and_what_there_is(small: pathlib.Path, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SMALL.replace("STATUS", "running"))

    good, bad = door.call("scenario", "run", "--check", str(small)), door.call("scenario", "run", "--check", str(other))

    assert (good.code, good.stderr) == (0, "1 of 1 as expected\n")
    assert (bad.code, bad.stderr) == (1, "0 of 1 as expected\n")
    assert "pod b-0: status: wanted running, got pending" in bad.stdout


@pytest.mark.parametrize("options", [[], ["--json"], ["--check"]])
def test_a_file_that_is_no_scenario_stops_all_of_them(
    options: list[str], small: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(SMALL.replace("queue: q", "queue: p", 1))

    answer = door.call("scenario", "run", *options, str(small), str(bad))

    assert (answer.code, answer.stdout) == (2, "")
    assert f"Error: {bad}, line 6: workloads[0].queue: there is no queue 'p'" in answer.stderr
    assert "valid: q" in answer.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    answer = door.call("scenario", "run", str(tmp_path / "none.json"))

    assert (answer.code, answer.stdout) == (2, "")
    assert f"{tmp_path / 'none.json'}: no such file or directory" in answer.stderr


def test_json_and_check_exclude_each_other(small: pathlib.Path) -> None:
    answer = door.call("scenario", "run", "--json", "--check", str(small))

    assert answer.code == 2
    assert "--json and --check exclude each other" in answer.stderr


def test_a_scenario_may_come_by_standard_input(small: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from aliquot.cli import main; main.main()", "scenario", "run", "--check", "-"],
        input=small.read_text(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "ok      -: one job on one device\n")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_come_out_as_they_say(path: pathlib.Path) -> None:
    answer = door.call("scenario", "run", "--check", str(path))

    assert (answer.code, answer.stderr) == (0, "1 of 1 as expected\n")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
