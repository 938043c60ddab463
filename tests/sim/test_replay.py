"""A replay lives through a trace by the decisions of the scheduler, and counts what came of it."""

import random
from collections.abc import Sequence
from datetime import timedelta

import pytest

from aliquot.core.model import Policy
from aliquot.sim import fragmentation, intake, nodes, replay
from aliquot.sim.fragmentation import Fragmentation
from aliquot.sim.intake import BEGIN, DISCIPLINES, Intake, Wear
from aliquot.sim.measures import Measures
from aliquot.sim.replay import Course, Outcome, Progress
from aliquot.sim.traces import Shape, Trace, TraceJob

HOUR = 3600.0
FOR_EVER = None
ALWAYS_SAVED = Wear()


def trace(*jobs: tuple[float, float | None, int]) -> Trace:
    """Jobs by arrival, run time (both in seconds) and GPUs, called a, b, c."""
    made = tuple(
        TraceJob(
            chr(ord("a") + at), timedelta(seconds=begin), None if span is None else timedelta(seconds=span), Shape(gpus)
        )
        for at, (begin, span, gpus) in enumerate(jobs)
    )
    return Trace("test", made)


def random_trace(seed: int, count: int, *, tenants: Sequence[str] = ("",)) -> Trace:
    """More jobs than a small cluster has room for."""
    rng = random.Random(seed)
    at = 0.0
    jobs = []
    for index in range(count):
        at += rng.expovariate(1 / 200)
        span = timedelta(seconds=rng.choice((30, 300, 3000, 30_000)))
        shape = Shape(rng.choice((1, 1, 1, 2, 4, 8, 12)))
        jobs.append(TraceJob(f"job-{index:03d}", timedelta(seconds=at), span, shape, rng.choice(tenants)))
    return Trace("random", tuple(jobs))


def live(
    given: Trace,
    where: str,
    policy: str = "fifo-greedy",
    *,
    queues: str = "one",
    wear: Wear = ALWAYS_SAVED,
    is_crowded: bool = True,
) -> tuple[Outcome, Intake]:
    """Replay a trace in a small cluster; pack is what the literature does."""
    there = nodes.read(where)
    made = intake.queues_of(given, queues, there, DISCIPLINES[policy])
    taken = Intake(given, there, made, wear)
    measured = Measures(BEGIN, there, made, Fragmentation(fragmentation.usual_of(taken.asked())))
    rules = Policy(gpu_placement="pack", release_grace=max(timedelta(seconds=30), wear.release_takes))
    course = Course(there, made, rules, taken.jobs(), is_strict=policy == "fifo", is_crowded=is_crowded)
    return replay.replay(course, measured, lambda _: None), taken


def numbers(outcome: Outcome) -> tuple[object, ...]:
    """All that is counted, for comparing."""
    tally, measured = outcome.tally, outcome.measures
    series = (measured.allocation, measured.waiting, measured.fairness)
    means = [one.means() for one in series]
    return (list(tally.to_start), list(tally.waiting), list(tally.completion), dict(outcome.evictions), means)


def test_jobs_run_as_long_as_the_trace_says_and_wait_for_room() -> None:
    outcome, _ = live(trace((0, 100, 8), (10, 50, 8)), "1x8")

    assert list(outcome.tally.completion) == [100, 140]
    assert list(outcome.tally.waiting) == [0, 90]
    assert list(outcome.tally.to_start) == [0, 90]
    assert outcome.last_end == BEGIN + timedelta(seconds=150)


def test_what_is_held_over_time_adds_up_to_the_work_of_the_trace() -> None:
    given = random_trace(1, 120)

    outcome, _ = live(given, "2x8")

    work = sum(job.shape.devices * job.run_time.total_seconds() for job in given.jobs if job.run_time)
    makespan = (outcome.last_end - BEGIN).total_seconds()
    assert (outcome.measures.allocation.mean() or 0) * 16 * makespan == pytest.approx(work)


def test_strict_fifo_waits_behind_the_head_and_greedy_passes_it() -> None:
    given = trace((0, 100, 4), (1, 100, 8), (2, 10, 4))

    strict, _ = live(given, "1x8", "fifo")
    greedy, _ = live(given, "1x8", "fifo-greedy")

    assert sorted(strict.tally.completion) == [100, 199, 208]
    assert sorted(greedy.tally.completion) == [10, 100, 199]


def test_least_attained_service_lets_a_newcomer_take_the_turn_of_who_has_had_much() -> None:
    given = trace((0, 10 * HOUR, 8), (5 * HOUR, 60, 8))

    greedy, _ = live(given, "1x8")
    sliced, _ = live(given, "1x8", "least-attained-service")

    assert list(greedy.tally.completion) == [10 * HOUR, 5 * HOUR + 60]
    assert list(sliced.tally.completion) == [60, 10 * HOUR + 60]
    assert sliced.evictions == {"time-slice": 1}
    assert sliced.tally.evicted == 1


def test_a_turn_lasts_for_the_quantum() -> None:
    outcome, _ = live(
        trace((0, 10 * HOUR, 8), (2 * HOUR, 3 * HOUR, 8), (2 * HOUR + 60, 60, 8)), "1x8", "least-attained-service"
    )

    # The second takes the turn of the first at once; the third has to wait until it has run for ten minutes, by when it
    # has passed into a later class.
    assert outcome.tally.to_start[0] == 600 - 60


def test_work_that_is_not_saved_is_lost_by_an_eviction() -> None:
    given = trace((0, 10 * HOUR, 8), (5 * HOUR, 60, 8))

    never, _ = live(given, "1x8", "least-attained-service", wear=Wear(checkpoint_every=None))
    hourly, _ = live(given, "1x8", "least-attained-service", wear=Wear(timedelta(hours=3)))

    assert (never.lost, max(never.tally.completion)) == (timedelta(hours=5), 15 * HOUR + 60)
    assert (hourly.lost, max(hourly.tally.completion)) == (timedelta(hours=2), 12 * HOUR + 60)


def test_an_eviction_takes_as_long_as_work_takes_to_end() -> None:
    given = trace((0, 10 * HOUR, 8), (5 * HOUR, 60, 8))

    outcome, _ = live(given, "1x8", "least-attained-service", wear=Wear(release_takes=timedelta(seconds=20)))

    assert list(outcome.tally.completion) == [80, 10 * HOUR + 80]


def test_a_job_that_no_node_holds_becomes_a_gang_that_fills_nodes() -> None:
    outcome, taken = live(trace((0, 60, 20)), "3x8")

    assert list(outcome.tally.completion) == [60]
    assert sorted(request.gpu.devices for request in taken.asked() if request.gpu) == [4, 8]


def test_a_job_larger_than_the_cluster_is_dropped_and_told() -> None:
    outcome, taken = live(trace((0, 60, 17), (1, 60, 8)), "2x8")

    assert [one.job for one in taken.dropped] == ["a"]
    assert "hold" in taken.dropped[0].why
    assert list(outcome.tally.completion) == [60]


def test_jobs_without_an_end_stay_and_what_waits_for_them_is_told() -> None:
    outcome, _ = live(trace((0, FOR_EVER, 8), (5, 10, 8)), "1x8")

    assert (outcome.running, outcome.waiting, len(outcome.tally.completion)) == (1, 1, 0)


def test_a_job_that_takes_no_time_ends_at_once() -> None:
    outcome, _ = live(trace((0, 0, 8), (0, 0, 8), (0, 5, 8)), "1x8")

    assert list(outcome.tally.completion) == [0, 0, 5]


@pytest.mark.slow  # It lives through some hundred cycles.
@pytest.mark.parametrize("policy", sorted(DISCIPLINES))
def test_every_job_ends_and_waits_as_long_as_it_does_not_run(policy: str) -> None:
    given = random_trace(2, 80)

    outcome, _ = live(given, "2x8", policy)

    tally = outcome.tally
    spans = [run - wait for run, wait in zip(tally.completion, tally.waiting, strict=True)]
    expected = [job.run_time.total_seconds() for job in given.jobs if job.run_time is not None]
    assert sorted(round(span, 3) for span in spans) == sorted(expected)
    assert all(start <= wait + 1e-6 for start, wait in zip(tally.to_start, tally.waiting, strict=True))


@pytest.mark.slow  # It lives through some hundred cycles twice.
def test_the_same_trace_gives_the_same_outcome() -> None:
    given = random_trace(3, 60)

    assert numbers(live(given, "2x8", "least-attained-service")[0]) == numbers(
        live(given, "2x8", "least-attained-service")[0]
    )


@pytest.mark.slow  # It lives through some hundred cycles twice.
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", ["fifo-greedy", "least-attained-service"])
@pytest.mark.parametrize("queues", ["one", "3"])
def test_leaving_out_those_far_behind_changes_nothing(seed: int, policy: str, queues: str) -> None:
    given = random_trace(seed, 70)

    part, _ = live(given, "2x4", policy, queues=queues)
    whole, _ = live(given, "2x4", policy, queues=queues, is_crowded=False)

    assert max(value or 0 for value in part.measures.waiting.means()) > 10
    assert numbers(part) == numbers(whole)


def test_each_tenant_has_a_queue_of_its_own_and_its_part() -> None:
    jobs = [TraceJob(f"a{at}", timedelta(0), timedelta(hours=1), Shape(1), "a") for at in range(16)]
    jobs += [TraceJob("b", timedelta(minutes=1), timedelta(hours=1), Shape(4), "b")]

    outcome, _ = live(Trace("two", tuple(jobs)), "1x8", queues="tenant")

    assert outcome.evictions == {"reclaim": 4}
    assert outcome.tally.completion[4] == HOUR  # b took its part at once; four of a ended with it.
    assert (outcome.measures.fairness.mean() or 0) > 0.9


def test_progress_is_told_to_the_end() -> None:
    told: list[Progress] = []
    given = trace((0, 100, 8), (10, 50, 8))
    there = nodes.read("1x8")
    queues = intake.queues_of(given, "one", there, DISCIPLINES["fifo-greedy"])
    course = Course(there, queues, Policy(), Intake(given, there, queues, Wear()).jobs())

    replay.replay(course, Measures(BEGIN, there, queues, Fragmentation([])), told.append)

    assert told[-1] == Progress(ended=2, waiting=0, elapsed=timedelta(seconds=150))
