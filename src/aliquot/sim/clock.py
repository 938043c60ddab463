"""A clock that stands still until it is told to move, so that a day passes in seconds and always in the same way.

Promises: time never goes back, and sleepers wake in the order of their due times, those of one instant in the order in
which they fell asleep.
"""

import asyncio
import heapq
from datetime import datetime, timedelta

TURNS = 20
"""How often the event loop turns after a wake-up before time moves on. A task that waits for nothing but this clock
needs one turn; the rest is for tasks that wait for each other."""


class VirtualClock:
    """The `Clock` port in virtual time. Whoever owns it moves it by `advance` or `leap`."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._timers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        """The present instant."""
        return self._now

    async def sleep(self, span: timedelta) -> None:
        """Return once the clock has moved by this much. No time at all only lets others run."""
        if span <= timedelta(0):
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._timers, (self._now + span, self._count, waiter))
        await waiter

    def next_due(self) -> datetime | None:
        """When the first sleeper wakes; None if nobody sleeps."""
        while self._timers and self._timers[0][2].done():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    async def leap(self) -> bool:
        """Move to the next instant at which somebody wakes, and let them run. False if nobody sleeps."""
        due = self.next_due()
        if due is None:
            return False
        await self._move(due)
        return True

    async def advance(self, span: timedelta) -> None:
        """Move by this much, waking everybody on the way at their time."""
        await _settle()
        end = self._now + span
        while (due := self.next_due()) is not None and due <= end:
            await self._move(due)
        self._now = end

    def set(self, instant: datetime) -> None:
        """Jump to a later instant where nobody sleeps before it: for a driver that is alone with the clock."""
        due = self.next_due()
        if instant < self._now or (due is not None and due < instant):
            raise ValueError(f"the clock cannot jump from {self._now} to {instant}")
        self._now = instant

    async def _move(self, due: datetime) -> None:
        self._now = due
        while self._timers and self._timers[0][0] <= due:
            waiter = heapq.heappop(self._timers)[2]
            if not waiter.done():
                waiter.set_result(None)
        await _settle()


async def _settle() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
