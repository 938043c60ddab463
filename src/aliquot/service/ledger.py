"""The ledger's audit of itself: what it says is held, against what pods hold and devices can give."""

from collections import defaultdict
from collections.abc import Sequence

from aliquot.core.model import WHOLE_DEVICE_MILLI, Share
from aliquot.service import access, ports, records, views
from aliquot.wire import records as shapes


class Ledger:
    """The use cases of the ledger."""

    def __init__(self, store: ports.Store) -> None:
        self._store = store

    async def audit(self, actor: access.Actor) -> shapes.LedgerAudit:
        """Compare within one consistent view; every fault is a sentence."""
        access.check(actor, "get", "ledger")
        return await self._store.read(_compare)


def faults(tx: ports.Transaction) -> list[str]:
    """What is wrong with it, a sentence each."""
    return _compare(tx).faults


def compare(entries: Sequence[records.LedgerRow], pods: Sequence[records.PodRow]) -> shapes.LedgerAudit:
    """The audit of open entries, against pods that have not ended. Pure.

    Memory is not summed up: what a device offers may shrink under work that runs, which is no fault of the books.
    """
    held = {(pod.id, share.device): share for pod in pods for share in pod.shares}
    faults = [*_unmatched(entries, held), *_over_full(entries)]
    return shapes.LedgerAudit(
        is_balanced=not faults,
        open_entries=len(entries),
        held_milli_gpus=sum(share.milli for share in held.values()),
        ledger_milli_gpus=sum(entry.milli for entry in entries),
        faults=faults,
    )


def _compare(tx: ports.Transaction) -> shapes.LedgerAudit:
    return compare(tx.ledger.find(closed=None), tx.pods.find(ports.Where("phase", "in", views.OPEN)))


def _unmatched(entries: Sequence[records.LedgerRow], held: dict[tuple[str, str], Share]) -> list[str]:
    by_share: dict[tuple[str, str], list[records.LedgerRow]] = defaultdict(list)
    for entry in entries:
        by_share[entry.pod, entry.device].append(entry)
    faults: list[str] = []
    for pod, device in sorted({*by_share, *held}):
        found, share = by_share[pod, device], held.get((pod, device))
        if share is None:
            faults.append(f"pod {pod} holds nothing of {device}, yet {len(found)} entries of it are open")
        elif len(found) != 1:
            faults.append(f"pod {pod} holds a share of {device}, and {len(found)} entries of it are open instead of 1")
        elif (found[0].milli, found[0].mib) != (share.milli, share.mib):
            faults.append(
                f"pod {pod} holds {share.milli} milli and {share.mib} MiB of {device}; "
                f"its entry says {found[0].milli} and {found[0].mib}"
            )
    return faults


def _over_full(entries: Sequence[records.LedgerRow]) -> list[str]:
    """A share by memory is charged in whole thousandths, rounded up: each may count for just under one more."""
    given: dict[str, list[int]] = defaultdict(list)
    for entry in entries:
        given[entry.device].append(entry.milli)
    return [
        f"device {id} is given away to {sum(shares)} milli of {WHOLE_DEVICE_MILLI}"
        for id, shares in sorted(given.items())
        if sum(shares) - WHOLE_DEVICE_MILLI >= len(shares)
    ]
