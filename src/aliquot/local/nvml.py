"""What NVIDIA's driver says about the GPUs of this machine: the one home of pynvml.

Promises: plain values and no pynvml type leave this module; what a card does not support is None, which is never the
same as zero; one card that fails does not hide the others. Calls may block for as long as a broken card blocks the
driver, so an event loop calls `read` in a thread.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import pynvml

MIB = 2**20
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")

# NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): those whose immediate action is
# to reset the GPU, restart the machine or look at its cables. Deliberately not here: what a program causes by itself or
# what is contained to it (13, 31, 32, 43, 45, 68, 69, 94), what is only informational (63: a row will be remapped), and
# NVLink 5 events (144-150), whose severity lies in a part that NVML does not hand on.
FATAL_XIDS = {
    46: "the GPU stopped processing",
    48: "an uncorrectable (double bit) memory error",
    54: "auxiliary power is not connected",
    62: "the internal micro-controller halted",
    64: "a faulty memory row could not be remapped",
    74: "an NVLink error",
    79: "the GPU has fallen off the bus",
    95: "an uncontained memory error",
    109: "a context switch timed out",
    110: "a security fault",
    119: "the GPU's system processor does not answer",
    120: "an error of the GPU's system processor",
    136: "an NVLink could not be trained",
    140: "an unrecoverable memory error",
    143: "the GPU could not be initialised",
    155: "an NVLink error defined by software",
    156: "a faulty part of the GPU was retired",
    158: "a fatal timeout",
}
# The driver's own verdict (NVML's recovery action), where it has one: what Xid 154 announces. It outlives our restarts.
_RECOVERY_ACTIONS = {
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: "reset the GPU",
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: "restart the machine",
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: "reset the GPU",
    pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET: "reset the GPU's bus",
    pynvml.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT: "restart the machine",
}
_NO_DRIVER = {pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED}
_LOST = {pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_GPU_NOT_FOUND}
_OLD = {
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
}
# Newest first; drivers before 510 have the older ones only. (The bindings' names without a version raise something else
# than NVMLError where the driver is older than they are.)
_LISTS: tuple[tuple[Callable[[Any], Any], ...], ...] = (  # Any: pynvml has no types
    (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2),
    (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2),
    (pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2),
)


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no driver that could be asked. `is_broken`: there is one, but it does not work."""

    reason: str
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a card; `mib` None: how much is not reported. `is_drawing`: it has a graphics
    context and none for computing, as a display server has."""

    pid: int
    mib: int | None
    is_drawing: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a card must not be used: `code` is `lost` or `xid`."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A card's memory; `used_mib` is without what the driver keeps."""

    total_mib: int
    reserved_mib: int
    used_mib: int


@dataclass(frozen=True, slots=True)
class Use:
    """What was measured; None: the card does not say."""

    utilisation_percent: int | None = None
    temperature_celsius: int | None = None
    power_watts: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU at one reading. `processes` None: the driver does not list them. Of a lost one, the name and the memory
    are what was last known, and the rest is None."""

    uuid: str
    index: int
    name: str
    memory: Memory
    is_split: bool = False
    """It is in MIG mode: its instances hold the memory, not itself."""
    processes: tuple[GpuProcess, ...] | None = None
    use: Use | None = None
    fault: Fault | None = None


class Driver:
    """An open connection to the driver. Made by `connect`."""

    def __init__(self) -> None:
        self._handles: dict[int, Any] = {}  # Any: pynvml's opaque handles
        self._known: dict[int, Card] = {}
        self._faults: dict[str, Fault] = {}
        self._reserves: dict[str, int] = {}
        self._events: Any = None  # Any: pynvml's opaque event set
        self.version = _try(pynvml.nvmlSystemGetDriverVersion) or "unknown"
        self.notes: tuple[str, ...] = ()
        """What the last reading could not find out, in sentences."""
        self._count: int = pynvml.nvmlDeviceGetCount()
        self._open_cards()

    def read(self) -> tuple[Card, ...]:
        """All cards, by index. A card that cannot be named at all (lost since before we started) is only in `notes`."""
        self._take_events()
        cards: list[Card] = []
        notes: list[str] = []
        for index in range(self._count):
            try:
                cards.append(self._read_card(index))
            except pynvml.NVMLError as error:
                fault = Fault("lost", _lost_message(error))
                known = self._known.get(index)
                if known is None:
                    notes.append(f"GPU {index} is left out: {fault.message}")
                else:
                    fault = self._faults.get(known.uuid, fault)
                    cards.append(Card(known.uuid, index, known.name, known.memory, known.is_split, fault=fault))
        self.notes = tuple(notes)
        return tuple(cards)

    def close(self) -> None:
        """Let go of the driver."""
        if self._events is not None:
            _try(pynvml.nvmlEventSetFree, self._events)
            self._events = None
        _try(pynvml.nvmlShutdown)

    def _open_cards(self) -> None:
        """Listen for fatal errors of all cards from here on. A card that cannot tell of them is used without."""
        self._events = _try(pynvml.nvmlEventSetCreate)
        for index in range(self._count):
            handle = _try(pynvml.nvmlDeviceGetHandleByIndex, index)
            if handle is None:
                continue
            self._handles[index] = handle
            kinds = _try(pynvml.nvmlDeviceGetSupportedEventTypes, handle) or 0
            if self._events is not None and kinds & pynvml.nvmlEventTypeXidCriticalError:
                _try(pynvml.nvmlDeviceRegisterEvents, handle, pynvml.nvmlEventTypeXidCriticalError, self._events)

    def _take_events(self) -> None:
        """Remember the fatal Xids since the last time. Those that a program caused by itself leave the card in use."""
        while self._events is not None:
            # With no time to wait, "timeout" is the ordinary answer: nothing (more) has happened. A lost card can make
            # the call fail; the reading of the card itself then says which.
            event = _try(pynvml.nvmlEventSetWait_v2, self._events, 0)
            if event is None:
                return
            xid = int(event.eventData)
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError and xid in FATAL_XIDS:
                uuid = self._uuid_of(event.device)
                if uuid is not None:
                    self._faults.setdefault(uuid, Fault("xid", f"the driver reported Xid {xid}: {FATAL_XIDS[xid]}"))

    def _uuid_of(self, device: Any) -> str | None:  # Any: pynvml's opaque handle
        address = ctypes.cast(device, ctypes.c_void_p).value
        for index, handle in self._handles.items():
            if ctypes.cast(handle, ctypes.c_void_p).value == address and index in self._known:
                return self._known[index].uuid
        uuid: str | None = _try(pynvml.nvmlDeviceGetUUID, device)
        return uuid

    def _read_card(self, index: int) -> Card:
        """Raises NVMLError where the card does not answer what every card that works does."""
        handle = self._handles.get(index)
        if handle is None:
            handle = self._handles[index] = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid: str = pynvml.nvmlDeviceGetUUID(handle)
        name: str = pynvml.nvmlDeviceGetName(handle)
        modes = _ask(pynvml.nvmlDeviceGetMigMode, handle)
        processes = _processes(handle)
        memory = self._memory(uuid, handle, processes)
        card = Card(
            uuid,
            index,
            name,
            memory,
            is_split=modes is not None and modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE,
            processes=processes,
            use=_use(handle),
            fault=self._faults.get(uuid) or _recovery(handle),
        )
        self._known[index] = card
        return card

    def _memory(self, uuid: str, handle: Any, processes: tuple[GpuProcess, ...] | None) -> Memory:  # Any: a handle
        try:
            info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
            return Memory(info.total // MIB, -(-info.reserved // MIB), info.used // MIB)
        except pynvml.NVMLError as error:
            if error.value not in _OLD:
                raise
        # Drivers before 510 count what they keep as used. What no process holds at the first reading is taken for it.
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
        used = int(info.used // MIB)
        if uuid not in self._reserves:
            known = [process.mib for process in processes or () if process.mib is not None]
            is_told = processes is not None and len(known) == len(processes)
            self._reserves[uuid] = max(0, used - sum(known)) if is_told else 0
        reserved = self._reserves[uuid]
        return Memory(info.total // MIB, reserved, max(0, used - reserved))


def connect() -> Driver | Absent:
    """Open the driver, or say why there is none."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return Absent("no NVIDIA driver was found")
        return Absent(f"the NVIDIA driver does not work: {error}", is_broken=error.value not in _NO_DRIVER)
    try:
        return Driver()
    except pynvml.NVMLError as error:
        _try(pynvml.nvmlShutdown)
        return Absent(f"the NVIDIA driver does not work: {error}", is_broken=True)


def _processes(handle: Any) -> tuple[GpuProcess, ...] | None:  # Any: pynvml's opaque handle
    computing, drawing, shared = (_newest(handle, calls) for calls in _LISTS)
    if computing is None and drawing is None and shared is None:
        return None
    # One process may stand in several lists, each time with all that it holds: so the largest, not the sum.
    held: dict[int, int | None] = {}
    for row in (*(computing or ()), *(drawing or ()), *(shared or ())):
        mib = None if row.usedGpuMemory is None else -(-row.usedGpuMemory // MIB)
        before = held.get(row.pid)
        held[row.pid] = max((value for value in (mib, before) if value is not None), default=None)
    computes = {row.pid for row in (*(computing or ()), *(shared or ()))}
    return tuple(GpuProcess(pid, mib, is_drawing=pid not in computes) for pid, mib in sorted(held.items()))


def _newest(handle: Any, calls: Sequence[Callable[[Any], Any]]) -> Any:  # Any: pynvml has no types
    """What the first of the calls that this driver has returns; None if none of them tells."""
    return next((rows for call in calls if (rows := _ask(call, handle)) is not None), None)


def _use(handle: Any) -> Use:  # Any: pynvml's opaque handle
    rates = _ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    power = _ask(pynvml.nvmlDeviceGetPowerUsage, handle)
    return Use(
        # Values above 100 are a known fault of the driver, not use.
        utilisation_percent=int(rates.gpu) if rates is not None and rates.gpu <= 100 else None,
        temperature_celsius=_ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
        power_watts=None if power is None else round(power / 1000),
    )


def _recovery(handle: Any) -> Fault | None:  # Any: pynvml's opaque handle
    values = _ask(pynvml.nvmlDeviceGetFieldValues, handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if values is None or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    action = _RECOVERY_ACTIONS.get(values[0].value.uiVal)
    return None if action is None else Fault("xid", f"the driver asks to {action}")


def _lost_message(error: Any) -> str:  # Any: pynvml makes its error classes as it goes
    if error.value == pynvml.NVML_ERROR_RESET_REQUIRED:
        return "the GPU needs a reset before it can be used"
    if error.value in _LOST:
        return "the GPU is lost: the driver cannot reach it any more; restart the machine"
    return f"the driver cannot read it: {error}"


def _ask(call: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Answer | None:
    """What the call returns; None where the card does not tell. Raises NVMLError where the card is lost."""
    try:
        return call(*args, **kwargs)
    except pynvml.NVMLError as error:
        if error.value in _LOST:
            raise
        if error.value != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
            return None
    # More processes came between asking how many there are and reading them. Once more will do, or the next reading.
    return _try(call, *args, **kwargs)


def _try(call: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Answer | None:
    """What the call returns, None if it fails in any way."""
    try:
        return call(*args, **kwargs)
    except pynvml.NVMLError:
        return None
