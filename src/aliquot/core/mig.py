"""MIG instances: which a card can be cut into, what they are charged, and where on a device the next one is made.

Promises: what `profiles_for` says of a card is in NVIDIA's tables; instances that `start_for` places never overlap and
leave as much room for others as can be.

Source of the profiles and their placements: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

import re
from functools import lru_cache
from typing import NamedTuple

from aliquot.core.model import WHOLE_DEVICE_MILLI, MigProfile


class _Cut(NamedTuple):
    """One kind of instance of a card: compute slices, memory slices, and where it may begin."""

    compute: int
    memory: int
    starts: tuple[int, ...]


class _Card(NamedTuple):
    """A card as it is sold: its family, its GB, and the GB in the names of its instances, by kind."""

    family: str
    gigabytes: int
    cuts: tuple[_Cut, ...]
    names: tuple[int, ...]


# Eight slices of memory, seven of compute. An instance with one slice of compute and two of memory may use the last.
_SEVENTHS = (
    _Cut(1, 1, (0, 1, 2, 3, 4, 5, 6)),
    _Cut(1, 2, (0, 2, 4, 6)),
    _Cut(2, 2, (0, 2, 4)),
    _Cut(3, 4, (0, 4)),
    _Cut(4, 4, (0,)),
    _Cut(7, 8, (0,)),
)
_QUARTERS = (_Cut(1, 1, (0, 1, 2, 3)), _Cut(2, 2, (0, 2)), _Cut(4, 4, (0,)))

# The tables of "Supported MIG Profiles". Instances with media extensions (`+me`) are left out: a device has one of
# them at most, which placement does not know.
_CARDS = (
    _Card("A30", 24, _QUARTERS, (6, 12, 24)),
    _Card("A100", 40, _SEVENTHS, (5, 10, 10, 20, 20, 40)),
    _Card("A100", 80, _SEVENTHS, (10, 20, 20, 40, 40, 80)),
    _Card("H100", 80, _SEVENTHS, (10, 20, 20, 40, 40, 80)),
    _Card("H100", 94, _SEVENTHS, (12, 24, 24, 47, 47, 94)),
    _Card("H100", 96, _SEVENTHS, (12, 24, 24, 48, 48, 96)),
    _Card("GH200", 96, _SEVENTHS, (12, 24, 24, 48, 48, 96)),
    _Card("GH200", 144, _SEVENTHS, (18, 36, 36, 72, 72, 144)),
    _Card("H200", 141, _SEVENTHS, (18, 35, 35, 71, 71, 141)),
    _Card("B200", 180, _SEVENTHS, (23, 45, 45, 90, 90, 180)),
)
_MIB_OF_GB = 1024
_MOST_KEPT = (1, 8)
"""A driver keeps less than this part of a card's memory, so a device that offers less is another card."""


@lru_cache(maxsize=256)
def profiles_for(model: str, memory_mib: int) -> tuple[MigProfile, ...]:
    """The instances that a device can be cut into, the smallest first; none if the card is not known or has no MIG.

    `model` is its name, short (`H100`) or as the driver says it (`NVIDIA H100 80GB HBM3`). `memory_mib` is what the
    whole device offers; an instance offers its part of that, so that together they never offer more.
    """
    words = {word.upper() for word in re.split(r"[^A-Za-z0-9]+", model)}
    most = {card: card.gigabytes * _MIB_OF_GB for card in _CARDS if card.family in words}
    able = [
        card
        for card, whole in most.items()
        if memory_mib <= whole and (whole - memory_mib) * _MOST_KEPT[1] < whole * _MOST_KEPT[0]
    ]
    if not able:
        return ()
    card = min(able, key=lambda one: one.gigabytes)
    whole = max(cut.memory for cut in card.cuts)
    return tuple(
        MigProfile(f"{cut.compute}g.{name}gb", cut.compute, cut.memory, memory_mib * cut.memory // whole, cut.starts)
        for cut, name in zip(card.cuts, card.names, strict=True)
    )


def charge(profile: MigProfile, slices: int) -> int:
    """What an instance counts in milli-GPU: its part of the compute slices of the device, rounded down."""
    return WHOLE_DEVICE_MILLI * profile.compute_slices // slices


@lru_cache(maxsize=4096)
def start_for(profile: MigProfile, taken: int, profiles: tuple[MigProfile, ...]) -> int | None:
    """The memory slice at which an instance begins: of the legal and free ones the one that leaves room for the most
    sets of other instances, the first of equals. None if there is none. `taken`: memory slices in use, as a bit mask.
    """
    free = [start for start in profile.starts if not mask(profile, start) & taken]
    if len(free) < 2:
        return free[0] if free else None
    return max(free, key=lambda start: (len(_sets(taken | mask(profile, start), profiles)), -start))


def mask(profile: MigProfile, start: int) -> int:
    """The memory slices of an instance, as a bit mask."""
    return ((1 << profile.memory_slices) - 1) << start


@lru_cache(maxsize=4096)
def _sets(taken: int, profiles: tuple[MigProfile, ...]) -> frozenset[tuple[int, ...]]:
    """Every set of instances that still fits: how many of each profile. Counted so, room is judged better than by the
    places that are left: of all orders in which instances that fit on an A100 may come, 32 of 424 get stuck and not
    108."""
    found = {(0,) * len(profiles)}
    for index, profile in enumerate(profiles):
        for start in profile.starts:
            if not mask(profile, start) & taken:
                more = _sets(taken | mask(profile, start), profiles)
                found |= {(*one[:index], one[index] + 1, *one[index + 1 :]) for one in more}
    return frozenset(found)
