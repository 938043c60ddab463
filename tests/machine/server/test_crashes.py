"""The server dies by SIGKILL, again and again, at every step between intent, start, record and exit.

Afterwards all jobs are there, none ran twice, no line is lost, and the ledger is equal to what was held.
"""

import multiprocessing
import os
import pathlib
import random
import socket
import threading
import time

import pytest

from aliquot import client
from aliquot.core import errors
from aliquot.wire import workloads as shapes
from tests.machine.server import mortal, served

JOBS = 20
"""These run over many deaths. One that is over at once comes with each death, so that there is a step to die at."""
LINES = 100
DEATHS = int(os.environ.get("ALIQUOT_TEST_DEATHS", "36"))
"""`make test` has some of them; `make deaths` has the 200 that the project promises."""
LONGEST_LIFE = 3.0
"""A server that does not come across its step by then is killed where it is."""
COUNT = (
    'echo run >>"$ALIQUOT_CHECKPOINT_DIR/runs"; i=0; '
    "while [ $i -lt {lines} ]; do i=$((i+1)); echo line $i; sleep 0.05; done"
)

# Forked from one that has imported everything, a server is there in a tenth of the time.
CONTEXT = multiprocessing.get_context("forkserver")


def jobs() -> dict[str, str]:
    """The commands by name, in the order in which they are submitted."""
    every = {}
    for number in range(DEATHS):
        every[f"short-{number}"] = COUNT.format(lines=1)
        if number % max(1, DEATHS // JOBS) == 0 and len(every) - number <= JOBS:
            every[f"long-{number}"] = COUNT.format(lines=LINES)
    return every


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Submitter(threading.Thread):
    """Submits jobs while servers come and go, when it may: each again and again, with its key, until it is taken."""

    def __init__(self, asked: client.Client) -> None:
        super().__init__(daemon=True)
        self.asked = asked
        self._may = threading.Semaphore(0)

    def allow(self) -> None:
        """One more may be submitted."""
        self._may.release()

    def run(self) -> None:
        """Submit all of them, the long ones spread among the short."""
        for name, command in jobs().items():
            self._may.acquire()
            definition = shapes.Definition(name=name, command=["/bin/sh", "-c", command], gpu="0.5")
            while True:
                try:
                    self.asked.submit_workload(definition, key=name)
                    break
                except errors.Unavailable:
                    time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_jobs_survive_every_death_of_the_server(tmp_path: pathlib.Path) -> None:
    CONTEXT.set_forkserver_preload(["tests.machine.server.mortal"])
    data, port, dice = tmp_path / "data", free_port(), random.Random(7)
    (tmp_path / "data").mkdir()
    (data / "token").write_text("a-token-for-this-test-only\n")
    submitter = Submitter(client.Client(f"http://127.0.0.1:{port}", "a-token-for-this-test-only"))
    submitter.start()
    deaths = dict.fromkeys((*mortal.STEPS, "late"), 0)
    for number in range(DEATHS):
        for _ in range((number + 1) * len(jobs()) // DEATHS - number * len(jobs()) // DEATHS):
            submitter.allow()
        step = mortal.STEPS[number % len(mortal.STEPS)]
        process = CONTEXT.Process(target=mortal.live, args=(str(data), port, step, dice.choice((1, 1, 2, 3))))
        process.start()
        process.join(LONGEST_LIFE)
        deaths["late" if process.is_alive() else step] += 1
        process.kill()
        process.join()

    with served.serving(data, "--devices", "4xH100", "--port", str(port)) as server:
        submitter.join()
        submitter.asked.close()
        for name in jobs():
            server.wait_phase(name, "succeeded", "failed", "stopped")
        check(server)
    assert all(deaths[step] for step in mortal.STEPS), deaths


def check(server: served.Served) -> None:
    """All jobs are there and done, each ran once, no line is lost, and the ledger adds up."""
    found = server.client.list_workloads(limit=500).items
    audit = server.client.audit_ledger()
    assert sorted(workload.name for workload in found) == sorted(jobs())
    assert {(workload.phase, workload.attempt) for workload in found} == {("succeeded", 1)}
    for workload in found:
        runs = (server.data / "workloads" / workload.id / "checkpoint" / "runs").read_text().split()
        assert runs == ["run"], workload.name
        lines = LINES if workload.name.startswith("long") else 1
        assert server.log(workload.name) == [f"line {number}" for number in range(1, lines + 1)], workload.name
    assert (audit.is_balanced, audit.open_entries, audit.faults) == (True, 0, [])
