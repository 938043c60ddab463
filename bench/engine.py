"""What the engine promises in seconds, measured on `core.schedule` alone. `make bench` runs this too.

Every case runs in a process of its own, so that its peak memory is its own. Seconds are CPU seconds of that process:
it has one thread, so on an otherwise idle core they are the seconds that pass, and on a shared machine they are less
noisy. Beside them stands a fixed loop of plain Python, measured in the same process: the ratio is what travels from
machine to machine. The peer's seconds are read from a file beside the checkout; where it is not, its columns are empty.
"""

import argparse
import contextlib
import cProfile
import csv
import gc
import json
import math
import pathlib
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple, TypeVar

import cases

from aliquot.core import explain, schedule
from aliquot.core.plan import Plan
from aliquot.core.snapshot import World

Result = TypeVar("Result")

SIZES = (100, 200, 500, 1000)
LARGE = {
    "impossible-gang": (5000, 12500),
    "oversize-gang": (5000, 12500),
    "reclaim-one": (5000, 12500),
    "gang-512": (5000, 12500),
    "gang-512-rack": (5000, 12500),
    "half-gang": (5000,),
    "allocate": (5000,),
    "steady": (5000,),
    "steady-wanted": (5000,),
    "arrivals": (5000, 12500),
}
SHAPES = ("allocate", "impossible-gang", "oversize-gang", "reclaim-one", "reclaim-many", "half-gang", "gang-512")
OWN = ("gang-512-rack", "steady", "steady-wanted", "arrivals", "explain")
LONG = 5.0
"""A case that takes longer is measured once, others three times, of which the best counts."""
LIMIT = 900


class Target(NamedTuple):
    """A promise: the case, its size, and the most seconds or MiB. `with_build`: taking the change in counts too."""

    name: str
    nodes: int
    seconds: float
    mib: int | None = None
    with_build: bool = False


TARGETS = (
    Target("allocate", 500, 0.3),
    Target("impossible-gang", 500, 0.05),
    Target("oversize-gang", 500, 0.05),
    Target("reclaim-one", 500, 0.02),
    Target("reclaim-many", 500, 2.0),
    Target("reclaim-many", 1000, 5.0),
    Target("half-gang", 1000, 0.5),
    Target("gang-512", 1000, 0.1),
    Target("gang-512-rack", 1000, 0.1),
    Target("steady", 5000, 0.1, with_build=True),
    Target("steady-wanted", 5000, 0.1, with_build=True),
    Target("arrivals", 12500, 1.0, 2048),
    Target("explain", 500, 0.2),
)
MOST_GROWTH = 1.1
"""From 100 to 1,000 nodes, as a power of their number: linear, and a tenth for what the measurement itself adds."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one case took."""

    name: str
    nodes: int
    outcome: str
    build: float
    """Seconds to build the world from the snapshot; for a kept world, to take the change in."""
    seconds: float
    wall: float
    calibration: float
    peak_mib: int
    is_cut_off: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every case, print the tables, say whether every promise is kept."""
    parser = argparse.ArgumentParser(prog="bench/engine.py", description=__doc__)
    parser.add_argument("--only", action="append", help="a case, again for each more", choices=(*SHAPES, *OWN))
    parser.add_argument("--nodes", type=int, action="append", help="a size, again for each more")
    parser.add_argument("--measure", nargs=2, metavar=("CASE", "NODES"), help="measure one here, and print it as JSON")
    parser.add_argument("--profile", action="store_true", help="with --measure: where the time goes")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON lines too")
    asked = parser.parse_args(arguments)
    if asked.measure:
        name, nodes = asked.measure
        print(json.dumps(asdict(measure(name, int(nodes), has_profile=asked.profile))))
        return 0
    has_shapes = cases.shared_shapes() is not None
    if not has_shapes:
        print(f"bench: {cases.SHARED} is not there, so only shapes of our own are measured\n")
    peer = peer_seconds()
    found: list[Measured] = []
    print(HEADING)
    for name in asked.only or (*SHAPES, *OWN):
        if not has_shapes and (name in SHAPES or name == "gang-512-rack"):
            continue
        for nodes in asked.nodes or (*SIZES, *LARGE.get(name, ())):
            one = in_a_process(name, nodes)
            if one is not None:
                print(row(one, before=found[-1] if found else None, peer=peer.get((name, nodes))), flush=True)
                found.append(one)
    if asked.json:
        print("\n".join(json.dumps(asdict(one)) for one in found))
    return judge(found)


def in_a_process(name: str, nodes: int) -> Measured | None:
    """Measure a case in a process of its own."""
    command = [sys.executable, __file__, "--measure", name, str(nodes)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        print(f"{name:16} {nodes:>6}  did not end within {LIMIT} s")
        return None
    except subprocess.CalledProcessError as failed:
        raise SystemExit(f"bench: {name} at {nodes} nodes failed:\n{failed.stderr}") from failed
    return Measured(**json.loads(done.stdout))


def measure(name: str, nodes: int, *, has_profile: bool = False) -> Measured:
    """Measure a case in this process."""
    case = cases.build(name, nodes)
    gc.collect()
    reset_peak()
    found: list[Measured] = []
    while len(found) < 3:
        world, build = timed(lambda: World(case.snapshot))
        gc.collect()
        if case.after is not None:
            schedule.schedule(world, case.policy, case.now)
            gc.collect()
            _, build = timed(lambda world=world: world.sync(case.after))  # type: ignore[misc]  # bound early
        loop = calibrate()
        begin = time.perf_counter()
        outcome, seconds = timed(lambda world=world: decide(case, world), has_profile=has_profile)  # type: ignore[misc]  # bound early
        wall = time.perf_counter() - begin
        said, is_cut_off = outcome
        found.append(Measured(name, nodes, said, build, seconds, wall, loop, peak_mib(), is_cut_off))
        if seconds > LONG or has_profile:
            break
    return min(found, key=lambda one: one.seconds)


def decide(case: cases.Case, world: World) -> tuple[str, bool]:
    """The cycle, or the question, of a case; what came of it, and whether the budget cut it off."""
    if case.asked is not None:
        answer = explain.explain(world, case.asked, policy=case.policy, now=case.now)
        suggestion = answer.suggestion.description if answer.suggestion else answer.no_suggestion_because
        return f"{answer.reason.code if answer.reason else 'starts'}; {suggestion}", False
    plan = schedule.schedule(world, case.policy, case.now)
    return describe(plan), plan.is_cut_off


def describe(plan: Plan) -> str:
    """What a plan does, in numbers, and the reasons of those who wait."""
    codes: dict[str, int] = {}
    for wait in plan.waits:
        codes[wait.reason.code] = codes.get(wait.reason.code, 0) + 1
    parts = [f"{len(plan.binds)} start" if plan.binds else "", f"{len(plan.evicts)} end" if plan.evicts else ""]
    parts += [f"{count} {code}" for code, count in sorted(codes.items())]
    return ", ".join(part for part in parts if part) or "nothing to do"


def timed(work: Callable[[], Result], *, has_profile: bool = False) -> tuple[Result, float]:
    """What the work returns, and its CPU seconds."""
    profile = cProfile.Profile() if has_profile else None
    if profile is not None:
        profile.enable()
    begin = time.process_time()
    result = work()
    seconds = time.process_time() - begin
    if profile is not None:
        profile.disable()
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    return result, seconds


def calibrate() -> float:
    """CPU seconds of a fixed loop of plain Python: dictionary, list and whole numbers. The best of five."""

    def loop() -> int:
        found: dict[int, int] = {}
        for number in range(200_000):
            found[number & 1023] = found.get(number & 511, 0) + (number ^ 3)
        return sum(found.values())

    return min(timed(loop)[1] for _ in range(5))


def reset_peak() -> None:
    """Forget how much memory was needed to make the case. Where the kernel has no such file, that counts too."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_mib() -> int:
    """The most memory that this process held since then."""
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def peer_seconds() -> dict[tuple[str, int], float]:
    """By case and nodes, what the peer took for all its actions."""
    path = cases.SHARED / "kai_measured.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as lines:
        rows = [one for one in csv.DictReader(lines) if one["production"] == "False" and one["actions_s"]]
    return {(one["shape"], int(one["nodes"])): float(one["actions_s"]) for one in rows}


HEADING = (
    f"{'case':16} {'nodes':>6} {'build s':>8} {'seconds':>8} {'wall s':>8} {'loops':>7} {'growth':>6} {'MiB':>5}"
    f" {'peer s':>8} {'ours/peer':>9}  outcome"
)


def row(one: Measured, *, before: Measured | None, peer: float | None) -> str:
    """One line of the table. `loops`: how often the fixed loop runs in that time; `growth`: the power of the size with
    which the time grows from the line above."""
    power = growth(before, one) if before is not None and before.name == one.name else None
    beside = f"{peer:>8.3f} {one.seconds / peer:>9.4f}" if peer is not None else f"{'-':>8} {'-':>9}"
    return (
        f"{one.name:16} {one.nodes:>6} {one.build:>8.3f} {one.seconds:>8.3f} {one.wall:>8.3f}"
        f" {one.seconds / one.calibration:>7.1f} {'-' if power is None else f'{power:.2f}':>6} {one.peak_mib:>5}"
        f" {beside}  {one.outcome}{', CUT OFF' if one.is_cut_off else ''}"
    )


def growth(small: Measured, large: Measured) -> float:
    """By which power of the number of nodes the time grows."""
    return math.log(max(large.seconds, 1e-6) / max(small.seconds, 1e-6)) / math.log(large.nodes / small.nodes)


def judge(found: Sequence[Measured]) -> int:
    """Print each promise and whether it is kept. 1 if one is not."""
    by_key = {(one.name, one.nodes): one for one in found}
    lines: list[tuple[str, str, str, bool]] = []
    for target in TARGETS:
        one = by_key.get((target.name, target.nodes))
        if one is not None:
            seconds = one.build + one.seconds if target.with_build else one.seconds
            is_met = seconds < target.seconds and not one.is_cut_off
            lines.append((f"{one.name} at {one.nodes}", f"{seconds:.3f} s", f"< {target.seconds} s", is_met))
        if one is not None and target.mib is not None:
            lines.append(("  its memory", f"{one.peak_mib} MiB", f"< {target.mib} MiB", one.peak_mib < target.mib))
    for name in (*SHAPES, *OWN):
        small, large = by_key.get((name, 100)), by_key.get((name, 1000))
        if small is not None and large is not None:
            power = growth(small, large)
            lines.append((f"{name} from 100 to 1000", f"power {power:.2f}", f"< {MOST_GROWTH}", power < MOST_GROWTH))
    if lines:
        print(f"\n{'promise':32} {'measured':>12} {'promised':>12}")
    for what, measured, promised, is_met in lines:
        print(f"{what:32} {measured:>12} {promised:>12}  {'met' if is_met else 'MISSED'}")
    return 0 if all(is_met for *_, is_met in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
