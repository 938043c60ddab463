"""One method for each operation of the API, under its operationId in snake_case. A test holds the two together.

Promises: takes and returns the shapes of `aliquot.wire`; raises the classes of `aliquot.core.errors` as the service
raised them on the other side; a submission is done once, however often it had to be sent.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from aliquot.client import discovery, queries, streams, terminals, transport
from aliquot.core import errors
from aliquot.wire import base, changes, nodes, overview, projects, queue, records, series, timelines, workloads

Model = TypeVar("Model", bound=base.Shape)
TAR = "application/x-tar"


class Client:
    """A server, over HTTP. May be used from several threads; close it, or use it in `with`."""

    def __init__(
        self, url: str, token: str, *, timeout: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._sender = transport.Transport(url, token, timeout=timeout, sleep=sleep)

    @classmethod
    def of(cls, server: discovery.Server) -> Self:
        """A client of a server that was found."""
        return cls(server.url, server.token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._sender.close()

    # The server

    def health_check(self) -> records.Health:
        """Whether it answers; needs no token."""
        return self._get("/health", records.Health)

    def get_status(self) -> records.Status:
        """What the server is, what it has and how it does."""
        return self._get("/status", records.Status)

    def get_session(self) -> records.Session:
        """Who asks, and until when."""
        return self._get("/session", records.Session)

    def create_session(self, token: str) -> None:
        """Check a token as a browser does that signs in; this client goes on with its own."""
        new, headers = records.SessionNew(token=token), {"Origin": self._sender.url}
        self._sender.send(transport.Call("POST", "/session", body=new, headers=headers, is_repeatable=True))

    def get_overview(self) -> overview.Overview:
        """How the GPUs do, who waits for what, and what is broken, in one answer."""
        return self._get("/overview", overview.Overview)

    def get_series(self, metric: series.Metric | str, **query: Unpack[queries.SeriesQuery]) -> series.Series:
        """One metric over time. `start` and `end`: instants; left out: the last hour."""
        return self._get("/series", series.Series, {"metric": metric, **_between(query)})

    def stream_changes(self, *, after: int | None = None) -> Iterator[changes.Changes]:
        """What changes, for ever, several changes at a time. Comes back if the connection breaks."""
        call = transport.Call("GET", "/changes/stream", query=transport.pairs({"after": after}))
        return streams.follow(self._sender, call, changes.Changes, kind="changes")

    def create_sign_in_link(self) -> records.SignInLink:
        """A link that signs one browser in, once."""
        return self._ask(transport.Call("POST", "/sign-in-links"), records.SignInLink)

    def sign_out(self) -> None:
        """End the session of a browser; a token goes on to work."""
        self._sender.send(transport.Call("POST", "/sign-out", is_repeatable=True))

    # Workloads

    def list_workloads(self, **query: Unpack[queries.WorkloadQuery]) -> base.Page[workloads.WorkloadView]:
        """Workloads, finished ones too. A label may also be given as `**{"label.team": "vision"}`."""
        return self._get("/workloads", base.Page[workloads.WorkloadView], query)

    def count_workloads(self, **query: Unpack[queries.WorkloadFilter]) -> workloads.WorkloadCounts:
        """How many workloads match, by phase."""
        return self._get("/workload-counts", workloads.WorkloadCounts, query)

    def list_queue(self, **query: Unpack[queries.QueueQuery]) -> base.Page[queue.QueueEntry]:
        """Who waits, in order, for what, and until when where stated run times say so."""
        return self._get("/queue", base.Page[queue.QueueEntry], query)

    def submit_workload(self, definition: workloads.Definition, *, key: str | None = None) -> workloads.WorkloadDetail:
        """Submit. The same `key` with the same definition is done once; one is made up if there is none."""
        headers = {"Idempotency-Key": key or secrets.token_urlsafe(16)}
        call = transport.Call("POST", "/workloads", body=definition, headers=headers, is_repeatable=True)
        return self._ask(call, workloads.WorkloadDetail)

    def dry_run_workload(self, definition: workloads.Definition) -> workloads.DryRun:
        """What submitting would do now; nothing is created."""
        call = transport.Call("POST", "/workloads", query=[("dryRun", "true")], body=definition, is_repeatable=True)
        return self._ask(call, workloads.DryRun)

    def get_workload(self, ref: str, *, project: str | None = None) -> workloads.WorkloadDetail:
        """One, by its id or name."""
        return self._get(_workload(ref), workloads.WorkloadDetail, {"project": project})

    def update_workload(
        self, ref: str, change: workloads.WorkloadUpdate, *, project: str | None = None
    ) -> workloads.WorkloadDetail:
        """Change one that waits or is suspended; of one that runs, the priority alone."""
        call = transport.Call("PATCH", _workload(ref), query=transport.pairs({"project": project}), body=change)
        return self._ask(call, workloads.WorkloadDetail)

    def preview_workload(
        self, ref: str, change: workloads.WorkloadUpdate, *, project: str | None = None
    ) -> workloads.DryRun:
        """What a change would do; nothing is changed."""
        asked = transport.pairs({"project": project, "dryRun": True})
        return self._ask(transport.Call("PATCH", _workload(ref), query=asked, body=change), workloads.DryRun)

    def suspend_workload(self, ref: str, *, project: str | None = None) -> workloads.WorkloadDetail:
        """End its processes and free what it holds, until it is resumed."""
        return self._tell(ref, "suspend", project)

    def resume_workload(self, ref: str, *, project: str | None = None) -> workloads.WorkloadDetail:
        """Let it wait for a place again."""
        return self._tell(ref, "resume", project)

    def stop_workload(self, ref: str, *, project: str | None = None) -> workloads.WorkloadDetail:
        """End it for good."""
        return self._tell(ref, "stop", project)

    def delete_workload(self, ref: str, *, project: str | None = None) -> workloads.WorkloadDetail | None:
        """End it and remove its folder and logs. None: it is gone; else it goes when it has ended."""
        call = transport.Call("DELETE", _workload(ref), query=transport.pairs({"project": project}))
        answer = self._sender.send(call)
        return workloads.WorkloadDetail.model_validate_json(answer.content) if answer.content else None

    def get_reason(self, ref: str, *, project: str | None = None) -> workloads.Reason:
        """Why it waits now, with the smallest change that would start it."""
        return self._get(_workload(ref, "reason"), workloads.Reason, {"project": project})

    def get_timeline(self, ref: str, *, project: str | None = None) -> timelines.Timeline:
        """What it did from its submission to now."""
        return self._get(_workload(ref, "timeline"), timelines.Timeline, {"project": project})

    # Inside a workload

    def read_logs(self, ref: str, **query: Unpack[queries.LogQuery]) -> workloads.LogChunk:
        """Some lines of one pod, and where to go on."""
        return self._get(_workload(ref, "logs"), workloads.LogChunk, query)

    def follow_logs(self, ref: str, **query: Unpack[queries.FollowQuery]) -> Iterator[workloads.LogLine]:
        """Lines as they come, over all attempts, until the workload is over. Comes back if the connection breaks."""
        call = transport.Call("GET", _workload(ref, "logs", "stream"), query=transport.pairs(query))
        return streams.follow(self._sender, call, workloads.LogLine)

    def download_logs(self, ref: str, **query: Unpack[queries.TextQuery]) -> Iterator[bytes]:
        """All output of one pod as text."""
        asked = transport.pairs(query)
        with self._sender.stream(transport.Call("GET", _workload(ref, "logs", "text"), query=asked)) as answer:
            yield from answer.iter_bytes()

    def exec_workload(self, ref: str, command: Sequence[str], **query: Unpack[queries.ExecQuery]) -> terminals.Session:
        """Run a program beside a replica."""
        asked = transport.pairs({"command": list(command), **query})
        return terminals.open_session(self._sender, transport.Call("GET", _workload(ref, "exec"), query=asked))

    def attach_workload(self, ref: str, **query: Unpack[queries.PodQuery]) -> terminals.Session:
        """A replica's own input and output."""
        asked = transport.pairs(query)
        return terminals.open_session(self._sender, transport.Call("GET", _workload(ref, "attach"), query=asked))

    def read_files(self, ref: str, path: str, **query: Unpack[queries.PodQuery]) -> Iterator[bytes]:
        """The file or folder at `path` as a tar stream."""
        asked = transport.pairs({"path": path, **query})
        with self._sender.stream(transport.Call("GET", _workload(ref, "files"), query=asked)) as answer:
            yield from answer.iter_raw()

    def write_files(self, ref: str, path: str, data: Iterable[bytes], **query: Unpack[queries.PodQuery]) -> None:
        """Unpack a tar stream into the folder `path`."""
        asked = transport.pairs({"path": path, **query})
        call = transport.Call("PUT", _workload(ref, "files"), query=asked, headers={"Content-Type": TAR})
        with self._sender.stream(call, content=iter(data)):
            return

    # Departments and projects

    def list_departments(self, **query: Unpack[queries.NamedQuery]) -> base.Page[projects.DepartmentView]:
        """Departments, with where they stand."""
        return self._get("/departments", base.Page[projects.DepartmentView], query)

    def create_department(self, new: projects.DepartmentNew) -> projects.DepartmentView:
        """A new one."""
        return self._ask(transport.Call("POST", "/departments", body=new), projects.DepartmentView)

    def get_department(self, ref: str) -> projects.DepartmentView:
        """One, by its name or id."""
        return self._get(f"/departments/{transport.segment(ref)}", projects.DepartmentView)

    def update_department(self, ref: str, change: projects.QueueUpdate) -> projects.DepartmentView:
        """Change its terms; what is left out stays."""
        call = transport.Call("PATCH", f"/departments/{transport.segment(ref)}", body=change)
        return self._ask(call, projects.DepartmentView)

    def preview_department(self, ref: str, change: projects.QueueUpdate) -> queue.QueuePreview:
        """What other terms of a department would do; nothing is changed."""
        return self._preview(f"/departments/{transport.segment(ref)}", change)

    def delete_department(self, ref: str) -> None:
        """Remove it; refused while something is in it."""
        self._sender.send(transport.Call("DELETE", f"/departments/{transport.segment(ref)}"))

    def list_projects(self, **query: Unpack[queries.ProjectQuery]) -> base.Page[projects.ProjectView]:
        """Projects, with where they stand."""
        return self._get("/projects", base.Page[projects.ProjectView], query)

    def create_project(self, new: projects.ProjectNew) -> projects.ProjectView:
        """A new one."""
        return self._ask(transport.Call("POST", "/projects", body=new), projects.ProjectView)

    def get_project(self, ref: str) -> projects.ProjectView:
        """One, by its name or id."""
        return self._get(f"/projects/{transport.segment(ref)}", projects.ProjectView)

    def update_project(self, ref: str, change: projects.QueueUpdate) -> projects.ProjectView:
        """Change its terms; what is left out stays."""
        call = transport.Call("PATCH", f"/projects/{transport.segment(ref)}", body=change)
        return self._ask(call, projects.ProjectView)

    def preview_project(self, ref: str, change: projects.QueueUpdate) -> queue.QueuePreview:
        """What other terms of a project would do; nothing is changed."""
        return self._preview(f"/projects/{transport.segment(ref)}", change)

    def delete_project(self, ref: str) -> None:
        """Remove it; refused while something is in it."""
        self._sender.send(transport.Call("DELETE", f"/projects/{transport.segment(ref)}"))

    # Nodes and devices

    def list_nodes(self, **query: Unpack[queries.NodeQuery]) -> base.Page[nodes.NodeView]:
        """Nodes."""
        return self._get("/nodes", base.Page[nodes.NodeView], query)

    def get_node(self, ref: str) -> nodes.NodeView:
        """One, by its id."""
        return self._get(f"/nodes/{transport.segment(ref)}", nodes.NodeView)

    def list_devices(self, **query: Unpack[queries.DeviceQuery]) -> base.Page[nodes.DeviceView]:
        """Devices, with who holds them."""
        return self._get("/devices", base.Page[nodes.DeviceView], query)

    def get_device_map(self) -> nodes.DeviceMap:
        """All devices in columns: small and quick, however many there are."""
        return self._get("/devices/map", nodes.DeviceMap)

    def cordon(self, target: str) -> nodes.Cordon:
        """Let nothing new start on a node or device (a UUID, an index, or `node/index`)."""
        call = transport.Call("POST", f"/cordons/{_target(target)}", is_repeatable=True)
        return self._ask(call, nodes.Cordon)

    def uncordon(self, target: str) -> None:
        """Let it take work again."""
        self._sender.send(transport.Call("DELETE", f"/cordons/{_target(target)}"))

    # What is kept

    def list_events(self, **query: Unpack[queries.EventQuery]) -> base.Page[records.Event]:
        """What happened, the newest first."""
        return self._get("/events", base.Page[records.Event], query)

    def stream_events(self, **query: Unpack[queries.EventFilter]) -> Iterator[records.Event]:
        """What happens, for ever. Comes back if the connection breaks; without `after`: what is new from now on."""
        asked: dict[str, Any] = {**query}  # Any: as the query's values
        after = asked.pop("after", None)
        if after is None:
            # Asked for now, so that a stream that breaks before its first event still loses none.
            newest = self.list_events(limit=1).items
            after = newest[0].sequence if newest else 0
        call = transport.Call("GET", "/events/stream", query=transport.pairs(asked))
        return streams.follow(self._sender, call, records.Event, last=str(after))

    def list_receipts(self, **query: Unpack[queries.ReceiptQuery]) -> base.Page[workloads.Receipt]:
        """What evictions left behind, the newest first."""
        return self._get("/receipts", base.Page[workloads.Receipt], query)

    def list_workload_usage(self, **query: Unpack[queries.UsageQuery]) -> base.Page[records.Usage]:
        """GPU time of each workload, of those that are gone too."""
        return self._get("/usage/workloads", base.Page[records.Usage], query)

    def list_project_usage(self, **query: Unpack[queries.Between]) -> base.Page[records.Usage]:
        """GPU time of each project, of all time or between two instants."""
        return self._get("/usage/projects", base.Page[records.Usage], _between(query))

    def get_usage_series(self, **query: Unpack[queries.UsageSeriesQuery]) -> series.UsageSeries:
        """GPU hours over time. `start` and `end`: instants; left out: the last week."""
        return self._get("/usage/series", series.UsageSeries, _between(query))

    def audit_ledger(self) -> records.LedgerAudit:
        """Whether what the ledger says is held is what pods hold and devices offer."""
        return self._get("/ledger", records.LedgerAudit)

    def list_audit_records(self, **query: Unpack[queries.AuditQuery]) -> base.Page[records.AuditRecord]:
        """Who did what, the newest first."""
        return self._get("/audit", base.Page[records.AuditRecord], query)

    def _get(self, path: str, model: type[Model], query: Mapping[str, Any] | None = None) -> Model:  # Any: its values
        return self._ask(transport.Call("GET", path, query=transport.pairs(query or {})), model)

    def _preview(self, path: str, change: projects.QueueUpdate) -> queue.QueuePreview:
        call = transport.Call("PATCH", path, query=[("dryRun", "true")], body=change)
        return self._ask(call, queue.QueuePreview)

    def _tell(self, ref: str, wish: str, project: str | None) -> workloads.WorkloadDetail:
        call = transport.Call(
            "POST", _workload(ref, wish), query=transport.pairs({"project": project}), is_repeatable=True
        )
        return self._ask(call, workloads.WorkloadDetail)

    def _ask(self, call: transport.Call, model: type[Model]) -> Model:
        answer = self._sender.send(call)
        try:
            return model.model_validate_json(answer.content)
        except ValueError as error:
            raise errors.AliquotError(
                f"the answer of {self._sender.url} is not what this version of the client knows", code="not-aliquot"
            ) from error


def _workload(ref: str, *steps: str) -> str:
    return "/".join(["/workloads", transport.segment(ref), *steps])


def _between(query: Mapping[str, Any]) -> dict[str, Any]:  # Any: the query's values
    """A query whose `start` and `end` are `from` and `to` on the wire: `from` is a word of Python."""
    named = {"start": "from", "end": "to"}
    instants = {named[name]: value.isoformat() for name, value in query.items() if name in named and value is not None}
    return {name: value for name, value in query.items() if name not in named} | instants


def _target(text: str) -> str:
    return "/".join(transport.segment(step) for step in text.split("/"))
