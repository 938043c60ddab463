"""Measured use, attributed to shares."""

from datetime import UTC, datetime, timedelta

from aliquot.core.model import Share
from aliquot.local import metering
from aliquot.wire.nodes import DeviceUse

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def after(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_busy_device_is_attributed_in_proportion_to_what_is_held() -> None:
    meter = metering.Meter()
    held = {"p": [Share("g", 750, 1)], "q": [Share("g", 250, 1)]}
    meter.observe(held, {"g": DeviceUse(utilisation_percent=80)}, now=NOW)

    meter.observe(held, {"g": DeviceUse(utilisation_percent=80)}, now=after(10))

    assert meter.take() == {"p/g": 6000, "q/g": 2000}


def test_what_was_taken_is_not_given_again() -> None:
    meter = metering.Meter()
    held = {"p": [Share("g", 1000, 1)]}
    meter.observe(held, {}, now=NOW)
    meter.observe(held, {"g": DeviceUse(utilisation_percent=50)}, now=after(2))
    meter.take()

    assert meter.take() == {}


def test_a_device_that_is_not_measured_adds_nothing() -> None:
    meter = metering.Meter()
    held = {"p": [Share("g", 1000, 1)]}
    meter.observe(held, {"g": DeviceUse()}, now=NOW)

    meter.observe(held, {"g": DeviceUse()}, now=after(2))

    assert meter.take() == {}


def test_a_long_gap_between_readings_is_not_counted() -> None:
    meter = metering.Meter()
    held = {"p": [Share("g", 1000, 1)]}
    meter.observe(held, {"g": DeviceUse(utilisation_percent=100)}, now=NOW)

    meter.observe(held, {"g": DeviceUse(utilisation_percent=100)}, now=after(3600))

    assert meter.take() == {}
