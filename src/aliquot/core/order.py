"""In which order queues and workloads are served. Depends on values, never on the order of the input.

Queues, among siblings at every level of the tree: not over their fair share first, then starved of quota, then by
priority, then by the share they would have with their next workload, then by the one they have, age, name. Workloads of
a queue: by priority, those below their gang minimum first, the one that waits longest, id. A queue may serve those who
have had the least GPU time, or those who ask for most, first instead of those who wait longest.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime

from aliquot.core.asks import Ask
from aliquot.core.model import Policy, Queue, QueueOrder, Workload
from aliquot.core.rooms import Account, Vector

# Quotients are compared as integers. Two different ones differ by more than 2**-128, as no amount passes 2**64.
_SCALE = 1 << 128
_NO_SHARE = 1 << 256

QueueKey = tuple[bool, bool, int, int, int, datetime, str, str]
WorkloadKey = tuple[int, int, bool, datetime, str]


def service_class(workload: Workload, policy: Policy) -> int:
    """The class of work by the GPU time it has had: 0 below the threshold, then one more with each doubling."""
    classes = policy.service_classes
    return min(classes - 1, (workload.attained_milli_seconds // max(1, policy.service_threshold)).bit_length())


def workload_key(ask: Ask, queue: Queue | None, policy: Policy) -> WorkloadKey:
    """Who comes first in a queue: the smallest."""
    workload = ask.workload
    turn = 0
    if queue is not None and queue.order is QueueOrder.LEAST_ATTAINED_SERVICE:
        turn = service_class(workload, policy)
    elif queue is not None and queue.order is QueueOrder.LARGEST_FIRST:
        turn = -((ask.amounts[0] << 64) + ask.amounts[1])
    return (-workload.priority, turn, not ask.is_core, workload.created, workload.id)


def dominant_share(account: Account, more: Vector = (0, 0, 0)) -> int:
    """The largest part of its fair share that a queue holds of any resource, scaled; with `more` added."""
    largest = 0
    level, share = account.level, account.share
    for index in (0, 1, 2):  # This runs for every workload in every cycle: it is written for speed.
        held = level[index] + more[index]
        if held > 0:
            part = held * _SCALE // share[index] if share[index] > 0 else _NO_SHARE + held
            largest = max(largest, part)
    return largest


def queue_key(account: Account, more: Vector = (0, 0, 0)) -> QueueKey:
    """Who comes first among siblings: the smallest. `more`: what its next workload asks for."""
    alone = dominant_share(account)
    level, due = account.level, account.guaranteed
    is_starved = not (
        (more[0] and level[0] + more[0] > due[0])
        or (more[1] and level[1] + more[1] > due[1])
        or (more[2] and level[2] + more[2] > due[2])
    )
    return (
        alone > _SCALE,
        not is_starved,
        -account.terms.priority,
        dominant_share(account, more) if any(more) else alone,
        alone,
        account.queue.created,
        account.queue.name,
        account.queue.id,
    )


def last_served_key(accounts: Sequence[Account]) -> tuple[QueueKey, ...]:
    """The same for a queue and all above it, from the root down: the largest is served last, so it gives first."""
    return tuple(_alone(account) for account in reversed(accounts))


def _alone(account: Account) -> QueueKey:
    """A queue's key without more, kept until what it holds changes."""
    if account.key is None or account.key[0] != account.version:
        account.key = (account.version, queue_key(account))
    return account.key[1]


class Turns:
    """Gives out the asks of one pool one at a time, looking anew at what the queues hold before each."""

    def __init__(
        self,
        asks: Iterable[Ask],
        accounts: Mapping[str, Sequence[Account]],
        policy: Policy,
        *,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`accounts`: for each leaf its account and those above it, up to the root. `is_over`: nobody else is asked
        for."""
        self._policy = policy
        self._is_over = is_over
        self._leaves: dict[str, list[tuple[WorkloadKey, Ask]]] = {}
        self._paths = accounts
        self._children: dict[str | None, list[Account]] = {}
        self._best: dict[str, tuple[QueueKey, Ask]] = {}
        self._dropped: set[tuple[object, ...]] = set()
        self._keys: dict[tuple[str, int, Vector], QueueKey] = {}
        for ask in asks:
            leaf = ask.workload.queue
            self._leaves.setdefault(leaf, []).append((self._key(ask), ask))
        known: set[str] = set()
        for leaf in sorted(self._leaves):
            heapq.heapify(self._leaves[leaf])
            self._add_path(leaf, known)

    def next(self) -> Ask | None:
        """The ask whose turn it is; None after the last."""
        chosen = None if self._is_over() else self._choose(None)
        if chosen is None:
            return None
        ask = chosen[1]
        heapq.heappop(self._leaves[ask.workload.queue])
        self.refresh(ask.workload.queue)
        return ask

    def push(self, ask: Ask) -> None:
        """One more ask, of a workload that had its turn."""
        leaf = ask.workload.queue
        heapq.heappush(self._leaves[leaf], (self._key(ask), ask))
        self.refresh(leaf)

    def drop(self, shape: tuple[object, ...]) -> None:
        """Pass over all asks of this shape from now on."""
        self._dropped.add(shape)
        self._best.clear()

    def skip_like(self, ask: Ask, kind_of: Callable[[Ask], Hashable]) -> None:
        """Pass over those that come right after an ask in its queue, as long as they are of its kind. While nothing
        else changes these are the next ones anyway."""
        waiting, kind = self._leaves[ask.workload.queue], kind_of(ask)
        while waiting and kind_of(waiting[0][1]) == kind:
            heapq.heappop(waiting)
        self.refresh(ask.workload.queue)

    def refresh(self, leaf: str) -> None:
        """What this queue holds has changed."""
        for account in self._paths[leaf]:
            self._best.pop(account.queue.id, None)

    def refresh_all(self) -> None:
        """What many queues hold has changed."""
        self._best.clear()

    def _key(self, ask: Ask) -> WorkloadKey:
        path = self._paths[ask.workload.queue]
        return workload_key(ask, path[0].queue if path else None, self._policy)

    def _add_path(self, leaf: str, known: set[str]) -> None:
        path = self._paths[leaf]
        for index, account in enumerate(path):
            if account.queue.id in known:
                return
            known.add(account.queue.id)
            above = path[index + 1].queue.id if index + 1 < len(path) else None
            self._children.setdefault(above, []).append(account)

    def _choose(self, parent: str | None) -> tuple[QueueKey, Ask] | None:
        best: tuple[QueueKey, Ask] | None = None
        for account in self._children.get(parent, ()):
            offered = self._offer(account)
            if offered is not None and (best is None or offered[0] < best[0]):
                best = offered
        return best

    def _offer(self, account: Account) -> tuple[QueueKey, Ask] | None:
        id = account.queue.id
        if id in self._best:
            return self._best[id]
        ask = self._head(id)
        if ask is None:
            below = self._choose(id)
            ask = below[1] if below else None
        if ask is None:
            return None
        key = (id, account.version, ask.amounts)
        if key not in self._keys:
            self._keys[key] = queue_key(account, ask.amounts)
        self._best[id] = (self._keys[key], ask)
        return self._best[id]

    def _head(self, leaf: str) -> Ask | None:
        waiting = self._leaves.get(leaf)
        while waiting and waiting[0][1].shape in self._dropped:
            heapq.heappop(waiting)
        return waiting[0][1] if waiting else None
