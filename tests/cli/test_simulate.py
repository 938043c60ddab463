"""`aliquot simulate`: what it prints and writes, how it ends, and that bad input is refused before anything runs."""

import html.parser
import json
import pathlib
import re

import pytest

from tests.cli import door

ITP = "job_id,submission_time,duration,num_gpu\na,0,100,8\nb,10,50,8\nc,20,30,4\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(
    f"2017-10-09 07:0{at}:00,600.0,4,66.0,{tenant}\n" for at, tenant in enumerate(["<b>x</b>", "y"] * 4)
)
SCENARIO = """\
format: aliquot-scenario/2
name: three jobs on one node
now: 2026-01-01T00:00:00Z
nodes: [{name: n0, gpus: 2}]
queues: [{name: q}]
workloads:
- {name: a, queue: q, maxRunTime: 60s, created: -60s, started: -20s,
   pods: [{name: a-0, gpu: 2, state: running, node: n0}]}
- {name: b, queue: q, maxRunTime: 30s, created: -10s, pods: [{name: b-0, gpu: 1}]}
- {name: c, queue: q, created: -5s, pods: [{name: c-0, gpu: 1}]}
"""


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> str:
    """A trace of three jobs."""
    path = tmp_path / "jobs.csv"
    path.write_text(ITP)
    return str(path)


def simulate(trace: str, *options: str, form: str = "itp", nodes: str | None = "1x8xH100") -> door.Answer:
    """Run the command."""
    where = () if nodes is None else ("--nodes", nodes)
    return door.call("simulate", "--trace", trace, "--format", form, *where, *options)


def test_people_see_a_column_for_each_policy(trace: str) -> None:
    answer = simulate(trace, "--policy", "fifo,fifo-greedy")

    lines = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    assert answer.code == 0
    assert lines[0] == "jobs.csv: 3 jobs on 8 devices of 1 node, 1 queue, placement fragmentation"
    assert "FIFO FIFO-GREEDY" in lines
    assert "jobs that ended 3 3" in lines
    assert "makespan 3 min 0 s 3 min 0 s" in lines


def test_programs_get_the_whole_report(trace: str) -> None:
    answer = simulate(trace, "--json")

    found = json.loads(answer.stdout)
    run = found["runs"][0]
    assert (found["format"], found["trace"]["jobs"], found["cluster"]["models"]) == (
        "aliquot-simulation/1",
        3,
        {"H100": 8},
    )
    assert run["completion"] == {"mean": 133.333, "p50": 140.0, "p90": 160.0, "p99": 160.0, "most": 160.0}
    assert run["waited"] == {"mean": 73.333, "p50": 90.0, "p90": 130.0, "p99": 130.0, "most": 130.0}
    assert run["makespanSeconds"] == 180
    assert len(run["completionPercentiles"]) == 101
    assert run["overTime"]["allocation"][:3] == [1, 1, 1]


class References(html.parser.HTMLParser):
    """Everything in a page that a browser would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what it refers to."""
        if tag in {"script", "link", "iframe", "img", "object", "embed"}:
            self.found.append(tag)
        self.found += [f"{name}={value}" for name, value in attrs if name in {"src", "href"} or name.startswith("on")]
        named = dict(attrs)
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named.get("content") or ""


def test_the_page_asks_nobody_for_anything_and_shows_names_as_text(tmp_path: pathlib.Path) -> None:
    source, page = tmp_path / "jobs.csv", tmp_path / "report.html"
    source.write_text(PHILLY)

    answer = simulate(str(source), "--queues", "tenant", "--html", str(page), form="philly")

    text = page.read_text(encoding="utf-8")
    seen = References()
    seen.feed(text)
    assert answer.code == 0
    assert seen.found == []
    assert seen.policy.startswith("default-src 'none'")
    assert not re.search(r"url\(|@import|https?://", text)
    assert "<b>x</b>" not in text
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert text.count("<svg viewBox") > 8
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_page_has_colours_for_light_and_for_dark(trace: str, tmp_path: pathlib.Path) -> None:
    page = tmp_path / "report.html"

    simulate(trace, "--html", str(page))

    text = page.read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert set(re.findall(r"var\((--\w+)\)", text)) <= set(re.findall(r"(--\w+):", text))


def test_a_scenario_runs_on_from_what_it_says(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(SCENARIO)

    answer = simulate(str(path), "--json", form="scenario", nodes=None)

    run = json.loads(answer.stdout)["runs"][0]
    # a ends 40 s after the first cycle; then b runs for 30 s and c for ever.
    assert run["policy"] == "as-written"
    assert (run["ended"], run["running"], run["waiting"]) == (2, 1, 0)
    assert run["makespanSeconds"] == 70


def test_a_job_larger_than_the_cluster_is_told_of(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(ITP + "huge,30,10,9\n")

    answer = simulate(str(path))

    assert answer.code == 0
    assert "1 could never start here, the first of them huge: " in answer.stdout


BAD_OPTIONS = [
    (["--policy", "best"], "--policy: 'best' is not known"),
    (["--policy", "fifo,fifo"], "--policy: a policy is named twice"),
    (["--policy", ""], "--policy: '' is not known"),
    (["--queues", "tenant"], "--queues: 'tenant': the jobs of this trace name no tenant"),
    (["--queues", "0"], "--queues: '0': is not known"),
    (["--queues", "many"], "--queues: 'many': is not known"),
    (["--queues", "10001"], "--queues: '10001': is not known"),
    (["--nodes", "lots"], "--nodes: 'lots' is neither nodes nor a file"),
    (["--nodes", "1x99"], "--nodes: '1x99': more than 64 devices on a node"),
    (["--placement", "best"], "Invalid value for '--placement'"),
    (["--jobs", "0"], "Invalid value for '--jobs'"),
    (["--checkpoint", "soon"], "--checkpoint: 'soon' is not a duration"),
    (["--release", "-5"], "--release: '-5' is not a duration"),
    (["--quantum", "0"], "--quantum"),
    (["--html", "/no/such/folder/report.html"], "--html: /no/such/folder/report.html: there is no such folder"),
    (["--trace", "none.csv"], "none.csv: cannot be read"),
    (["--format", "borg"], "Invalid value for '--format'"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=[" ".join(options) for options, _ in BAD_OPTIONS])
def test_a_bad_option_is_named_with_what_is_valid(trace: str, options: list[str], message: str) -> None:
    answer = simulate(trace, *options)

    assert (answer.code, answer.stdout) == (2, "")
    assert message in answer.stderr


def test_a_trace_without_nodes_is_refused(trace: str) -> None:
    answer = simulate(trace, nodes=None)

    assert answer.code == 2
    assert "--nodes is missing" in answer.stderr
    assert "8x8xH100" in answer.stderr


@pytest.mark.parametrize("options", [["--nodes", "1x8"], ["--queues", "tenant"]])
def test_a_scenario_has_its_own_nodes_and_queues(tmp_path: pathlib.Path, options: list[str]) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(SCENARIO)

    answer = simulate(str(path), *options, form="scenario", nodes=None)

    assert (answer.code, answer.stdout) == (2, "")
    assert f"{options[0]}: a scenario has its own" in answer.stderr


def test_a_bad_trace_is_refused_with_its_line_and_no_page_is_left(tmp_path: pathlib.Path) -> None:
    path, page = tmp_path / "jobs.csv", tmp_path / "report.html"
    path.write_text(ITP + "d,-1,10,1\n")

    answer = simulate(str(path), "--html", str(page))

    assert (answer.code, answer.stdout) == (2, "")
    assert "Error: jobs.csv:5: submission_time: '-1' is negative" in answer.stderr
    assert "valid: a number from 0 to " in answer.stderr
    assert not page.exists()


def test_a_bad_scenario_is_refused_with_its_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(SCENARIO.replace("name: b, queue: q", "name: b, queue: r"))

    answer = simulate(str(path), form="scenario", nodes=None)

    assert (answer.code, answer.stdout) == (2, "")
    assert "three.yaml, line" in answer.stderr
    assert "'r'" in answer.stderr


BAD_FILES = {
    "a missing column": (
        "itp",
        ITP.replace(",duration", "").replace(",100,", ","),
        "bad:1: this column is missing: duration; found: 'job_id, submission_time, num_gpu'",
        "job_id, submission_time, duration, num_gpu",
    ),
    "a negative time": (
        "itp",
        ITP.replace("b,10", "b,-10"),
        "bad:3: submission_time: '-10' is negative",
        "a number from 0 to 3153600000",
    ),
    "a job twice": ("itp", ITP.replace("c,", "a,"), "bad:4: the job 'a' is in line 2 already", "names that differ"),
    "an unknown queue": (
        "scenario",
        SCENARIO.replace("b, queue: q", "b, queue: r"),
        "bad, line 9: workloads[1].queue: there is no queue 'r'",
        "q",
    ),
    "a tree in a circle": (
        "scenario",
        SCENARIO.replace("[{name: q}]", "[{name: q, parent: p}, {name: p, parent: q}]"),
        "bad, line 5: queues[0].parent: the queues are a circle, not a tree: q -> p -> q",
        "a queue that is not below this one, null",
    ),
    "a queue twice": (
        "scenario",
        SCENARIO.replace("[{name: q}]", "[{name: q}, {name: q}]"),
        "bad, line 5: queues[1].name: there are two queues 'q'",
        "names that differ",
    ),
    "a workload twice": (
        "scenario",
        SCENARIO.replace("name: b,", "name: a,"),
        "bad, line 9: workloads[1].name: there are two workloads 'a'",
        "names that differ",
    ),
    "a negative span": (
        "scenario",
        SCENARIO.replace("maxRunTime: 30s", "maxRunTime: -30s"),
        "bad, line 9: workloads[1].maxRunTime: '-30s' is negative",
        "90s, 30m, 1h30m, 2d",
    ),
}


@pytest.mark.parametrize(("form", "text", "message", "valid"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_ends_with_two_and_says_file_line_field_and_what_is_valid(
    tmp_path: pathlib.Path, form: str, text: str, message: str, valid: str
) -> None:
    path = tmp_path / "bad"
    path.write_text(text)

    answer = simulate(str(path), form=form, nodes=None if form == "scenario" else "1x8")

    assert (answer.code, answer.stdout) == (2, "")
    assert f"Error: {message}\n  valid: {valid}\n" in answer.stderr
