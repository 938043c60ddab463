"""Logs and files of workloads whose output a test writes."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from aliquot.core import errors
from aliquot.service import logs, ports, terminals
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
ANN = worlds.ANN


async def followed(world: worlds.World, **request: object) -> list[logs.FollowedLine]:
    """All lines until the stream ends."""
    asked = logs.FollowRequest(**request)  # type: ignore[arg-type]  # the test says what it means
    return [one async for one in world.logs.follow(ANN, "job", request=asked)]


def texts(lines: list[logs.FollowedLine]) -> list[str]:
    return [one.line.text for one in lines]


async def finished(world: worlds.World, *, replicas: int = 1) -> None:
    """A job of which each replica wrote three lines and ended well."""
    detail = await world.submit("job", replicas=replicas)
    await world.cycle()
    for index in range(replicas):
        write(world, f"{detail.id}-1-{index}", "one", "two", "three")
        world.cluster.finish(f"{detail.id}-1-{index}")
    await world.cycle()


def write(world: worlds.World, pod: str, *lines: str, is_complete: bool = True) -> None:
    world.pods.lines.setdefault(pod, []).extend(lines)
    if is_complete:
        world.pods.complete.add(pod)


async def test_a_part_of_the_output_says_where_to_go_on(world: worlds.World) -> None:
    await finished(world)

    first = await world.logs.read(ANN, "job", request=logs.ReadRequest(limit=2))
    rest = await world.logs.read(ANN, "job", request=logs.ReadRequest(offset=first.next_offset))
    last = await world.logs.read(ANN, "job", request=logs.ReadRequest(offset=-1))

    assert [line.text for line in first.lines] == ["one", "two"]
    assert ([line.text for line in rest.lines], rest.is_complete) == (["three"], True)
    assert [line.text for line in last.lines] == ["three"]


async def test_one_that_never_ran_has_no_output_yet(world: worlds.World) -> None:
    await world.submit("job")

    chunk = await world.logs.read(ANN, "job", request=logs.ReadRequest())

    assert (chunk.lines, chunk.is_complete) == ([], False)


async def test_a_replica_or_attempt_that_is_not_there_is_said(world: worlds.World) -> None:
    await finished(world)

    with pytest.raises(errors.NotFound) as replica:
        await world.logs.read(ANN, "job", request=logs.ReadRequest(index=1))
    with pytest.raises(errors.NotFound) as attempt:
        await world.logs.read(ANN, "job", request=logs.ReadRequest(attempt=2))

    assert (replica.value.field, attempt.value.field, attempt.value.valid) == ("index", "attempt", ("1",))


async def test_following_one_that_has_ended_tells_all_and_ends(world: worlds.World) -> None:
    await finished(world, replicas=2)

    everything, tail = await followed(world), await followed(world, tail=1)

    assert texts(everything) == ["one", "two", "three"] * 2
    assert [(one.line.text, one.line.index) for one in tail] == [("three", 0), ("three", 1)]
    assert texts(await followed(world, tail=0)) == []
    assert [one.line.index for one in await followed(world, index=1)] == [1, 1, 1]


async def test_a_follower_that_comes_back_with_any_cursor_gets_exactly_the_rest(world: worlds.World) -> None:
    await finished(world, replicas=2)
    everything = await followed(world)

    for place, one in enumerate(everything):
        assert await followed(world, after=one.cursor) == everything[place + 1 :]


async def test_a_follower_waits_for_the_first_pod_and_goes_on_to_the_next_attempt(world: worlds.World) -> None:
    detail = await world.submit("job", retries=1, retry_back_off="1s")
    first, second = f"{detail.id}-1-0", f"{detail.id}-2-0"
    steps: list[Callable[[], None]] = [
        lambda: None,
        lambda: write(world, first, "hello", is_complete=False),
        lambda: write(world, first, "failed"),
        lambda: world.cluster.finish(first, 1),
        lambda: world.clock.advance(timedelta(minutes=1)),
        lambda: write(world, second, "again", is_complete=False),
        lambda: write(world, second, "done"),
        lambda: world.cluster.finish(second, 0),
    ]

    async def step() -> None:
        steps.pop(0)()
        await world.cycle()

    world.clock.on_sleep = step

    told = await followed(world)

    assert texts(told) == ["hello", "failed", "again", "done"]
    assert told[-1].cursor.startswith("2:")
    assert steps == []


@pytest.mark.parametrize("cursor", ["", "x", "1", "0:", "1:0", "1:0=", "1:0=1;", "1:0=-1", "1:0=1,1", "-1:0=1"])
async def test_a_wrong_cursor_is_refused(world: worlds.World, cursor: str) -> None:
    await finished(world)

    with pytest.raises(errors.InvalidInput) as caught:
        await followed(world, after=cursor)

    assert caught.value.field == "after"


async def test_files_are_copied_both_ways_and_noted(world: worlds.World) -> None:
    await running(world)
    target = terminals.Target("job")

    async def data() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"de"

    await world.terminals.write_files(ANN, target, path="there", data=data())
    read = await world.terminals.read_files(ANN, target, path="there")

    assert b"".join([chunk async for chunk in read]) == b"abcde"
    audits = await world.audit.list(ANN, worlds.everything(noun="workload"))
    assert {"write-files", "read-files"} <= {one.verb for one in audits.items}


async def running(world: worlds.World) -> None:
    await world.submit("job")
    await world.cycle()


async def test_a_file_that_is_not_there_is_said_before_the_first_byte(world: worlds.World) -> None:
    await running(world)

    with pytest.raises(errors.NotFound, match="no nothing"):
        await world.terminals.read_files(ANN, terminals.Target("job"), path="nothing")


async def test_a_program_is_run_beside_the_pod_that_runs(world: worlds.World) -> None:
    await running(world)

    with pytest.raises(errors.Conflict, match="-1-0 was asked to run sh"):
        await world.terminals.exec(ANN, terminals.Target("job"), request=ports.ExecRequest(("sh",)))
    with pytest.raises(errors.NotFound):
        await world.terminals.attach(ANN, terminals.Target("job", index=1))


async def test_nothing_is_run_beside_what_does_not_run(world: worlds.World) -> None:
    await world.submit("job")

    with pytest.raises(errors.Conflict) as caught:
        await world.terminals.attach(ANN, terminals.Target("job"))

    assert caught.value.stable_code == "not-running"


async def test_all_output_of_a_pod_is_a_text(world: worlds.World) -> None:
    await finished(world, replicas=2)

    name, pieces = await world.logs.text(ANN, "job", request=logs.TextRequest(index=1))
    _, timed = await world.logs.text(ANN, "job", request=logs.TextRequest(has_times=True))
    plain = b"".join([piece async for piece in pieces]).decode()
    first = b"".join([piece async for piece in timed]).decode().splitlines()[0]

    assert (name, plain) == ("job-1-1.log", "one\ntwo\nthree\n")
    assert first.endswith("+00:00 one")


async def test_what_has_not_run_is_an_empty_text_and_an_attempt_that_was_not_is_told(world: worlds.World) -> None:
    await world.submit("job", gpu="8")
    _, pieces = await world.logs.text(ANN, "job", request=logs.TextRequest())

    assert [piece async for piece in pieces] == []
    with pytest.raises(errors.NotFound, match="no attempt 3"):
        await world.logs.text(ANN, "job", request=logs.TextRequest(attempt=3))
