"""The report of a simulation as one page of HTML: the numbers as a table, and how they came about over time.

Promises: one file that asks no host for anything (its own policy forbids it) and runs no script; it follows the
reader's choice of light or dark; whatever a trace is called, or its jobs and queues are, is shown as text.
"""

import html
import itertools
from collections.abc import Callable, Sequence

from aliquot.sim import plots, report
from aliquot.sim.plots import Curve
from aliquot.wire import simulations as shapes

MOST_QUEUES = 6
"""Whose curves are drawn for each policy."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(simulation: shapes.Simulation) -> str:
    """The whole page."""
    trace, runs = simulation.trace, simulation.runs
    title = html.escape(f"{trace.name} on {simulation.cluster.devices} GPUs")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title} - Aliquot</title>",
            f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f"<header><h1>{title}</h1><p>{_facts(simulation)}</p></header>",
            _table(runs),
            _charts(runs),
            *(_queues(run) for run in runs),
            _dropped(simulation),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _facts(simulation: shapes.Simulation) -> str:
    trace, cluster = simulation.trace, simulation.cluster
    models = ", ".join(f"{count} {model}" for model, count in cluster.models.items())
    facts = [
        f"{trace.jobs:,} jobs ({trace.format})",
        *([f"{trace.dropped:,} larger than the cluster"] if trace.dropped else []),
        f"{cluster.nodes:,} nodes: {models}",
        f"{cluster.queues:,} queue{'s' if cluster.queues != 1 else ''}",
        f"placement: {simulation.runs[0].placement}",
    ]
    return " · ".join(html.escape(fact) for fact in facts)


def _table(runs: Sequence[shapes.Run]) -> str:
    looks = [
        f'<th scope="col"><i class="dot s{_look(at)}"></i>{html.escape(run.policy)}' for at, run in enumerate(runs)
    ]
    lines = [
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(f"<td>{html.escape(cell)}</td>" for cell in cells)}</tr>'
        for name, cells in report.rows(runs)
    ]
    head = f"<thead><tr><td></td>{''.join(f'{one}</th>' for one in looks)}</tr></thead>"
    return f'<section class="card wide"><table>{head}<tbody>{"".join(lines)}</tbody></table></section>'


def _charts(runs: Sequence[shapes.Run]) -> str:
    most = max(_length(run) for run in runs)
    across = plots.times(most)
    over = [
        ("GPUs held", "of all GPUs", _over_time(runs, lambda one: one.allocation), plots.parts()),
        ("Jobs that wait", "", _over_time(runs, lambda one: one.waiting), None),
        (
            "GPUs idle and of no use",
            "of all GPUs, to the usual jobs of this trace",
            _over_time(runs, lambda one: one.fragmentation),
            None,
        ),
    ]
    if any(run.over_time.fairness for run in runs):
        curves = _over_time(runs, lambda one: one.fairness)
        over.append(("Fairness", "Jain's index of what the queues hold of their fair shares", curves, _PLAIN))
    cards = []
    for title, about, curves, up in over:
        largest = max((value for curve in curves for _, value in curve.points if value is not None), default=1)
        scale = up or (plots.counts(largest) if "Jobs" in title else plots.parts(largest))
        cards.append(_card(title, about, curves, plots.plot(curves, across, scale, about=title)))
    for title, which in (("Waiting", "waited_percentiles"), ("Completion", "completion_percentiles")):
        curves = [_distribution(run, getattr(run, which), _look(at)) for at, run in enumerate(runs)]
        longest = max((value for curve in curves for value, _ in curve.points), default=1.0)
        drawn = plots.plot(curves, plots.log_times(longest), plots.parts(), about=title)
        cards.append(_card(title, "how many jobs had no more than this", curves, drawn))
    return f'<section class="charts">{"".join(cards)}</section>'


_PLAIN = plots.linear(1, "{:.2f}".format)


def _queues(run: shapes.Run) -> str:
    shown = run.over_time.queues[:MOST_QUEUES]
    if not shown:
        return ""
    across = plots.times(_length(run), wanted=4)
    most = max((value for queue in shown for value in (*queue.held, *queue.share) if value is not None), default=1)
    cards = []
    for queue in shown:
        curves = [
            Curve("held", _points(run, queue.held), "s0"),
            Curve("fair share", _points(run, queue.share), "muted dashed"),
        ]
        drawn = plots.plot(curves, across, plots.parts(most), size=plots.SMALL, about=queue.name)
        cards.append(_card(queue.name, "", curves, drawn))
    more = len(run.over_time.queues) - len(shown)
    note = f" (the {len(shown)} that held most)" if more > 0 else ""
    heading = f"What queues held under {html.escape(run.policy)}, and their fair shares{note}"
    return f'<h2>{heading}</h2><section class="charts small">{"".join(cards)}</section>'


def _dropped(simulation: shapes.Simulation) -> str:
    if not simulation.dropped:
        return ""
    items = [f"<li><b>{html.escape(one.job)}</b>: {html.escape(one.why)}</li>" for one in simulation.dropped]
    more = simulation.trace.dropped - len(items)
    rest = f"<li>and {more:,} more</li>" if more > 0 else ""
    return (
        f'<h2>Jobs that could never start here</h2><section class="card wide"><ul>{"".join(items)}{rest}</ul></section>'
    )


def _card(title: str, about: str, curves: Sequence[Curve], drawn: str) -> str:
    note = f"<span>{html.escape(about)}</span>" if about else ""
    caption = f"<figcaption><b>{html.escape(title)}</b>{note}</figcaption>"
    return f'<figure class="card">{caption}{plots.legend(curves)}{drawn}</figure>'


def _over_time(runs: Sequence[shapes.Run], take: Callable[[shapes.OverTime], Sequence[float | None]]) -> list[Curve]:
    return [Curve(run.policy, _points(run, take(run.over_time)), f"s{_look(at)}") for at, run in enumerate(runs)]


def _points(run: shapes.Run, values: Sequence[float | None]) -> list[tuple[float, float | None]]:
    step = run.over_time.step_seconds
    return [((index + 0.5) * step, value) for index, value in enumerate(values)]


def _distribution(run: shapes.Run, values: Sequence[float], look: int) -> Curve:
    return Curve(run.policy, [(value, percent / 100) for value, percent in zip(values, itertools.count())], f"s{look}")


def _length(run: shapes.Run) -> float:
    return len(run.over_time.allocation) * run.over_time.step_seconds


def _look(at: int) -> int:
    return at % plots.COLOURS


_STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1b1f24; --muted: #5b6470; --line: #d9dee5;
  --s0: #2563eb; --s1: #d97706; --s2: #0d9488; --s3: #c026d3;
  --s4: #65a30d; --s5: #dc2626; --s6: #0891b2; --s7: #7c3aed; }
@media (prefers-color-scheme: dark) {
  :root { --page: #101418; --card: #181d23; --text: #e6e9ed; --muted: #9aa4b0; --line: #2d353f;
    --s0: #6ea8fe; --s1: #fbbf24; --s2: #2dd4bf; --s3: #e879f9;
    --s4: #a3e635; --s5: #f87171; --s6: #22d3ee; --s7: #a78bfa; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 28px 0 12px; }
header p { color: var(--muted); margin: 4px 0 20px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; margin: 0; }
.wide { overflow-x: auto; margin-bottom: 16px; width: fit-content; max-width: 100%; }
.charts { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); }
.charts.small { grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 22px 5px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody tr:last-child > * { border-bottom: 0; }
th { text-align: left; font-weight: 600; }
tbody th { color: var(--muted); font-weight: 400; }
td, thead th { text-align: right; }
figcaption span { color: var(--muted); margin-left: 8px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 4px 0 6px; padding: 0;
  color: var(--muted); font-size: 13px; }
.legend svg { width: 22px; height: 8px; margin-right: 6px; vertical-align: middle; }
figure > svg { width: 100%; height: auto; display: block; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.dashed { stroke-dasharray: 5 4; }
.muted { stroke: var(--muted); }
.grid { stroke: var(--line); fill: none; }
.tick { fill: var(--muted); font-size: 11px; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px; }
""" + "".join(
    f".line.s{at} {{ stroke: var(--s{at}); }} .dot.s{at} {{ background: var(--s{at}); }}\n"
    for at in range(plots.COLOURS)
)
