"""How amounts and names are said in reasons and receipts."""

from collections.abc import Sequence

from aliquot.core import quantities
from aliquot.core.model import GpuRequest, ResourceName


def amount(resource: ResourceName, value: int) -> str:
    """`4 GPUs`, `0.5 GPU`, `2 CPUs`, `64Gi of memory`."""
    if resource == "memory" and value == 0:
        return "no memory"
    if resource == "memory":
        return f"{quantities.format_bytes(value)} of memory"
    noun = "GPU" if resource == "gpu" else "CPU"
    return f"{quantities.format_milli(value)} {noun}{'' if 0 < value <= 1000 else 's'}"


def plural(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def gpu(request: GpuRequest) -> str:
    """`2 whole GPUs`, `0.5 of a GPU`, `20Gi of GPU memory`, `0.5 of each of 2 GPUs`, `1 MIG instance 3g.40gb`."""
    if request.profile is not None:
        return f"{plural(request.devices, 'MIG instance')} {request.profile}"
    if request.is_whole:
        return "1 whole GPU" if request.devices == 1 else f"{request.devices} whole GPUs"
    one = GpuRequest(devices=1, milli=request.milli, mib=request.mib)
    share = quantities.format_gpu(one)
    if request.mib is not None:
        return f"{share} of GPU memory" if request.devices == 1 else f"{share} on each of {request.devices} GPUs"
    return f"{share} of a GPU" if request.devices == 1 else f"{share} of each of {request.devices} GPUs"


def names(known: Sequence[str], *, most: int = 3) -> str:
    """`a, b and 4 more`."""
    if len(known) <= most:
        return " and ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else list(known))
    return f"{', '.join(known[:most])} and {len(known) - most} more"
