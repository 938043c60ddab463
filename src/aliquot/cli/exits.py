"""Every exit code of the command line, in one place; `docs/reference/exit-codes.md` is checked against this.

`run`, `exec`, `wait` and `logs --follow` pass the exit code of the program through, so these are the codes a program
rarely uses itself: those of sysexits.h, and of `timeout` and `env`.
"""

from dataclasses import dataclass

from aliquot.core import errors, lifecycle

OK = 0
FAILED = 1
BAD_INPUT = 2
SERVER_NOT_FOUND = 69
EXIT_UNKNOWN = 70
EVICTED = 75
NOT_ALLOWED = 77
TIME_LIMIT = 124
NOT_STARTED = 126
INTERRUPTED = 130
OUT_OF_MEMORY = 137
PIPE_CLOSED = 141
STOPPED = 143
SIGNAL_BASE = 128

MEANINGS: dict[int, str] = {
    OK: "It worked.",
    FAILED: "It did not work: a conflict, or an error of the server. The message says which.",
    BAD_INPUT: "Bad input: an option, a file, a wrong name, or work that could never start here. Nothing was done.",
    SERVER_NOT_FOUND: "No server was found, or it does not answer or cannot do this now.",
    EXIT_UNKNOWN: "The job ended and nobody knows how: its supervisor was killed. It is never counted as a success.",
    EVICTED: "The job was evicted and `--no-requeue` was given.",
    NOT_ALLOWED: "The server does not know the token, or does not allow this.",
    TIME_LIMIT: "The job passed its `--max-run-time`; or `wait --timeout` passed.",
    NOT_STARTED: "The job's program could not be started: not found, or not executable.",
    INTERRUPTED: "Ctrl-C: the command stopped waiting (128 + 2).",
    OUT_OF_MEMORY: "The job used more memory than its limit and was killed (128 + 9).",
    PIPE_CLOSED: "The reader of the output went away (128 + 13).",
    STOPPED: "The job was stopped before it ended by itself, and had no process to end (128 + 15).",
}

_OF_OUTCOME = {
    "completed": OK,
    "out-of-memory": OUT_OF_MEMORY,
    "time-limit": TIME_LIMIT,
    "exit-unknown": EXIT_UNKNOWN,
    "not-started": NOT_STARTED,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a workload ended, as far as an exit code can tell."""

    phase: lifecycle.Phase
    outcome: str | None
    exit_code: int | None
    exit_signal: int | None


def of_error(error: errors.AliquotError) -> int:
    """The exit code of an error of the tree."""
    match error:
        case errors.InvalidInput() | errors.NotFound() | errors.TooLarge() | errors.KeyReused():
            return BAD_INPUT
        case errors.Unauthenticated() | errors.Forbidden():
            return NOT_ALLOWED
        case errors.Unavailable():
            return SERVER_NOT_FOUND
        case _:
            return FAILED


def of_ending(ending: Ending) -> int:
    """The exit code of a job: its own where it has one, 128 + signal where it was killed, else one of this module."""
    known = _OF_OUTCOME.get(ending.outcome or "")
    if known is not None:
        return known
    if ending.exit_signal:
        return SIGNAL_BASE + ending.exit_signal
    if ending.exit_code:
        return ending.exit_code
    if ending.phase is lifecycle.Phase.SUCCEEDED:
        return OK
    return STOPPED if ending.phase is lifecycle.Phase.STOPPED else FAILED
