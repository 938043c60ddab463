"""What mutants of the engine do that no quick test noticed: is any plan another one, and does a law notice then?

`make mutants` runs it inside the copy of the project that the mutation tool makes, where the name of a mutant in
`MUTANT_UNDER_TEST` chooses it. Promises: one line for each survivor; what it says of one does not depend on the others.
"""

import argparse
import json
import os
import pathlib
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aliquot.core.plan import Plan
from tests.laws import judge, sameness, worlds
from tests.laws.case import Case, LawBroken
from tests.laws.worlds import World

FIRST = 7_000_000
MOST_JUDGED = 5
"""So many plans that differ are judged by the laws."""
KILLED, SURVIVED, UNTESTED = 1, 0, 33
"""Exit codes, as the mutation tool keeps them; any other is a mutant that ran for too long or ended the process."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a mutant does, and on how many of the clusters its plan was another."""

    what: str
    differing: int = 0


def results(folder: pathlib.Path) -> dict[str, int]:
    """The exit codes of all mutants that were tried, by name."""
    found: dict[str, int] = {}
    for path in sorted(folder.rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        found |= {name: code for name, code in codes.items() if code is not None}
    return found


def choose(name: str) -> None:
    """From now on this mutant is at work; "" is none."""
    os.environ["MUTANT_UNDER_TEST"] = name


def decisions(plan: Plan) -> tuple[object, ...]:
    """What is done, without what is said."""
    return (
        plan.binds,
        tuple((one.pod, one.rule, one.beneficiary) for one in plan.evicts),
        tuple((one.workload, one.places) for one in plan.nominates),
    )


def look_at(name: str, cases: Sequence[tuple[World, Plan]]) -> Finding:
    """Compare its plans with those of the engine as it is."""
    choose(name)
    differing, said, judged = 0, 0, 0
    for world, before in cases:
        try:
            plan = sameness.plan_of(world)
        except Exception as error:  # noqa: BLE001 - a mutant may raise anything
            return Finding(f"raises {type(error).__name__}", differing + 1)
        if decisions(plan) == decisions(before):
            said += (plan.waits, plan.evicts) != (before.waits, before.evicts)
            continue
        differing += 1
        if judged < MOST_JUDGED:
            judged += 1
            try:
                judge.judge_plan(Case(world, plan))
            except LawBroken as broken:
                return Finding(f"breaks a law: {broken.law}", differing)
            except Exception as error:  # noqa: BLE001 - the judge asks the mutant too
                return Finding(f"raises {type(error).__name__}", differing)
    if differing:
        return Finding("decides otherwise, by the laws", differing)
    return Finding("says something else", said) if said else Finding("changes no plan")


def summary(codes: dict[str, int]) -> Iterable[str]:
    """By module, how many were noticed, and how."""
    modules = sorted({name.split(".")[2] for name in codes})
    for module in modules:
        of = Counter(code for name, code in codes.items() if name.split(".")[2] == module)
        late = of.total() - of[KILLED] - of[SURVIVED] - of[UNTESTED]
        yield (
            f"{module}: {of.total()} mutants, {of[KILLED]} fail a test, {late} never end or end the process, "
            f"{of[SURVIVED]} survive, {of[UNTESTED]} run in no test"
        )


def title(name: str) -> str:
    """`order.queue_key 5` of the name that the tool gives it."""
    module, _, rest = name.removeprefix("aliquot.core.").partition(".")
    function, _, number = rest.rpartition("__mutmut_")
    function = function.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    return f"{module}.{function} {number}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell what was tried, and look at each survivor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=400, help="so many random clusters are planned for each survivor")
    taken = parser.parse_args(arguments)
    codes = results(pathlib.Path("src"))
    choose("")
    cases = [(world, sameness.plan_of(world)) for world in map(worlds.make, range(FIRST, FIRST + taken.worlds))]
    found: Counter[str] = Counter()
    for name in (name for name, code in codes.items() if code in {SURVIVED, UNTESTED}):
        finding = look_at(name, cases)
        found[finding.what.partition(":")[0].partition(" raises")[0]] += 1
        print(f"{title(name)}: {finding.what} ({finding.differing} of {taken.worlds})", flush=True)
    print(*summary(codes), sep="\n")
    print(f"survivors on {taken.worlds} random clusters: {dict(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
