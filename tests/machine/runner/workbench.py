"""Real pods for tests: started in a folder of the test's own, waited for by event, and all gone when the test ends."""

import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from aliquot.local import limits, logs, processes, records
from aliquot.local.launch import Launch, Observation
from aliquot.local.runner import Runner

GUARD_SECONDS = 60.0
"""No wait of these tests is a measurement: whatever takes this long hangs."""


def is_over(pid: int) -> bool:
    """Whether no living process has this pid. A zombie holds nothing; whoever adopted it may be slow to bury it."""
    process = processes.find(pid)
    return process is None or not process.is_alive


class Workbench:
    """A runner, how to start pods on it, and how to wait for them."""

    def __init__(self, folder: pathlib.Path, limits_here: limits.Limits | None = None) -> None:
        self.folder = folder
        self.limits = limits_here or limits.Limits()
        self.runner = self._open()

    def start(self, script: str, *, pod: str = "p1", **settings: Any) -> str:  # Any: the fields of Launch
        """Start a shell script as a pod, and return the pod's id."""
        self.runner.start(self.launch("sh", "-c", script, pod=pod, **settings))
        return pod

    def start_python(self, program: str, *, pod: str = "p1", **settings: Any) -> str:  # Any: the fields of Launch
        """Start a Python program as a pod, and return the pod's id."""
        self.runner.start(self.launch(sys.executable, "-I", "-S", "-c", program, pod=pod, **settings))
        return pod

    def launch(self, *argv: str, pod: str = "p1", **settings: Any) -> Launch:  # Any: the fields of Launch
        """A launch of this command, in the test's folder, with the environment of the test."""
        settings = {"folder": self.folder, "environment": dict(os.environ), **settings}
        return Launch(pod=pod, workload="w1", argv=argv, **settings)

    def see(self, pod: str = "p1") -> Observation:
        """What the runner says of the pod now."""
        return self.runner.observe()[pod]

    def until(self, state: str, pod: str = "p1") -> Observation:
        """Wait until the pod is in that state (or, asked for `running`, beyond it)."""
        accepted = {"running", "ended"} if state == "running" else {state}
        self.wait_for(lambda: self.see(pod).state in accepted)
        return self.see(pod)

    def wait_for(self, is_so: Callable[[], object]) -> None:
        """Wait until this is so, looking whenever the runner says that something changed, and now and then."""
        guard = time.monotonic() + GUARD_SECONDS
        while not is_so():
            assert time.monotonic() < guard, f"waited in vain; seen: {self.runner.observe()}; {self.complaints()}"
            self.runner.wait(0.05)

    def text(self, pod: str = "p1", stream: str = "stdout") -> str:
        """What the pod wrote to a stream."""
        lines = [line for line in self.lines(pod) if line.stream == stream]
        return "".join(line.text + ("" if line.is_partial else "\n") for line in lines)

    def lines(self, pod: str = "p1") -> list[logs.LogLine]:
        """All that is in the pod's log."""
        found: list[logs.LogLine] = []
        offset = 0
        while True:
            chunk = logs.read(self.runner.folder(pod), offset=offset)
            if not chunk.lines:
                return found
            assert chunk.next_offset > offset
            found += chunk.lines
            offset = chunk.next_offset

    def wait_for_text(self, text: str, pod: str = "p1") -> None:
        """Wait until the pod wrote this."""
        self.wait_for(lambda: text in self.text(pod))

    def supervisor(self, pod: str = "p1") -> int:
        """The pid of the pod's supervisor, once it claimed the pod."""
        folder = str(self.runner.folder(pod))
        self.wait_for(lambda: records.exists(folder, records.CLAIM))
        claim = records.read(folder, records.CLAIM)
        assert claim is not None
        return int(claim["pid"])

    def kill_supervisor(self, pod: str = "p1") -> None:
        """`kill -9` of the pod's supervisor."""
        os.kill(self.supervisor(pod), signal.SIGKILL)

    def reopen(self) -> None:
        """What a restart of the server does to the runner."""
        self.runner.close()
        self.runner = self._open()

    def _open(self) -> Runner:
        # Small, because some tests have a small disk.
        return Runner(self.folder / "pods", limits_here=self.limits, min_free_bytes=4096)

    def complaints(self) -> str:
        """What supervisors wrote to their standard error."""
        files = (self.folder / "pods").glob(f"*/{records.SUPERVISOR_LOG}")
        return "".join(file.read_text() for file in files)

    def close(self) -> None:
        """End everything, and see that nothing is left: no process, no group, no complaint."""
        folders = list((self.folder / "pods").glob("[!.]*/launch.json"))
        tokens = [(records.read(str(file.parent), records.LAUNCH) or {})["token"] for file in folders]
        pods = [file.parent.name for file in folders]
        for pod in pods:
            self.runner.end(pod, grace=timedelta(0))
        for pod in pods:
            self.until("ended", pod)
        complaints = self.complaints()
        self.runner.close()
        assert not [process.pid for token in tokens for process in processes.marked(token)]
        assert not [path for path in self.limits.parents.values() if pathlib.Path(path).exists()]
        assert complaints == ""
