"""Amounts as people write them, read exactly: `0.5`, `20Gi`, `2x0.5`, `500m`, `1h30m`. No float is used anywhere.

Every parser takes the name of the field, so that its error can say where the text stood and what would be valid.
"""

import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from aliquot.core.errors import InvalidInput
from aliquot.core.model import WHOLE_DEVICE_MILLI, GpuRequest

# Suffixes of Kubernetes quantities: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")
_DURATION = re.compile(r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9})s?)?")
_MAX_DEVICES = 100_000

GPU_FORMS = ("1 (whole devices)", "0.5 (a portion)", "20Gi (memory)", "2x0.5 (shares of several devices)")


def parse_gpu(text: str, field: str = "gpu") -> GpuRequest:
    """Read a GPU request: `1`, `0.5`, `20Gi`, `2x0.5`, `2x20Gi`.

    Raises InvalidInput for zero (leave GPU out instead), negatives, NaN, and portions that are not whole thousandths.
    """
    text = text.strip()
    count, separator, share = text.partition("x")
    if not separator:
        count, share = "1", text
    devices = _whole(count, text, field)
    suffix = next((unit for unit in _BINARY if share.endswith(unit)), None)
    if suffix is not None:
        number = _number(share.removesuffix(suffix), text, field)
        return _by_memory(devices, number * _BINARY[suffix], text, field)
    portion = _number(share, text, field)
    if portion == 0 or devices == 0:
        raise InvalidInput(
            f"{field}: {text!r} asks for no GPU; leave {field} out for work without a GPU", field=field, valid=GPU_FORMS
        )
    if portion.denominator == 1:
        if separator and portion != 1:
            raise _bad_gpu(text, field, "a share of one device is at most 1")
        return GpuRequest(devices=_bounded(devices * int(portion), text, field), milli=WHOLE_DEVICE_MILLI)
    if portion > 1:
        raise _bad_gpu(text, field, "a number over 1 must be whole; for shares of several devices write e.g. 2x0.75")
    milli = portion * WHOLE_DEVICE_MILLI
    if milli.denominator != 1:
        raise _bad_gpu(text, field, "a portion has at most three decimals")
    return GpuRequest(devices=_bounded(devices, text, field), milli=int(milli))


def format_gpu(request: GpuRequest | None) -> str:
    """The shortest text that `parse_gpu` reads back as the same request; `0` for none."""
    if request is None:
        return "0"
    if request.mib is not None:
        share = f"{request.mib // 1024}Gi" if request.mib % 1024 == 0 else f"{request.mib}Mi"
    elif request.is_whole:
        return str(request.devices)
    else:
        share = format_milli(request.milli or 0)
    return share if request.devices == 1 else f"{request.devices}x{share}"


def parse_milli(text: str, field: str) -> int:
    """Read a count with at most three decimals, or in thousandths (`500m`), as thousandths: CPU, or a GPU quota."""
    text = text.strip()
    is_milli = text.endswith("m")
    number = _number(text.removesuffix("m"), text, field)
    milli = number if is_milli else number * 1000
    if milli.denominator != 1:
        raise InvalidInput(f"{field}: {text!r} is finer than a thousandth", field=field, valid=("2", "0.5", "500m"))
    return int(milli)


def format_milli(milli: int) -> str:
    """Thousandths as a plain decimal: 500 is `0.5`, 2000 is `2`."""
    whole, rest = divmod(abs(milli), 1000)
    sign = "-" if milli < 0 else ""
    return f"{sign}{whole}" if rest == 0 else f"{sign}{whole}.{rest:03d}".rstrip("0")


def parse_bytes(text: str, field: str) -> int:
    """Read an amount of memory: `512Mi`, `64Gi`, `2G`, or plain bytes."""
    text = text.strip()
    for units in (_BINARY, _DECIMAL):
        for suffix in sorted(units, key=len, reverse=True):
            if suffix and text.endswith(suffix):
                return _whole_bytes(_number(text.removesuffix(suffix), text, field) * units[suffix], text, field)
    return _whole_bytes(_number(text, text, field), text, field)


def format_bytes(amount: int) -> str:
    """Bytes in the largest binary unit with at most one decimal: `64Gi`, `1.5Gi`."""
    for suffix, unit in reversed(_BINARY.items()):
        if abs(amount) >= unit:
            tenths = round(Decimal(amount * 10) / unit)
            return f"{tenths // 10}{suffix}" if tenths % 10 == 0 else f"{tenths / Decimal(10)}{suffix}"
    return str(amount)


def parse_duration(text: str, field: str) -> timedelta:
    """Read a span of time: `90s`, `30m`, `1h30m`, `2d`, or plain seconds. Raises InvalidInput for none and for zero."""
    match = _DURATION.fullmatch(text.strip()) if text.strip() else None
    if match is None:
        raise InvalidInput(f"{field}: {text!r} is not a duration", field=field, valid=("90s", "30m", "1h30m", "2d"))
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if not span:
        raise InvalidInput(f"{field}: {text!r} is no time at all", field=field, valid=("90s", "30m", "1h30m", "2d"))
    return span


def format_duration(span: timedelta) -> str:
    """A span as people say it, in its two largest units: `2h 14m`, `35s`."""
    seconds = int(span.total_seconds())
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def _by_memory(devices: int, amount: Fraction, text: str, field: str) -> GpuRequest:
    mib = amount / 2**20
    if mib == 0 or devices == 0:
        raise InvalidInput(
            f"{field}: {text!r} asks for no GPU; leave {field} out for work without a GPU", field=field, valid=GPU_FORMS
        )
    if mib.denominator != 1:
        raise _bad_gpu(text, field, "memory is in whole MiB")
    return GpuRequest(devices=_bounded(devices, text, field), milli=None, mib=int(mib))


def _number(digits: str, text: str, field: str) -> Fraction:
    if not _NUMBER.fullmatch(digits):
        raise InvalidInput(f"{field}: {_shown(text)} is not an amount", field=field, valid=_forms(field))
    try:
        return Fraction(Decimal(digits))
    except InvalidOperation as error:  # pragma: no cover - the pattern admits decimals only
        raise InvalidInput(f"{field}: {_shown(text)} is not an amount", field=field, valid=_forms(field)) from error


def _whole(digits: str, text: str, field: str) -> int:
    number = _number(digits, text, field)
    if number.denominator != 1:
        raise _bad_gpu(text, field, "the number of devices is whole")
    return int(number)


def _whole_bytes(amount: Fraction, text: str, field: str) -> int:
    if amount.denominator != 1:
        raise InvalidInput(f"{field}: {_shown(text)} is not a whole number of bytes", field=field, valid=_forms(field))
    return int(amount)


def _bounded(devices: int, text: str, field: str) -> int:
    if devices > _MAX_DEVICES:
        raise _bad_gpu(text, field, f"at most {_MAX_DEVICES} devices")
    return devices


def _bad_gpu(text: str, field: str, why: str) -> InvalidInput:
    return InvalidInput(f"{field}: {_shown(text)} is not a GPU request: {why}", field=field, valid=GPU_FORMS)


def _forms(field: str) -> tuple[str, ...]:
    return GPU_FORMS if field.endswith("gpu") else ("2", "0.5", "500m", "512Mi", "64Gi")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
