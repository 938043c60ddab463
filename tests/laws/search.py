"""The long search for a broken law: many worlds, one after the other, from a seed on, in shards, and resumable.

    python -m tests.laws.search [--cycles 100000] [--runs 2000] [--shard 0/1] [--seed 0] [--fresh]

What is done is remembered in `.prop/`, so that a search that was stopped goes on where it was. A broken law is shrunk
and written to `.prop/` as Python; the search then goes on with the next seed. Exit 1 if there was any.
"""

import argparse
import json
import pathlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.laws import judge, rest, shrink, worlds
from tests.laws.judge import Verdict
from tests.laws.worlds import World

FOLDER = pathlib.Path(__file__).parents[2] / ".prop"
SAVE_EVERY = 20.0
"""Seconds between two notes of what is done."""
RUN_SEEDS = 1_000_000_000
"""Runs have other worlds than single cycles."""
KINDS = ("cycles", "runs")
Judge = Callable[[World], Verdict]


@dataclass
class Progress:
    """What a shard has done so far."""

    done: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    judged: Counter[str] = field(default_factory=Counter)
    broken: list[dict[str, Any]] = field(default_factory=list)  # Any: JSON

    def saved(self) -> dict[str, Any]:  # Any: JSON
        """As it is kept."""
        return {"done": self.done, "judged": dict(sorted(self.judged.items())), "broken": self.broken}

    @classmethod
    def read(cls, path: pathlib.Path) -> "Progress":
        """What was kept, or nothing yet."""
        if not path.exists():
            return cls()
        kept = json.loads(path.read_text(encoding="utf-8"))
        return cls(kept["done"], Counter(kept["judged"]), kept["broken"])


def judge_cycle(world: World) -> Verdict:
    """All laws on a single cycle."""
    return judge.judge(world)


def judge_run(world: World) -> Verdict:
    """The law of rest, and all that look at one plan on each of its cycles."""
    return rest.judge_run(world)


JUDGES: dict[str, Judge] = {"cycles": judge_cycle, "runs": judge_run}


def world_of(kind: str, number: int, features: frozenset[str] = worlds.FEATURES) -> World:
    """The world of a number. Runs know no classes of service: what has run then counts anew in each cycle."""
    if kind == "cycles":
        return worlds.make(number, features)
    return worlds.make(RUN_SEEDS + number, features)


def search(kind: str, numbers: Sequence[int], progress: Progress, *, save: Callable[[], None]) -> None:
    """Judge these worlds, from the first that was not."""
    started = noted = time.monotonic()
    first = progress.done[kind]
    for number in numbers[first:]:
        world = world_of(kind, number)
        fails = shrink.breaks(JUDGES[kind])
        try:
            progress.judged.update(JUDGES[kind](world).judged)
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is what we look for
            _note(progress, kind, number, world=world, fails=fails, error=error)
        progress.done[kind] += 1
        if time.monotonic() - noted > SAVE_EVERY:
            noted = time.monotonic()
            save()
            _tell(kind, progress, total=len(numbers), rate=(progress.done[kind] - first) / (noted - started))
    save()
    _tell(kind, progress, total=len(numbers), rate=0)


def _note(progress: Progress, kind: str, number: int, *, world: World, fails: shrink.Fails, error: Exception) -> None:
    law = fails(world)
    found = {"kind": kind, "number": number, "law": law, "what": str(error)}
    progress.broken.append(found)
    print(f"BROKEN {kind} {number}: {law}: {error}", flush=True)
    if law is None or sum(one["law"] == law for one in progress.broken) > 3:
        return  # Three of a kind are enough to look at.
    small = shrink.shrink(world, fails, tries=600)
    FOLDER.mkdir(exist_ok=True)
    text = f'"""{law}, {kind} {number}: {error}"""\n\nsnapshot = {shrink.written(small.snapshot)}\n'
    text += f"policy = {shrink.written(small.policy)}\n"
    path = FOLDER / f"broken-{kind}-{number}.py"
    path.write_text(text, encoding="utf-8")
    print(f"       as small as it gets: {path.relative_to(FOLDER.parent)}", flush=True)


def _tell(kind: str, progress: Progress, *, total: int, rate: float) -> None:
    done, judged = progress.done[kind], progress.judged
    speed = f", {rate:.0f} a second" if rate else ""
    print(f"{kind}: {done} of {total}{speed}, {len(progress.broken)} broken; {_evictions(judged)}", flush=True)


def _evictions(judged: Counter[str]) -> str:
    all_, fewer = judged["evicting cycles"], judged["evicting cycles that leave fewer devices in use"]
    return f"of {all_} evicting cycles {fewer} leave fewer devices in use"


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th world from the i-th on")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first world")
    parser.add_argument("--fresh", action="store_true", help="forget what was done before")
    parser.add_argument("--only", type=int, help="judge this one single cycle, loudly")
    chosen = parser.parse_args(arguments)
    if chosen.only is not None:
        print(judge_cycle(world_of("cycles", chosen.only)).judged)
        return 0
    part, parts = (int(one) for one in chosen.shard.split("/"))
    if not 0 <= part < parts:
        parser.error(f"--shard {chosen.shard}: i/n with i from 0 to n - 1")
    path = FOLDER / f"progress-{chosen.seed}-{part}-{parts}.json"
    progress = Progress() if chosen.fresh else Progress.read(path)

    def save() -> None:
        FOLDER.mkdir(exist_ok=True)
        path.write_text(json.dumps(progress.saved(), indent=1), encoding="utf-8")

    try:
        for kind, total in (("cycles", chosen.cycles), ("runs", chosen.runs)):
            search(kind, range(chosen.seed + part, chosen.seed + total, parts), progress, save=save)
    except KeyboardInterrupt:
        save()
        print(f"stopped; the same command goes on after {progress.done}")
        return 130
    for name, count in sorted(progress.judged.items()):
        print(f"{count:>10} {name}")
    return 1 if progress.broken else 0


if __name__ == "__main__":
    sys.exit(main())
