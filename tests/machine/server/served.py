"""A real server in the background for a test: started and stopped through the command line, as a user would."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from aliquot import client
from aliquot.core import errors
from aliquot.wire import workloads as shapes

GUARD_SECONDS = 120.0
"""Against a test that hangs; no test is judged by it."""
ALIQUOT = str(pathlib.Path(sys.executable).with_name("aliquot"))
Value = TypeVar("Value")


def wait_for(what: str, ask: Callable[[], Value | None]) -> Value:
    """Ask until there is an answer."""
    until = time.monotonic() + GUARD_SECONDS
    while time.monotonic() < until:
        answer = ask()
        if answer is not None and answer is not False:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


@dataclass(frozen=True, slots=True)
class Served:
    """A server and how to reach it."""

    data: pathlib.Path
    client: client.Client

    def run(
        self,
        *words: str,
        more: Mapping[str, str] | None = None,
        cwd: pathlib.Path | None = None,
        input: str | None = None,  # noqa: A002 - what subprocess.run calls it
    ) -> subprocess.CompletedProcess[str]:
        """The command line, as a user in a shell has it; `more` in its environment."""
        return subprocess.run(
            [ALIQUOT, *words],
            env={**environment(self.data), **(more or {})},
            cwd=cwd,
            input=input,
            capture_output=True,
            text=True,
            timeout=GUARD_SECONDS,
            check=False,
        )

    def submit(self, name: str, command: str, **fields: object) -> shapes.WorkloadDetail:
        """A shell command as a workload."""
        definition = shapes.Definition.model_validate({"name": name, "command": ["/bin/sh", "-c", command], **fields})
        return self.client.submit_workload(definition)

    def wait_phase(self, name: str, *phases: str) -> shapes.WorkloadDetail:
        """Wait until the workload is in one of these phases."""

        def ask() -> shapes.WorkloadDetail | None:
            found = self.client.get_workload(name)
            return found if found.phase in phases else None

        return wait_for(f"{name} to be {' or '.join(phases)}", ask)

    def log(self, name: str) -> list[str]:
        """All lines of the first replica so far."""
        return [line.text for line in self.client.read_logs(name).lines]

    @property
    def pid(self) -> int:
        """The server's process."""
        return int(json.loads((self.data / "server.json").read_text())["pid"])


def environment(data: pathlib.Path) -> dict[str, str]:
    """The caller's environment, pointed at the data folder of the test."""
    return {**os.environ, "ALIQUOT_DATA": str(data), "XDG_STATE_HOME": str(data.parent / "state"), "COLUMNS": "120"}


def start(data: pathlib.Path, *options: str, more: Mapping[str, str] | None = None) -> Served:
    """`aliquot up --detach` on a free port, with `more` in its environment."""
    given = ("--port", "0", *options)
    done = subprocess.run(
        [ALIQUOT, "up", "--data", str(data), "--detach", *given],
        env={**environment(data), **(more or {})},
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((data / "server.json").read_text())
    return Served(data, client.Client(found["url"], (data / "token").read_text().strip()))


def stop(served: Served) -> None:
    """End all that runs, then the server; one that has ended is no error."""
    if not (served.data / "server.json").exists():
        return
    for workload in served.client.list_workloads(limit=500, phase="unfinished").items:
        served.client.stop_workload(workload.id)
    wait_for("all to end", lambda: served.client.list_workloads(phase="unfinished").total == 0)
    pid = served.pid
    served.client.close()
    os.kill(pid, signal.SIGTERM)
    wait_for("the server to end", lambda: not (served.data / "server.json").exists())


@contextmanager
def serving(data: pathlib.Path, *options: str, more: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A server for as long as this is open."""
    served = start(data, *options, more=more)
    try:
        yield served
    finally:
        stop(served)


def is_answering(served: Served) -> bool:
    """Whether the server answers now."""
    try:
        served.client.health_check()
    except errors.Unavailable:
        return False
    return True
