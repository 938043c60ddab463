"""Watches a simulated cluster: how much of it is held, how well what is idle fits the work, how fair the parts are.

Promises: allocation and the number of those who wait are exact; what is costly (fragmentation, shares) is looked at
once in each step of the series, so that watching costs little however many things happen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from aliquot.core.model import DEFAULT_POOL, WHOLE_DEVICE_MILLI, Node, Queue
from aliquot.core.snapshot import World as Accounts
from aliquot.sim.fragmentation import Fragmentation
from aliquot.sim.occupancy import Occupancy
from aliquot.sim.series import Series


@dataclass(frozen=True, slots=True)
class Part:
    """What a queue held and what was its due, as parts of all devices."""

    queue: str
    held: Series
    due: Series


class Measures:
    """All series of one replay."""

    def __init__(
        self, begin: datetime, nodes: Sequence[Node], queues: Sequence[Queue], fragmentation: Fragmentation
    ) -> None:
        self._nodes = nodes
        self._fragmentation = fragmentation
        parents = {queue.parent for queue in queues}
        self._leaves = [queue for queue in queues if queue.id not in parents]
        self._sample = begin
        self._share_sample = begin
        self.capacity = sum(len(node.devices) for node in nodes) * WHOLE_DEVICE_MILLI
        self.allocation = Series(begin)
        self.waiting = Series(begin)
        self.fragmentation = Series(begin)
        """Of all devices."""
        self.fragmentation_of_idle = Series(begin)
        self.fairness = Series(begin)
        self.parts = {queue.id: Part(queue.name, Series(begin), Series(begin)) for queue in self._leaves}

    def wants_shares(self, now: datetime) -> bool:
        """Whether it is time to look at the shares: only where several queues have some."""
        return len(self._leaves) > 1 and now >= self._share_sample

    def see(self, now: datetime, occupancy: Occupancy, *, waiting: int) -> None:
        """What is, from now on."""
        capacity = self.capacity or 1
        self.allocation.set(now, occupancy.milli_gpus / capacity)
        self.waiting.set(now, waiting)
        if now < self._sample:
            return
        self._sample = now + self.allocation.step
        lost = sum(self._fragmentation.of(node, occupancy.on(node.id)) for node in self._nodes)
        idle = self.capacity - occupancy.milli_gpus
        self.fragmentation.set(now, lost / capacity)
        self.fragmentation_of_idle.set(now, lost / idle if idle else None)

    def see_shares(self, now: datetime, accounts: Mapping[str, "Share"]) -> None:
        """What each queue holds and what is its due, from now on."""
        self._share_sample = now + self.allocation.step
        ratios = []
        for id, part in self.parts.items():
            share = accounts.get(id)
            if share is None:
                continue
            part.held.set(now, share.held / (self.capacity or 1))
            part.due.set(now, share.due / (self.capacity or 1))
            if share.due > 0:
                ratios.append(share.held / share.due)
        self.fairness.set(now, jain(ratios))

    def close(self, now: datetime) -> None:
        """Count everything until now."""
        parts = [series for part in self.parts.values() for series in (part.held, part.due)]
        every = (self.allocation, self.waiting, self.fragmentation, self.fragmentation_of_idle, self.fairness, *parts)
        for series in every:
            series.close(now)


@dataclass(frozen=True, slots=True)
class Share:
    """Milli-GPU that a queue holds, and its fair share."""

    held: int
    due: int


def shares_of(accounts: Accounts) -> dict[str, Share]:
    """By queue, as the cycle at work sees it."""
    pool = accounts.pools.get(DEFAULT_POOL)
    if pool is None:
        return {}
    return {id: Share(account.level[0], account.share[0]) for id, account in pool.accounts.items()}


def jain(ratios: Sequence[float]) -> float | None:
    """Jain's index of what each gets of its due: 1 if all get the same part, 1/n if one of n gets all."""
    squares = sum(ratio * ratio for ratio in ratios)
    return sum(ratios) ** 2 / (len(ratios) * squares) if squares else None
