"""In which order queues and workloads are served. Depends on values, never on the order of the input.

Queues, among siblings at every level of the tree: not over their fair share first, then starved of quota, then by
priority, then by the share they would have with their next workload, then by the one they have, age, name. Workloads of
a queue: by priority, those below their gang minimum first, the one that waits longest, id. A queue may serve those who
have had the least GPU time, or those who ask for most, first instead of those who wait longest.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aliquot.core.asks import Ask
from aliquot.core.lines import Line, Lines
from aliquot.core.model import Policy, Queue, QueueOrder, Workload
from aliquot.core.rooms import Account, Vector

# Quotients are compared as integers. Two different ones differ by more than 2**-128, as no amount passes 2**64.
_SCALE = 1 << 128
_NO_SHARE = 1 << 256

QueueKey = tuple[bool, bool, int, int, int, datetime, str, str]
WorkloadKey = tuple[int, int, bool, datetime, str]
_NO_KEY: QueueKey = (False, False, 0, 0, 0, datetime.min.replace(tzinfo=UTC), "", "")


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
    most, of, without = 0, 1, 0
    level, share = account.level, account.share
    for index in (0, 1, 2):  # This runs for every workload in every cycle: it is written for speed.
        held, due = level[index] + more[index], share[index]
        if held > 0 and due > 0 and held * of > most * due:
            most, of = held, due
        elif held > without and due <= 0:
            without = held
    return _NO_SHARE + without if without else most * _SCALE // of


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


@dataclass(slots=True)
class _Leaf:
    """A queue with its lines: the head of each in a heap, as its key, the number of its line, its place in the line,
    and the line."""

    queue: Queue | None
    heads: list[tuple[WorkloadKey, int, int, Line]] = field(default_factory=list)
    lines: int = 0

    @property
    def head(self) -> Ask | None:
        """Who is next."""
        return self.heads[0][3][self.heads[0][2]] if self.heads else None


class Turns:
    """Gives out the asks of one pool one at a time, looking anew at what the queues hold before each."""

    def __init__(
        self,
        lines: Iterable[Lines],
        accounts: Callable[[str], Sequence[Account]],
        policy: Policy,
        *,
        is_over: Callable[[], bool],
        is_open: Callable[[Ask], bool],
        admits: Callable[[Ask], bool],
    ) -> None:
        """`accounts`: of a leaf its account and those above it, up to the root. `is_over`: nobody else is asked for.
        `is_open`: who of a line is still to be served. `admits`: whether a line is, asked of the first of
        these."""
        self._policy, self._is_over, self._is_open = policy, is_over, is_open
        self._leaves: dict[str, _Leaf] = {}
        self._paths: dict[str, Sequence[Account]] = {}
        self._above: dict[str, str | None] = {}
        self._keys: dict[tuple[str, int, Vector], QueueKey] = {}
        self._best: dict[str, tuple[QueueKey, Ask]] = {}
        """What each queue offers, and those below it together."""
        self._offers: dict[str | None, list[tuple[QueueKey, str]]] = {}
        """By parent, a heap of what its children offer, or offered before."""
        self._stale: dict[str | None, dict[str, Account]] = {}
        """By parent, the children whose offer is to be looked at anew."""
        self._children: dict[str | None, dict[str, Account]] = {}
        for line in (line for one in lines for line in one.all):
            first = next((ask for ask in line if is_open(ask)), None)
            if first is not None and admits(first):
                self._enter(self._leaf(first.workload.queue, accounts), line)
        self.refresh_all()

    def next(self) -> Ask | None:
        """The ask whose turn it is; None after the last."""
        chosen = None if self._is_over() else self._first(None)
        if chosen is None:
            return None
        ask = chosen[1]
        self._pop(self._leaves[ask.workload.queue])
        self.refresh(ask.workload.queue)
        return ask

    def rest(self) -> list[Ask]:
        """All that are left, in the order in which they are served if nothing else changes."""
        found: list[Ask] = []
        while (ask := self.next()) is not None:
            found.append(ask)
            leaf = self._leaves[ask.workload.queue]
            while leaf.head is not None and leaf.head.amounts == ask.amounts:  # It is the turn of its queue again.
                if len(leaf.heads) > 1:
                    found.append(leaf.head)
                    self._pop(leaf)
                    continue
                _, _, at, line = leaf.heads.pop()
                found += [one for one in line[at:] if self._is_open(one)]
            self.refresh(ask.workload.queue)
        return found

    def push(self, ask: Ask) -> None:
        """One more ask, of a workload that had its turn."""
        self._enter(self._leaves[ask.workload.queue], [ask])
        self.refresh(ask.workload.queue)

    def drop(self, shape: tuple[object, ...]) -> None:
        """Pass over all asks of this shape that are left."""
        for queue, leaf in self._leaves.items():
            self._keep(queue, [one for one in leaf.heads if one[3][0].shape != shape])

    def drop_like(self, ask: Ask) -> None:
        """Pass over all that are left and like this one."""
        queue, likeness = ask.workload.queue, ask.likeness
        self._keep(queue, [one for one in self._leaves[queue].heads if one[3][0].likeness != likeness])

    def refresh(self, leaf: str) -> None:
        """What this queue holds, or who is next in it, has changed."""
        for account in self._paths[leaf]:
            id = account.queue.id
            self._stale.setdefault(self._above[id], {})[id] = account

    def refresh_all(self) -> None:
        """What many queues hold has changed."""
        for leaf in self._leaves:
            self.refresh(leaf)

    def _leaf(self, queue: str, accounts: Callable[[str], Sequence[Account]]) -> _Leaf:
        if queue not in self._leaves:
            path = self._paths[queue] = accounts(queue)
            for account, above in zip(path, (*path[1:], None), strict=False):
                parent = self._above[account.queue.id] = None if above is None else above.queue.id
                self._children.setdefault(parent, {})[account.queue.id] = account
            self._leaves[queue] = _Leaf(path[0].queue if path else None)
        return self._leaves[queue]

    def _enter(self, leaf: _Leaf, line: Line) -> None:
        leaf.lines += 1
        self._push(leaf, leaf.lines, 0, line)

    def _push(self, leaf: _Leaf, number: int, at: int, line: Line) -> None:
        """The next of a line that is open is its head."""
        while at < len(line) and not self._is_open(line[at]):
            at += 1
        if at < len(line):
            heapq.heappush(leaf.heads, (workload_key(line[at], leaf.queue, self._policy), number, at, line))

    def _pop(self, leaf: _Leaf) -> None:
        _, number, at, line = heapq.heappop(leaf.heads)
        self._push(leaf, number, at + 1, line)

    def _keep(self, queue: str, heads: list[tuple[WorkloadKey, int, int, Line]]) -> None:
        leaf = self._leaves[queue]
        if len(heads) < len(leaf.heads):
            leaf.heads = heads
            heapq.heapify(heads)
            self.refresh(queue)

    def _first(self, parent: str | None) -> tuple[QueueKey, Ask] | None:
        """The best offer below a queue (None: of all). An old offer is dropped when it comes to the top."""
        children = self._children.get(parent, {})
        if len(children) == 1:
            return next(self._offer(account, is_alone=True) for account in children.values())
        offers = self._offers.setdefault(parent, [])
        for id, account in self._stale.pop(parent, {}).items():
            before, offer = self._best.pop(id, None), self._offer(account)
            if offer is not None:
                self._best[id] = offer
                if before is None or before[0] != offer[0]:
                    heapq.heappush(offers, (offer[0], id))
        while offers:
            key, id = offers[0]
            best = self._best.get(id)
            if best is not None and best[0] == key:
                return best
            heapq.heappop(offers)
        return None

    def _offer(self, account: Account, *, is_alone: bool = False) -> tuple[QueueKey, Ask] | None:
        """Whom a queue, or what is below it, would have served next, with its key among its siblings, if any."""
        id = account.queue.id
        leaf = self._leaves.get(id)
        ask = leaf.head if leaf is not None else None
        if ask is None:
            below = self._first(id)
            ask = below[1] if below is not None else None
        if ask is None:
            return None
        if is_alone:
            return _NO_KEY, ask
        key = (id, account.version, ask.amounts)
        if key not in self._keys:
            self._keys[key] = queue_key(account, ask.amounts)
        return self._keys[key], ask
