"""What was asked lately, which tells placement what will be asked again.

Promises: the answer changes seldom, because whatever is worked out from it has to be worked out anew then.
"""

from collections import Counter, deque

from aliquot.core.model import Asked, PodRequest

WINDOW = 1_000
"""How many of the last pods count."""
FIRST, EVERY = 16, 100
"""It is told anew after so many more pods; more often in the beginning, when each changes much."""


class Recent:
    """The requests of the last pods."""

    def __init__(self) -> None:
        self._last: deque[PodRequest] = deque(maxlen=WINDOW)
        self._new = 0
        self._told: tuple[Asked, ...] = ()

    def add(self, request: PodRequest) -> None:
        """One more was asked."""
        self._last.append(request)
        self._new += 1

    def asked(self) -> tuple[Asked, ...]:
        """How often each was asked, as of lately."""
        if self._new >= min(EVERY, max(FIRST, len(self._last) // 4)) or (self._last and not self._told):
            self._new = 0
            counts = Counter(self._last)
            self._told = tuple(Asked(request, counts[request]) for request in sorted(counts, key=repr))
        return self._told

    def twin(self) -> "Recent":
        """The same again, which goes its own way."""
        other = Recent()
        other._last, other._new, other._told = deque(self._last, maxlen=WINDOW), self._new, self._told
        return other
