"""What was written lately, so that those who keep a copy of something read again only what changed.

Promises: a commit is noted when it can be read; what is forgotten is said to be forgotten, never left out.
"""

import threading
from collections import deque
from collections.abc import Mapping, Set

from aliquot.service import ports

MOST_IDS = 200_000
"""So many touched rows are remembered, of some 100 bytes each: an hour of a machine, minutes of a data centre."""
_QUIET = frozenset({"audit", "credentials", "past_reasons", "samples"})
"""Tables of which nobody keeps a copy."""


class Commits:
    """The last commits of one process. Noted by its one writer, asked by anyone."""

    def __init__(self, newest: int, *, most_ids: int = MOST_IDS) -> None:
        self._most_ids = most_ids
        self._lock = threading.Lock()
        self._kept: deque[ports.Touched] = deque()
        self._ids = 0
        self._last = ports.Touched(0, newest)
        self._forgotten = self._last

    def note(self, sequence: int, rows: Mapping[str, Set[str]]) -> bool:
        """Remember a commit. False: nothing that anyone keeps was written."""
        kept = {table: frozenset(ids) for table, ids in rows.items() if ids and table not in _QUIET}
        if not kept:
            return False
        with self._lock:
            self._last = ports.Touched(self._last.commit + 1, sequence, kept)
            self._kept.append(self._last)
            self._ids += _size(self._last)
            while self._ids > self._most_ids and len(self._kept) > 1:
                self._forgotten = self._kept.popleft()
                self._ids -= _size(self._forgotten)
        return True

    def newest(self) -> ports.Touched:
        """The last commit, without what it wrote."""
        with self._lock:
            return ports.Touched(self._last.commit, self._last.sequence)

    def after(self, commit: int) -> ports.Touched | None:
        """All that was written after a commit, as one; None if some of it is forgotten."""
        with self._lock:
            if not self._forgotten.commit <= commit <= self._last.commit:
                return None
            count = self._last.commit - commit
            fresh = [self._kept[place] for place in range(len(self._kept) - count, len(self._kept))]
            last = self._last
        rows: dict[str, set[str]] = {}
        for one in fresh:
            for table, ids in one.rows.items():
                rows.setdefault(table, set()).update(ids)
        return ports.Touched(last.commit, last.sequence, {table: frozenset(ids) for table, ids in rows.items()})

    def before(self, sequence: int) -> int | None:
        """The commit before the first one at which this event, or a later one, was the newest.

        What was written without an event since then is in the commits after it, too. Of the events before this process
        nobody knows what was written after them.
        """
        with self._lock:
            if not self._forgotten.sequence < sequence <= self._last.sequence:
                return None
            # From the end, as who comes back was away for a moment.
            before = self._last.commit
            for one in reversed(self._kept):
                if one.sequence < sequence:
                    break
                before = one.commit - 1
            return before


def _size(touched: ports.Touched) -> int:
    return sum(map(len, touched.rows.values()))
