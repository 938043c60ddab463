"""Measured use of devices, attributed to the shares that are held: what `used` in the usage reports is made of.

The driver reports how busy a whole device is. Where several shares are held, each gets a part in proportion to what it
holds; that is an estimate, and a device that is not measured adds nothing rather than a guess.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from aliquot.core.model import Share
from aliquot.wire.nodes import DeviceUse

LONGEST_GAP = timedelta(seconds=30)
"""After a longer time without a reading nobody knows what happened in between, so it is not counted."""


def entry_id(pod: str, device: str) -> str:
    """The id of the ledger entry of a pod's share of a device."""
    return f"{pod}/{device}"


class Meter:
    """Adds up, from reading to reading, thousandths of GPU seconds for each ledger entry."""

    def __init__(self) -> None:
        self._last: datetime | None = None
        self._used: defaultdict[str, int] = defaultdict(int)

    def observe(self, held: Mapping[str, Sequence[Share]], use: Mapping[str, DeviceUse], *, now: datetime) -> None:
        """Take in one reading. `held`: pod id to its shares; `use`: measured use by device."""
        span = now - self._last if self._last is not None else timedelta(0)
        self._last = now
        if not timedelta(0) < span <= LONGEST_GAP:
            return
        total: defaultdict[str, int] = defaultdict(int)
        for shares in held.values():
            for share in shares:
                total[share.device] += share.milli
        for pod, shares in held.items():
            for share in shares:
                busy = use[share.device].utilisation_percent if share.device in use else None
                if busy is not None:
                    milliseconds = int(span.total_seconds() * 1000)
                    self._used[entry_id(pod, share.device)] += (
                        milliseconds * busy * share.milli // (100 * total[share.device])
                    )

    def take(self) -> dict[str, int]:
        """What was added up since the last call: thousandths of GPU seconds by ledger entry."""
        taken = dict(self._used)
        self._used.clear()
        return taken
