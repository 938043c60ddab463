"""What the server looks at by the clock: how much is held and used, what is held and idle, whether the ledger adds up.

Promises: one look every ten seconds, aligned to the clock; a look that fails (a full disk) is left out, and the next
one goes on. It only writes series.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from aliquot.core import errors
from aliquot.core.model import Node
from aliquot.service import ledger, mirror, ports, samples
from aliquot.wire.nodes import DeviceUse

EVERY = timedelta(seconds=10)
IDLE_PERCENT = 5
IDLE_AFTER = timedelta(minutes=10)
"""A device that is used less than IDLE_PERCENT for longer than this is idle: a step that saves a model takes less."""
LEDGER_EVERY = timedelta(minutes=1)
LEDGER_REST = 50
"""The ledger is looked at so often, and not before so many times as long has passed as it took."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A share of a device that is held and not used. `device`: `node/index`."""

    workload: str
    milli_gpus: int
    device: str
    since: datetime
    utilisation_percent: int


class Watch:
    """Looks, and remembers what it saw."""

    def __init__(self, store: ports.Store, cluster: ports.Cluster, seen: mirror.Mirror, *, clock: ports.Clock) -> None:
        self._store = store
        self._cluster = cluster
        self.mirror = seen
        self._clock = clock
        self._ledger_due: datetime | None = None
        self._quiet: dict[tuple[str, str], Idle] = {}
        """By pod and device, the shares that are quiet, and since when."""
        self.ledger_faults: Sequence[str] | None = None
        """What the ledger says wrong, None: it was not looked at yet."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            now = self._clock.now()
            await self._clock.sleep(EVERY - (now - datetime.min.replace(tzinfo=UTC)) % EVERY)
            with contextlib.suppress(errors.Unavailable):
                await self.look()

    async def look(self) -> None:
        """One look."""
        now = self._clock.now()
        sight, nodes = await self.mirror.look(), await self._cluster.nodes()
        use = (await self._cluster.facts()).use
        self._note_idle(sight, nodes, use, now=now)
        taken = await asyncio.to_thread(samples.measure, sight, nodes, use)
        await self._store.write(lambda tx: samples.write(tx, taken, now))
        if self._ledger_due is None or now >= self._ledger_due:
            began = self._clock.now()
            self.ledger_faults = await self._store.read(ledger.faults)
            self._ledger_due = now + max(LEDGER_EVERY, LEDGER_REST * (self._clock.now() - began))

    def idle(self, now: datetime) -> list[Idle]:
        """What has been quiet for long enough, the largest first."""
        found = [one for one in self._quiet.values() if now - one.since > IDLE_AFTER]
        return sorted(found, key=lambda one: (-one.milli_gpus, one.since, one.device, one.workload))

    def _note_idle(
        self, sight: mirror.Sight, nodes: Sequence[Node], use: Mapping[str, DeviceUse], *, now: datetime
    ) -> None:
        before, self._quiet = self._quiet, {}
        if not use:
            return
        names = {device.id: f"{node.id}/{device.index}" for node in nodes for device in node.devices}
        for pod, device, milli in sight.holdings():
            busy = use[device].utilisation_percent if device in use else None
            if busy is not None and busy < IDLE_PERCENT:
                known = before.get((pod.id, device))
                since = now if known is None else known.since
                name = names.get(device, device)
                self._quiet[pod.id, device] = Idle(pod.workload, milli, name, since, busy)
