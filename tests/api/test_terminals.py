"""Programs beside a workload, its own terminal and its files, through the client and past it."""

import pathlib
from urllib import parse

import pytest
from websockets import exceptions
from websockets.sync import client as sockets

from aliquot import client
from aliquot.client import transport
from aliquot.core import errors
from aliquot.wire import workloads
from tests import serving
from tests.api import machine
from tests.api.raw import ask, code_of, with_token


@pytest.fixture(scope="module")
def running(here: machine.Here, asked: client.Client) -> str:
    """A workload with two replicas that run."""
    made = asked.submit_workload(workloads.Definition(command=["cat"], replicas=2, stdin="pipe"))
    here.do(lambda world: world.run(made.id))
    return made.id


def test_a_program_gets_its_input_and_gives_output_errors_and_exit_code(asked: client.Client, running: str) -> None:
    everything = bytes(range(256)) * 4096

    with asked.exec_workload(running, ["sort", "-r", "ä b"]) as session:
        session.write(b"one")
        session.write(everything)
        session.end_input()
        output = list(session)

    assert output == [("stderr", "sort -r ä b".encode()), ("stdout", b"one"), ("stdout", everything)]
    assert session.exit_code == 3


def test_the_window_of_a_terminal_follows_the_window(asked: client.Client, running: str) -> None:
    with asked.exec_workload(running, ["top"], terminal=True, rows=50, columns=200) as session:
        session.resize(40, 100)
        session.end_input()
        output = [data for stream, data in session if stream == "stdout"]

    assert output == [b"40x100"]


def test_attaching_speaks_with_the_workload_itself(asked: client.Client, running: str) -> None:
    with asked.attach_workload(running, index=1) as session:
        session.write(b"hello")
        session.end_input()

        assert list(session) == [("stdout", b"hello")]
    assert session.exit_code == 0


def test_a_client_that_goes_away_closes_what_was_opened_for_it(
    here: machine.Here, asked: client.Client, running: str
) -> None:
    session = asked.exec_workload(running, ["sleep"])
    opened = here.world.pods.opened[-1]

    session.close()

    assert here.do(lambda _: _closed(opened))


async def _closed(opened: machine.Echo) -> bool:
    return await opened.is_closed.wait()


def test_what_cannot_be_opened_is_an_error_of_the_tree(asked: client.Client, running: str) -> None:
    waiting = asked.submit_workload(workloads.Definition(command=["true"])).id

    with pytest.raises(errors.NotFound, match="nope"):
        asked.exec_workload("nope", ["true"])
    with pytest.raises(errors.Conflict):
        asked.exec_workload(waiting, ["true"])
    with pytest.raises(errors.NotFound, match="no replica 7"):
        asked.attach_workload(running, index=7)
    with pytest.raises(errors.InvalidInput) as caught:
        asked.exec_workload(running, [])
    assert caught.value.field == "command"


def test_an_unknown_parameter_of_a_websocket_is_refused(live: serving.Live, running: str) -> None:
    url = f"ws{live.url.removeprefix('http')}/api/v1/workloads/{running}/exec?command=true&colour=red"

    fault = _denied(url, with_token())

    assert isinstance(fault, errors.InvalidInput)
    assert fault.field == "colour"


@pytest.mark.parametrize("frame", ["{", "[]", '{"resize": 1}', '{"resize": [1]}', '{"resize": [0, 0]}', "[" * 100_000])
def test_a_frame_without_sense_ends_the_session_and_not_the_server(
    live: serving.Live, here: machine.Here, asked: client.Client, running: str, frame: str
) -> None:
    url = f"ws{live.url.removeprefix('http')}/api/v1/workloads/{running}/attach"

    with sockets.connect(url, additional_headers=with_token(), proxy=None) as socket:
        socket.send(frame)
        with pytest.raises(exceptions.ConnectionClosed):
            socket.recv(serving.GUARD_SECONDS)

    assert here.do(lambda world: _closed(world.pods.opened[-1]))
    assert asked.health_check().status == "ok"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "unauthenticated"),
        ({"Authorization": "Bearer wrong"}, "unauthenticated"),
        ({"Host": "evil.example"}, "unknown-host"),
        ({"Cookie": "{cookie}"}, "other-origin"),
        ({"Cookie": "{cookie}", "Origin": "http://evil.example"}, "other-origin"),
        ({"Cookie": "{cookie}", "Origin": "http://{host}"}, None),
    ],
    ids=str,
)
def test_a_websocket_needs_what_a_request_needs(
    live: serving.Live, asked: client.Client, running: str, headers: dict[str, str], code: str | None
) -> None:
    link = parse.urlsplit(asked.create_sign_in_link().url)
    cookie = ask(live, "GET", f"{link.path}?{link.query}")[1]["set-cookie"].partition(";")[0]
    host = parse.urlsplit(live.url).netloc
    sent = {name: value.format(cookie=cookie, host=host) for name, value in headers.items()}

    fault = _denied(f"ws://{host}/api/v1/workloads/{running}/attach", sent)

    assert (None if fault is None else fault.stable_code) == code


def _denied(url: str, headers: dict[str, str]) -> errors.AliquotError | None:
    """The problem with which a websocket is denied; None if it opens."""
    try:
        with sockets.connect(url, additional_headers=headers, proxy=None):
            return None
    except exceptions.InvalidStatus as error:
        return transport.rebuild(error.response.status_code, bytes(error.response.body or b""))


def test_files_that_are_not_there_are_a_problem_and_no_broken_stream(
    live: serving.Live, asked: client.Client, running: str
) -> None:
    with pytest.raises(errors.NotFound, match="there is no missing"):
        list(asked.read_files(running, "missing"))

    status, _, content = ask(live, "GET", f"/api/v1/workloads/{running}/files?path=missing", headers=with_token())
    assert (status, code_of(content)) == (404, "not-found")


def test_a_copy_in_may_be_larger_than_any_other_body(here: machine.Here, asked: client.Client, running: str) -> None:
    chunk = b"\0" * 2**20

    asked.write_files(running, "data", (chunk for _ in range(10)), index=1)

    pod, path, content = here.world.pods.unpacked[-1]
    assert (pod, path, len(content)) == (f"{running}-1-1", "data", 10 * 2**20)


def test_a_copy_that_is_refused_says_why_however_much_is_left_to_send(asked: client.Client) -> None:
    waiting = asked.submit_workload(workloads.Definition(command=["true"], gpu="8")).id
    chunk = b"\0" * 2**20

    with pytest.raises(errors.Conflict, match="run"):
        asked.write_files(waiting, "data", (chunk for _ in range(64)))


def test_only_a_tar_stream_is_copied_in(live: serving.Live, running: str) -> None:
    headers = with_token(Content_Type="application/zip")

    status, _, content = ask(live, "PUT", f"/api/v1/workloads/{running}/files?path=x", headers=headers, body=b"PK")

    assert (status, code_of(content)) == (415, "unsupported-media-type")


def test_a_server_that_ends_ends_its_sessions(tmp_path: pathlib.Path) -> None:
    with machine.here(tmp_path) as here, here.live.client() as asked:
        made = asked.submit_workload(workloads.Definition(command=["cat"], stdin="pipe")).id
        here.do(lambda world: world.run(made))
        session = asked.attach_workload(made)

        here.live.stop()

        with pytest.raises(errors.Unavailable, match="broke"):
            list(session)
