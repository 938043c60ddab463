"""The speed of the engine: seconds of one cycle on a world that is built already, beside the peer's.

    python bench/engine.py [--shapes allocate,half-gang] [--sizes 100,500,1000] [--json]

The shapes and the peer's figures come from the folder that is shared beside the project. Where it is not there, nothing
is measured, and that is said. Each shape runs in a process of its own, so that its peak memory is its own. Machines
differ: beside the seconds stands their ratio to a fixed loop of plain Python on the same machine in the same minute.
"""

import argparse
import csv
import gc
import json
import pathlib
import resource
import runpy
import subprocess
import sys
import time

from aliquot.core import schedule, snapshot
from aliquot.wire.scenario import reader

SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared" / "bench"
SHAPES = (
    "allocate",
    "impossible-gang",
    "oversize-gang",
    "reclaim-one",
    "reclaim-many",
    "half-gang",
    "gang-512",
    "gang-512-rack",
)
TARGETS = {
    ("allocate", 500): 0.3,
    ("impossible-gang", 500): 0.05,
    ("oversize-gang", 500): 0.05,
    ("reclaim-one", 500): 0.02,
    ("reclaim-many", 500): 2.0,
    ("reclaim-many", 1000): 5.0,
    ("half-gang", 1000): 0.5,
    ("gang-512", 1000): 0.1,
    ("gang-512-rack", 1000): 0.1,
}
"""Seconds that are promised, by shape and nodes."""


def main() -> int:
    """Run the shapes and print the table; exit 1 if a promise is missed, 0 if the shapes are not there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--sizes", default="100,500,1000")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(_measure(*chosen.one.split(":"))))
        return 0
    if not SHARED.is_dir():
        print("the shapes are in the folder ../shared/bench, which is not here: nothing was measured")
        return 0
    rows = [_run(shape, int(size)) for shape in chosen.shapes.split(",") for size in chosen.sizes.split(",")]
    print(json.dumps(rows, indent=2) if chosen.json else _table(rows))
    return int(any(row["missed"] for row in rows))


def _run(shape: str, size: int) -> dict[str, object]:
    print(f"{shape} on {size} nodes ...", file=sys.stderr)
    command = [sys.executable, __file__, "--one", f"{shape}:{size}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row: dict[str, object] = json.loads(done.stdout)
    target = TARGETS.get((shape, size))
    seconds = float(str(row["seconds"]))
    return row | {"peer": _peer(shape, size), "target": target, "missed": target is not None and seconds > target}


def _measure(shape: str, size: str) -> dict[str, object]:
    """One cycle of one shape, in this process."""
    scenario = reader.read(_document(shape, int(size)), f"{shape}.json")
    began = time.perf_counter()
    world = snapshot.World(scenario.snapshot)
    built = time.perf_counter() - began
    gc.collect()
    gc.freeze()
    cpu, began = time.process_time(), time.perf_counter()
    plan = schedule.schedule(world, scenario.policy, scenario.now)
    seconds = time.perf_counter() - began
    return {
        "shape": shape,
        "nodes": int(size),
        "build": round(built, 4),
        "seconds": round(seconds, 4),
        "cpu": round(time.process_time() - cpu, 4),
        "loops": round(seconds / _loop(), 2),
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "binds": len(plan.binds),
        "evicts": len(plan.evicts),
        "promises": len(plan.nominates),
    }


def _document(shape: str, size: int) -> bytes:
    module = runpy.run_path(str(SHARED / "shapes.py"))
    document = module["shape"](shape.removesuffix("-rack"), size)
    if shape.endswith("-rack"):
        document["topologies"] = [{"name": "racks", "levels": ["rack"]}]
        document["workloads"][0]["topology"] = {"name": "racks", "preferred": "rack"}
    return json.dumps(document).encode()


def _loop() -> float:
    """Seconds of a fixed amount of plain Python: what a machine can do."""
    began = time.perf_counter()
    total = 0
    for index in range(1_000_000):
        total += index & 7
    return time.perf_counter() - began


def _peer(shape: str, size: int) -> float | None:
    with (SHARED / "kai_measured.csv").open() as file:
        for row in csv.DictReader(file):
            if (row["shape"], row["nodes"], row["production"]) == (shape, str(size), "False") and row["actions_s"]:
                return float(row["actions_s"])
    return None


def _table(rows: list[dict[str, object]]) -> str:
    columns = ("shape", "nodes", "build", "seconds", "cpu", "loops", "mib", "peer", "target")
    lines = [" ".join(f"{name:>15}" for name in columns)]
    for row in rows:
        cells = ("" if row[name] is None else row[name] for name in columns)
        lines.append(" ".join(f"{cell:>15}" for cell in cells) + (" missed" if row["missed"] else ""))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
