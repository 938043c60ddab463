"""A value over time in a bounded number of equal steps, whose length grows with the time that there is.

Promises: each step holds the mean over its time, exactly; adding to it costs the same however long it lasts.
"""

from datetime import datetime, timedelta

MOST_STEPS = 400
FIRST_STEP = timedelta(seconds=1)


class Series:
    """A value that stays until it is set anew."""

    def __init__(self, begin: datetime) -> None:
        self._begin = begin
        self._sums: list[float] = []
        self._known: list[float] = []
        self._step = FIRST_STEP.total_seconds()
        self._at = 0.0
        self._value: float | None = None

    @property
    def step(self) -> timedelta:
        """How long a step is now."""
        return timedelta(seconds=self._step)

    def set(self, now: datetime, value: float | None) -> None:
        """From now on it is this; None: there is none."""
        self.close(now)
        self._value = value

    def close(self, now: datetime) -> None:
        """Count the value until now."""
        end = (now - self._begin).total_seconds()
        while end >= self._step * MOST_STEPS:
            self._halve()
        while self._at < end:
            index = int(self._at / self._step)
            until = min(end, (index + 1) * self._step)
            if until <= self._at:  # The last digit of a large number may not suffice to go on.
                index, until = index + 1, min(end, (index + 2) * self._step)
            self._add(index, until - self._at)
            self._at = until

    def means(self) -> list[float | None]:
        """The mean of each step; None where there was no value."""
        return [total / known if known else None for total, known in zip(self._sums, self._known, strict=True)]

    def mean(self) -> float | None:
        """The mean over all the time with a value."""
        known = sum(self._known)
        return sum(self._sums) / known if known else None

    def _add(self, index: int, seconds: float) -> None:
        while len(self._sums) <= index:
            self._sums.append(0.0)
            self._known.append(0.0)
        if self._value is not None:
            self._sums[index] += self._value * seconds
            self._known[index] += seconds

    def _halve(self) -> None:
        self._step *= 2
        self._sums = [sum(self._sums[at : at + 2]) for at in range(0, len(self._sums), 2)]
        self._known = [sum(self._known[at : at + 2]) for at in range(0, len(self._known), 2)]
