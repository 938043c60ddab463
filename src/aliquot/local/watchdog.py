"""Notices pods that use more memory of a device than their share.

This is what makes the guarantee of a share `detected`: nothing stops a program from taking too much, but it is seen
within a few readings and acted on. Promises: one reading never suffices, since programs peak; what could not be read
counts neither for nor against a pod; each thing is reported once.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from aliquot.core.model import Guarantee, Share
from aliquot.local import devices

Policy = Literal["end", "warn"]
"""`end` (the default): a pod that takes more than its share is ended if another pod holds a share of the same device,
whom it harms; alone on the device it is only warned. `warn`: never ended."""

READINGS = 3
"""So many readings in a row before anything is done; with one reading every two seconds, about six seconds."""


@dataclass(frozen=True, slots=True)
class OverUse:
    """A pod that uses more than it holds. `share_mib` 0: it uses a device of which it holds nothing."""

    pod: str
    device: str
    used_mib: int
    share_mib: int


@dataclass(frozen=True, slots=True)
class Finding:
    """An over-use that lasted, and what to do about it."""

    over: OverUse
    action: Policy
    sentence: str


def judge(held: Mapping[str, Sequence[Share]], processes: Sequence[devices.DeviceProcess]) -> tuple[OverUse, ...]:
    """Which pods use more than their share now. `held`: pod id to its shares. Memory that is not reported counts as
    none, so a pod is never accused on a guess."""
    shares = {(pod, share.device): share.mib for pod, all_of_it in held.items() for share in all_of_it}
    used: defaultdict[tuple[str, str], int] = defaultdict(int)
    for process in processes:
        if process.pod is not None and process.mib is not None:
            used[process.pod, process.device] += process.mib
    return tuple(
        OverUse(pod, device, mib, shares.get((pod, device), 0))
        for (pod, device), mib in sorted(used.items())
        if pod in held and mib > shares.get((pod, device), 0)
    )


class Watchdog:
    """Remembers what it saw from reading to reading."""

    def __init__(self, *, policy: Policy = "end", readings: int = READINGS) -> None:
        self._policy: Policy = policy
        self._readings = readings
        self._seen: dict[tuple[str, str], int] = {}
        self._reported: dict[tuple[str, str], Policy] = {}

    def observe(self, held: Mapping[str, Sequence[Share]], reading: devices.Reading) -> tuple[Finding, ...]:
        """What to do after this reading: at most one finding for each pod and device, and none a second time unless it
        has become worse (a pod that was warned has got a neighbour) or had stopped in between."""
        over = {(each.pod, each.device): each for each in judge(held, reading.processes)}
        # A device that could not be read this time says nothing about anyone: counts on it stay as they are.
        blind = {
            device.id
            for device in reading.devices
            if device.id not in reading.use or device.guarantee is not Guarantee.DETECTED
        }
        self._seen = {
            key: self._seen.get(key, 0) + (key in over)
            for key in sorted(over.keys() | self._seen.keys())
            if key in over or (key[1] in blind and key[0] in held)
        }
        self._reported = {key: action for key, action in self._reported.items() if key in self._seen}
        findings = []
        for key, each in over.items():
            action = self._action(each, held)
            was = self._reported.get(key)
            if self._seen[key] < self._readings or was in {action, "end"}:
                continue
            self._reported[key] = action
            findings.append(Finding(each, action, _sentence(each, action)))
        return tuple(findings)

    def _action(self, over: OverUse, held: Mapping[str, Sequence[Share]]) -> Policy:
        has_neighbour = any(
            pod != over.pod and any(share.device == over.device for share in shares) for pod, shares in held.items()
        )
        return "end" if self._policy == "end" and has_neighbour else "warn"


def _sentence(over: OverUse, action: Policy) -> str:
    where = f"device {over.device}"
    what = (
        f"uses {over.used_mib} MiB of {where}, of which it holds nothing"
        if over.share_mib == 0
        else f"uses {over.used_mib} MiB of {where}; its share is {over.share_mib} MiB"
    )
    return f"{what}. It is ended, because others hold shares of that device." if action == "end" else f"{what}."
