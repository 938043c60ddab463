"""Who came and who went between two snapshots, found at the cost of a glance at each workload.

Most of a cluster is the same from cycle to cycle, and the very same objects: a look at each by its id alone would cost
more than all the rest of a quiet cycle.
"""

from collections.abc import Container, Iterable
from itertools import zip_longest

from aliquot.core.model import Workload


def differences(
    before: Iterable[Workload], after: Iterable[Workload], *, known: Container[str]
) -> tuple[list[Workload], list[Workload]]:
    """Which objects are in `before` only, and which in `after` only. `known`: the ids of those before.

    Both are walked along at once. Where the order of those that stayed is another, some that are in both are in both
    lists too.
    """
    gone: list[Workload] = []
    come: list[Workload] = []
    left, right = iter(before), iter(after)
    for was, now in zip_longest(left, right):
        while was is not now:
            is_changed = was is not None and now is not None and was.id == now.id
            is_new = now is not None and (was is None or now.id not in known)
            if was is not None and not is_new:
                gone.append(was)
                was = next(left, None)
            if now is not None and (is_new or is_changed):
                come.append(now)
                now = next(right, None)
    return gone, come
