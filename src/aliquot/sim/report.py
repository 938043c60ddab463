"""Makes the report of a replay: the numbers by which policies are compared, and their lines for people.

Promises: pure; a percentile is the value at `int(part x n)` of the sorted ones, as in the published figures.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from aliquot.core.model import Node
from aliquot.sim.intake import BEGIN
from aliquot.sim.measures import Measures, Part
from aliquot.sim.replay import Outcome
from aliquot.wire import simulations as shapes

MOST_QUEUES = 12
"""Whose parts are told over time: those that held most."""
MOST_DROPPED = 20
_DIGITS = 6


def run_of(policy: str, placement: str, outcome: Outcome) -> shapes.Run:
    """What came of a trace under one policy."""
    tally, measured = outcome.tally, outcome.measures
    waited, completion = sorted(tally.waiting), sorted(tally.completion)
    return shapes.Run(
        policy=policy,
        placement=placement,
        ended=len(completion),
        running=outcome.running,
        waiting=outcome.waiting,
        makespan_seconds=(outcome.last_end - BEGIN).total_seconds(),
        to_start=spread_of(sorted(tally.to_start)),
        waited=spread_of(waited),
        completion=spread_of(completion),
        allocation=_rounded(measured.allocation.mean()),
        fragmentation=_rounded(measured.fragmentation.mean()),
        fragmentation_of_idle=_rounded(measured.fragmentation_of_idle.mean()),
        fairness=_rounded(measured.fairness.mean()),
        evictions=shapes.Evictions(
            pods=sum(outcome.evictions.values()),
            workloads=outcome.evicted_workloads,
            jobs=tally.evicted,
            by_rule=dict(sorted(outcome.evictions.items())),
            lost_seconds=outcome.lost / timedelta(seconds=1),
        ),
        cycles=outcome.cycles,
        cut_off_cycles=outcome.cut_off,
        waited_percentiles=percentiles(waited),
        completion_percentiles=percentiles(completion),
        over_time=_over_time(measured),
    )


def spread_of(ordered: Sequence[float]) -> shapes.Spread | None:
    """The spread of sorted numbers; None of none."""
    if not ordered:
        return None
    p50, p90, p99 = (ordered[int(part * len(ordered))] for part in (0.5, 0.9, 0.99))
    mean = sum(ordered) / len(ordered)
    return shapes.Spread(mean=round(mean, 3), p50=p50, p90=p90, p99=p99, most=ordered[-1])


def percentiles(ordered: Sequence[float]) -> list[float]:
    """The 0th to the 100th of sorted numbers."""
    last = len(ordered) - 1
    return [ordered[min(last, int(part * len(ordered) / 100))] for part in range(101)] if ordered else []


def rows(runs: Sequence[shapes.Run]) -> list[tuple[str, list[str]]]:
    """The numbers of the report, a line each, as text: what it is, and the value of each run."""
    has_queues = any(run.fairness is not None for run in runs)
    lines: list[tuple[str, Callable[[shapes.Run], str]]] = [
        ("jobs that ended", lambda run: f"{run.ended:,}"),
        ("waiting, mean", lambda run: _of(run.waited, "mean")),
        ("waiting, median", lambda run: _of(run.waited, "p50")),
        ("waiting, p90", lambda run: _of(run.waited, "p90")),
        ("waiting, p99", lambda run: _of(run.waited, "p99")),
        ("until the first start, mean", lambda run: _of(run.to_start, "mean")),
        ("completion, mean", lambda run: _of(run.completion, "mean")),
        ("completion, median", lambda run: _of(run.completion, "p50")),
        ("completion, p90", lambda run: _of(run.completion, "p90")),
        ("completion, p99", lambda run: _of(run.completion, "p99")),
        ("makespan", lambda run: span(run.makespan_seconds)),
        ("GPUs held", lambda run: _part(run.allocation)),
        ("GPUs idle and of no use", lambda run: _part(run.fragmentation)),
        ("of the idle ones", lambda run: _part(run.fragmentation_of_idle)),
    ]
    if has_queues:
        lines.append(("fairness (Jain)", lambda run: "-" if run.fairness is None else f"{run.fairness:.3f}"))
    lines += [
        ("evicted pods", lambda run: f"{run.evictions.pods:,}"),
        ("jobs ever evicted", lambda run: f"{run.evictions.jobs:,}"),
        ("work lost", lambda run: span(run.evictions.lost_seconds)),
    ]
    for rule in sorted({rule for run in runs for rule in run.evictions.by_rule}):
        lines.append((f"evicted by {rule}", lambda run, rule=rule: f"{run.evictions.by_rule.get(rule, 0):,}"))  # type: ignore[misc]  # bound early
    if any(run.running or run.waiting for run in runs):
        lines.append(("still running", lambda run: f"{run.running:,}"))
        lines.append(("still waiting", lambda run: f"{run.waiting:,}"))
    return [(name, [write(run) for run in runs]) for name, write in lines]


def span(seconds: float) -> str:
    """A span in its two largest units."""
    if seconds < 1:
        return f"{seconds:.1g} s" if seconds else "0 s"
    left = round(seconds)
    found: list[str] = []
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, unit)
        if count or found:
            found.append(f"{count} {name}")
    return " ".join(found[:2])


def cluster_of(nodes: Sequence[Node], *, queues: int) -> shapes.ClusterFacts:
    """What the cluster is made of."""
    models = Counter(device.model for node in nodes for device in node.devices)
    return shapes.ClusterFacts(
        nodes=len(nodes), devices=sum(models.values()), models=dict(sorted(models.items())), queues=queues
    )


def _over_time(measured: Measures) -> shapes.OverTime:
    parts = sorted(measured.parts.values(), key=lambda part: (-(part.held.mean() or 0), part.queue))
    has_many = len(parts) > 1
    return shapes.OverTime(
        step_seconds=measured.allocation.step.total_seconds(),
        allocation=_all_rounded(measured.allocation.means()),
        waiting=_all_rounded(measured.waiting.means()),
        fragmentation=_all_rounded(measured.fragmentation.means()),
        fragmentation_of_idle=_all_rounded(measured.fragmentation_of_idle.means()),
        fairness=_all_rounded(measured.fairness.means()) if has_many else [],
        queues=[_queue(part) for part in parts[:MOST_QUEUES]] if has_many else [],
    )


def _queue(part: Part) -> shapes.QueueOverTime:
    return shapes.QueueOverTime(
        name=part.queue,
        held_mean=_rounded(part.held.mean()),
        share_mean=_rounded(part.due.mean()),
        held=_all_rounded(part.held.means()),
        share=_all_rounded(part.due.means()),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _all_rounded(values: Sequence[float | None]) -> list[float | None]:
    return [_rounded(value) for value in values]


def _of(spread: shapes.Spread | None, which: str) -> str:
    return "-" if spread is None else span(getattr(spread, which))


def _part(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"
