"""`aliquot scenario`: runs and checks scenarios for a command line that needs no server."""

from aliquot.sim import scenario as runner
from aliquot.sim import verdict
from aliquot.wire.scenario.outcome import Outcome
from aliquot.wire.scenario.shape import Scenario


def run(scenario: Scenario) -> Outcome:
    """What comes out of it."""
    return runner.run(scenario)


def check(scenario: Scenario) -> list[verdict.Missed]:
    """What it expects and does not come out."""
    return runner.check(scenario)
