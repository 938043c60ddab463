"""Average completion times of published traces under our policies, beside FIFO that skips what does not fit.

`make bench-queueing` runs this; the traces lie beside the checkout (`data/queueing` of the shared folder). The
reference is computed here, in the plainest way: rigid gangs, nodes of 8 GPUs, tightest fit, no evictions, no overhead.
For the two traces of ElasticFlow it must meet the known values to a second. Ours runs under the same conditions:
evictions cost nothing and no work is lost. Nobody is told the run times before they are over.
"""

import argparse
import heapq
import os
import pathlib
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from aliquot.app import simulate
from aliquot.sim import traces
from aliquot.sim.traces import Trace
from aliquot.wire import simulations

FOLDER = (
    pathlib.Path(os.environ.get("ALIQUOT_SHARED", pathlib.Path(__file__).parents[2] / "shared")) / "data" / "queueing"
)
POLICIES = ("fifo-greedy", "least-attained-service")
PER_NODE = 8


@dataclass(frozen=True, slots=True)
class Case:
    """A trace, where it runs, and the published average of FIFO that skips what does not fit, if there is one."""

    file: str
    kind: simulations.Format
    nodes: int
    published: int | None = None


CASES = {
    "cluster06": Case("cluster06.csv", "itp", 13, 87_047),
    "cluster03": Case("cluster03.csv", "itp", 22, 172_481),
    "muri1": Case("muri_trace1.csv", "muri", 8),
    "muri2": Case("muri_trace2.csv", "muri", 8),
}


def main() -> int:
    """Measure, print a table, say whether least attained service beats the reference on every trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", default=",".join(CASES), help="of " + ", ".join(CASES))
    names = parser.parse_args().traces.split(",")
    if not FOLDER.is_dir():
        print("bench-queueing: the public traces are not beside the checkout, nothing is measured")
        return 0
    titles = ("trace", "jobs", "GPUs", "FIFO+greedy", *POLICIES, "ratio", "p99 ratio", "evictions", "CPU s", "MiB")
    print("average completion time in seconds; the ratios are of least-attained-service to FIFO+greedy")
    print("  ".join(f"{title:>12}" for title in titles))
    missed = [name for name in names if not _measure(name, CASES[name])]
    print(f"least-attained-service is not better on: {', '.join(missed)}" if missed else "better on every trace")
    return 1 if missed else 0


def _measure(name: str, case: Case) -> bool:
    begin = time.process_time()
    trace = traces.read(FOLDER / case.file, case.kind)  # type: ignore[arg-type]  # no case here is a scenario
    reference = skipping_fifo(trace, case.nodes)
    average = sum(reference) / len(reference)
    if case.published is not None and abs(average - case.published) > 1:
        raise SystemExit(f"bench-queueing: the reference gives {average:.0f} on {name}, published is {case.published}")
    runs = [_run(case, policy) for policy in POLICIES]
    ours = runs[-1].completion
    assert ours is not None
    ratio, tail = ours.mean / average, ours.p99 / reference[int(0.99 * len(reference))]
    cells = (
        name,
        f"{len(trace.jobs)}",
        f"{case.nodes * PER_NODE}",
        f"{average:.0f}",
        *(f"{run.completion.mean:.0f}" for run in runs if run.completion is not None),
        f"{ratio:.3f}",
        f"{tail:.2f}",
        f"{runs[-1].evictions.workloads}",
        f"{time.process_time() - begin:.0f}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}",
    )
    widths = [12, 12, 12, 12, len(POLICIES[0]), len(POLICIES[1]), *[12] * 5]
    print("  ".join(f"{cell:>{max(12, width)}}" for cell, width in zip(cells, widths, strict=True)), flush=True)
    return ratio < 1


def _run(case: Case, policy: str) -> simulations.Run:
    request = simulations.Request(
        trace=str(FOLDER / case.file),
        format=case.kind,
        nodes=f"{case.nodes}x{PER_NODE}",
        policies=(policy,),
        placement="pack",
    )
    return simulate.run(request, lambda _: None).runs[0]


def skipping_fifo(trace: Trace, nodes: int) -> list[float]:
    """The completion times of FIFO that passes over what does not fit, sorted; jobs wider than the cluster left out."""
    jobs = [job for job in trace.jobs if job.shape.devices <= nodes * PER_NODE]
    free = [PER_NODE] * nodes
    running: list[tuple[float, int, list[tuple[int, int]]]] = []
    waiting: list[int] = []
    found: list[float] = []
    coming = 0
    while coming < len(jobs) or running:
        times = [jobs[coming].at.total_seconds()] if coming < len(jobs) else []
        now = min([*times, *(running[0][:1])]) if running else times[0]
        while running and running[0][0] <= now:
            _, job, places = heapq.heappop(running)
            found.append(now - jobs[job].at.total_seconds())
            for node, devices in places:
                free[node] += devices
        while coming < len(jobs) and jobs[coming].at.total_seconds() <= now:
            waiting.append(coming)
            coming += 1
        waiting = _start(jobs, waiting, free, running, now=now)
    return sorted(found)


def _start(
    jobs: Sequence[traces.TraceJob],
    waiting: list[int],
    free: list[int],
    running: list[tuple[float, int, list[tuple[int, int]]]],
    *,
    now: float,
) -> list[int]:
    """Start what fits, in order; who is left."""
    left = []
    for job in waiting:
        places = _places(free, jobs[job].shape.devices)
        if places is None:
            left.append(job)
            continue
        for node, devices in places:
            free[node] -= devices
        run_time = jobs[job].run_time
        assert run_time is not None
        heapq.heappush(running, (now + run_time.total_seconds(), job, places))
    return left


def _places(free: Sequence[int], devices: int) -> list[tuple[int, int]] | None:
    """Whole free nodes for what fills them, and the tightest node for the rest."""
    whole, rest = divmod(devices, PER_NODE)
    empty = [node for node, count in enumerate(free) if count == PER_NODE]
    if len(empty) < whole:
        return None
    places = [(node, PER_NODE) for node in empty[:whole]]
    if rest:
        fitting = [(count, node) for node, count in enumerate(free) if count >= rest and node not in empty[:whole]]
        if not fitting:
            return None
        places.append((min(fitting)[1], rest))
    return places


if __name__ == "__main__":
    sys.exit(main())
