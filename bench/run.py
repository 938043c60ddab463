"""What the project promises in seconds, measured on the running product. `make bench` runs this.

Each figure stands beside a plain one of the same machine and the same minute, because machines differ and are noisy:
the ratio is what travels. A promise that is missed makes the exit code 1.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import engine

from aliquot import client
from aliquot.app import up
from aliquot.client import discovery
from aliquot.wire import workloads as shapes

ALIQUOT = str(pathlib.Path(sys.executable).with_name("aliquot"))


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians in seconds: ours, the plain one beside it, and what is promised for ours (None: nothing)."""

    name: str
    ours: float
    plain_name: str
    plain: float
    promised: float | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the promise holds."""
        return self.promised is None or self.ours < self.promised


def main() -> int:
    """Measure the product, then the engine by itself. 1 if a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="how often each is measured")
    parser.add_argument("--part", choices=("product", "engine"), help="only the running product, or the engine alone")
    asked = parser.parse_args()
    codes = []
    if asked.part != "engine":
        codes.append(measure_product(asked.runs))
        print()
    if asked.part != "product":
        codes.append(engine.main([]))
    return max(codes)


def measure_product(runs: int) -> int:
    """Measure the running product, print a table, say whether every promise is kept."""
    figures = [measure_help(runs)]
    with serving() as asked:
        figures += [measure_start(asked, runs), measure_kill(asked, runs)]
    width = max(len(figure.name) for figure in figures)
    print(f"{'':{width}}  {'ours':>9}  {'promise':>9}  {'plain':>9}  {'ratio':>6}  plain is")
    for figure in figures:
        promised = "-" if figure.promised is None else f"{figure.promised * 1000:.0f} ms"
        kept = "" if figure.is_kept else "  MISSED"
        print(
            f"{figure.name:{width}}  {figure.ours * 1000:>6.0f} ms  {promised:>9}  {figure.plain * 1000:>6.0f} ms"
            f"  {figure.ours / figure.plain:>6.1f}  {figure.plain_name}{kept}"
        )
    return 0 if all(figure.is_kept for figure in figures) else 1


def measure_help(runs: int) -> Figure:
    """How long a command line takes that does nothing."""
    ours = median(runs, lambda: subprocess.run([ALIQUOT, "--help"], check=True, stdout=subprocess.DEVNULL))
    plain = median(runs, lambda: subprocess.run([sys.executable, "-c", "import click"], check=True))
    return Figure("aliquot --help", ours, "python -c 'import click'", plain, 0.2)


def measure_start(asked: client.Client, runs: int) -> Figure:
    """From submission to the first line that the job writes."""
    spans = []
    for number in range(runs):
        begin = time.time()
        # The job says itself when it began, so that no polling is in the figure.
        asked.submit_workload(definition(f"start-{number}", "date +%s.%N"))
        spans.append(float(first_line(asked, f"start-{number}")) - begin)
    plain = median(
        runs, lambda: subprocess.run(["/bin/sh", "-c", "date +%s.%N"], check=True, stdout=subprocess.DEVNULL)
    )
    return Figure("submit to running", statistics.median(spans), "sh -c date", plain, 1.0)


def measure_kill(asked: client.Client, runs: int) -> Figure:
    """From the death of a job's process to its device being free."""
    spans = []
    for number in range(runs):
        name = f"kill-{number}"
        asked.submit_workload(definition(name, "exec sleep 600"))
        pid = until(lambda name=name: next((pod.pid for pod in asked.get_workload(name).pods if pod.started), None))  # type: ignore[misc]  # bound early
        begin = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        until(lambda: asked.list_devices().items[0].held_milli_gpus == 0)
        spans.append(time.perf_counter() - begin)
    return Figure(
        "device free after a kill", statistics.median(spans), "sleep killed and waited for", killed(runs), 2.0
    )


def killed(runs: int) -> float:
    """The plain figure: the kernel's own time to end a process."""

    def once() -> None:
        process = subprocess.Popen(["sleep", "600"])
        process.kill()
        process.wait()

    return median(runs, once)


def definition(name: str, command: str) -> shapes.Definition:
    """A job that holds a whole device."""
    return shapes.Definition(name=name, command=["/bin/sh", "-c", command], gpu="1")


def first_line(asked: client.Client, name: str) -> str:
    """The first line that a job wrote, once it is there."""
    lines = until(lambda: asked.read_logs(name).lines)
    return str(lines[0].text)


def until(ask: Callable[[], object]) -> object:
    """Ask, often, until there is an answer."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.005)
    raise SystemExit("bench: the server did not do what was asked within a minute")


def median(runs: int, work: Callable[[], object]) -> float:
    """The median time of `work`, after one run that does not count."""
    work()
    spans = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        spans.append(time.perf_counter() - begin)
    return statistics.median(spans)


@contextlib.contextmanager
def serving() -> Iterator[client.Client]:
    """A server with one simulated device, for as long as this is open."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        os.environ["ALIQUOT_DATA"] = f"{folder}/data"
        up.up(up.Options(port=0, devices="1xH100", is_detached=True))
        found = discovery.find(os.environ)
        try:
            with client.Client(found.url, found.token) as asked:
                yield asked
        finally:
            subprocess.run([ALIQUOT, "down"], check=True)


if __name__ == "__main__":
    sys.exit(main())
