"""Which GPUs this machine offers: the real ones, simulated ones, or none.

Promises: devices are never invented. Simulated ones are only there when asked for by name, never beside real ones, and
say that they are simulated; their ids stay the same from start to start. A real device that somebody else uses, that
failed, or that is kept back is still listed, with the reason. A device that a pod holds never vanishes.
"""

import dataclasses
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import psutil

from aliquot.core import errors, guarantees
from aliquot.core.model import Device, ForeignUse, Guarantee
from aliquot.local import nvml, processes, profiles
from aliquot.service import records
from aliquot.wire import nodes

Foreign = Literal["withhold", "shrink"]
"""What a device is that processes not started by Aliquot compute on: withheld, or offered with less memory."""

SHRINK_STEP_MIB = 256
"""Foreign use is rounded up to this, so that the breathing of a display server does not change what is offered."""
_NAMESPACE = uuid.UUID("5f0a1c52-3b57-5c8e-9f55-6a1d0a6f7c11")


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process on a device. `mib` None: not reported; `pod` None: Aliquot did not start it."""

    device: str
    pid: int
    mib: int | None
    pod: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The devices at one moment. A device that is not in `use` is not measured; `notes` says, by device, why one is
    withheld or offered with less, in a sentence; `problems` are sentences about devices that cannot even be named."""

    devices: tuple[Device, ...] = ()
    use: Mapping[str, nodes.DeviceUse] = field(default_factory=dict)
    processes: tuple[DeviceProcess, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def keeping(self, remembered: Sequence[records.DeviceRow], held: Collection[str]) -> "Reading":
        """The same with those remembered devices that are held and are no longer here: withheld until they are free."""
        present = {device.id for device in self.devices}
        devices, notes = list(self.devices), dict(self.notes)
        for row in sorted(remembered, key=lambda row: (row.index, row.id)):
            if row.id in present or row.id not in held:
                continue
            devices.append(
                Device(
                    row.id,
                    row.index,
                    row.model,
                    row.memory_mib,
                    is_simulated=row.is_simulated,
                    guarantee=Guarantee.NONE if row.is_simulated else Guarantee.ADVISORY,
                    withheld="not-offered" if row.is_simulated else "lost",
                )
            )
            notes[row.id] = (
                "it is no longer among the simulated devices asked for, and goes when what holds it has ended"
                if row.is_simulated
                else "the driver no longer reports it"
            )
        return dataclasses.replace(self, devices=tuple(devices), notes=notes)


class NoDevices:
    """A machine without GPUs."""

    is_simulated = False
    guarantee = Guarantee.NONE

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def read(self, *, owned: Mapping[int, str]) -> Reading:
        """Nothing."""
        return Reading()

    def describe(self) -> str:
        """What was found, in a sentence."""
        return f"no GPU ({self._reason}); work that asks for none runs"

    def close(self) -> None:
        """Nothing to let go of."""


class SimulatedDevices:
    """Devices that exist in the books only. Programs run; there is nothing behind the share and nothing is measured."""

    is_simulated = True
    guarantee = Guarantee.NONE

    def __init__(self, spec: str, *, machine: str, only: str | None = None, reason: str) -> None:
        cards = profiles.parse(spec)
        self._reason = reason
        self._counts = Counter(card.name for card in cards)
        seen: Counter[str] = Counter()
        found = []
        for index, card in enumerate(cards):
            # By its number among its own kind: adding cards of another kind changes no id.
            name = uuid.uuid5(_NAMESPACE, f"{machine}/{card.name}/{seen[card.name]}")
            seen[card.name] += 1
            found.append(Device(f"SIM-{name}", index, card.name, card.offered_mib, is_simulated=True))
        chosen = choose(only, [(device.index, device.id) for device in found])
        self._reading = _kept_back(Reading(tuple(found)), chosen)

    def read(self, *, owned: Mapping[int, str]) -> Reading:
        """The devices; always the same."""
        return self._reading

    def describe(self) -> str:
        """What was found, in a sentence."""
        cards = ", ".join(f"{count} simulated {name}" for name, count in self._counts.items())
        return f"{cards} ({self._reason}); nothing is measured on them and shares are not enforced"

    def close(self) -> None:
        """Nothing to let go of."""


class RealDevices:
    """The GPUs that the driver reports. `read` may block for as long as a broken card blocks the driver."""

    is_simulated = False

    def __init__(self, driver: nvml.Driver, *, only: str | None = None, foreign: Foreign = "withhold") -> None:
        self._driver = driver
        self._foreign: Foreign = foreign
        self._cards = driver.read()
        self._unseen: set[tuple[str, int]] = set()
        self._chosen = choose(only, [(card.index, card.uuid) for card in self._cards])

    @property
    def guarantee(self) -> Guarantee:
        """What holds for a share of every device here, by the last reading."""
        levels = [_guarantee(card) for card in self._cards if card.fault is None]
        return min(levels, key=_STRENGTH.index, default=Guarantee.ADVISORY)

    def read(self, *, owned: Mapping[int, str]) -> Reading:
        """The devices now. `owned`: pid to pod id of what Aliquot started; descendants belong to the same pod."""
        self._cards = self._driver.read()
        found: list[Device] = []
        use: dict[str, nodes.DeviceUse] = {}
        notes: dict[str, str] = {}
        running: list[DeviceProcess] = []
        unseen: set[tuple[str, int]] = set()
        for card in self._cards:
            ours, foreign = self._sort(card, owned, unseen)
            running += ours
            device, note = self._device(card, foreign)
            found.append(device)
            if note is not None:
                notes[card.uuid] = note
            if card.use is not None:
                use[card.uuid] = _measured(card, card.use)
        self._unseen = unseen
        reading = Reading(tuple(found), use, tuple(running), notes, self._driver.notes)
        return _kept_back(reading, self._chosen)

    def describe(self) -> str:
        """What was found, in a sentence."""
        counts = Counter(card.name for card in self._cards)
        cards = ", ".join(f"{count} {name}" for name, count in counts.items())
        meaning = guarantees.describe(self.guarantee)
        return f"{cards} (driver {self._driver.version}); guarantee of a share: {self.guarantee}. {meaning}"

    def close(self) -> None:
        """Let go of the driver."""
        self._driver.close()

    def _sort(
        self, card: nvml.Card, owned: Mapping[int, str], unseen: set[tuple[str, int]]
    ) -> tuple[list[DeviceProcess], list[tuple[ForeignUse, nvml.GpuProcess]]]:
        """Which of a card's processes are ours, and which are not."""
        ours, foreign = [], []
        for process in card.processes or ():
            pod, user = _owner(process.pid, owned), _user(process.pid)
            if pod is not None:
                ours.append(DeviceProcess(card.uuid, process.pid, process.mib, pod))
                continue
            if user is None:
                # It ended between the driver's list and our look: gone, and so is its memory. If the driver still lists
                # it at the next reading, then it is there but hidden from us (another PID namespace), or the driver
                # has not freed its memory; either way the device is in use.
                unseen.add((card.uuid, process.pid))
                if (card.uuid, process.pid) not in self._unseen:
                    continue
            ours.append(DeviceProcess(card.uuid, process.pid, process.mib, None))
            foreign.append((ForeignUse(process.pid, user or "unknown", process.mib or 0), process))
        return ours, foreign

    def _device(self, card: nvml.Card, foreign: list[tuple[ForeignUse, nvml.GpuProcess]]) -> tuple[Device, str | None]:
        offered = card.memory.total_mib - card.memory.reserved_mib
        device = Device(
            card.uuid,
            card.index,
            card.name,
            offered,
            guarantee=_guarantee(card),
            foreign=tuple(use for use, _ in foreign),
        )
        if card.fault is not None:
            return withhold(device, card.fault.code), card.fault.message
        if card.is_split:
            return withhold(device, "not-offered"), (
                "it is in MIG mode, which this release does not use (`nvidia-smi -mig 0` turns that off)"
            )
        if not foreign:
            return device, None
        users = ", ".join(f"pid {use.pid} of {use.user} ({_amount(process)})" for use, process in foreign)
        taken = -(-sum(use.mib for use, _ in foreign) // SHRINK_STEP_MIB) * SHRINK_STEP_MIB
        can_share = self._foreign == "shrink" or all(process.is_drawing for _, process in foreign)
        if not can_share or taken >= offered or any(process.mib is None for _, process in foreign):
            return withhold(device, "device-in-use"), f"in use by {users}, not started by Aliquot"
        return dataclasses.replace(device, memory_mib=offered - taken), (
            f"{taken} MiB less are offered, because of {users}, not started by Aliquot"
        )


Devices: TypeAlias = RealDevices | SimulatedDevices | NoDevices
_STRENGTH = tuple(Guarantee)
_BROKEN = ("lost", "xid")


def discover(spec: str | None, *, machine: str, only: str | None = None, foreign: Foreign = "withhold") -> Devices:
    """What this machine offers. `spec` asks for simulated devices (`8xH100`), `machine` is the machine's id, `only`
    names those to offer by index or id (`0,2`). Raises InvalidInput where that does not fit; nothing is left open."""
    found = nvml.connect()
    if isinstance(found, nvml.Absent):
        return _without_driver(spec, machine=machine, only=only, reason=found.reason)
    try:
        cards = found.read()
        if not cards:
            reason = "; ".join(found.notes) or "the NVIDIA driver reports no GPU"
            devices = _without_driver(spec, machine=machine, only=only, reason=reason)
            found.close()
            return devices
        if spec is not None:
            names = ", ".join(f"{count} {name}" for name, count in Counter(card.name for card in cards).items())
            raise errors.InvalidInput(
                f"{profiles.FIELD}: this machine has real GPUs ({names}); simulated ones do not stand beside them",
                field=profiles.FIELD,
                valid=("leave it out",),
            )
        return RealDevices(found, only=only, foreign=foreign)
    except BaseException:
        found.close()
        raise


def has_real_devices() -> bool:
    """Whether the driver reports any GPU."""
    found = nvml.connect()
    if isinstance(found, nvml.Absent):
        return False
    try:
        return bool(found.read())
    finally:
        found.close()


def withhold(device: Device, code: str) -> Device:
    """The device with a reason why nothing new may start on it. A reason that it already has stays."""
    return device if device.withheld is not None else dataclasses.replace(device, withheld=code)


def choose(only: str | None, present: Sequence[tuple[int, str]]) -> frozenset[str] | None:
    """The ids that `0,2` (or ids) names among those present; None: all. Raises InvalidInput."""
    if only is None:
        return None
    valid = [str(index) for index, _ in present]
    if not present:
        raise errors.InvalidInput("only: there is no device to choose from", field="only", valid=("leave it out",))
    by_name = {str(index): id for index, id in present} | {id.lower(): id for _, id in present}
    chosen = set()
    for part in only.split(","):
        id = by_name.get(part.strip().lower())
        if id is None:
            shown = repr(part if len(part) <= 60 else part[:57] + "...")
            raise errors.InvalidInput(f"only: there is no device {shown} here", field="only", valid=valid)
        chosen.add(id)
    return frozenset(chosen)


def _without_driver(spec: str | None, *, machine: str, only: str | None, reason: str) -> SimulatedDevices | NoDevices:
    if spec is not None:
        return SimulatedDevices(spec, machine=machine, only=only, reason=reason)
    choose(only, [])
    return NoDevices(reason)


def _kept_back(reading: Reading, chosen: frozenset[str] | None) -> Reading:
    if chosen is None:
        return reading
    kept = [device.id for device in reading.devices if device.id not in chosen and device.withheld not in _BROKEN]
    devices = tuple(
        dataclasses.replace(device, withheld="not-offered") if device.id in kept else device
        for device in reading.devices
    )
    notes = dict(reading.notes) | dict.fromkeys(kept, "it is not among the devices that `--only` names")
    return dataclasses.replace(reading, devices=devices, notes=notes)


def _owner(pid: int, owned: Mapping[int, str]) -> str | None:
    """The pod of a process: its own, or that of the nearest ancestor that has one."""
    while pid > 1:
        if pid in owned:
            return owned[pid]
        process = processes.find(pid)
        if process is None:
            return None
        pid = process.parent
    return None


def _user(pid: int) -> str | None:
    """Whose process it is; None if there is none of this pid."""
    try:
        return psutil.Process(pid).username()
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return "unknown"


def _guarantee(card: nvml.Card) -> Guarantee:
    """A share is watched where the driver says what each process holds; else programs are only told."""
    if card.processes is None or any(process.mib is None for process in card.processes):
        return Guarantee.ADVISORY
    return Guarantee.DETECTED


def _measured(card: nvml.Card, use: nvml.Use) -> nodes.DeviceUse:
    return nodes.DeviceUse(
        utilisation_percent=use.utilisation_percent,
        used_mib=card.memory.used_mib,
        temperature_celsius=use.temperature_celsius,
        power_watts=use.power_watts,
    )


def _amount(process: nvml.GpuProcess) -> str:
    return "memory not reported" if process.mib is None else f"{process.mib} MiB"
