"""The server: one process for one data folder, which runs the loop and answers the API.

Promises: a second server for the same folder is refused; what cannot work (a network file system, a port in
use, devices that do not exist) is refused before anything is changed; when it ends, jobs run on
and are found by the next one.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog
import uvicorn

import aliquot
from aliquot.api import app as api
from aliquot.api import services as api_services
from aliquot.app import clock, logs, settings
from aliquot.core import errors
from aliquot.core.model import Policy
from aliquot.db import store as db
from aliquot.local import cluster, devices, host, limits, pods, processes, runner, starting
from aliquot.local.folders import Folders
from aliquot.service import (
    access,
    audit,
    changes,
    departments,
    device_map,
    events,
    ledger,
    loop,
    mirror,
    nodes,
    overview,
    previews,
    projects,
    queue,
    queues,
    receipts,
    series,
    server,
    terminals,
    timelines,
    usage,
    watch,
    workloads,
)
from aliquot.service import logs as service_logs

log = structlog.get_logger()

GRACEFUL_SECONDS = 3
"""How long open streams have to end when the server is told to."""
FOLDER_SECONDS = 2
"""How often the server looks whether its data folder is still there."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What a server says once it answers."""

    url: str
    pid: int
    data: str
    sign_in: str
    devices: str
    is_simulated: bool
    has_devices: bool
    guarantee: str
    limits: str


def serve(chosen: settings.Settings, *, on_ready: Callable[[Ready], None]) -> None:
    """Run until told to end (SIGTERM, SIGINT). Raises AliquotError where it cannot start."""
    logs.configure()
    host.refuse_network_file_system(chosen.data)
    folders = Folders(chosen.data)
    try:
        folders.prepare()
    except OSError as error:
        raise errors.InvalidInput(f"data: {chosen.data} cannot be used: {error}", field="data") from error
    with _only_server(folders), _listener(chosen) as listener:
        asyncio.run(_Server(chosen, folders, listener=listener).run(on_ready))


class _Server:
    """One run of the server."""

    def __init__(self, chosen: settings.Settings, folders: Folders, *, listener: socket.socket) -> None:
        self._chosen = chosen
        self._folders = folders
        self._listener = listener
        self._clock = clock.RealClock()
        self._ids = clock.RandomIds()
        self._started = self._clock.now()
        self._pulse = loop.Pulse()
        self._lock_inode = folders.lock.stat().st_ino
        self._machine: cluster.LocalCluster | None = None
        self._here: asyncio.AbstractEventLoop | None = None
        port = listener.getsockname()[1]
        self._url = f"http://{_shown_host(chosen.host)}:{port}"

    async def run(self, on_ready: Callable[[Ready], None]) -> None:
        """Open everything, tell that it is ready, serve until the end, close everything."""
        self._here = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            store = db.open_store(self._folders.database)
            stack.callback(store.close)
            means = limits.probe(_cgroup_name(self._folders.data))
            found = devices.discover(
                self._chosen.devices,
                machine=host.read().machine,
                only=self._chosen.only,
                foreign=self._chosen.foreign,
            )
            stack.callback(found.close)
            running = runner.Runner(self._folders.pods, limits_here=means, on_change=lambda _: self._wake())
            stack.callback(running.close)
            machine = self._machine = cluster.LocalCluster(
                store.patient,
                self._clock,
                runner=running,
                found=found,
                folders=self._folders,
                config=self._cluster_config(means),
            )
            watching = watch.Watch(store, machine, mirror.Mirror(store), clock=self._clock)
            built = self._services(store, machine, machine_pods=pods.LocalPods(running), watching=watching)
            await queues.ensure_default(store, clock=self._clock, ids=self._ids)
            token = _token(self._folders.token, self._ids)
            await built.access.ensure_token(token)
            await machine.snapshot()
            await stack.enter_async_context(_looping(machine, self._policy(), self._clock, pulse=self._pulse))
            await stack.enter_async_context(_running(watching.run()))
            code, _ = await built.access.open_link(access.LOOP)
            ready = Ready(
                self._url,
                os.getpid(),
                str(self._folders.data),
                f"{self._url}/sign-in?code={code}",
                found.describe(),
                is_simulated=found.is_simulated,
                has_devices=not isinstance(found, devices.NoDevices),
                guarantee=found.guarantee,
                limits=means.describe(),
            )
            await self._answer(built, lambda: on_ready(ready))

    def _wake(self) -> None:
        """Something happened to a pod; called from the runner's thread."""
        if self._machine is not None and self._here is not None and not self._here.is_closed():
            self._here.call_soon_threadsafe(self._machine.wake)

    def _cluster_config(self, means: limits.Limits) -> cluster.Config:
        return cluster.Config(
            node=host.read().hostname,
            person=starting.Person.of(os.getuid()),
            limits=means.describe(),
            least_free_bytes=self._chosen.least_free_mib << 20,
        )

    def _services(
        self, store: db.SqlStore, machine: cluster.LocalCluster, *, machine_pods: pods.LocalPods, watching: watch.Watch
    ) -> api_services.Services:
        times, ids = self._clock, self._ids
        seen = watching.mirror
        facts = server.ServerFacts(
            version=aliquot.__version__,
            url=self._url,
            pid=os.getpid(),
            data_directory=str(self._folders.data),
            user=starting.Person.of(os.getuid()).name,
            started=self._started,
        )
        config = workloads.Config(policy=self._policy(), data_directory=str(self._folders.data))
        return api_services.Services(
            access=access.Access(store, times, ids),
            audit=audit.Audit(store),
            changes=changes.Changes(store, machine, clock=times, facts=facts),
            departments=departments.Departments(store, machine, clock=times, ids=ids),
            device_map=device_map.DeviceMap(seen, machine, clock=times),
            events=events.Events(store),
            ledger=ledger.Ledger(store),
            logs=service_logs.Logs(store, machine_pods, clock=times),
            nodes=nodes.Nodes(store, machine, seen, clock=times, ids=ids),
            overview=overview.Overview(seen, machine, watching, clock=times, facts=facts, pulse=self._pulse),
            previews=previews.Previews(store, machine, clock=times, policy=self._policy()),
            projects=projects.Projects(store, machine, clock=times, ids=ids),
            queue=queue.Queue(store, machine, seen, clock=times, policy=self._policy()),
            receipts=receipts.Receipts(store),
            series=series.Series(store, clock=times),
            server=server.Server(store, machine, facts=facts),
            terminals=terminals.Terminals(store, machine_pods, clock=times, ids=ids),
            timelines=timelines.Timelines(store, machine, clock=times),
            usage=usage.Usage(store, clock=times),
            workloads=workloads.Workloads(store, machine, clock=times, ids=ids, config=config),
        )

    def _policy(self) -> Policy:
        return self._chosen.policy

    def _api_config(self) -> api.ApiConfig:
        return api.ApiConfig(hosts=frozenset({self._chosen.host, socket.gethostname(), socket.getfqdn()}))

    async def _answer(self, built: api_services.Services, on_started: Callable[[], None]) -> None:
        application = api.create_app(built, config=self._api_config())
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=GRACEFUL_SECONDS,
        )
        serving = _Uvicorn(config, on_exit=lambda: api.end_streams(application))
        task = asyncio.create_task(serving.serve(sockets=[self._listener]))
        while not serving.started and not task.done():
            await asyncio.sleep(0.01)
        if serving.started:
            _write_private(self._folders.server, json.dumps(self._address()))
            log.info("the server answers", url=self._url, data=str(self._folders.data))
            on_started()
        watching = asyncio.create_task(self._watch_folder(serving))
        try:
            await task
        finally:
            watching.cancel()
            self._folders.server.unlink(missing_ok=True)
            log.info("the server ends; jobs run on")

    async def _watch_folder(self, serving: uvicorn.Server) -> None:
        """End when the data folder is no longer the one that is locked: what is written there would be for nobody."""
        while self._is_ours():
            await asyncio.sleep(FOLDER_SECONDS)
        log.error("the data folder is gone or was replaced; the server ends", data=str(self._folders.data))
        serving.should_exit = True

    def _is_ours(self) -> bool:
        try:
            return self._folders.lock.stat().st_ino == self._lock_inode
        except OSError:
            return False

    def _address(self) -> dict[str, object]:
        return {
            "url": self._url,
            "pid": os.getpid(),
            "dataDirectory": str(self._folders.data),
            "version": aliquot.__version__,
            "boot": processes.boot_id(),
        }


class _Uvicorn(uvicorn.Server):
    """Ends open streams as soon as it is told to end; it would wait for them otherwise.

    Its own way with signals is to raise them again at the end, which would kill the process before it has cleaned up.
    """

    def __init__(self, config: uvicorn.Config, *, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the server, a second one at once."""
        here = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            here.add_signal_handler(number, self._end, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                here.remove_signal_handler(number)

    def _end(self, number: signal.Signals) -> None:
        self.handle_exit(number, None)
        self._on_exit()


@contextlib.asynccontextmanager
async def _looping(
    machine: cluster.LocalCluster, policy: Policy, times: clock.RealClock, *, pulse: loop.Pulse
) -> AsyncIterator[None]:
    """The scheduler turns while this is open."""

    def on_fault(fault: Exception) -> None:
        log.error("a cycle failed; the next one starts from what is stored", why=str(fault), exc_info=fault)

    listeners = pulse.listeners(on_fault)
    async with _running(loop.run(machine, loop.Planner(policy), times, listeners=listeners)):
        yield


@contextlib.asynccontextmanager
async def _running(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """This goes on while this is open."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.contextmanager
def _only_server(folders: Folders) -> Iterator[None]:
    """Hold the folder's lock. Raises Conflict if another server has it."""
    with folders.lock.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise errors.Conflict(
                f"another server already uses {folders.data}; `aliquot status` shows it", code="already-running"
            ) from error
        yield


@contextlib.contextmanager
def _listener(chosen: settings.Settings) -> Iterator[socket.socket]:
    """A listening socket. Raises InvalidInput, naming the port, if it cannot be had."""
    family = socket.AF_INET6 if ":" in chosen.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((chosen.host, chosen.port))
        except (OSError, OverflowError) as error:
            field = "host" if isinstance(error, socket.gaierror) else "port"
            raise errors.InvalidInput(
                f"{field}: cannot listen on {chosen.host} port {chosen.port}: {error}",
                field=field,
                valid=("a port that nothing else listens on", "0 for any free port"),
            ) from error
        yield listener


def _token(path: Path, ids: clock.RandomIds) -> str:
    """The administrator's token: made at the first start or where the file holds none, readable by its owner alone."""
    token = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""
    if not token or not token.isascii() or not token.isprintable():
        token = ids.secret()
        _write_private(path, token)
    path.chmod(0o600)
    return token


def _write_private(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    draft.rename(path)


def _cgroup_name(data: Path) -> str:
    """One parent group for each data folder, so that two servers of one user keep apart."""
    return f"aliquot-{data.stat().st_ino}"


def _shown_host(host_name: str) -> str:
    return f"[{host_name}]" if ":" in host_name else {"0.0.0.0": "127.0.0.1"}.get(host_name, host_name)


def main() -> None:
    """The server in the background: settings from the environment, what it says to the descriptor in argv[1]."""
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as door:

        def tell(message: dict[str, object]) -> None:
            with contextlib.suppress(BrokenPipeError):
                door.write(json.dumps(message))
                door.close()

        try:
            serve(settings.read(), on_ready=lambda ready: tell({"ready": asdict(ready)}))
        except errors.AliquotError as error:
            fault = {
                "message": error.message,
                "field": error.field,
                "valid": error.valid,
                "code": error.stable_code,
                "isInput": isinstance(error, errors.InvalidInput),
            }
            log.error("the server cannot start", why=error.message)
            tell({"fault": fault})
            sys.exit(1)


if __name__ == "__main__":
    main()
