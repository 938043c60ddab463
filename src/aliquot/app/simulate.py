"""`aliquot simulate`: replays a trace under one policy or several, for a command line that needs no server."""

from collections.abc import Callable

from aliquot.core.errors import InvalidInput
from aliquot.sim import cases, charts, fragmentation, replay, report
from aliquot.sim.cases import Case
from aliquot.sim.fragmentation import Fragmentation, Usual
from aliquot.sim.intake import BEGIN
from aliquot.sim.measures import Measures
from aliquot.wire import simulations as shapes

OnProgress = Callable[[shapes.Progress], None]


def run(request: shapes.Request, on_progress: OnProgress) -> shapes.Simulation:
    """What comes of a trace. Raises InvalidInput before anything is replayed if something is wrong."""
    case = cases.read(request)
    for name in request.policies:
        if name not in case.policies:
            raise InvalidInput(f"--policy: {name[:60]!r} is not known", field="--policy", valid=case.policies)
    usual = fragmentation.usual_of(case.asked())
    runs = [_run(case, name, usual, on_progress) for name in request.policies or case.policies[:1]]
    return shapes.Simulation(
        trace=case.facts,
        cluster=report.cluster_of(case.nodes, queues=case.count_queues()),
        runs=runs,
        dropped=[shapes.Dropped(job=one.job, why=one.why) for one in case.dropped[: report.MOST_DROPPED]],
    )


def rows(simulation: shapes.Simulation) -> list[tuple[str, list[str]]]:
    """The numbers of the report as text: what each is, and its value in each run."""
    return report.rows(simulation.runs)


def page(simulation: shapes.Simulation) -> str:
    """The report as a page of HTML that needs nothing else."""
    return charts.page(simulation)


def _run(case: Case, policy: str, usual: tuple[Usual, ...], on_progress: OnProgress) -> shapes.Run:
    course = case.course(policy)
    measured = Measures(BEGIN, course.nodes, course.queues, Fragmentation(usual))
    jobs = case.facts.jobs

    def tell(at: replay.Progress) -> None:
        on_progress(shapes.Progress(policy=policy, jobs=jobs, ended=at.ended, waiting=at.waiting, elapsed=at.elapsed))

    outcome = replay.replay(course, measured, tell)
    return report.run_of(policy, course.policy.gpu_placement, outcome)
