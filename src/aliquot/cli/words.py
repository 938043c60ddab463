"""The words in which the command line speaks of amounts, times and states. Pure: `now` comes in."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from aliquot.core import lifecycle, quantities
from aliquot.core.model import WHOLE_DEVICE_MILLI
from aliquot.wire import nodes, workloads

NOTHING = "-"
SIMULATED = "(simulated)"


def ago(instant: datetime | None, now: datetime) -> str:
    """`3m ago`, in one unit; the future is `in 3m`."""
    if instant is None:
        return NOTHING
    span = now - instant
    if abs(span) < timedelta(seconds=1):
        return "now"
    text = quantities.format_duration(abs(span)).split(" ")[0]
    return f"{text} ago" if span > timedelta() else f"in {text}"


def age(instant: datetime | None, now: datetime) -> str:
    """How long since, in the two largest units."""
    return NOTHING if instant is None else quantities.format_duration(max(now - instant, timedelta()))


def seconds(count: int | None) -> str:
    """Seconds as people say them."""
    return NOTHING if count is None else quantities.format_duration(timedelta(seconds=count))


def clock(instant: datetime) -> str:
    """An instant for a log, to the second, in UTC."""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def gpu(request: str, model: str | None = None, *, is_simulated: bool = False) -> str:
    """A request as people say it: `0.5 × H100 (simulated)`, `2 × 20Gi of H100`, `-` for none."""
    if request in {"", "0"}:
        return NOTHING
    count, separator, share = request.partition("x")
    share = share if separator else count
    times = f"{count} × " if separator else ""
    if model is None:
        text = f"{times}{share}"
    elif share.endswith("i"):
        text = f"{times}{share} of {model}"
    else:
        text = f"{times}{share} × {model}"
    return f"{text} {SIMULATED}" if is_simulated else text


def shares(held: Sequence[workloads.Share]) -> str:
    """What a pod holds, equal shares together: `0.5 × H100 #3, 39.6Gi`, `8 × H100 #0-7, 79.1Gi each`."""
    groups: dict[tuple[str, int, int, bool], list[int]] = {}
    for one in held:
        groups.setdefault((one.model, one.milli_gpus, one.mib, one.is_simulated), []).append(one.index)
    return "; ".join(_group(*key, sorted(indexes)) for key, indexes in groups.items()) or NOTHING


def _group(model: str, milli: int, mebibytes: int, is_simulated: bool, indexes: list[int]) -> str:  # noqa: FBT001  # a key
    count = len(indexes)
    amount = str(count) if milli == WHOLE_DEVICE_MILLI else quantities.format_milli(milli)
    times = f"{count} × " if count > 1 and milli != WHOLE_DEVICE_MILLI else ""
    each = " each" if count > 1 else ""
    mark = f" {SIMULATED}" if is_simulated else ""
    return f"{times}{amount} × {model} #{_ranges(indexes)}, {mib(mebibytes)}{each}{mark}"


def _ranges(indexes: list[int]) -> str:
    """`[0, 1, 2, 5]` as `0-2,5`."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def mib(amount: int) -> str:
    """MiB in the unit that fits."""
    return quantities.format_bytes(amount * 2**20)


def device_model(device: nodes.DeviceView) -> str:
    """The model, with the mark of a device that does not exist."""
    return f"{device.model} {SIMULATED}" if device.is_simulated else device.model


def models(devices: list[nodes.DeviceView]) -> dict[str, str]:
    """The model behind each `node/index`."""
    return {f"{device.node}/{device.index}": device.model for device in devices}


def gpu_of(view: workloads.WorkloadView, known: Mapping[str, str]) -> str:
    """What a workload asks for per pod, with the model of what it holds."""
    held = sorted({known[place] for place in view.devices if place in known})
    return gpu(view.gpu, "/".join(held) or None, is_simulated=view.is_simulated)


def ending(view: workloads.WorkloadView) -> str:
    """How a workload ended, in words: `exit code 3`, `killed by signal 9`, `out of memory`."""
    if view.outcome in {None, "failed", "completed", "stopped"}:
        if view.exit_signal:
            return f"killed by signal {view.exit_signal}"
        if view.exit_code is not None:
            return f"exit code {view.exit_code}"
    return {
        "out-of-memory": "out of memory",
        "time-limit": "passed its time limit",
        "exit-unknown": "exit unknown: its supervisor was killed",
        "not-started": "could not be started",
    }.get(view.outcome or "", view.outcome or str(view.phase))


def state(view: workloads.WorkloadView) -> str:
    """The phase, and of a failure what it was: `failed: exit code 3`."""
    return f"{view.phase}: {ending(view)}" if view.phase is lifecycle.Phase.FAILED else str(view.phase)


def note(view: workloads.WorkloadView, now: datetime) -> str:
    """The one thing worth saying of a workload beside its phase."""
    if view.reason is not None and view.phase is lifecycle.Phase.PENDING:
        return view.reason.message
    if view.phase in lifecycle.FINISHED:
        how = f"{ending(view)}, " if view.phase is lifecycle.Phase.FAILED else ""
        return f"{how}ended {ago(view.finished, now)}"
    if view.url and view.phase is lifecycle.Phase.RUNNING:
        return view.url
    return ""


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 device`, `2 devices`."""
    return f"{count} {one}" if count == 1 else f"{count} {many or one + 's'}"


def quota(amount: str | None) -> str:
    """A quota: `unlimited` where there is none."""
    return "unlimited" if amount is None else amount


def limit(amount: str | None) -> str:
    """A limit: `none` where there is none."""
    return "none" if amount is None else amount


def foresee(answer: workloads.DryRun, done: str) -> str:
    """What submitting or changing would do, in words. Nothing was `done`."""
    places = f" on {', '.join(answer.places)}" if answer.places else ""
    match answer.outcome:
        case "starts":
            return f"It would start at once{places}. Nothing was {done}."
        case "starts-after-evictions":
            evicted = ", ".join(answer.evicts)
            return f"It would start{places} in the place of {evicted}, which would be evicted. Nothing was {done}."
        case _:
            message = answer.reason.message if answer.reason else "the engine gives no reason"
            return f"It would wait: {message}. Nothing was {done}."
