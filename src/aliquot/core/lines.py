"""Who waits, in lines: those who are alike in one line, who waits longest first.

What is found out about the first of a line holds for all of it. Where ten thousand wait, most questions are asked once
for each line and not once for each workload; a world keeps its lines from cycle to cycle.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from datetime import datetime

from aliquot.core.asks import Ask

Line = Sequence[Ask]


def _place(ask: Ask) -> tuple[datetime, str]:
    return (ask.workload.created, ask.id)


class Lines:
    """The lines of one pool."""

    def __init__(self, asks: Iterable[Ask] = ()) -> None:
        self._lines: dict[int, list[Ask]] = {}
        for ask in sorted(asks, key=_place):
            self._lines.setdefault(ask.likeness, []).append(ask)

    @property
    def all(self) -> Iterable[Line]:
        """All lines."""
        return self._lines.values()

    def firsts(self) -> list[Ask]:
        """The first of each line."""
        return [line[0] for line in self._lines.values()]

    def add(self, ask: Ask) -> None:
        """One more waits."""
        insort(self._lines.setdefault(ask.likeness, []), ask, key=_place)

    def remove(self, ask: Ask) -> None:
        """It waits no longer."""
        line = self._lines[ask.likeness]
        del line[bisect_left(line, _place(ask), key=_place)]
        if not line:
            del self._lines[ask.likeness]
