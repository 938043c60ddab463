"""Workloads, from submission to deletion, against a real store and the real scheduler."""

import asyncio
import pathlib
from datetime import timedelta
from typing import Any

import pytest

from aliquot.core import errors
from aliquot.core.lifecycle import Phase
from aliquot.db import store as db
from aliquot.service import paging
from aliquot.wire import projects as project_shapes
from aliquot.wire import workloads as shapes
from tests.service import world as worlds

pytestmark = pytest.mark.anyio
ANN = worlds.ANN


def definition(**fields: Any) -> shapes.Definition:  # Any: the values of fields
    return shapes.Definition(**({"name": "job", "command": ["true"]} | fields))


async def test_a_submission_is_stored_with_an_event_and_an_audit_record(world: worlds.World) -> None:
    detail, is_new = await world.workloads.submit(ANN, definition(gpu="0.5", labels={"a": "b"}))

    events = await world.events.list(ANN, worlds.everything(subject=detail.id))
    audits = await world.audit.list(ANN, worlds.everything(subject=detail.id))
    assert is_new
    assert (detail.phase, detail.gpu, detail.project, detail.department) == (Phase.PENDING, "0.5", "default", "default")
    assert [(event.code, event.project) for event in events.items] == [("submitted", "default")]
    assert [(one.actor, one.verb, one.noun, one.outcome) for one in audits.items] == [
        ("ann", "create", "workload", "done")
    ]
    assert world.cluster.wakes > 0


@pytest.mark.parametrize(
    ("kind", "preemptible", "priority"), [(shapes.Kind.WORKSPACE, False, 75), (shapes.Kind.TRAINING, True, 25)]
)
async def test_a_kind_brings_its_defaults(
    world: worlds.World, kind: shapes.Kind, *, preemptible: bool, priority: int
) -> None:
    detail = await world.submit(kind=kind)

    assert (detail.preemptible, detail.priority) == (preemptible, priority)
    assert detail.name.startswith(str(kind))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"command": None}, "command"),
        ({"script": "echo"}, "command"),
        ({"command": [""]}, "command[0]"),
        ({"command": ["a", "b\0"]}, "command[1]"),
        ({"gpu": "0"}, "gpu"),
        ({"gpu": "nan"}, "gpu"),
        ({"gpu": "1.5"}, "gpu"),
        ({"gpu": "-1"}, "gpu"),
        ({"gpu": "9"}, "gpu"),
        ({"gpu": "0.5", "replicas": 17}, "replicas"),
        ({"cpu": "0"}, "cpu"),
        ({"cpu": "1000"}, "cpu"),
        ({"cpu": "999999999999999999"}, "cpu"),
        ({"memory": "1Xi"}, "memory"),
        ({"memory": "513Gi"}, "memory"),
        ({"priority": "urgent"}, "priority"),
        ({"priority": 1001}, "priority"),
        ({"max_run_time": "soon"}, "maxRunTime"),
        ({"max_run_time": "9999d"}, "maxRunTime"),
        ({"grace_period": "0s"}, "gracePeriod"),
        ({"retry_back_off": "-1"}, "retryBackOff"),
        ({"ttl_after_finish": ""}, "ttlAfterFinish"),
        ({"working_directory": "here"}, "workingDirectory"),
        ({"environment": {"A": "\0"}}, "environment.A"),
        ({"labels": {'"': "x"}}, "labels"),
        ({"project": "defualt"}, "project"),
    ],
)
async def test_bad_input_names_its_field_and_leaves_nothing(
    world: worlds.World, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        await world.workloads.submit(ANN, definition(**fields))

    assert caught.value.field == field
    assert await world.rows() == []


async def test_an_unknown_project_is_refused_with_the_near_names(world: worlds.World) -> None:
    with pytest.raises(errors.InvalidInput, match="did you mean default") as caught:
        await world.submit(project="defualt")

    assert caught.value.valid == ("default",)


async def test_what_is_larger_than_a_limit_is_refused_with_both_numbers(world: worlds.World) -> None:
    claim = project_shapes.Claim(quota="1", limit="2")
    new = project_shapes.ProjectNew(name="small", pools={"default": project_shapes.PoolTerms(gpu=claim)})
    await world.projects.create(ANN, new)

    with pytest.raises(errors.CannotEverStart) as caught:
        await world.submit(project="small", gpu="3")

    assert caught.value.field == "gpu"
    assert (caught.value.details["asked"], caught.value.details["limit"]) == (3000, 2000)


async def test_a_name_is_taken_while_its_workload_is_unfinished(world: worlds.World) -> None:
    await world.submit("job")

    with pytest.raises(errors.Conflict) as caught:
        await world.submit("job")
    await world.workloads.stop(ANN, "job")
    again = await world.submit("job")

    assert (caught.value.stable_code, caught.value.field) == ("name-taken", "name")
    assert (await world.workloads.get(ANN, "job")).id == again.id


async def test_the_same_key_and_body_give_the_same_workload(world: worlds.World) -> None:
    first, is_new = await world.workloads.submit(ANN, definition(environment={"A": "1", "B": "2"}), key="k")

    second, is_newer = await world.workloads.submit(ANN, definition(environment={"B": "2", "A": "1"}), key="k")

    assert (first.id, is_new, is_newer) == (second.id, True, False)


async def test_the_same_key_with_another_body_is_refused(world: worlds.World) -> None:
    await world.workloads.submit(ANN, definition(), key="k")

    with pytest.raises(errors.KeyReused):
        await world.workloads.submit(ANN, definition(name="other"), key="k")


async def test_a_key_that_comes_from_many_at_once_makes_one_workload(world: worlds.World) -> None:
    asked = [world.workloads.submit(ANN, definition(name=None), key="k") for _ in range(20)]

    done = await asyncio.gather(*asked)

    assert len({detail.id for detail, _ in done}) == 1
    assert sum(is_new for _, is_new in done) == 1
    assert len(await world.rows()) == 1


@pytest.mark.slow  # a thousand transactions take some seconds
async def test_a_thousand_submissions_of_fifty_clients_make_a_thousand_workloads(tmp_path: pathlib.Path) -> None:
    # A file, so that readers and the writer have threads and connections of their own; and a short queue.
    store = db.open_store(tmp_path / "one.db", most_waiting=40)
    world = await worlds.World(store).prepare()

    async def submit_until_taken(name: str) -> str:
        while True:
            try:
                detail, _ = await world.workloads.submit(ANN, definition(name=name, gpu="0.5"), key=name)
            except errors.Unavailable:
                # The queue is full: it has moved on when the next event is there.
                changes = store.changes()
                await anext(changes)
                await anext(changes)
            else:
                return detail.id

    async def client(number: int) -> list[str]:
        return [await submit_until_taken(f"job-{number}-{index}") for index in range(20)]

    made = await asyncio.gather(*(client(number) for number in range(50)))

    ids = {id for some in made for id in some}
    assert len(ids) == 1000
    assert {row.id for row in await world.rows()} == ids
    page = await world.workloads.list(ANN, paging.ListRequest(limit=10))
    assert (page.total, len(page.items)) == (1000, 10)
    store.close()


async def test_our_own_variables_are_not_kept(world: worlds.World) -> None:
    given = {"ALIQUOT_TOKEN": "secret", "CUDA_VISIBLE_DEVICES": "0", "HOME": "/home"}

    detail = await world.submit(environment=given)

    assert detail.definition.environment == {"HOME": "/home"}


async def test_one_that_runs_shows_its_devices_and_its_pods(world: worlds.World) -> None:
    await world.submit("job", gpu="2", kind=shapes.Kind.WORKSPACE)
    await world.cycle()
    world.clock.advance(timedelta(seconds=90))

    detail = await world.workloads.get(ANN, "job")

    assert (detail.phase, detail.attempt, detail.ran_seconds) == (Phase.RUNNING, 1, 90)
    assert detail.devices == ["node-1/0", "node-1/1"]
    assert detail.url == "http://127.0.0.1:40000"
    assert [(pod.phase, len(pod.shares)) for pod in detail.pods] == [(shapes.PodPhase.RUNNING, 2)]
    assert detail.checkpoint_directory == f"/data/workloads/{detail.id}/checkpoint"


async def test_a_list_is_filtered_sorted_and_paged(world: worlds.World) -> None:
    for number in range(5):
        await world.submit(f"job-{number}", labels={"team": "a" if number % 2 else "b"})
        world.clock.advance(timedelta(seconds=1))
    await world.submit("desk", kind=shapes.Kind.WORKSPACE)
    await world.workloads.suspend(ANN, "job-1")

    async def names(**filters: str) -> list[str]:
        page = await world.workloads.list(ANN, paging.ListRequest(filters, sort=("name",)))
        return [view.name for view in page.items]

    assert await names(**{"label.team": "a"}) == ["job-1", "job-3"]
    assert await names(phase="suspended,running") == ["job-1"]
    assert await names(phase="unfinished", q="JOB") == ["job-0", "job-1", "job-2", "job-3", "job-4"]
    assert await names(kind="workspace", project="default", department="default") == ["desk"]
    first = await world.workloads.list(ANN, paging.ListRequest(limit=4))
    rest = await world.workloads.list(ANN, paging.ListRequest(limit=4, cursor=first.next))
    assert [view.name for view in (*first.items, *rest.items)] == ["desk", "job-4", "job-3", "job-2", "job-1", "job-0"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (paging.ListRequest({"colour": "red"}), "colour"),
        (paging.ListRequest({"phase": "tired"}), "phase"),
        (paging.ListRequest({"kind": "tired"}), "kind"),
        (paging.ListRequest({"project": "none"}), "project"),
        (paging.ListRequest(sort=("colour",)), "sort"),
        (paging.ListRequest(limit=0), "limit"),
        (paging.ListRequest(cursor="x"), "cursor"),
    ],
)
async def test_a_list_refuses_what_it_does_not_know(world: worlds.World, asked: paging.ListRequest, field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        await world.workloads.list(ANN, asked)

    assert caught.value.field == field


async def test_a_wrong_name_is_answered_with_near_ones(world: worlds.World) -> None:
    await world.submit("train-digits")

    with pytest.raises(errors.NotFound) as caught:
        await world.workloads.get(ANN, "train-digit")

    assert caught.value.valid == ("train-digits",)


async def test_a_name_in_two_projects_asks_for_the_project(world: worlds.World) -> None:
    await world.projects.create(ANN, project_shapes.ProjectNew(name="team-b"))
    await world.submit("job")
    other = await world.submit("job", project="team-b")

    with pytest.raises(errors.Conflict) as caught:
        await world.workloads.get(ANN, "job")

    assert (caught.value.stable_code, caught.value.valid) == ("ambiguous", ("default", "team-b"))
    assert (await world.workloads.get(ANN, "job", project="team-b")).id == other.id


async def test_one_that_waits_can_be_changed_and_then_starts_so(world: worlds.World) -> None:
    await world.submit("job", gpu="8")

    await world.workloads.update(ANN, "job", shapes.WorkloadUpdate(gpu="1", priority="high"))
    await world.cycle()

    detail = await world.workloads.get(ANN, "job")
    assert (detail.gpu, detail.definition.gpu, detail.priority, len(detail.devices)) == ("1", "1", 75, 1)


async def test_of_one_that_runs_only_the_priority_can_be_changed(world: worlds.World) -> None:
    await world.submit("job", gpu="1")
    await world.cycle()

    with pytest.raises(errors.Conflict, match="only its priority"):
        await world.workloads.update(ANN, "job", shapes.WorkloadUpdate(gpu="2"))
    changed = await world.workloads.update(ANN, "job", shapes.WorkloadUpdate(priority=100))

    assert (changed.gpu, changed.priority) == ("1", 100)


async def test_a_change_to_what_could_never_start_is_refused(world: worlds.World) -> None:
    await world.submit("job", gpu="8")

    with pytest.raises(errors.CannotEverStart):
        await world.workloads.update(ANN, "job", shapes.WorkloadUpdate(gpu="9"))

    assert (await world.workloads.get(ANN, "job")).gpu == "8"


async def test_suspending_frees_the_devices_and_resuming_takes_them_again(world: worlds.World) -> None:
    await world.submit("job", gpu="8")
    await world.cycle()

    asked = await world.workloads.suspend(ANN, "job")
    await world.cycle(2)
    suspended = await world.workloads.get(ANN, "job")
    await world.workloads.resume(ANN, "job")
    await world.cycle()

    assert (asked.phase, suspended.phase, suspended.devices) == (Phase.SUSPENDING, Phase.SUSPENDED, [])
    resumed = await world.workloads.get(ANN, "job")
    assert (resumed.phase, resumed.attempt) == (Phase.RUNNING, 2)
    assert (await world.ledger.audit(ANN)).is_balanced


async def test_stopping_one_that_waits_ends_it_at_once(world: worlds.World) -> None:
    await world.submit("job")

    stopped = await world.workloads.stop(ANN, "job")

    assert (stopped.phase, stopped.outcome, stopped.finished) == (Phase.STOPPED, "stopped", world.clock.now())


async def test_asking_twice_changes_nothing_more(world: worlds.World) -> None:
    detail = await world.submit("job")
    await world.workloads.suspend(ANN, "job")

    again = await world.workloads.suspend(ANN, "job")

    events = await world.events.list(ANN, worlds.everything(subject=detail.id))
    assert (again.phase, [event.code for event in events.items]) == (Phase.SUSPENDED, ["suspended", "submitted"])


async def test_what_has_finished_can_neither_be_suspended_nor_changed(world: worlds.World) -> None:
    await world.submit("job")
    await world.workloads.stop(ANN, "job")

    with pytest.raises(errors.Conflict):
        await world.workloads.suspend(ANN, "job")
    with pytest.raises(errors.Conflict):
        await world.workloads.update(ANN, "job", shapes.WorkloadUpdate(priority=1))


async def test_deleting_hides_a_workload_at_once_and_keeps_what_it_used(world: worlds.World) -> None:
    detail = await world.submit("job", gpu="1")
    await world.cycle()
    world.clock.advance(timedelta(hours=1))
    world.cluster.finish(detail.id + "-1-0")
    await world.cycle()

    gone = await world.workloads.delete(ANN, "job")

    with pytest.raises(errors.NotFound):
        await world.workloads.get(ANN, detail.id)
    listed = await world.workloads.list(ANN, worlds.everything())
    used = await world.usage.by_workload(ANN, worlds.everything())
    assert (gone, listed.total) == (None, 0)
    assert [(one.name, one.allocated_gpu_seconds) for one in used.items] == [("job", 3600)]


async def test_deleting_one_that_runs_ends_it_first(world: worlds.World) -> None:
    await world.submit("job", gpu="1")
    await world.cycle()

    ending = await world.workloads.delete(ANN, "job")
    await world.cycle(2)

    assert ending is not None
    assert ending.phase is Phase.STOPPING
    with pytest.raises(errors.NotFound):
        await world.workloads.get(ANN, "job")


async def test_a_dry_run_says_where_it_would_start_and_creates_nothing(world: worlds.World) -> None:
    answer = await world.workloads.dry_run(ANN, definition(gpu="2x0.5"))

    assert (answer.outcome, answer.places) == ("starts", ["node-1/0", "node-1/1"])
    assert await world.rows() == []


async def test_a_dry_run_says_whom_it_would_evict(world: worlds.World) -> None:
    await world.submit("low", gpu="8", priority="low")
    await world.cycle()

    answer = await world.workloads.dry_run(ANN, definition(gpu="1", priority="high"))

    assert (answer.outcome, answer.evicts) == ("starts-after-evictions", ["low"])


async def test_a_dry_run_of_what_would_wait_says_why(world: worlds.World) -> None:
    await world.submit("holder", gpu="8", priority="high")
    await world.cycle()

    answer = await world.workloads.dry_run(ANN, definition(gpu="1"))

    assert (answer.outcome, answer.evicts) == ("waits", [])
    assert answer.reason is not None
    assert answer.reason.blockers[0].description.startswith("holder")


async def test_a_dry_run_refuses_what_submitting_would_refuse(world: worlds.World) -> None:
    await world.submit("job")

    with pytest.raises(errors.Conflict, match="called job already"):
        await world.workloads.dry_run(ANN, definition())
    with pytest.raises(errors.CannotEverStart):
        await world.workloads.dry_run(ANN, definition(name="big", gpu="9"))


async def test_the_suggested_change_starts_the_workload(world: worlds.World) -> None:
    await world.submit("holder", gpu="7", priority="high")
    await world.cycle()
    await world.submit("job", gpu="2")
    await world.cycle()

    reason = await world.workloads.reason(ANN, "job")
    assert reason.suggestion is not None
    assert reason.suggestion.operation == "updateWorkload"
    change = shapes.WorkloadUpdate.model_validate(reason.suggestion.body)
    await world.workloads.update(ANN, reason.suggestion.target, change)
    await world.cycle()

    assert reason.suggestion.command == "aliquot update job --gpu 1"
    assert (await world.workloads.get(ANN, "job")).phase is Phase.RUNNING


async def test_a_suggested_limit_can_be_given_to_the_project(world: worlds.World) -> None:
    await world.submit("job", gpu="1")
    closed = project_shapes.PoolTermsUpdate(gpu=project_shapes.Claim(quota="0", limit="0"))
    await world.projects.update(ANN, "default", project_shapes.QueueUpdate(pools={"default": closed}))
    await world.cycle()

    found = (await world.workloads.reason(ANN, "job")).suggestion
    assert found is not None
    assert (found.operation, found.target, found.who_can) == ("updateProject", "default", "administrator")
    await world.projects.update(ANN, found.target, project_shapes.QueueUpdate.model_validate(found.body))
    await world.cycle()

    assert found.command == "aliquot projects update default --pool default --gpu-limit 1"
    assert (await world.workloads.get(ANN, "job")).phase is Phase.RUNNING


async def test_a_cordon_in_the_way_is_suggested_to_be_taken_away(world: worlds.World) -> None:
    await world.nodes.cordon(ANN, "node-1")
    await world.submit("job", gpu="1")
    await world.cycle()

    reason = await world.workloads.reason(ANN, "job")
    assert reason.suggestion is not None
    assert (reason.suggestion.operation, reason.suggestion.target) == ("uncordon", "node-1")
    await world.nodes.uncordon(ANN, reason.suggestion.target)
    await world.cycle()

    assert (await world.workloads.get(ANN, "job")).phase is Phase.RUNNING


async def test_one_that_does_not_wait_has_no_reason(world: worlds.World) -> None:
    await world.submit("job")
    await world.cycle()

    with pytest.raises(errors.Conflict) as caught:
        await world.workloads.reason(ANN, "job")

    assert caught.value.stable_code == "not-waiting"


async def test_the_reason_of_the_last_cycle_is_in_the_list(world: worlds.World) -> None:
    await world.submit("holder", gpu="8", priority="high")
    await world.cycle()
    await world.submit("job", gpu="1")
    await world.cycle()

    page = await world.workloads.list(ANN, worlds.everything(name="job"))

    assert page.items[0].reason is not None
    assert page.items[0].reason.position == 1


async def test_workloads_are_counted_by_phase_and_listed_by_several_projects(world: worlds.World) -> None:
    await world.projects.create(ANN, project_shapes.ProjectNew(name="other"))
    await world.submit("one", gpu="8")
    await world.submit("two", gpu="8")
    await world.submit("three", gpu="8", project="other")
    await world.cycle()

    counts = await world.workloads.count(ANN, {})
    some = await world.workloads.count(ANN, {"project": "default, other", "phase": "pending"})
    by_id = await world.workloads.list(ANN, worlds.everything(q=(await world.workloads.get(ANN, "two")).id))
    by_project = await world.workloads.list(ANN, worlds.everything(q="OTH", phase="pending,running"))
    by_name = await world.workloads.list(ANN, worlds.everything(q="on", kind="training"))

    assert (counts.total, sum(counts.phases.values())) == (3, 3)
    assert counts.phases[Phase.PENDING] == some.total == 2
    assert [one.name for one in by_id.items] == ["two"]
    assert [one.name for one in by_project.items] == ["three"]
    assert [one.name for one in by_name.items] == ["one"]
    with pytest.raises(errors.InvalidInput, match="'toy' is not a kind"):
        await world.workloads.count(ANN, {"kind": "training,toy"})
