"""Each operation of the API through the client, against a live server."""

import io
import itertools
import json
import tarfile
from collections.abc import Callable

import pytest

from aliquot import client
from aliquot.api import app as api
from aliquot.api import description
from aliquot.core import errors
from aliquot.core.lifecycle import Phase
from aliquot.wire import projects, records, workloads
from tests import serving
from tests.api import machine
from tests.api.raw import ask, with_token

_COUNT = itertools.count()

OPERATIONS = sorted(one["operationId"] for one in description.operations(api.assemble().openapi()))


def job(**given: object) -> workloads.Definition:
    """A job with a name of its own."""
    return workloads.Definition.model_validate({"name": f"job-{next(_COUNT)}", "command": ["true"], **given})


class Calls:
    """One call for each operation, named as the operation is; each returns what it got, and asserts what it means."""

    def __init__(self, asked: client.Client, here: machine.Here) -> None:
        self.asked = asked
        self.here = here

    def waiting(self) -> workloads.WorkloadDetail:
        """A workload that waits."""
        return self.asked.submit_workload(job(gpu="1"))

    def running(self) -> workloads.WorkloadDetail:
        """A workload with a pod."""
        submitted = self.asked.submit_workload(job(stdin="pipe"))
        (pod,) = self.here.do(lambda world: world.run(submitted.id))
        self.here.world.pods.write(pod, "a line")
        return submitted

    def new_project(self) -> projects.ProjectView:
        """A project with nothing in it."""
        return self.asked.create_project(projects.ProjectNew(name=f"project-{next(_COUNT)}"))

    def new_department(self) -> projects.DepartmentView:
        """A department with nothing in it."""
        return self.asked.create_department(projects.DepartmentNew(name=f"department-{next(_COUNT)}"))

    def health_check(self) -> None:
        assert self.asked.health_check() == records.Health(version="1")

    def get_status(self) -> None:
        assert self.asked.get_status().devices.count == 8

    def create_sign_in_link(self) -> None:
        assert "/sign-in?code=" in self.asked.create_sign_in_link().url

    def sign_out(self) -> None:
        self.asked.sign_out()
        assert self.asked.health_check().status == "ok"

    def create_session(self) -> None:
        self.asked.create_session(self.here.live.token)
        with pytest.raises(errors.Unauthenticated, match="token"):
            self.asked.create_session("another")

    def get_session(self) -> None:
        assert (self.asked.get_session().actor, self.asked.get_session().version) == ("admin", "1")

    def get_overview(self) -> None:
        self.waiting()
        seen = self.asked.get_overview()
        assert (seen.devices.count, seen.nodes.count) == (8, 1)
        assert sum(seen.phases.values()) >= 1

    def get_series(self) -> None:
        found = self.asked.get_series(metric="allocated", by="department", points=10)
        assert (found.unit, len(found.times)) == ("GPU", len(found.capacity))

    def stream_changes(self) -> None:
        self.waiting()
        after = self.asked.list_events(limit=1).items[0].sequence
        made = self.waiting()
        assert made.id in {row.id for row in next(self.asked.stream_changes(after=after)).workloads}

    def list_queue(self) -> None:
        made = self.waiting()
        assert made.id in {one.workload for one in self.asked.list_queue(project="default", limit=1000).items}

    def get_timeline(self) -> None:
        made = self.waiting()
        assert [span.kind for span in self.asked.get_timeline(made.id).spans] == ["waiting"]

    def get_device_map(self) -> None:
        seen = self.asked.get_device_map()
        assert ([node.count for node in seen.nodes], len(seen.state)) == ([8], 8)

    def get_usage_series(self) -> None:
        found = self.asked.get_usage_series(by="department", step="day")
        assert len(found.times) == 8

    def count_workloads(self) -> None:
        made = self.waiting()
        assert self.asked.count_workloads(name=made.name).phases == {Phase.PENDING: 1}

    def download_logs(self) -> None:
        text = b"".join(self.asked.download_logs(self.running().id))
        assert text == b"a line\n"

    def list_workloads(self) -> None:
        made = self.asked.submit_workload(job(labels={"team": "vision"}))
        page = self.asked.list_workloads(name=made.name, project="default", phase="unfinished", label=["team=vision"])
        assert [(one.id, one.labels) for one in page.items] == [(made.id, {"team": "vision"})]
        assert (page.total, page.next) == (1, None)

    def submit_workload(self) -> None:
        definition = job(gpu="2x0.5", environment={"A": "ä\n"})
        first = self.asked.submit_workload(definition, key="k")
        again = self.asked.submit_workload(definition, key="k")
        assert (first.id, first.definition) == (again.id, definition)
        assert self.asked.dry_run_workload(job()).outcome == "starts"

    def get_workload(self) -> None:
        made = self.waiting()
        assert self.asked.get_workload(made.name, project="default").id == made.id

    def update_workload(self) -> None:
        changed = self.asked.update_workload(self.waiting().id, workloads.WorkloadUpdate(gpu="3", priority="high"))
        assert (changed.gpu, changed.priority) == ("3", 75)

    def suspend_workload(self) -> None:
        assert self.asked.suspend_workload(self.waiting().id).phase is Phase.SUSPENDED

    def resume_workload(self) -> None:
        made = self.asked.suspend_workload(self.waiting().id)
        assert self.asked.resume_workload(made.id).phase is Phase.PENDING

    def stop_workload(self) -> None:
        assert self.asked.stop_workload(self.waiting().id).phase is Phase.STOPPED

    def delete_workload(self) -> None:
        waiting, running = self.waiting(), self.running()
        assert self.asked.delete_workload(waiting.id) is None
        ending = self.asked.delete_workload(running.id)
        assert ending is not None
        assert ending.phase is Phase.STOPPING

    def get_reason(self) -> None:
        holder = self.running()
        reason = self.asked.get_reason(self.asked.submit_workload(job(gpu="8")).id)
        assert reason.code == "no-free-device"
        assert holder.id in [blocker.workload for blocker in reason.blockers]

    def read_logs(self) -> None:
        chunk = self.asked.read_logs(self.running().id, index=0, limit=5)
        assert [line.text for line in chunk.lines] == ["a line"]

    def follow_logs(self) -> None:
        made = self.running()
        self.here.do(lambda world: world.finish(made.id))
        assert [line.text for line in self.asked.follow_logs(made.id)] == ["a line"]

    def read_files(self) -> None:
        content = b"".join(self.asked.read_files(self.running().id, "model.bin"))
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            assert tar.getnames() == ["model.bin"]

    def write_files(self) -> None:
        content = machine.archive({"data.csv": b"1,2"})
        made = self.running()
        self.asked.write_files(made.id, "input", [content[:700], content[700:]])
        assert self.here.world.pods.unpacked[-1] == (f"{made.id}-1-0", "input", content)

    def list_departments(self) -> None:
        made = self.new_department()
        assert self.asked.list_departments(q=made.name).items == [made]

    def create_department(self) -> None:
        assert self.new_department().projects == 0

    def get_department(self) -> None:
        made = self.new_department()
        assert self.asked.get_department(made.name) == made

    def update_department(self) -> None:
        change = projects.QueueUpdate(pools={"default": projects.PoolTermsUpdate(gpu=projects.Claim(quota="2.5"))})
        changed = self.asked.update_department(self.new_department().id, change)
        assert changed.pools["default"].terms.gpu.quota == "2.5"

    def delete_department(self) -> None:
        made = self.new_department()
        self.asked.delete_department(made.id)
        with pytest.raises(errors.NotFound):
            self.asked.get_department(made.id)

    def list_projects(self) -> None:
        made = self.new_project()
        assert self.asked.list_projects(name=made.name, department="default").items == [made]

    def create_project(self) -> None:
        assert self.new_project().pools["default"].terms.gpu.quota == "0"

    def get_project(self) -> None:
        made = self.new_project()
        assert self.asked.get_project(made.name) == made

    def update_project(self) -> None:
        change = projects.QueueUpdate(pools={"default": projects.PoolTermsUpdate(priority=7)})
        assert self.asked.update_project(self.new_project().id, change).pools["default"].terms.priority == 7

    def delete_project(self) -> None:
        made = self.new_project()
        self.asked.delete_project(made.name)
        assert self.asked.list_projects(name=made.name).items == []

    def list_nodes(self) -> None:
        assert [node.id for node in self.asked.list_nodes(pool="default").items] == ["node-1"]

    def get_node(self) -> None:
        assert self.asked.get_node("node-1").devices == 8

    def list_devices(self) -> None:
        assert len(self.asked.list_devices(node="node-1", model="H100").items) == 8

    def cordon(self) -> None:
        assert self.asked.cordon("node-1/3").target == "node-1-gpu-3"
        self.asked.uncordon("node-1/3")

    def uncordon(self) -> None:
        self.asked.cordon("2")
        self.asked.uncordon("2")
        with pytest.raises(errors.NotFound):
            self.asked.uncordon("2")

    def list_events(self) -> None:
        made = self.waiting()
        page = self.asked.list_events(subject=made.id, after=0)
        assert {event.subject_name for event in page.items} == {made.name}

    def stream_events(self) -> None:
        newest = self.asked.list_events(limit=1).items[0].sequence
        made = self.waiting()
        assert next(self.asked.stream_events(after=newest, noun="workload")).subject == made.id

    def list_receipts(self) -> None:
        assert self.asked.list_receipts(project="default", rule="reclaim").items == []

    def list_workload_usage(self) -> None:
        made = self.waiting()
        assert [one.subject for one in self.asked.list_workload_usage(name=made.name).items] == [made.id]

    def list_project_usage(self) -> None:
        assert "default" in [one.name for one in self.asked.list_project_usage().items]

    def audit_ledger(self) -> None:
        assert isinstance(self.asked.audit_ledger(), records.LedgerAudit)

    def list_audit_records(self) -> None:
        made = self.waiting()
        page = self.asked.list_audit_records(subject=made.id, sort="time")
        assert [(one.actor, one.origin, one.outcome) for one in page.items] == [("admin", "127.0.0.1", "done")]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_does_through_the_client_what_it_says(
    operation: str, asked: client.Client, here: machine.Here
) -> None:
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation)
    assert hasattr(client.Client, name), f"{operation} has no method in the client"

    call: Callable[[], None] | None = getattr(Calls(asked, here), name, None)

    assert call is not None, f"{operation} has no call in this test"
    call()


def test_pages_follow_each_other_without_a_gap_or_a_repeat(asked: client.Client) -> None:
    made = {asked.submit_workload(job(labels={"set": "pages"})).id for _ in range(7)}

    found: list[str] = []
    cursor: str | None = None
    while True:
        page = asked.list_workloads(label=["set=pages"], limit=3, cursor=cursor, sort="-created")
        found += [one.id for one in page.items]
        cursor = page.next
        if cursor is None:
            break

    assert len(found) == 7
    assert set(found) == made


@pytest.mark.parametrize("path", ["/devices", "/workloads", "/projects", "/events"])
def test_what_the_api_writes_is_camel_case(live: serving.Live, asked: client.Client, path: str) -> None:
    asked.submit_workload(job())

    _, _, content = ask(live, "GET", f"/api/v1{path}", headers=with_token())

    (first, *_) = json.loads(content)["items"]
    assert not [name for name in first if "_" in name]
