"""Traces are read as their publishers wrote them, and refused with file, line and field where they are wrong."""

import io
import os
import pathlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.errors import InvalidInput
from aliquot.sim import lines, traces
from aliquot.sim.traces import Format, Shape, TraceJob

DATA = pathlib.Path(os.environ.get("ALIQUOT_SHARED", pathlib.Path(__file__).parents[3] / "shared")) / "data"

ITP = "job_id,submission_time,duration,num_gpu\n"
MURI = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
SHOCKWAVE = "LM (batch size 10)\trun\tdir\t--steps\t1\t100\t{gpus}\tgns\t1\t-1.0\t{duration}\t{arrival}\n"


def parse(text: str, kind: Format, *, most: int = 100) -> traces.Trace:
    """The trace in a text, as in a file of this name."""
    return traces.parse("jobs.csv", io.StringIO(text), kind, most=most)


def job(name: str, at: float, seconds: float | None, shape: Shape, tenant: str = "") -> TraceJob:
    """A job as it is read."""
    run_time = None if seconds is None else timedelta(seconds=seconds)
    return TraceJob(name, timedelta(seconds=at), run_time, shape, tenant)


def test_jobs_of_itp_come_in_the_order_of_time_from_zero() -> None:
    trace = parse(ITP + "b,200,60,8\na,100,3.5,1\n", "itp")

    assert trace.jobs == (job("a", 0, 3.5, Shape(1)), job("b", 100, 60, Shape(8)))


def test_jobs_of_one_instant_stay_in_the_order_of_the_file() -> None:
    trace = parse(ITP + "z,1,1,1\na,1,1,1\nm,1,1,1\n", "itp")

    assert [one.name for one in trace.jobs] == ["z", "a", "m"]


def test_the_work_of_muri_is_its_iterations() -> None:
    trace = parse(MURI + "7,2,5000,1000,vgg16,16,99999,0,200,1,2,3,1\n", "muri")

    assert trace.jobs == (job("7", 0, 1000 * 200 * 1.015 / 1000, Shape(2)),)


def test_the_tenant_of_philly_is_its_virtual_cluster() -> None:
    trace = parse(PHILLY + "2017-10-09 07:01:55,66.0,1,66.0,b\n2017-10-09 07:00:55,10.0,2,20.0,a\n", "philly")

    assert trace.jobs == (job("line-3", 0, 10, Shape(2), "a"), job("line-2", 60, 66, Shape(1), "b"))


def test_shockwave_has_tabs_and_no_titles() -> None:
    text = SHOCKWAVE.format(gpus=1, duration=10, arrival=5) + SHOCKWAVE.format(gpus=4, duration=20, arrival=7)

    trace = parse(text, "shockwave")

    assert trace.jobs == (job("line-1", 0, 10, Shape(1), "LM"), job("line-2", 2, 20, Shape(4), "LM"))


def test_pods_of_openb_ask_for_shares_models_cpu_and_memory() -> None:
    text = OPENB + "p,6000,1024,1,460,T4|P100,LS,Running,100,400,150\nq,1000,0,0,0,,BE,Pending,100,130,\n"

    trace = parse(text, "openb")

    share = Shape(1, 460, 6000, 1024 * 2**20, ("P100", "T4"))
    assert trace.jobs == (job("p", 0, 250, share, "LS"), job("q", 0, 30, Shape(0, 1000, 1000), "BE"))


def test_pods_of_openb_without_times_come_one_a_second_and_stay() -> None:
    trace = parse("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,0,8,1000\nq,1000,0,1,500\n", "openb")

    assert [(one.at, one.run_time) for one in trace.jobs] == [(timedelta(0), None), (timedelta(seconds=1), None)]


def test_equal_requests_are_one_object() -> None:
    first, second = parse(ITP + "a,1,1,4\nb,2,1,4\n", "itp").jobs

    assert first.shape is second.shape


@pytest.mark.parametrize(
    "text", [ITP + "a,1,1,1\r\n", "\ufeff" + ITP + "a,1,1,1", ITP + '"a",1,1,1\n\n', ITP + "a,1,1, 1 "]
)
def test_what_spreadsheets_do_to_a_file_does_no_harm(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text, encoding="utf-8", newline="")

    trace = traces.read(path, "itp")

    assert trace.jobs == (job("a", 0, 1, Shape(1)),)


# What is wrong: the format, the text, the line, the field, and words that the message or the valid values must have.
BAD: list[tuple[str, Format, str, int, str | None, str]] = [
    ("an empty file", "itp", "", 1, None, "the file is empty"),
    ("an empty file without titles", "shockwave", "", 1, None, "the file is empty"),
    ("titles alone", "itp", ITP, 2, None, "no job"),
    ("a missing column", "itp", "job_id,duration,num_gpu\na,1,1\n", 1, "submission_time", "missing: submission_time"),
    ("several missing columns", "muri", "job_id,num_gpu\n0,1\n", 1, "submit_time", "submit_time, iterations"),
    ("a column twice", "itp", "job_id,duration,duration,submission_time,num_gpu\n", 1, "duration", "twice"),
    ("another format", "itp", MURI + "0,1,0,1,a,1,1,1,1,1,1,1,1\n", 1, "submission_time", "--format muri"),
    ("another format without titles", "shockwave", ITP, 1, None, "fields parted by tabs"),
    ("Gavel's fields", "shockwave", "a\tb\tc\td\t1\t2.0\t1\n", 1, None, "duration"),
    ("a negative time", "itp", ITP + "a,-5,1,1\n", 2, "submission_time", "is negative"),
    ("a negative duration", "philly", PHILLY + "2017-10-09 07:01:55,-1,1,1,a\n", 2, "duration", "is negative"),
    ("no number", "itp", ITP + "a,1,1,1\nb,soon,1,1\n", 3, "submission_time", "'soon' is not a number"),
    ("not a number", "itp", ITP + "a,nan,1,1\n", 2, "submission_time", "not a number"),
    ("infinity", "itp", ITP + "a,1,inf,1\n", 2, "duration", "not a number"),
    ("an empty field", "itp", ITP + "a,1,,1\n", 2, "duration", "is empty"),
    ("no GPU", "itp", ITP + "a,1,1,0\n", 2, "num_gpu", "too small"),
    ("fewer GPUs than none", "itp", ITP + "a,1,1,-1\n", 2, "num_gpu", "a number from 1 to 100000"),
    ("half a GPU", "itp", ITP + "a,1,1,0.5\n", 2, "num_gpu", "not a whole number"),
    ("too many GPUs", "itp", ITP + "a,1,1,100001\n", 2, "num_gpu", "100000"),
    ("longer than a hundred years", "itp", ITP + "a,1,1e10,1\n", 2, "duration", "too large"),
    ("work of a hundred years", "muri", MURI + "0,1,0,1e12,a,1,1,1,1e6,1,1,1,1\n", 2, "iterations", "hundred years"),
    ("no name", "itp", ITP + ",1,1,1\n", 2, "job_id", "is empty"),
    ("a name twice", "itp", ITP + "a,1,1,1\nb,2,1,1\na,3,1,1\n", 4, None, "'a' is in line 2 already"),
    ("too few fields", "itp", ITP + "a,1,1\n", 2, None, "3 fields where the first line names 4"),
    ("too many fields", "itp", ITP + "a,1,1,1,1\n", 2, None, "5 fields"),
    ("no instant", "philly", PHILLY + "yesterday,1,1,1,a\n", 2, "timestamp", "2017-10-09 07:01:55"),
    ("no tenant", "philly", PHILLY + "2017-10-09 07:01:55,1,1,1,\n", 2, "cluster", "virtual cluster"),
    ("a share of several devices", "openb", OPENB + "p,1,1,2,500,,LS,Running,0,1,0\n", 2, "gpu_milli", "1000 of each"),
    ("nothing of a device", "openb", OPENB + "p,1,1,1,0,,LS,Running,0,1,0\n", 2, "gpu_milli", "1 to 1000"),
    ("more than a device", "openb", OPENB + "p,1,1,1,1001,,LS,Running,0,1,0\n", 2, "gpu_milli", "1000"),
    ("an end before the start", "openb", OPENB + "p,1,1,1,500,,LS,Running,9,5,9\n", 2, "deletion_time", "before"),
    ("a quote without an end", "itp", ITP + '"a,1,1,1\n', 2, None, "no line of a table"),
    ("a line without an end", "itp", ITP + "a" * (lines.LONGEST_LINE + 1), 2, None, "too long"),
    ("bytes that are no text", "itp", ITP + "a\0,1,1,1\n", 2, None, "not text"),
    ("more jobs than are taken", "itp", ITP + "".join(f"{at},1,1,1\n" for at in range(101)), 102, None, "at most 100"),
]


@pytest.mark.parametrize(
    ("kind", "text", "line", "field", "words"), [one[1:] for one in BAD], ids=[one[0] for one in BAD]
)
def test_a_bad_trace_is_refused_with_file_line_field_and_what_is_valid(
    kind: Format, text: str, line: int, field: str | None, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, kind)

    error = caught.value
    assert error.message.startswith(f"jobs.csv:{line}: ")
    assert error.field == field
    assert words in f"{error.message}; valid: {', '.join(error.valid)}"


def test_a_long_trace_is_read_and_refused_for_its_last_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(ITP + "".join(f"{at},{at},60,1\n" for at in range(100_000)))
    trace = traces.read(path, "itp")

    with path.open("a") as stream:
        stream.write("late,100000,-60,1\n")
    with pytest.raises(InvalidInput, match=r"jobs\.csv:100002: duration: '-60' is negative"):
        traces.read(path, "itp")

    assert len(trace.jobs) == 100_000
    assert len({id(one.shape) for one in trace.jobs}) == 1


GOOD: dict[Format, str] = {
    "itp": ITP + "a,1,1,1\n",
    "muri": MURI + "0,1,0,1,a,1,1,1,1,1,1,1,1\n",
    "philly": PHILLY + "2017-10-09 07:01:55,66.0,1,66.0,a\n",
    "openb": OPENB + "p,1,1,1,500,,LS,Running,0,1,0\n",
    "shockwave": SHOCKWAVE.format(gpus=1, duration=1, arrival=1),
}


@given(st.sampled_from(sorted(GOOD)), st.integers(0, 400), st.integers(0, 20), st.text(max_size=12))
def test_whatever_a_file_holds_it_is_read_or_refused(kind: Format, at: int, length: int, other: str) -> None:
    text = GOOD[kind][:at] + other + GOOD[kind][at + length :]

    jobs, refused = 0, ""
    try:
        jobs = len(parse(text, kind).jobs)
    except InvalidInput as error:
        refused = error.message

    assert jobs or refused.startswith("jobs.csv:")


def test_bytes_that_are_no_utf_8_are_refused_with_their_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(ITP.encode() + b"a,1,1,1\n" * 1 + b"\xff\xfe,2,1,1\n")

    with pytest.raises(InvalidInput, match=r"jobs\.csv:3: the file is not text"):
        traces.read(path, "itp")


def test_a_file_that_is_not_there_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        traces.read(tmp_path / "none.csv", "itp")


@pytest.mark.skipif(not DATA.exists(), reason="the public traces are not beside the checkout")
@pytest.mark.parametrize(
    ("file", "kind", "jobs"),
    [
        ("queueing/cluster03.csv", "itp", 3011),
        ("queueing/cluster06.csv", "itp", 2396),
        ("queueing/muri_trace1.csv", "muri", 1494),
        ("queueing/shockwave_120.trace", "shockwave", 120),
        ("openb/openb_pod_list_default.csv", "openb", 8152),
        ("openb/openb_pod_list_multigpu20.csv", "openb", 8324),
    ],
)
def test_published_traces_are_read_as_they_are(file: str, kind: Format, jobs: int) -> None:
    trace = traces.read(DATA / file, kind)

    assert len(trace.jobs) == jobs
