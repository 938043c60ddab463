"""Bad input by the door of the command line: it names the field, ends with 2, and nothing is sent."""

import pathlib

import pytest

from aliquot.wire import documents
from tests.cli import door

OPTIONS = [
    (["--gpu", "0"], "gpu: '0' asks for no GPU"),
    (["--gpu", "nan"], "gpu: 'nan' is not an amount"),
    (["--gpu", "1.5"], "gpu: '1.5' is not a GPU request"),
    (["--gpu", "-1"], "gpu: '-1' is not an amount"),
    (["--gpu", ""], "gpu: '' is not an amount"),
    (["--gpu", "0.0001"], "gpu: '0.0001' is not a GPU request"),
    (["--cpu", "two"], "cpu: 'two' is not an amount"),
    (["--memory", "8Qi"], "memory: '8Qi' is not an amount"),
    (["--priority", "urgent"], "priority: 'urgent' is not a priority"),
    (["--priority", "1001"], "priority: '1001' is not a priority"),
    (["--replicas", "0"], "replicas: must be at least 1"),
    (["--retries", "101"], "retries: must be at most 100"),
    (["--kind", "batch"], "kind: must be one of workspace, training"),
    (["--name", "Upper"], "name: must be 1 to 63 lower-case letters"),
    (["--max-run-time", "soon"], "max-run-time: 'soon' is not a duration"),
    (["--grace-period", "0"], "grace-period: '0' is no time at all"),
    (["--env", "=value"], "env: '=value' is not KEY=VALUE"),
    (["--env", "SURELY_NOT_SET_HERE"], "env: 'SURELY_NOT_SET_HERE' is not set here"),
    (["--label", "team"], "label: 'team' is not KEY=VALUE"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=[" ".join(options) for options, _ in OPTIONS])
@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_bad_option_is_named_and_nothing_is_sent(command: str, options: list[str], message: str) -> None:
    with door.closed_door() as closed:
        answer = door.call(command, *options, "--", "true", url=closed.url)

        assert (answer.code, answer.stdout) == (2, "")
        assert message in answer.stderr
        assert not closed.was_used()


FILES = [
    (b"name: \xff\n", "line 1: the byte 0xff is not UTF-8 text"),
    (b"name: a\ncommand: [x]\nname: b\n", "line 3: name is given twice, first in line 1"),
    (b"environment:\n  A: '1'\n  A: '2'\n", "line 3: environment.A is given twice, first in line 2"),
    (b'{"name": "a", "name": "b"}', "name: is given twice"),
    (b"command: [x]\nreplica: 2\n", "line 2: replica: there is no field `replica` here; did you mean `replicas`?"),
    (b"command: [x]\n\ngpu: 1.5\n", "line 3: gpu: '1.5' is not a GPU request"),
    (b"command: [x]\ngpu: true\n", "line 2: gpu: must be text"),
    (b"command: echo hi\n", "line 1: command: must be a list"),
    (b"command: [x]\nscript: x\n", "exactly one of command and script is needed; both are given"),
    (b"name: a\n", "exactly one of command and script is needed; neither is given"),
    (b"- command\n", "line 1: expected fields and values"),
    (b"a: [\n", "line 2: not YAML"),
    (b"a: 1\n---\nb: 2\n", "line 2: not YAML"),
    (b"a: &one 1\nb: *one\n", "line 2: the alias *one is not supported"),
    (b"a: !!python/object:os.system []\n", "line 1: not YAML"),
    (b"a: \x00\n", "not YAML"),
    (b'{"a":' * 5000, "nested too deeply"),
    (b"", "neither is given"),
    (b"x" * (10 * 2**20), f"valid: at most {documents.MAX_BYTES} bytes"),
]


@pytest.mark.parametrize(("content", "message"), FILES, ids=[repr(content[:24]) for content, _ in FILES])
def test_a_bad_file_is_named_with_the_line_and_nothing_is_sent(
    tmp_path: pathlib.Path, content: bytes, message: str
) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content)

    with door.closed_door() as closed:
        answer = door.call("submit", str(file), url=closed.url)

        assert (answer.code, answer.stdout) == (2, "")
        assert f"Error: {file}" in answer.stderr
        assert message in answer.stderr
        assert not closed.was_used()


OTHERS = [
    (["lst"], "has no command 'lst'. Did you mean `list`"),
    (["projects", "lst"], "has no command 'lst'. Did you mean `list`?"),
    (["submit"], "neither a file nor a command is given"),
    (["submit", "no-such-file.yaml"], "no-such-file.yaml: no such file or directory"),
    (["run"], "neither is given"),
    (["run", "--"], "command: nothing stands after `--`"),
    (["run", "before", "--", "after"], "command: 'before' stands before `--`"),
    (["exec", "one"], "command: no command is given"),
    (["cp", "a", "b"], "neither side is of the form NAME:PATH"),
    (["cp", "a:b", "c:d"], "both sides are of the form NAME:PATH"),
    (["cp", "no-such-file", "job:there"], "source: there is no file no-such-file"),
    (["update", "one"], "nothing to change was given"),
    (["update", "one", "--replicas", "0"], "replicas: must be at least 1"),
    (["update", "one", "--gpu", "0"], "gpu: '0' asks for no GPU"),
    (["wait", "one", "--timeout", "soon"], "timeout: 'soon' is not a duration"),
    (["wait", "one", "--for", "ever"], "'ever' is not one of 'finished', 'running'"),
    (["list", "-o", "xml"], "'xml' is not one of"),
    (["list", "--label", "team"], "label: 'team' is not KEY=VALUE"),
    (["projects", "create", "p", "--gpu-quota", "many"], "gpu-quota: 'many' is not an amount"),
    (["projects", "create", "UPPER"], "name: must be 1 to 63 lower-case letters"),
    (["projects", "update", "p"], "nothing to change was given"),
    (["departments", "update", "d", "--gpu-weight", "-1"], "-1 is not in the range 0<=x<=1000000"),
]


@pytest.mark.parametrize(("arguments", "message"), OTHERS, ids=[" ".join(arguments) for arguments, _ in OTHERS])
def test_a_bad_command_line_says_what_is_valid_and_nothing_is_sent(arguments: list[str], message: str) -> None:
    with door.closed_door() as closed:
        answer = door.call(*arguments, url=closed.url)

        assert (answer.code, answer.stdout) == (2, "")
        assert message in answer.stderr
        assert not closed.was_used()


def test_an_error_is_json_where_the_answer_would_be_json() -> None:
    answer = door.call("list", "--label", "team", "--json")

    assert '"code": "invalid"' in answer.stderr
    assert '"field": "label"' in answer.stderr


def test_no_server_is_said_with_its_own_exit_code_and_what_to_do() -> None:
    answer = door.call("list")

    assert answer.code == 69
    assert "`aliquot up` starts one" in answer.stderr


def test_a_url_without_a_token_is_bad_input() -> None:
    answer = door.call("list", url="http://127.0.0.1:1", token=None)

    assert answer.code == 2
    assert "ALIQUOT_TOKEN is not set" in answer.stderr


def test_a_server_that_is_away_has_its_own_exit_code() -> None:
    with door.closed_door() as closed:
        away = closed.url

    assert door.call("list", url=away).code == 69
