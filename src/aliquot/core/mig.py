"""MIG instances: what they are charged, and where on a device the next one is made.

Source of the placement rules: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

from collections.abc import Sequence
from functools import lru_cache

from aliquot.core.model import WHOLE_DEVICE_MILLI, MigProfile


def charge(profile: MigProfile, slices: int) -> int:
    """What an instance counts in milli-GPU: its part of the compute slices of the device, rounded down."""
    return WHOLE_DEVICE_MILLI * profile.compute_slices // slices


@lru_cache(maxsize=4096)
def start_for(profile: MigProfile, taken: int, profiles: tuple[MigProfile, ...]) -> int | None:
    """The memory slice at which an instance begins: of the legal and free ones the one that leaves room for the most
    other instances, the first of equals. None if there is none. `taken`: memory slices in use, as a bit mask."""
    free = [start for start in profile.starts if not mask(profile, start) & taken]
    if not free:
        return None
    return max(free, key=lambda start: (_room(taken | mask(profile, start), profiles), -start))


def mask(profile: MigProfile, start: int) -> int:
    """The memory slices of an instance, as a bit mask."""
    return ((1 << profile.memory_slices) - 1) << start


def _room(taken: int, profiles: Sequence[MigProfile]) -> int:
    """How many placements of all profiles are still possible, larger ones counting more."""
    return sum(
        profile.memory_slices for profile in profiles for start in profile.starts if not mask(profile, start) & taken
    )
