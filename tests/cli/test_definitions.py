"""What becomes of options, a file and the caller's surroundings."""

import pathlib
from typing import Any

import pytest

from aliquot.cli import definitions
from aliquot.wire import documents, workloads


def read(content: str, **given: Any) -> workloads.Definition:  # Any: fields
    """A definition out of a file's content and options beside it."""
    return definitions.from_document("job.yaml", documents.parse(content.encode()), given)


def test_a_file_is_read_with_numbers_of_a_command_as_they_are_written() -> None:
    found = read("command: [python, train.py, --lr, 1e-3, --steps, 010]\nenvironment: {LR: 0.10}\ngpu: 0.5\ncpu: 2\n")

    assert found.command == ["python", "train.py", "--lr", "1e-3", "--steps", "010"]
    assert found.environment == {"LR": "0.10"}
    assert (found.gpu, found.cpu) == ("0.5", "2")


def test_json_is_read_as_well() -> None:
    assert read('{\n\t"command": ["true"], "replicas": 2}').replicas == 2


def test_options_win_over_a_file_and_variables_of_both_are_kept() -> None:
    found = read(
        "name: one\ncommand: ['true']\ngpu: 1\nenvironment: {A: file, B: file}\n",
        name="two",
        environment={"B": "option", "C": "option"},
    )

    assert (found.name, found.gpu) == ("two", "1")
    assert found.environment == {"A": "file", "B": "option", "C": "option"}


def test_the_caller_s_environment_is_passed_without_what_would_let_the_job_act_as_us() -> None:
    definition = workloads.Definition(command=["true"], environment={"LR": "own"})
    caller = {
        "PATH": "/bin",
        "LR": "callers",
        "ALIQUOT_TOKEN": "secret",
        "ALIQUOT_URL": "http://127.0.0.1:1",
        "ALIQUOT_WORKLOAD_ID": "outer",
        "CUDA_VISIBLE_DEVICES": "GPU-1",
    }

    found = definitions.with_surroundings(definition, environment=caller, folder="/home/ada")

    assert found.environment == {"PATH": "/bin", "LR": "own"}
    assert found.working_directory == "/home/ada"


def test_bytes_that_are_no_text_are_not_passed_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    definition = workloads.Definition(command=["true"])

    found = definitions.with_surroundings(definition, environment={"GOOD": "x", "BAD": "\udcff"}, folder="/")

    assert found.environment == {"GOOD": "x"}
    assert "not passed, as it is not UTF-8 text: 'BAD'" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "folder"), [(None, "/home/ada"), ("sub", "/home/ada/sub"), ("/else", "/else")])
def test_a_relative_folder_is_in_the_caller_s(given: str | None, folder: str) -> None:
    definition = workloads.Definition(command=["true"], working_directory=given)

    found = definitions.with_surroundings(definition, environment={}, folder="/home/ada")

    assert found.working_directory == folder


def test_a_variable_without_a_value_is_the_caller_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SURELY_SET_HERE", "value")

    fields = definitions.from_options({"env": ("SURELY_SET_HERE", "A=b=c")}, ["true"])

    assert fields["environment"] == {"SURELY_SET_HERE": "value", "A": "b=c"}


@pytest.mark.parametrize("example", ["train.yaml", "notebook.yaml"])
def test_the_examples_that_are_files_are_sound(example: str) -> None:
    file = pathlib.Path(__file__).parents[2] / "examples" / example

    found = definitions.from_document(str(file), definitions.from_file(str(file)), {})

    assert found.gpu == "0.5"
