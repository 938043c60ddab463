"""MIG: the profiles of known cards, what an instance is charged, and where the next one begins."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import mig
from aliquot.core.model import MigProfile

A100 = mig.profiles_for("A100", 40 * 1024)
A30 = mig.profiles_for("A30", 24 * 1024)

# The tables of NVIDIA's user guide ("Supported MIG Profiles"): name, and how many of it fit on one device.
GUIDE = [
    pytest.param("NVIDIA A30", 24_063, "1g.6gb*4 2g.12gb*2 4g.24gb*1", id="A30"),
    pytest.param(
        "NVIDIA A100-SXM4-40GB",
        40_339,
        "1g.5gb*7 1g.10gb*4 2g.10gb*3 3g.20gb*2 4g.20gb*1 7g.40gb*1",
        id="A100 of 40 GB",
    ),
    pytest.param(
        "NVIDIA A100 80GB PCIe",
        81_038,
        "1g.10gb*7 1g.20gb*4 2g.20gb*3 3g.40gb*2 4g.40gb*1 7g.80gb*1",
        id="A100 of 80 GB",
    ),
    pytest.param(
        "NVIDIA H100 80GB HBM3",
        81_008,
        "1g.10gb*7 1g.20gb*4 2g.20gb*3 3g.40gb*2 4g.40gb*1 7g.80gb*1",
        id="H100 of 80 GB",
    ),
    pytest.param(
        "NVIDIA H100 NVL",
        95_250,
        "1g.12gb*7 1g.24gb*4 2g.24gb*3 3g.47gb*2 4g.47gb*1 7g.94gb*1",
        id="H100 of 94 GB",
    ),
    pytest.param(
        "NVIDIA GH200 480GB",
        97_300,
        "1g.12gb*7 1g.24gb*4 2g.24gb*3 3g.48gb*2 4g.48gb*1 7g.96gb*1",
        id="GH200 of 96 GB",
    ),
    pytest.param(
        "GH200", 146_900, "1g.18gb*7 1g.36gb*4 2g.36gb*3 3g.72gb*2 4g.72gb*1 7g.144gb*1", id="GH200 of 144 GB"
    ),
    pytest.param("NVIDIA H200", 143_100, "1g.18gb*7 1g.35gb*4 2g.35gb*3 3g.71gb*2 4g.71gb*1 7g.141gb*1", id="H200"),
    pytest.param("b200", 182_700, "1g.23gb*7 1g.45gb*4 2g.45gb*3 3g.90gb*2 4g.90gb*1 7g.180gb*1", id="B200"),
]


@pytest.mark.parametrize(("model", "memory", "written"), GUIDE)
def test_a_known_card_is_cut_as_its_maker_says(model: str, memory: int, written: str) -> None:
    profiles = mig.profiles_for(model, memory)

    assert " ".join(f"{one.name}*{most_of(one)}" for one in profiles) == written


@pytest.mark.parametrize(("model", "memory", "written"), GUIDE)
def test_instances_never_offer_more_than_their_device(model: str, memory: int, written: str) -> None:
    profiles = mig.profiles_for(model, memory)

    for one in profiles:
        assert one.memory_mib * most_of(one) <= memory
    assert max(one.memory_mib for one in profiles) == memory


@pytest.mark.parametrize(
    ("model", "memory"),
    [
        pytest.param("NVIDIA L40S", 46_068, id="a card without MIG"),
        pytest.param("NVIDIA A100-SXM4-40GB", 20_000, id="a device that offers far less than the card"),
        pytest.param("NVIDIA A30", 40_000, id="a device that offers more than the card"),
        pytest.param("NVIDIA A3000", 24_000, id="a name that only begins like a known one"),
    ],
)
def test_of_an_unknown_card_nothing_is_claimed(model: str, memory: int) -> None:
    assert mig.profiles_for(model, memory) == ()


@pytest.mark.parametrize(
    ("name", "expected"), [("1g.5gb", 142), ("2g.10gb", 285), ("3g.20gb", 428), ("4g.20gb", 571), ("7g.40gb", 1000)]
)
def test_an_instance_is_charged_its_compute_slices_rounded_down(name: str, expected: int) -> None:
    assert mig.charge(named(A100, name), 7) == expected


def test_on_a_card_with_four_slices_a_slice_is_a_quarter() -> None:
    assert [mig.charge(one, 4) for one in A30] == [250, 500, 1000]


def test_the_slices_of_an_instance_follow_each_other_from_its_start() -> None:
    assert mig.mask(named(A100, "2g.10gb"), 4) == 0b0011_0000


def test_the_first_small_instance_leaves_the_half_whole() -> None:
    start = mig.start_for(named(A100, "1g.5gb"), 0, A100)

    assert start is not None
    assert not 0b1111 & mig.mask(named(A100, "1g.5gb"), start)


@pytest.mark.parametrize("profile", A100, ids=lambda one: one.name)
def test_as_many_instances_fit_one_after_the_other_as_the_card_has(profile: MigProfile) -> None:
    taken, count = 0, 0

    while (start := mig.start_for(profile, taken, A100)) is not None:
        taken |= mig.mask(profile, start)
        count += 1

    assert count == most_of(profile)


cards = st.sampled_from([A30, A100, mig.profiles_for("H200", 143_771)])


@given(data=st.data(), profiles=cards, slices=st.integers(0, 255))
def test_an_instance_begins_where_it_may_and_overlaps_none(
    data: st.DataObject, profiles: tuple[MigProfile, ...], slices: int
) -> None:
    profile = data.draw(st.sampled_from(profiles))

    start = mig.start_for(profile, slices, profiles)

    legal = [one for one in profile.starts if not spans(profile, one) & held(slices)]
    assert start in legal if legal else start is None


@given(data=st.data(), profiles=cards, slices=st.integers(0, 255))
def test_no_other_start_leaves_room_for_more_sets_of_instances(
    data: st.DataObject, profiles: tuple[MigProfile, ...], slices: int
) -> None:
    profile = data.draw(st.sampled_from(profiles))

    start = mig.start_for(profile, slices, profiles)

    if start is not None:
        after = held(slices) | spans(profile, start)
        others = [
            held(slices) | spans(profile, one) for one in profile.starts if not spans(profile, one) & held(slices)
        ]
        assert len(room(after, profiles)) == max(len(room(other, profiles)) for other in others)


def named(profiles: tuple[MigProfile, ...], name: str) -> MigProfile:
    """The profile of this name."""
    return next(one for one in profiles if one.name == name)


def most_of(profile: MigProfile) -> int:
    """How many of it fit at once, by trying all sets of starts."""
    return max(
        count
        for count in range(len(profile.starts) + 1)
        for starts in itertools.combinations(profile.starts, count)
        if len(set().union(*(spans(profile, one) for one in starts))) == count * profile.memory_slices
    )


def spans(profile: MigProfile, start: int) -> set[int]:
    """The memory slices that it takes."""
    return set(range(start, start + profile.memory_slices))


def held(slices: int) -> set[int]:
    """The slices of a bit mask."""
    return {index for index in range(8) if slices >> index & 1}


def room(taken: set[int], profiles: tuple[MigProfile, ...]) -> set[tuple[str, ...]]:
    """By brute force, every set of instances that fits beside what is taken, as their names."""
    found: set[tuple[str, ...]] = {()}
    for profile in profiles:
        for start in profile.starts:
            if not spans(profile, start) & taken:
                found |= {tuple(sorted((*one, profile.name))) for one in room(taken | spans(profile, start), profiles)}
    return found
