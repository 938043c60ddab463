"""MIG instances by the names that NVIDIA gives them: `1g.10gb` has one compute slice and 10 GB.

Source of the sizes and placements: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

import functools
import re
from dataclasses import replace

from aliquot.core import errors
from aliquot.core.model import WHOLE_DEVICE_MILLI, MigProfile

_NAME = re.compile(r"([1-7])g\.([1-9][0-9]{0,3})gb([+-][a-z]+(?:\.[a-z]+)?)?")
_ENGINES = "+me"
"""An instance that has the media engines of its device (`+me`, `+me.all`); `-me` has none, `+gfx` has graphics."""
_FORMS = ("1g.10gb", "3g.40gb", "7g.80gb")
SLICES = 7
_SMALL_SLICES = 4
_SMALL = frozenset({"1g.6gb", "2g.12gb", "4g.24gb"})
"""The instances of an A30, a card of 24 GB with four slices."""
_MIB_OF_GB = 1024
_MEMORY_SLICES = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
_STARTS = {
    1: tuple(range(7)),
    2: (0, 2, 4),
    3: (0, 4),
    4: (0,),
    7: (0,),
}
_SMALL_STARTS = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}


def slices_of(name: str) -> int:
    """The compute slices of the whole device that an instance of this name belongs to."""
    match = _NAME.fullmatch(name)
    return _SMALL_SLICES if match and name.removesuffix(match.group(3) or "") in _SMALL else SLICES


def milli_of(profile: MigProfile, slices: int) -> int:
    """What an instance is charged."""
    return WHOLE_DEVICE_MILLI * profile.compute_slices // slices


@functools.cache
def by_name(name: str) -> MigProfile:
    """The profile of this name. Raises InvalidInput that names no field. One with the media engines has one place where
    it may begin, the last: a device has one of them."""
    plain = _plain(name)
    return replace(plain, starts=plain.starts[-1:]) if _ENGINES in name else plain


def _plain(name: str) -> MigProfile:
    match = _NAME.fullmatch(name)
    if match is None:
        raise errors.InvalidInput(f"{name!r} is not the name of a MIG profile", valid=_FORMS)
    compute, gigabytes = int(match.group(1)), int(match.group(2))
    if slices_of(name) == _SMALL_SLICES:
        return MigProfile(name, compute, compute, gigabytes * _MIB_OF_GB, _SMALL_STARTS[compute])
    if compute not in _STARTS:
        raise errors.InvalidInput(f"{name!r} is not the name of a MIG profile: no card has {compute}g", valid=_FORMS)
    memory, starts = _MEMORY_SLICES[compute], _STARTS[compute]
    if compute == 1 and gigabytes in _DOUBLE:
        memory, starts = 2, (0, 2, 4, 6)
    return MigProfile(name, compute, memory, gigabytes * _MIB_OF_GB, starts)


def named(name: str, path: str) -> MigProfile:
    """The profile of this name, which stands at `path`."""
    try:
        return by_name(name)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(f"{path}: {error.message}", field=path, valid=error.valid) from error


_DOUBLE = frozenset({20, 24, 35, 45, 47})
"""Memory of the profile with one compute slice and two memory slices, by card: A100/H100 80 GB, 96 GB, H200, B200."""
