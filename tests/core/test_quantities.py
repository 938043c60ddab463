"""Amounts are read exactly, written so that they read back, and refused with the field and what would be valid."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import quantities
from aliquot.core.errors import InvalidInput
from aliquot.core.model import GpuRequest

GPU_REQUESTS = st.one_of(
    st.builds(GpuRequest, devices=st.integers(1, 100_000)),
    st.builds(GpuRequest, devices=st.integers(1, 64), milli=st.integers(1, 999)),
    st.builds(GpuRequest, devices=st.integers(1, 64), milli=st.none(), mib=st.integers(1, 2**24)),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", GpuRequest(1, 1000)),
        ("8", GpuRequest(8, 1000)),
        ("1.0", GpuRequest(1, 1000)),
        (" 2 ", GpuRequest(2, 1000)),
        ("0.5", GpuRequest(1, 500)),
        ("0.125", GpuRequest(1, 125)),
        ("0.001", GpuRequest(1, 1)),
        ("2x0.5", GpuRequest(2, 500)),
        ("2x1", GpuRequest(2, 1000)),
        ("20Gi", GpuRequest(1, None, 20 * 1024)),
        ("1.5Gi", GpuRequest(1, None, 1536)),
        ("512Mi", GpuRequest(1, None, 512)),
        ("2x20Gi", GpuRequest(2, None, 20 * 1024)),
    ],
)
def test_a_gpu_request_is_read(text: str, expected: GpuRequest) -> None:
    assert quantities.parse_gpu(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "0", "0.0", "0x1", "2x0", "0Gi", "-1", "-0.5", "+1", "1.5", "2x1.5", "2x2", "0.0001", "0.1234", "nan",
        "NaN", "inf", "x", "x1", "1x", "1x1x1", "1.5x0.5", "1e3", "1_000", "1,5", "0,5", "٣", "½", "１", "1 000", ".5",
        "5.", "20GiB", "20G", "Gi", "0.3Mi", "1Ki", "one", "0x10", "0b1", "100001", "9" * 40, "1\n2", "'1'", "null",
    ],
)  # fmt: skip
def test_a_text_that_is_no_gpu_request_is_refused_by_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        quantities.parse_gpu(text, "resources.gpu")

    assert refused.value.field == "resources.gpu"
    assert refused.value.valid
    assert "resources.gpu" in refused.value.message


def test_zero_gpus_are_refused_with_the_way_to_ask_for_none() -> None:
    with pytest.raises(InvalidInput, match="leave gpu out for work without a GPU"):
        quantities.parse_gpu("0")


def test_a_huge_text_is_shown_shortened() -> None:
    with pytest.raises(InvalidInput) as refused:
        quantities.parse_gpu("7" * 10_000_000)

    assert len(refused.value.message) < 200


@given(GPU_REQUESTS)
def test_a_gpu_request_reads_back_as_it_was_written(request_: GpuRequest) -> None:
    assert quantities.parse_gpu(quantities.format_gpu(request_)) == request_


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_but_never_breaks(text: str) -> None:
    try:
        request = quantities.parse_gpu(text)
    except InvalidInput:
        return
    assert request.devices >= 1
    assert (request.milli is None) != (request.mib is None)


def test_no_gpu_is_written_as_zero() -> None:
    assert quantities.format_gpu(None) == "0"


@pytest.mark.parametrize(("text", "milli"), [("2", 2000), ("0.5", 500), ("500m", 500), ("0", 0), ("0.001", 1)])
def test_thousandths_are_read(text: str, milli: int) -> None:
    assert quantities.parse_milli(text, "cpu") == milli


@pytest.mark.parametrize("text", ["", "-1", "0.5m", "0.0001", "nan", "1e3", "m", "٣", "1Gi"])
def test_what_is_no_thousandth_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        quantities.parse_milli(text, "cpu")

    assert refused.value.field == "cpu"


@given(st.integers(0, 10**15))
def test_thousandths_read_back_as_they_were_written(milli: int) -> None:
    assert quantities.parse_milli(quantities.format_milli(milli), "cpu") == milli


def test_a_negative_difference_is_written_with_its_sign() -> None:
    assert quantities.format_milli(-1500) == "-1.5"


@pytest.mark.parametrize(
    ("text", "amount"),
    [("512Mi", 512 * 2**20), ("64Gi", 64 * 2**30), ("2G", 2 * 10**9), ("1k", 1000), ("7", 7), ("1.5Gi", 3 * 2**29)],
)
def test_bytes_are_read(text: str, amount: int) -> None:
    assert quantities.parse_bytes(text, "memory") == amount


@pytest.mark.parametrize("text", ["", "-1Gi", "0.3", "1GB", "1gi", "Gi", "nan", "1e9", "٣Gi"])
def test_what_is_no_amount_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        quantities.parse_bytes(text, "memory")

    assert refused.value.field == "memory"


@pytest.mark.parametrize(
    ("amount", "text"), [(64 * 2**30, "64Gi"), (3 * 2**29, "1.5Gi"), (512, "512"), (0, "0"), (2**50, "1Pi")]
)
def test_bytes_are_written_in_the_largest_unit(amount: int, text: str) -> None:
    assert quantities.format_bytes(amount) == text


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("90", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("1h30m", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ],
)
def test_a_duration_is_read(text: str, span: timedelta) -> None:
    assert quantities.parse_duration(text, "maxRunTime") == span


@pytest.mark.parametrize("text", ["", "0", "0s", "-1h", "1.5h", "h", "1w", "30m1h", "٣s", "1e3", "1 h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        quantities.parse_duration(text, "maxRunTime")

    assert refused.value.field == "maxRunTime"


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(seconds=35), "35s"),
        (timedelta(hours=2, minutes=14, seconds=9), "2h 14m"),
        (timedelta(days=1, seconds=5), "1d 5s"),
        (timedelta(), "0s"),
    ],
)
def test_a_duration_is_written_in_its_two_largest_units(span: timedelta, text: str) -> None:
    assert quantities.format_duration(span) == text
