"""Series: means of what was, gaps where nothing was seen, kept in little room."""

import pathlib
from datetime import datetime, timedelta

import pytest

from aliquot.core import errors
from aliquot.db import store as db
from aliquot.service import ports, records, samples, series
from aliquot.wire import projects as project_shapes
from aliquot.wire import series as shapes
from aliquot.wire.nodes import DeviceUse
from tests import builders
from tests.service.world import ANN, World

pytestmark = pytest.mark.anyio

TEN = timedelta(seconds=10)
MINUTE = timedelta(minutes=1)


async def look(world: World, times: int = 1, every: timedelta = TEN) -> None:
    """So many looks; the clock goes on after each."""
    for _ in range(times):
        await world.watch.look()
        world.clock.advance(every)


async def get(world: World, metric: str, **asked: object) -> shapes.Series:
    """A series up to now."""
    given: dict[str, object] = {"points": 2000, **asked}
    return await world.series.get(ANN, series.Request(shapes.Metric(metric), **given))  # type: ignore[arg-type]  # a test's


def known(line: shapes.SeriesLine) -> list[float]:
    return [value for value in line.values if value is not None]


async def test_what_is_held_used_and_waited_for_is_seen_over_time(world: World) -> None:
    await look(world)
    await world.submit("job", gpu="2")
    await world.submit("big", gpu="8")
    await world.cycle()
    world.cluster.use = {"node-1-gpu-0": DeviceUse(utilisation_percent=50)}
    await look(world)

    found = {metric: await get(world, metric) for metric in shapes.Metric}

    assert {metric: known(one.lines[0]) for metric, one in found.items()} == {
        "allocated": [0, 2],
        "used": [0.5],
        "capacity": [8, 8],
        "waiting": [0, 1],
        "waitingGpus": [0, 8],
        "running": [0, 1],
    }
    assert {metric: one.unit for metric, one in found.items() if one.unit == "workloads"} == {
        "waiting": "workloads",
        "running": "workloads",
    }
    assert all([one for one in found.capacity if one is not None] == [8, 8] for found in found.values())


async def test_a_time_without_a_server_is_a_gap(world: World) -> None:
    await look(world, 3)
    world.clock.advance(MINUTE)
    await look(world, 2)

    values = (await get(world, "capacity", points=2000)).lines[0].values

    assert values[-11:] == [8, 8, 8, None, None, None, None, None, None, 8, 8]
    assert set(values[:-11]) == {None}


async def test_each_project_and_department_has_its_line_and_one_may_be_asked_for_alone(world: World) -> None:
    await world.departments.create(ANN, project_shapes.DepartmentNew(name="arts"))
    await world.projects.create(ANN, project_shapes.ProjectNew(name="film", department="arts"))
    await world.departments.update(ANN, "arts", quota("4"))
    await world.projects.update(ANN, "film", quota("4"))
    await world.submit("one", gpu="1")
    await world.submit("two", gpu="2", project="film")
    await world.cycle()
    await look(world)

    by = {by: (await get(world, "allocated", by=by)).lines for by in shapes.By}
    alone = (await get(world, "allocated", by=shapes.By.PROJECT, name="film")).lines

    assert {by: [(line.name, known(line)) for line in lines] for by, lines in by.items()} == {
        "none": [("cluster", [3])],
        "department": [("arts", [2]), ("default", [1])],
        "project": [("default", [1]), ("film", [2])],
        "pool": [("default", [3])],
    }
    assert [(line.name, known(line)) for line in alone] == [("film", [2])]


def quota(gpu: str) -> project_shapes.QueueUpdate:
    return project_shapes.QueueUpdate.model_validate({"pools": {"default": {"gpu": {"quota": gpu}}}})


async def test_a_project_that_goes_quiet_goes_to_nothing_and_not_away(world: World) -> None:
    made = await world.submit("job", gpu="1")
    await world.cycle()
    await look(world, 2)
    world.cluster.finish(f"{made.id}-1-0")
    await world.cycle()
    await look(world, 2)

    (line,) = (await get(world, "allocated", by=shapes.By.PROJECT)).lines

    assert known(line) == [1, 1, 0, 0]


async def test_a_longer_time_is_seen_in_means_of_longer_steps(world: World) -> None:
    await look(world, 90)  # 15 minutes of nothing
    await world.submit("job", gpu="4")
    await world.cycle()
    await look(world, 90)  # and as long of four

    end = world.clock.now()
    hours = await get(world, "allocated", start=end - timedelta(hours=10), end=end, points=12)
    days = await get(world, "allocated", start=end - timedelta(days=30), end=end, points=2000)

    assert hours.step_seconds == 3600
    assert known(hours.lines[0]) == [2]
    assert days.step_seconds == 1800
    assert known(days.lines[0]) == [2]


@pytest.mark.parametrize("points", [10, 11, 60, 300, 2000])
@pytest.mark.parametrize("span", [timedelta(minutes=1), timedelta(minutes=59), timedelta(hours=7), timedelta(days=31)])
async def test_there_are_never_more_steps_than_points(world: World, points: int, span: timedelta) -> None:
    end = world.clock.now() + timedelta(seconds=7)

    found = await get(world, "running", start=end - span, end=end, points=points)

    assert len(found.times) == len(found.capacity) <= points
    assert found.start <= end - span
    assert found.end >= end
    assert found.times[0] == found.start


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"start": builders.NOW, "end": builders.NOW}, "from"),
        ({"start": builders.NOW - timedelta(days=401)}, "from"),
        ({"name": "x"}, "by"),
        ({"name": "x", "by": shapes.By.PROJECT}, "name"),
    ],
)
async def test_what_cannot_be_shown_is_refused_at_its_field(world: World, asked: dict[str, object], field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        await get(world, "used", **asked)

    assert caught.value.field == field
    assert caught.value.valid


async def test_what_a_server_saw_before_it_ended_is_summed_up_by_the_next(world: World) -> None:
    await look(world, 3)
    world.clock.advance(timedelta(hours=2))
    await look(world)

    rows = await world.store.read(lambda tx: tx.samples.find(kind="cluster"))

    assert sorted((row.grain, row.time - builders.NOW) for row in rows if row.grain > samples.FINEST) == [
        (60, timedelta(0)),
        (600, timedelta(0)),
    ]


@pytest.mark.slow  # An hour of looks, ten seconds apart, a day apart from the last.
async def test_what_is_too_old_is_removed_and_its_means_stay(world: World) -> None:
    await look(world, 180)
    world.clock.advance(timedelta(days=9))

    await look(world, 360)

    rows = await world.store.read(lambda tx: tx.samples.find(kind="cluster"))
    now = world.clock.now()
    for grain, span in samples.KEPT.items():
        assert [row for row in rows if row.grain == grain and row.time < now - span] == []
    assert sum(row.grain == 600 for row in rows) >= 3 + 5


@pytest.mark.slow  # 98,000 rows.
async def test_a_month_of_a_machine_takes_little_room(tmp_path: pathlib.Path) -> None:
    store = db.open_store(tmp_path / "one.db")
    line = (7333.33, 8000.0, 5120.17, 3.0, 24000.0, 17.0)
    lines = {"cluster": 1, "pool": 1, "department": 2, "project": 10}
    taken = {kind: {f"01998d5a-7e1c-7000-8000-{one:012}": line for one in range(n)} for kind, n in lines.items()}

    def write(tx: ports.Transaction) -> None:
        for grain, span in samples.KEPT.items():
            for step in range(min(span, timedelta(days=30)) // timedelta(seconds=grain)):
                time = builders.NOW - timedelta(seconds=grain * step)
                for kind, values in taken.items():
                    tx.samples.put(records.SampleRow(f"{grain}/{kind}/{step}", grain, kind, time, values))

    await store.write(write)
    store.close()

    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 200 * 2**20


def test_a_step_begins_at_a_multiple_of_its_length() -> None:
    time = datetime.fromisoformat("2030-01-01T12:34:56.789+00:00")

    assert [samples.floor(time, grain).isoformat() for grain in samples.KEPT] == [
        "2030-01-01T12:34:50+00:00",
        "2030-01-01T12:34:00+00:00",
        "2030-01-01T12:30:00+00:00",
    ]
