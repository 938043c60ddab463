"""In which order queues and workloads are served. Depends on values, never on the order of the input.

Queues, among siblings at every level of the tree: not over their fair share first, then starved of quota, then by
priority, then by the share they would have with their next workload, then by the one they have, age, name. Workloads of
a queue: by priority, those below their gang minimum first, the one that waits longest, id.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from aliquot.core import snapshot
from aliquot.core.model import Pod, PodRequest, PodState, Workload
from aliquot.core.snapshot import Account, Vector

# Quotients are compared as integers. Two different ones differ by more than 2**-128, as no amount passes 2**64.
_SCALE = 1 << 128
_NO_SHARE = 1 << 256

QueueKey = tuple[bool, bool, int, int, int, datetime, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A workload that waits, with what all its pending pods ask for."""

    workload: Workload
    pods: tuple[Pod, ...]
    requests: tuple[PodRequest, ...]
    amounts: Vector

    @property
    def id(self) -> str:
        """The id of the workload."""
        return self.workload.id


def workload_key(workload: Workload) -> tuple[int, bool, datetime, str]:
    """Who comes first in a queue: the smallest."""
    placed = sum(pod.state in {PodState.RUNNING, PodState.SUCCEEDED} for pod in workload.pods)
    return (-workload.priority, placed >= workload.min_pods, workload.created, workload.id)


def dominant_share(account: Account, more: Vector = (0, 0, 0)) -> int:
    """The largest part of its fair share that a queue holds of any resource, scaled; with `more` added."""
    largest = 0
    for level, extra, share in zip(account.level, more, account.share, strict=True):
        held = level + extra
        if held > 0:
            largest = max(largest, held * _SCALE // share if share > 0 else _NO_SHARE + held)
    return largest


def queue_key(account: Account, more: Vector = (0, 0, 0)) -> QueueKey:
    """Who comes first among siblings: the smallest. `more`: what its next workload asks for."""
    alone = dominant_share(account)
    is_starved = all(
        level + extra <= guaranteed or not extra
        for level, extra, guaranteed in zip(account.level, more, account.guaranteed, strict=True)
    )
    return (
        alone > _SCALE,
        not is_starved,
        -account.terms.priority,
        dominant_share(account, more),
        alone,
        account.queue.created,
        account.queue.name,
        account.queue.id,
    )


def last_served_key(accounts: Sequence[Account]) -> tuple[QueueKey, ...]:
    """The same for a queue and all above it, from the root down: the largest is served last, so it gives first."""
    return tuple(queue_key(account) for account in reversed(accounts))


class Turns:
    """Gives out the workloads of one pool one at a time, looking anew at what the queues hold before each."""

    def __init__(self, asks: Iterable[Ask], accounts: Mapping[str, Sequence[Account]]) -> None:
        """`accounts`: for each leaf its account and those above it, up to the root."""
        self._leaves: dict[str, deque[Ask]] = {}
        self._paths = accounts
        self._children: dict[str | None, list[Account]] = {}
        self._best: dict[str, tuple[QueueKey, Ask]] = {}
        for ask in sorted(asks, key=lambda ask: workload_key(ask.workload)):
            self._leaves.setdefault(ask.workload.queue, deque()).append(ask)
        known: set[str] = set()
        for leaf in sorted(self._leaves):
            self._add_path(leaf, known)

    def next(self) -> Ask | None:
        """The workload whose turn it is; None after the last."""
        chosen = self._choose(None)
        if chosen is None:
            return None
        ask = chosen[1]
        self._leaves[ask.workload.queue].popleft()
        self.refresh(ask.workload.queue)
        return ask

    def refresh(self, leaf: str) -> None:
        """What this queue holds has changed."""
        for account in self._paths[leaf]:
            self._best.pop(account.queue.id, None)

    def refresh_all(self) -> None:
        """What many queues hold has changed."""
        self._best.clear()

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
        waiting = self._leaves.get(id)
        below = self._choose(id)
        ask = waiting[0] if waiting else below[1] if below else None
        if ask is None:
            return None
        self._best[id] = (queue_key(account, ask.amounts), ask)
        return self._best[id]


def ask_of(world: snapshot.World, workload: Workload) -> Ask:
    """What a workload waits for."""
    pods = snapshot.pending_of(workload)
    amounts = snapshot.vector(world.ask_of(workload, pods))
    return Ask(workload, pods, snapshot.requests_of(pods), amounts)
