"""A server that kills itself (SIGKILL) at a chosen step, for the tests of crashes.

The steps lie between what is decided and what is kept: the rows of a plan before and after their commit, each start
before and after the supervisor has it, what was seen before and after it is stored. They are found by wrapping the
functions at these places: there is no other way to die exactly there.
"""

import os
import pathlib
import signal
from collections.abc import Callable
from typing import Any

from aliquot.app import server, settings
from aliquot.core.plan import Plan
from aliquot.db.store import PatientStore
from aliquot.local import bookkeeping, records
from aliquot.local.runner import Runner
from aliquot.wire.workloads import PodPhase

STEPS = (
    "intent-not-committed",
    "intent-committed",
    "start-not-begun",
    "launch-recorded",
    "supervisor-started",
    "end-not-committed",
    "end-committed",
    "sight-not-committed",
    "sight-committed",
)


class Death:
    """Kills this process at the n-th crossing of one step."""

    def __init__(self, step: str, crossing: int) -> None:
        self._step = step
        self._left = crossing

    def crossing(self, step: str) -> None:
        """This step is crossed now."""
        if step != self._step:
            return
        self._left -= 1
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def live(data: str, port: int, step: str, crossing: int) -> None:
    """Serve until the step is crossed so many times."""
    os.setsid()
    log = os.open(str(pathlib.Path(data).parent / "server.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    _lay_traps(Death(step, crossing))
    chosen = settings.read(data=data, port=port, devices="4xH100", least_free_mib=1)
    server.serve(chosen, on_ready=lambda _: None)


def _lay_traps(death: Death) -> None:
    after_commit: list[str] = []

    def around(place: object, name: str, before: Callable[..., None], after: Callable[..., None]) -> None:
        wrapped = getattr(place, name)

        def trap(*given: Any, **named: Any) -> Any:  # Any: whatever the wrapped function takes
            before(*given, **named)
            result = wrapped(*given, **named)
            after(*given, **named)
            return result

        setattr(place, name, trap)

    def nothing(*_: object, **__: object) -> None:
        return None

    def planned(_: object, plan: Plan, *__: object) -> None:
        if plan.binds:
            death.crossing("intent-not-committed")
            after_commit.append("intent-committed")

    def saw(_: object, turns: Any) -> None:  # Any: turns of the look
        if any(pod.phase is PodPhase.ENDED for turn in turns for pod in turn.pods):
            death.crossing("end-not-committed")
            after_commit.append("end-committed")
        elif any(turn.events for turn in turns):
            death.crossing("sight-not-committed")
            after_commit.append("sight-committed")

    around(bookkeeping, "write_plan", nothing, planned)
    around(bookkeeping, "write_turns", nothing, saw)
    around(
        Runner, "start", lambda *_: death.crossing("start-not-begun"), lambda *_: death.crossing("supervisor-started")
    )

    def created(_: str, name: str, __: object) -> None:
        if name == records.LAUNCH:
            death.crossing("launch-recorded")

    around(records, "create", nothing, created)
    write = PatientStore.write

    async def write_and_die(store: PatientStore, work: Callable[..., Any]) -> Any:  # Any: what `work` returns
        result = await write(store, work)
        while after_commit:
            death.crossing(after_commit.pop())
        return result

    PatientStore.write = write_and_die  # type: ignore[method-assign, assignment]  # see the module's docstring
