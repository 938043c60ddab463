"""Ids that come out the same in every run, so that two runs of one script can be compared word by word."""

import hashlib


class CountedIds:
    """The `Ids` port by counting: `sim-00000001`, `sim-00000002`, ... which also sorts by the time of their making."""

    def __init__(self, prefix: str = "sim") -> None:
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        """The next id."""
        self._count += 1
        return f"{self._prefix}-{self._count:08d}"

    def secret(self) -> str:
        """As long as a real secret and as unlike its neighbours, but no secret: anybody can compute it."""
        return hashlib.sha256(self.new().encode()).hexdigest()
