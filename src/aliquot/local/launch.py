"""What the runner is told and what it tells: launches, limits, exits, observations. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Literal

from aliquot.core.model import Guarantee

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class LogPolicy:
    """How much of a pod's output is kept. What is dropped leaves a marker; offsets go on."""

    segment_bytes: int = 8 * MEBIBYTE
    keep_bytes: int = 64 * MEBIBYTE
    """All segments together; the oldest go first. The one being written always stays."""
    rotate_after: timedelta = timedelta(days=1)
    keep_for: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Launch:
    """One pod to start. `environment` is complete: nothing but the runner's own marker (ALIQUOT_RUN) is added."""

    pod: str
    workload: str
    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    milli_cpus: int | None = None
    """None is no limit."""
    memory_bytes: int | None = None
    grace: timedelta = timedelta(seconds=30)
    """Between TERM and KILL, where the end is not asked for with another one."""
    stdin: Literal["none", "pipe", "pty"] = "none"
    log: LogPolicy = field(default_factory=LogPolicy)


class ExitKind(StrEnum):
    """How a pod ended."""

    EXITED = "exited"
    """By itself, with `code`."""
    SIGNALLED = "signalled"
    """By `signal`."""
    OUT_OF_MEMORY = "out-of-memory"
    """It went over its memory limit and was killed for it."""
    NOT_STARTED = "not-started"
    """Its command never ran: not found (code 127), not executable or folder missing (126), ended before (no code)."""
    UNKNOWN = "unknown"
    """Its supervisor vanished, so nobody saw how it ended. Never a success."""
    LOST = "lost"
    """The machine was started anew under it."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How, when and why a pod ended. `code` is what its command returned, or None; 128 + signal is the caller's."""

    kind: ExitKind
    code: int | None
    signal: int | None
    at: datetime
    message: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """How one limit is enforced, in a word and in a sentence. NONE where no limit was asked for."""

    guarantee: Guarantee
    mechanism: str


@dataclass(frozen=True, slots=True)
class Enforcement:
    """How the limits of a pod are enforced."""

    cpu: Limit
    memory: Limit


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a pod from its records and from whether its supervisor lives.

    `starting`: nobody has claimed it yet; call `start` again if nothing comes of it (it is safe). `running` lasts until
    the last of its processes is gone. `is_ending` says that it was told to end.
    """

    pod: str
    workload: str
    state: Literal["starting", "running", "ended"]
    pid: int | None = None
    started: datetime | None = None
    exit: Exit | None = None
    limits: Enforcement | None = None
    is_ending: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened to a pod: its state changed, or its log grew (only told for pods that are followed)."""

    pod: str
    kind: Literal["state", "log"]
