"""How much of the GPUs gets allocated on the 17 openb workloads, beside what is published (`make bench-openb`).

Columns: our strategies (`fragmentation` is the product's default) and the rules of the FGD paper, as our simulator runs
them on the same arrivals; FGD as published; a bound that nothing can pass. Two promises are judged, and a missed one
makes the exit code 1: `fragmentation` is at least FGD on every workload once pods for all GPUs have come; and where all
pods for 130 % of them wait in a queue that is seen, at least half of the gap from FGD to the bound is closed on the
default workload.
"""

import argparse
import concurrent.futures
import csv
import functools
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from aliquot.sim import openb

SHARED = pathlib.Path(os.environ.get("ALIQUOT_SHARED", pathlib.Path(__file__).parents[2] / "shared"))
DATA = SHARED / "data" / "openb"
PUBLISHED = "analysis_allo_discrete.csv"
FIRST_SEED = 42
SEEDS = 10
OURS = openb.OURS[0]
QUEUE = "queue"
"""Our default, where all pods are there at once."""
DEFAULT = "default"
BOUNDS: dict[str, tuple[float, float]] = {
    "default": (96.90, 99.90),
    "cpu050": (96.92, 99.88),
    "cpu100": (96.89, 99.89),
    "cpu200": (96.90, 99.89),
    "cpu250": (96.90, 99.90),
    "gpushare40": (95.66, 99.24),
    "gpushare60": (93.28, 96.97),
    "gpushare80": (91.40, 94.56),
    "gpushare100": (89.20, 91.68),
    "gpuspec10": (96.85, 99.89),
    "gpuspec20": (96.90, 99.90),
    "gpuspec25": (96.88, 99.90),
    "gpuspec33": (96.44, 99.81),
    "multigpu20": (97.38, 100.00),
    "multigpu30": (97.68, 100.00),
    "multigpu40": (98.00, 100.00),
    "multigpu50": (98.37, 100.00),
}
"""By workload, the most per cent that can be allocated when pods for 100 % and for 130 % have come: the linear
program's bound, worked out for one order of arrivals."""


@dataclass(frozen=True, slots=True)
class Run:
    """Per cent allocated when pods for 100 % and for 130 % have come; for the queue only the second, and how many pods
    started."""

    workload: str
    seed: int
    policy: str
    at_100: float | None
    at_130: float
    started: int | None
    pods: int
    seconds: float


def main() -> int:
    """Measure, print the tables, say whether the promises are kept."""
    given = arguments()
    if not (given.data / openb.NODES).is_file():
        print(f"bench-openb: no public data in {given.data}; nothing is measured", file=sys.stderr)
        return 0
    wanted = [
        (workload, seed, policy)
        for workload in given.workloads
        for seed in range(FIRST_SEED, FIRST_SEED + given.seeds)
        for policy in given.policies
    ]
    runs = measure(wanted, given)
    published = read_published(given.data / PUBLISHED)
    print(table("Pods for 100 % of the GPUs have come", runs, published, given=given, percent=100))
    print(table("Pods for 130 % of the GPUs have come", runs, published, given=given, percent=130))
    found = verdicts(runs, published, given.workloads)
    print("\n".join(found))
    return 1 if any("MISSED" in one for one in found) else 0


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    policies = (*openb.POLICIES, QUEUE)
    plain = [OURS, QUEUE, *openb.POLICIES[len(openb.OURS) :]]
    parser.add_argument("--data", type=pathlib.Path, default=DATA, help="the folder with the published lists")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many, from {FIRST_SEED} on (published: {SEEDS})")
    parser.add_argument("--workloads", nargs="+", choices=[*BOUNDS], default=[*BOUNDS], metavar="NAME")
    parser.add_argument("--policies", nargs="+", choices=policies, default=plain, metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--json", type=pathlib.Path, help="write all runs there; runs that it holds are not repeated")
    given = parser.parse_args()
    if given.seeds < 1 or given.jobs < 1:
        parser.error("--seeds and --jobs: at least 1")
    return given


def measure(wanted: Sequence[tuple[str, int, str]], given: argparse.Namespace) -> list[Run]:
    """All runs that are wanted, with progress on stderr."""
    known = {(run.workload, run.seed, run.policy): run for run in stored(given.json)}
    missing = [one for one in wanted if one not in known]
    if len(missing) < len(wanted):
        print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are taken from {given.json}", file=sys.stderr)
    for number, run in enumerate(performed(missing, given), start=1):
        known[run.workload, run.seed, run.policy] = run
        at_100 = "" if run.at_100 is None else f"{run.at_100:.2f} % at 100 %, "
        print(
            f"{number}/{len(missing)} {run.workload} seed {run.seed} {run.policy}: {at_100}{run.at_130:.2f} % at 130 %"
            f" ({run.seconds:.0f} s)",
            file=sys.stderr,
        )
        if given.json is not None:
            given.json.write_text(json.dumps([asdict(one) for one in known.values()], indent=1), encoding="utf-8")
    return [known[one] for one in wanted]


def stored(path: pathlib.Path | None) -> list[Run]:
    """The runs of an earlier measurement."""
    if path is None or not path.is_file():
        return []
    return [Run(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def performed(missing: Sequence[tuple[str, int, str]], given: argparse.Namespace) -> Iterator[Run]:
    """Each run as it ends, in the order of `missing` where they run one at a time."""
    if given.jobs == 1:
        yield from (perform(given.data, *one) for one in missing)
        return
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        running = [pool.submit(perform, given.data, *one) for one in missing]
        for done in concurrent.futures.as_completed(running):
            yield done.result()


def perform(data: pathlib.Path, workload: str, seed: int, policy: str) -> Run:
    """One run."""
    load = loaded(data, workload)
    drawn = openb.draw(load, seed)
    begin = time.perf_counter()
    if policy == QUEUE:
        served = openb.queue(drawn.arrivals, drawn.nodes, load.capacity)
        seconds = time.perf_counter() - begin
        return Run(workload, seed, policy, None, served.allocated, served.started, served.pods, seconds)
    curve = openb.run(drawn.arrivals, openb.placing_of(policy, load, drawn, seed), load.capacity)
    seconds = time.perf_counter() - begin
    return Run(workload, seed, policy, curve[100], curve[130], None, len(drawn.arrivals), seconds)


@functools.cache
def loaded(data: pathlib.Path, workload: str) -> openb.Load:
    """A workload, read once."""
    return openb.read(data, workload)


def read_published(path: pathlib.Path) -> dict[str, tuple[float, float]]:
    """FGD as published, at 100 % and at 130 %, the mean over its seeds, by workload."""
    found: dict[str, list[tuple[float, float]]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["sc_policy"] == "06-FGD":
                name = row["workload"].removeprefix("openb_pod_list_")
                found.setdefault(name, []).append((float(row["100"]), float(row["130"])))
    return {name: (mean([one[0] for one in seeds]), mean([one[1] for one in seeds])) for name, seeds in found.items()}


def table(
    title: str,
    runs: Sequence[Run],
    published: Mapping[str, tuple[float, float]],
    *,
    given: argparse.Namespace,
    percent: int,
) -> str:
    """Means over the seeds, with the standard deviation where there are several."""
    column = 0 if percent == 100 else 1
    policies = [one for one in given.policies if percent == 130 or one != QUEUE]
    lines = ["", f"{title}: % of the GPUs that are allocated, mean over {given.seeds} seeds"]
    lines.append(f"{'':12}" + "".join(f"{one:>15}" for one in [*policies, "FGD published", "bound"]))
    for workload in given.workloads:
        cells = [cell(values_of(runs, workload, policy, percent=percent)) for policy in policies]
        cells += [f"{published[workload][column]:.2f}", f"{BOUNDS[workload][column]:.2f}"]
        lines.append(f"{workload:12}" + "".join(f"{one:>15}" for one in cells))
    return "\n".join(lines)


def verdicts(runs: Sequence[Run], published: Mapping[str, tuple[float, float]], workloads: Sequence[str]) -> list[str]:
    """What became of the promises, as far as they were measured."""
    found = [""]
    measured = {name: mean(ours) for name in workloads if (ours := values_of(runs, name, OURS, percent=100))}
    if measured:
        over = {name: value - published[name][0] for name, value in measured.items()}
        least = min(over, key=lambda name: over[name])
        word = "MISSED" if over[least] < 0 else "kept"
        found.append(f"at least FGD on every workload: {word}; least is {least} with {over[least]:+.2f} points")
    served = [run for run in runs if run.policy == QUEUE and run.workload == DEFAULT]
    if served:
        reached = mean([run.at_130 for run in served])
        fgd, bound = published[DEFAULT][1], BOUNDS[DEFAULT][1]
        closed = 100 * (reached - fgd) / (bound - fgd)
        started = mean([100 * (run.started or 0) / run.pods for run in served])
        word = "MISSED" if closed < 50 else "kept"
        found.append(
            f"half of the gap from FGD to the bound on {DEFAULT}: {word}; {closed:.0f} % of it is closed"
            f" ({reached:.2f} %, and {started:.0f} % of the pods started)"
        )
    return found


def values_of(runs: Sequence[Run], workload: str, policy: str, *, percent: int) -> list[float]:
    """What the seeds gave."""
    chosen = [run for run in runs if (run.workload, run.policy) == (workload, policy)]
    values = [run.at_100 if percent == 100 else run.at_130 for run in chosen]
    return [value for value in values if value is not None]


def cell(values: Sequence[float]) -> str:
    """A mean, with its deviation if there are several values."""
    if not values:
        return "-"
    return f"{mean(values):.2f}" + (f" ±{statistics.stdev(values):.2f}" if len(values) > 1 else "")


def mean(values: Sequence[float]) -> float:
    """The plain mean."""
    return statistics.fmean(values)


if __name__ == "__main__":
    sys.exit(main())
