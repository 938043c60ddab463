"""Runs a scenario: one cycle, or cycles until nothing changes, on a clock that stands still between them."""

from aliquot.core import schedule
from aliquot.core.model import Promise
from aliquot.core.plan import Plan
from aliquot.sim import verdict
from aliquot.sim.stage import Stage
from aliquot.wire.scenario.outcome import Cycle, Decision, Outcome
from aliquot.wire.scenario.shape import Mode, Scenario


def run(scenario: Scenario) -> Outcome:
    """What comes out of a scenario, whatever it expects."""
    stage = Stage(scenario.snapshot, scenario.now, scenario.on_evict)
    cycles: list[Cycle] = []
    for _ in range(scenario.max_cycles):
        before = stage.snapshot
        plan = schedule.schedule(before, scenario.policy, stage.now)
        cycles.append(Cycle(decisions_of(plan, before.promises), plan.is_cut_off))
        if scenario.mode is Mode.ONE_CYCLE:
            return Outcome(scenario.name, tuple(cycles), stage.ends_of(plan), stage.nodes_of(plan))
        if not stage.apply(plan):
            break
    return Outcome(scenario.name, tuple(cycles), stage.ends(), stage.nodes_of(None))


def decisions_of(plan: Plan, promises: tuple[Promise, ...]) -> tuple[Decision, ...]:
    """A plan as the decisions that are printed. A promise that is only kept is no new decision."""
    kept = {(promise.workload, promise.places) for promise in promises}
    return (
        *(Decision("bind", bind.place.pod, bind.workload, bind.place) for bind in plan.binds),
        *(
            Decision("evict", evict.pod, evict.workload, beneficiary=evict.beneficiary or None, rule=str(evict.rule))
            for evict in plan.evicts
        ),
        *(
            Decision("nominate", place.pod, nominate.workload, place)
            for nominate in plan.nominates
            if (nominate.workload, nominate.places) not in kept
            for place in nominate.places
        ),
        *(Decision("wait", workload=wait.workload, reason=wait.reason) for wait in plan.waits),
    )


def check(scenario: Scenario) -> list[verdict.Missed]:
    """The expectations of a scenario that are missed."""
    return verdict.missed(scenario.expect, run(scenario), scenario.snapshot.workloads, mode=scenario.mode)
