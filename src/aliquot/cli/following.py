"""The lines of a workload's log as they come, read by a thread of their own, so that whoever prints them can look at
the workload meanwhile and say why nothing comes.

Promises: every line once, in order; an error of the stream is raised where the lines are taken.
"""

import queue
import threading
from collections.abc import Iterable, Iterator

from aliquot.core import errors
from aliquot.wire import workloads as shapes

_AT_ONCE = 1000


class Feed:
    """Reads on until the lines end."""

    def __init__(self, lines: Iterable[shapes.LogLine]) -> None:
        # Bounded: whoever reads our output slowly slows down the reading of the log, not our memory.
        self._came: queue.Queue[shapes.LogLine | errors.AliquotError | None] = queue.Queue(maxsize=_AT_ONCE)
        self.is_over = False
        """Whether there will be no more."""
        threading.Thread(target=self._read, args=(lines,), name="log", daemon=True).start()

    def take(self, patience: float) -> Iterator[shapes.LogLine]:
        """What is there, waiting so many seconds for the first line; never so much that it keeps one from looking."""
        for _ in range(_AT_ONCE):
            try:
                item = self._came.get(timeout=patience)
            except queue.Empty:
                return
            if item is None:
                self.is_over = True
                return
            if isinstance(item, errors.AliquotError):
                raise item
            yield item
            patience = 0.0

    def _read(self, lines: Iterable[shapes.LogLine]) -> None:
        try:
            for line in lines:
                self._came.put(line)
            self._came.put(None)
        except errors.AliquotError as error:
            self._came.put(error)
