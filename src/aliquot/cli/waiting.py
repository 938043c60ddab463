"""Watches a workload while a person waits for it: one line says why it waits and stays fresh, remarks say what happens.

Promises: nothing is said in the first two seconds; on a terminal the line is rewritten in place, elsewhere each change
is a line of its own; everything goes to stderr.
"""

import contextlib
import shutil
import sys
import time

from aliquot.cli import connection, exits, words
from aliquot.core import errors, lifecycle
from aliquot.wire import workloads as shapes

SILENT_SECONDS = 2.0
PATIENCE_SECONDS = 60.0
"""How long a server that is away (it is being started again, say) is waited for."""


class Line:
    """One line on stderr that can be written anew."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown = ""
        self.is_raw = False
        """Whether the terminal is in raw mode: then a line ends with a return, too."""

    def show(self, text: str, *, suffix: str = "") -> None:
        """Show the text; the suffix (a running time) alone is no reason for a new line."""
        if self._is_terminal:
            width = shutil.get_terminal_size().columns
            whole = text + suffix
            whole = whole if len(whole) < width else f"{text[: max(0, width - len(suffix) - 4)]}...{suffix}"
            print(f"\r\x1b[K{whole}", end="", file=sys.stderr, flush=True)
        elif text != self._shown:
            print(text, file=sys.stderr, flush=True)
        self._shown = text

    def clear(self) -> None:
        """Make room for output."""
        if self._shown and self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._shown = ""

    def say(self, text: str) -> None:
        """A remark that stays."""
        self.clear()
        end = "\r\n" if self.is_raw else "\n"
        print(text, end=end, file=sys.stderr, flush=True)


class Watch:
    """A workload that is waited for. `look` asks the server and says what changed."""

    def __init__(self, client: connection.Client, view: shapes.WorkloadDetail, *, may_requeue: bool = True) -> None:
        self.client = client
        self.view = view
        self.line = Line()
        self.is_evicted = False
        self.has_asked_to_end = False
        self._may_requeue = may_requeue
        self._waits_since = time.monotonic()
        self._away_since: float | None = None
        self._evicted_attempt = 0

    @property
    def is_over(self) -> bool:
        """Whether it has finished."""
        return self.view.phase in lifecycle.FINISHED

    def look(self) -> shapes.WorkloadDetail:
        """How it is now. Raises Unavailable when the server has been away for too long."""
        try:
            after = self.client.get_workload(self.view.id)
        except errors.Unavailable as error:
            self._bear(error)
            return self.view
        if self._away_since is not None:
            self._away_since = None
            self.line.say("the server is back")
        before, self.view = self.view, after
        if before.phase is not after.phase:
            self._waits_since = time.monotonic() if after.phase is lifecycle.Phase.PENDING else self._waits_since
            self.line.clear()
        self._remark(before)
        self.keep_fresh()
        return after

    def keep_fresh(self) -> None:
        """Say why it waits, once that takes long."""
        waited = time.monotonic() - self._waits_since
        if self.view.phase is not lifecycle.Phase.PENDING or waited < SILENT_SECONDS:
            return
        self.line.show(why(self.view), suffix=f" [{words.seconds(int(waited))}]")

    def ask_to_end(self) -> bool:
        """What Ctrl-C means: the first one asks the job to end (True), the second one leaves it (False)."""
        if self.has_asked_to_end:
            return False
        self.has_asked_to_end = True
        name = self.view.name
        self.line.say(f"asked {name} to end; Ctrl-C again stops waiting for it")
        with contextlib.suppress(errors.Conflict):  # It ended by itself just before.
            self.view = self.client.stop_workload(self.view.id)
        return True

    def leave(self) -> int:
        """Say what becomes of the job that is no longer waited for."""
        self.line.say(f"no longer waiting for {self.view.name}; `aliquot get {self.view.name}` shows it")
        return exits.INTERRUPTED

    def exit_code(self) -> int:
        """The exit code of the finished workload, as the documentation lists them."""
        view = self.view
        if self.is_evicted:
            return exits.EVICTED
        code = exits.of_ending(exits.Ending(view.phase, view.outcome, view.exit_code, view.exit_signal))
        if self.has_asked_to_end and code == exits.STOPPED and view.exit_signal is None:
            return exits.INTERRUPTED
        return code

    def say_end(self) -> None:
        """Say how it ended, where the exit code alone would not tell."""
        if self.is_evicted or self.view.outcome in {None, "completed", "failed"}:
            return
        message = next((pod.exit_message for pod in reversed(self.view.pods) if pod.exit_message), None)
        why = f": {message}" if message and self.view.phase is lifecycle.Phase.FAILED else ""
        self.line.say(f"{self.view.name} {words.state(self.view)}{why}")

    def _remark(self, before: shapes.WorkloadView) -> None:
        after = self.view
        is_evicted = after.phase is lifecycle.Phase.EVICTING or after.evictions > before.evictions
        if is_evicted and after.attempt != self._evicted_attempt:
            self._evicted_attempt = after.attempt
            self._note_eviction()
        elif after.failures > before.failures:
            self.line.say(f"{after.name} failed; it is started again (retry {after.failures})")

    def _note_eviction(self) -> None:
        name = self.view.name
        if self._may_requeue:
            self.line.say(f"{name} was evicted: it goes on, from its checkpoint, when it gets a place again")
        elif not self.is_evicted:
            self.is_evicted = True
            self.line.say(f"{name} was evicted and is not put back in line; `aliquot receipts` says why")
            self.client.stop_workload(self.view.id)

    def _bear(self, error: errors.Unavailable) -> None:
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            self.line.say("the server does not answer; the job goes on without it, trying again")
        elif now - self._away_since > PATIENCE_SECONDS:
            raise error


def why(view: shapes.WorkloadView) -> str:
    """Why it waits, in one line."""
    if view.reason is None:
        return f"{view.name} waits to be looked at"
    place = f" (number {view.reason.position} in line)" if view.reason.position is not None else ""
    return f"{view.name} waits{place}: {view.reason.message}"
