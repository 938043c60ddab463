"""Changes by which a workload asks for less: fewer GPUs or pods, smaller shares, less CPU and memory."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aliquot.core import change, ladders, quantities
from aliquot.core.ladders import MIB, Candidate, Ladder
from aliquot.core.model import WHOLE_DEVICE_MILLI, GpuRequest, Group, MigProfile, PodRequest, Workload
from aliquot.core.trials import Question

ROUND_SHARES = (750, 500, 250, 100)
"""Portions that people choose; tried besides the largest that fits."""
_MOST_SIZES = 200


def fewer(about: Question) -> Iterator[Ladder]:
    """Fewer GPUs or pods."""
    for request in ladders.requests(about.workload):
        if request.gpu is not None:
            yield _fewer_gpus(about, request, request.gpu)
    yield _fewer_replicas(about)
    for leaf in _leaves(about.workload.root):
        yield _fewer_to_start(about, leaf)


def shares(about: Question) -> Iterator[Ladder]:
    """Smaller shares."""
    for request in ladders.requests(about.workload):
        gpu = request.gpu
        if gpu is not None and gpu.profile is not None:
            yield _smaller_profile(about, request, gpu)
        elif gpu is not None:
            yield _smaller_share(about, request, gpu)
            yield _round_share(about, request, gpu)
            yield _less_compute(about, request, gpu)


def cpu(about: Question) -> Iterator[Ladder]:
    """Less CPU."""
    return (_less_cpu(about, request) for request in ladders.requests(about.workload))


def memory(about: Question) -> Iterator[Ladder]:
    """Less memory."""
    return (_less_memory(about, request) for request in ladders.requests(about.workload))


def any_model(about: Question) -> Iterator[Ladder]:
    """Any model of GPU."""
    for request in ladders.requests(about.workload):
        if request.gpu is not None and (request.gpu.models or request.gpu.min_device_mib):
            yield _any_model(about, request, request.gpu)


def _fewer_gpus(about: Question, request: PodRequest, gpu: GpuRequest) -> Ladder:
    count = sum(pod.request == request for pod in ladders.pending(about.workload))

    def at(index: int) -> Candidate:
        amount = (index + 1) * count * (gpu.milli or WHOLE_DEVICE_MILLI)
        return _ask_gpu(about, request, replace(gpu, devices=gpu.devices - 1 - index), amount)

    return Ladder(gpu.devices - 1, at)


def _smaller_share(about: Question, request: PodRequest, gpu: GpuRequest) -> Ladder:
    size = (gpu.milli if gpu.mib is None else gpu.mib) or 0
    sizes = _sizes(about, size, "milli" if gpu.mib is None else "mib")

    def at(index: int) -> Candidate:
        return _ask_gpu(about, request, _sized(gpu, sizes[index]), size - sizes[index])

    return Ladder(len(sizes), at)


def _round_share(about: Question, request: PodRequest, gpu: GpuRequest) -> Ladder:
    size = (gpu.milli if gpu.mib is None else gpu.mib) or 0
    shares = (
        [part for part in ROUND_SHARES if part < size] if gpu.mib is None else [size * 3 // 4, size // 2, size // 4]
    )

    def at(index: int) -> Candidate:
        return _ask_gpu(about, request, _sized(gpu, shares[index]), size - shares[index])

    return Ladder(len(shares), at, is_steady=False)


def _less_compute(about: Question, request: PodRequest, gpu: GpuRequest) -> Ladder:
    asked = gpu.compute_milli or 0
    sizes = _sizes(about, asked, "milli")

    def at(index: int) -> Candidate:
        less = sizes[index]
        text = f"ask for {_thousandths(less)} of the compute of a GPU instead of {_thousandths(asked)}"
        fewer = replace(gpu, compute_milli=less)
        changed = change.SetGpu(about.workload.id, fewer, ladders.only(about, request))
        return Candidate(changed, text + ladders.each(about, request), "owner", (asked - less, 0))

    return Ladder(len(sizes), at)


def _smaller_profile(about: Question, request: PodRequest, gpu: GpuRequest) -> Ladder:
    """Other MIG instances that the pool offers and that are smaller, the largest first; where it does not offer what is
    asked for, all that it does, the smallest first."""
    devices = [one for node in about.snapshot.nodes if node.pool == about.ask.pool for one in node.devices]
    offered = {one.name: one for device in devices for one in device.profiles}
    offered |= {one.instance.name: one.instance for one in devices if one.instance is not None}
    own = offered.get(gpu.profile or "")
    others = sorted(offered.values(), key=_size_of)
    if own is not None:
        others = [one for one in reversed(others) if _size_of(one) < _size_of(own)]

    def at(index: int) -> Candidate:
        return _ask_gpu(about, request, replace(gpu, profile=others[index].name), 1 + index)

    return Ladder(len(others), at, is_steady=False)


def _size_of(profile: MigProfile) -> tuple[int, int, str]:
    return (profile.memory_mib, profile.compute_slices, profile.name)


def _sized(gpu: GpuRequest, size: int) -> GpuRequest:
    return replace(gpu, milli=size) if gpu.mib is None else replace(gpu, mib=size)


def _ask_gpu(about: Question, request: PodRequest, gpu: GpuRequest, amount: int) -> Candidate:
    before = _gpu_text(request.gpu)
    text = f"ask for {_gpu_text(gpu)} GPU instead of {before}" + ladders.each(about, request)
    return Candidate(change.SetGpu(about.workload.id, gpu, ladders.only(about, request)), text, "owner", (amount, 0))


def _any_model(about: Question, request: PodRequest, gpu: GpuRequest) -> Ladder:
    other = replace(gpu, models=(), min_device_mib=0)

    def at(index: int) -> Candidate:
        text = "accept any model of GPU" + ladders.each(about, request)
        return Candidate(change.SetGpu(about.workload.id, other, ladders.only(about, request)), text, "owner")

    return Ladder(1, at)


# How many pods it is.


def _fewer_replicas(about: Question) -> Ladder:
    workload = about.workload
    total, waiting = len(workload.pods), len(ladders.pending(workload))
    each = _milli_each(about.workload)

    def at(index: int) -> Candidate:
        count = total - 1 - index
        return Candidate(
            change.SetReplicas(workload.id, count),
            f"run {count} {'replica' if count == 1 else 'replicas'} instead of {total}",
            "owner",
            ((index + 1) * each, 1),
        )

    return Ladder(waiting - 1 if workload.gang is None else 0, at)


def _fewer_to_start(about: Question, group: Group) -> Ladder:
    """A lower minimum of its gang, or of a group of pods in it."""
    each = _milli_each(about.workload)

    def at(index: int) -> Candidate:
        count = group.minimum - 1 - index
        what = f"pods of {group.name}" if group.name else "of its pods"
        text = f"let it start with {count} {what} instead of {group.minimum}"
        changed = change.SetMinPods(about.workload.id, count, group.name)
        return Candidate(changed, text, "owner", ((index + 1) * each, 2))

    return Ladder(max(0, group.minimum - 1), at)


def _leaves(group: Group) -> list[Group]:
    return [leaf for child in group.groups for leaf in _leaves(child)] if group.groups else [group]


def _milli_each(workload: Workload) -> int:
    gpus = [pod.request.gpu for pod in ladders.pending(workload) if pod.request.gpu is not None]
    return max((one.devices * (one.milli or WHOLE_DEVICE_MILLI) for one in gpus), default=1)


# What else it asks for.


def _less_cpu(about: Question, request: PodRequest) -> Ladder:
    asked = request.milli_cpus
    sizes = _sizes(about, asked, "cpu")

    def at(index: int) -> Candidate:
        left = sizes[index]
        text = f"ask for {_thousandths(left)} CPU instead of {_thousandths(asked)}" + ladders.each(about, request)
        changed = change.SetCpu(about.workload.id, left, ladders.only(about, request))
        return Candidate(changed, text, "owner", (asked - left,))

    return Ladder(len(sizes), at)


def _less_memory(about: Question, request: PodRequest) -> Ladder:
    asked = request.memory_bytes
    sizes = _sizes(about, -(-asked // MIB), "memory")

    def at(index: int) -> Candidate:
        left = sizes[index] * MIB
        text = f"ask for {ladders.exact(left)} of memory instead of {ladders.exact(asked)}" + ladders.each(
            about, request
        )
        changed = change.SetMemory(about.workload.id, left, ladders.only(about, request))
        return Candidate(changed, text, "owner", (asked - left,))

    return Ladder(len(sizes), at)


def _sizes(about: Question, asked: int, what: str) -> Sequence[int]:
    """Smaller amounts than what is asked, the largest first: all, or where many wait those that are free somewhere, in
    all or for each of its pods."""
    if not about.is_large or asked < 2:
        return range(asked - 1, 0, -1)
    found = {1}
    for amount in about.free[what]:
        found |= {amount // pods for pods in range(1, min(len(about.ask.pods), 8) + 1)}
    return sorted((one for one in found if 0 < one < asked), reverse=True)[:_MOST_SIZES]


# Words.


def _thousandths(amount: int) -> str:
    return quantities.format_milli(amount)


def _gpu_text(gpu: GpuRequest | None) -> str:
    if gpu is None or gpu.profile is None:
        return quantities.format_gpu(gpu)
    return gpu.profile if gpu.devices == 1 else f"{gpu.devices}x{gpu.profile}"
