"""Exit codes: of errors, of jobs, and that the page lists all of them."""

import pathlib

import pytest

from aliquot.cli import exits
from aliquot.core import errors, lifecycle
from tests.house import sources

PAGE = sources.ROOT / "docs" / "reference" / "exit-codes.md"
FAILED, STOPPED, SUCCEEDED = lifecycle.Phase.FAILED, lifecycle.Phase.STOPPED, lifecycle.Phase.SUCCEEDED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidInput("x"), 2),
        (errors.CannotEverStart("x"), 2),
        (errors.NotFound("x"), 2),
        (errors.TooLarge("x"), 2),
        (errors.KeyReused("x"), 2),
        (errors.Conflict("x"), 1),
        (errors.AliquotError("x"), 1),
        (errors.Unauthenticated("x"), 77),
        (errors.Forbidden("x"), 77),
        (errors.Unavailable("x"), 69),
    ],
)
def test_every_error_has_an_exit_code(error: errors.AliquotError, code: int) -> None:
    assert exits.of_error(error) == code


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (exits.Ending(SUCCEEDED, "completed", 0, None), 0),
        (exits.Ending(SUCCEEDED, None, None, None), 0),
        (exits.Ending(FAILED, "failed", 3, None), 3),
        (exits.Ending(FAILED, "failed", None, 9), 137),
        (exits.Ending(FAILED, "failed", None, None), 1),
        (exits.Ending(FAILED, "out-of-memory", None, 9), 137),
        (exits.Ending(FAILED, "time-limit", None, 15), 124),
        (exits.Ending(FAILED, "time-limit", 0, None), 124),
        (exits.Ending(FAILED, "exit-unknown", None, None), 70),
        (exits.Ending(FAILED, "not-started", None, None), 126),
        (exits.Ending(STOPPED, "stopped", None, 15), 143),
        (exits.Ending(STOPPED, "stopped", 4, None), 4),
        (exits.Ending(STOPPED, "stopped", None, None), 143),
    ],
)
def test_the_exit_code_of_a_job_is_its_own_or_says_why_it_has_none(ending: exits.Ending, code: int) -> None:
    assert exits.of_ending(ending) == code


def test_a_job_that_did_not_succeed_never_ends_with_zero() -> None:
    outcomes = [None, "failed", "out-of-memory", "time-limit", "exit-unknown", "not-started", "stopped"]

    codes = [exits.of_ending(exits.Ending(FAILED, outcome, None, None)) for outcome in outcomes]

    assert 0 not in codes


@pytest.mark.parametrize("code", exits.MEANINGS)
def test_the_page_lists_every_code_with_its_meaning(code: int) -> None:
    rows = [line for line in pathlib.Path(PAGE).read_text().splitlines() if line.startswith(f"| {code} |")]

    assert rows == [f"| {code} | {exits.MEANINGS[code]} |"]
