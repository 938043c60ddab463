"""Simulated devices: how they are asked for, what they offer, and that a held one stays."""

import pytest

from aliquot.core import errors
from aliquot.core.model import Device, Guarantee
from aliquot.local import devices, profiles
from aliquot.service import records


def simulate(spec: str, machine: str = "a", only: str | None = None) -> tuple[Device, ...]:
    """The devices of a spec."""
    return devices.SimulatedDevices(spec, machine=machine, only=only, reason="no driver").read(owned={}).devices


def row_of(device: Device) -> records.DeviceRow:
    """What the store remembers of it."""
    return records.DeviceRow(
        device.id, "node", device.index, device.model, device.memory_mib, is_simulated=device.is_simulated
    )


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("H100", ["H100"]),
        ("2xh100", ["H100", "H100"]),
        (" 1 x A100-80 , 2 × L4 ", ["A100-80", "L4", "L4"]),
        ("1*T4,1xT4", ["T4", "T4"]),
    ],
)
def test_a_spec_names_cards_by_number_and_name(text: str, models: list[str]) -> None:
    assert [card.name for card in profiles.parse(text)] == models


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a number of cards and a name"),
        ("8xH100,", "not a number of cards and a name"),
        ("8", "not a number of cards and a name"),
        ("xH100", "no card is called 'xH100'"),
        ("-1xH100", "not a number of cards and a name"),
        ("1.5xH100", "not a number of cards and a name"),
        ("nanxH100", "no card is called"),
        ("０xH100", "not a number of cards and a name"),
        ("0xH100", "at least 1"),
        ("257xH100", "at most 256"),
        ("200xH100,57xL4", "at most 256"),
        ("999999999xH100", "at most 256"),
        ("9999999999999xH100", "not a number of cards and a name"),
        ("2xH10", "did you mean H100 or H100-NVL?"),
        ("2xA100", "did you mean A100-40 or A100-80?"),
        ("2xMI300X", "no card is called 'MI300X'"),
        ("8xH100\0", "not a number of cards and a name"),
    ],
)
def test_a_spec_that_is_not_understood_is_refused_with_the_names_that_are(text: str, words: str) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^devices: ") as refused:
        profiles.parse(text)

    assert words in refused.value.message
    assert refused.value.field == "devices"
    assert set(refused.value.valid) == set(profiles.NAMES)


def test_a_long_spec_is_not_repeated_in_full() -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        profiles.parse("?" * 10_000)

    assert len(refused.value.message) < 300


@pytest.mark.parametrize("card", profiles.PROFILES, ids=lambda card: card.name)
def test_every_profile_offers_most_of_its_card(card: profiles.Profile) -> None:
    assert card.memory_mib * 0.9 < card.offered_mib < card.memory_mib


def test_simulated_devices_say_that_they_are_and_guarantee_nothing() -> None:
    found = devices.SimulatedDevices("8xH100", machine="a", reason="no driver was found")

    assert found.describe() == (
        "8 simulated H100 (no driver was found); nothing is measured on them and shares are not enforced"
    )
    assert found.guarantee is Guarantee.NONE
    for index, device in enumerate(found.read(owned={}).devices):
        assert device.id.startswith("SIM-")
        assert (device.index, device.is_simulated, device.guarantee) == (index, True, Guarantee.NONE)
        assert device.memory_mib == 81_559 - 516
    assert found.read(owned={}).use == {}


def test_ids_are_the_same_at_every_start_and_differ_between_machines() -> None:
    first, again, elsewhere = (
        {device.id for device in simulate("8xH100", machine=machine)} for machine in ("a", "a", "b")
    )

    assert first == again
    assert len(first) == 8
    assert not first & elsewhere


def test_a_device_keeps_its_id_when_others_are_added_or_taken_away() -> None:
    lone = {device.id for device in simulate("4xL4")}
    mixed = {device.id for device in simulate("2xH100,6xL4") if device.model == "L4"}

    assert lone < mixed


def test_a_held_device_stays_withheld_when_the_spec_shrinks() -> None:
    before = simulate("4xH100")
    after = devices.SimulatedDevices("2xH100", machine="a", reason="").read(owned={})

    kept = after.keeping([row_of(device) for device in before], {before[1].id, before[3].id})

    assert [(device.id, device.withheld) for device in kept.devices] == [
        (before[0].id, None),
        (before[1].id, None),
        (before[3].id, "not-offered"),
    ]
    assert "no longer among" in kept.notes[before[3].id]


def test_a_held_simulated_device_outlives_the_change_to_none_and_goes_when_it_is_free() -> None:
    (before,) = simulate("H100")
    none = devices.NoDevices("no driver").read(owned={})

    assert [device.id for device in none.keeping([row_of(before)], {before.id}).devices] == [before.id]
    assert none.keeping([row_of(before)], set()).devices == ()


def test_a_held_real_device_that_is_no_longer_reported_is_lost() -> None:
    row = records.DeviceRow("GPU-1", "node", 1, "NVIDIA L4", 22_000, is_simulated=False)

    (device,) = devices.Reading().keeping([row], {"GPU-1"}).devices

    assert (device.withheld, device.is_simulated, device.memory_mib) == ("lost", False, 22_000)


def test_only_the_named_devices_are_offered() -> None:
    found = simulate("4xH100")
    chosen = simulate("4xH100", only=f" 0,{found[2].id.upper()}")

    assert [device.withheld for device in chosen] == [None, "not-offered", None, "not-offered"]


@pytest.mark.parametrize("only", ["4", "", "0,,1", "-1", "0 1", "x" * 1000])
def test_a_device_to_offer_that_is_not_there_is_refused(only: str) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^only: there is no device") as refused:
        simulate("4xH100", only=only)

    assert refused.value.valid == ("0", "1", "2", "3")
    assert len(refused.value.message) < 200


def test_choosing_among_no_devices_is_refused() -> None:
    with pytest.raises(errors.InvalidInput, match=r"^only: there is no device to choose from"):
        devices.choose("0", [])


def test_the_first_reason_to_withhold_a_device_stays() -> None:
    (device,) = simulate("H100")

    assert devices.withhold(device, "cordoned").withheld == "cordoned"
    assert devices.withhold(devices.withhold(device, "lost"), "cordoned").withheld == "lost"
