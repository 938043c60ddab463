"""Runs a scenario: at each of its instants one cycle, or cycles until nothing changes on a clock that stands."""

from collections.abc import Iterable, Iterator

from aliquot.core import explain, schedule
from aliquot.core.model import Promise, Snapshot
from aliquot.core.plan import Plan
from aliquot.sim import verdict
from aliquot.sim.stage import Stage
from aliquot.wire.scenario import expectation
from aliquot.wire.scenario.outcome import Cycle, Decision, Outcome
from aliquot.wire.scenario.shape import Mode, Scenario


def run(scenario: Scenario) -> Outcome:
    """What comes out of a scenario, whatever it expects."""
    return _joined(list(outcomes(scenario)))


def check(scenario: Scenario) -> list[verdict.Missed]:
    """The expectations of a scenario that are missed: those of its instants, then those of the end."""
    parts: list[Outcome] = []
    missed: list[verdict.Missed] = []
    found = outcomes(scenario, is_explained=True)
    for number, (step, part) in enumerate(zip(scenario.steps, found, strict=True)):
        parts.append(part)
        missed += verdict.missed(step.expect, part, scenario, where=f"cycles[{number}]: ")
    return missed + verdict.missed(scenario.expect, _joined(parts), scenario)


def outcomes(scenario: Scenario, *, is_explained: bool = False) -> Iterator[Outcome]:
    """What has come out at each of its instants, with the cycles that ran then. Explained: with the changes that would
    start the workloads of which an expectation says so."""
    stage = Stage(scenario.snapshot, scenario.now, scenario.on_evict)
    later = {name for step in scenario.steps for name in step.submitted}
    stage.keep_back(later)
    for step in scenario.steps:
        stage.advance(scenario.now + step.at, step)
        asked = {*step.expect.suggestions, *scenario.expect.suggestions} if is_explained else ()
        yield _outcome(scenario, stage, asked)


def _outcome(scenario: Scenario, stage: Stage, asked: Iterable[str]) -> Outcome:
    cycles: list[Cycle] = []
    while True:
        before = stage.snapshot
        plan = schedule.schedule(before, scenario.policy, stage.now)
        promises = {one.workload: (one.due, one.expires) for one in plan.nominates}
        cycles.append(Cycle(decisions_of(plan, before.promises), plan.is_cut_off, promises))
        is_once = scenario.mode is Mode.ONE_CYCLE
        ends, nodes = stage.ends_of(plan), stage.nodes_of(plan)
        is_at_rest = not stage.apply(plan)
        if is_once or is_at_rest or len(cycles) == scenario.max_cycles:
            break
    if not is_once:
        ends, nodes = stage.ends(), stage.nodes_of(None)
    suggestions = {name: _suggestion(before, name, scenario=scenario, stage=stage) for name in sorted(asked)}
    return Outcome(scenario.name, tuple(cycles), ends, nodes, suggestions)


def _suggestion(snapshot: Snapshot, workload: str, *, scenario: Scenario, stage: Stage) -> tuple[str, str]:
    if not any(one.id == workload for one in snapshot.workloads):
        return ("none", "it is not there")
    found = explain.explain(snapshot, workload, policy=scenario.policy, now=stage.now)
    if found.suggestion is None:
        return ("none", found.no_suggestion_because or "it does not wait")
    return (expectation.kind_of(type(found.suggestion.change)), found.suggestion.description)


def _joined(parts: list[Outcome]) -> Outcome:
    last = parts[-1]
    cycles = tuple(cycle for part in parts for cycle in part.cycles)
    return Outcome(last.scenario, cycles, last.pods, last.nodes, last.suggestions)


def decisions_of(plan: Plan, promises: tuple[Promise, ...]) -> tuple[Decision, ...]:
    """A plan as the decisions that are printed. A promise that is only kept is no new decision."""
    kept = {(promise.workload, promise.places) for promise in promises}
    return (
        *(Decision("bind", bind.place.pod, bind.workload, bind.place) for bind in plan.binds),
        *(
            Decision(
                "evict",
                evict.pod,
                evict.workload,
                beneficiary=evict.beneficiary or None,
                rule=str(evict.rule),
                explanation=evict.explanation,
            )
            for evict in plan.evicts
        ),
        *(
            Decision("nominate", place.pod, nominate.workload, place)
            for nominate in plan.nominates
            if (nominate.workload, nominate.places) not in kept
            for place in nominate.places
        ),
        *(Decision("wait", workload=one.workload, reason=one.reason, position=one.position) for one in plan.waits),
    )
