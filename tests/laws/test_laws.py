"""The laws hold on random worlds: all of them on single cycles, and that a cluster that is left alone comes to rest.

`make laws` judges many more, and says where it found a law broken. The worlds here are always the same.
"""

import pytest

from tests.laws import judge, rest, search, worlds
from tests.laws.judge import Verdict

pytestmark = pytest.mark.slow
"""A law is tried on many worlds."""

WORLDS_A_TEST = 20
FIRST = 5_000_000
"""Not the worlds with which a long search begins."""


@pytest.mark.parametrize("part", range(12))
def test_every_law_holds_on_random_cycles(part: int) -> None:
    verdict = Verdict()
    for number in range(FIRST + part * WORLDS_A_TEST, FIRST + (part + 1) * WORLDS_A_TEST):
        verdict.add(judge.judge(search.world_of("cycles", number)))

    assert verdict.judged["cycles"] == WORLDS_A_TEST
    assert verdict.judged["binds"] > 0
    assert verdict.judged["waits"] > 0


@pytest.mark.parametrize("part", range(6))
def test_a_cluster_that_is_left_alone_comes_to_rest(part: int) -> None:
    verdict = Verdict()
    for number in range(FIRST + part * WORLDS_A_TEST, FIRST + (part + 1) * WORLDS_A_TEST):
        verdict.add(rest.judge_run(search.world_of("runs", number)))

    assert verdict.judged["runs"] == WORLDS_A_TEST
    assert verdict.judged["cycles"] > 2 * WORLDS_A_TEST


def test_the_worlds_judged_here_are_contended() -> None:
    verdict = Verdict()
    for number in range(FIRST, FIRST + 400):
        world = worlds.make(number)
        verdict.add(judge.judge_plan(judge.case_of(world), ()))

    for what in ("binds", "promises", "evicted by reclaim", "evicted by preempt", "evicted by drain"):
        assert verdict.judged[what] >= 5, what


def test_a_world_is_the_same_for_the_same_seed() -> None:
    assert worlds.make(17) == worlds.make(17)
    assert worlds.make(17) != worlds.make(18)


def test_a_world_knows_only_the_features_that_are_asked_for() -> None:
    world = worlds.make(3, {"gangs"})

    assert world.features <= {"gangs"}
    assert all(node.pool == "default" and not node.taints for node in world.snapshot.nodes)
