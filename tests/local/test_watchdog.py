"""The watchdog's judgement: who uses more than its share, when that counts, and what is done."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.model import Device, Guarantee, Share
from aliquot.local import devices, watchdog
from aliquot.wire import nodes

HALVES = {"a": (Share("d", 500, 1000),), "b": (Share("d", 500, 1000),)}


def used(pod: str | None, mib: int | None, device: str = "d", pid: int = 1) -> devices.DeviceProcess:
    """A process."""
    return devices.DeviceProcess(device, pid, mib, pod)


def reading(*processes: devices.DeviceProcess, is_lost: bool = False) -> devices.Reading:
    """A reading of device `d`."""
    device = Device("d", 0, "L4", 2000, guarantee=Guarantee.DETECTED, withheld="lost" if is_lost else None)
    return devices.Reading((device,), {} if is_lost else {"d": nodes.DeviceUse()}, processes)


def actions(dog: watchdog.Watchdog, readings: Sequence[devices.Reading]) -> list[list[tuple[str, str]]]:
    """What is done after each reading."""
    return [[(each.over.pod, each.action) for each in dog.observe(HALVES, one)] for one in readings]


@pytest.mark.parametrize(
    ("processes", "over"),
    [
        ([used("a", 1000)], []),
        ([used("a", 1001)], [("a", 1001, 1000)]),
        ([used("a", 600, pid=1), used("a", 600, pid=2)], [("a", 1200, 1000)]),
        ([used("a", 600), used("b", 600)], []),
        ([used(None, 5000)], []),
        ([used("a", None), used("a", 900)], []),
        ([used("c", 5000)], []),
        ([used("a", 10, device="e")], [("a", 10, 0)]),
    ],
    ids=["exact", "over", "sum", "two pods", "stranger", "not reported", "holds nothing at all", "not its device"],
)
def test_a_pod_is_over_when_all_its_processes_together_pass_its_share(
    processes: list[devices.DeviceProcess], over: list[tuple[str, int, int]]
) -> None:
    found = watchdog.judge(HALVES, processes)

    assert [(each.pod, each.used_mib, each.share_mib) for each in found] == over


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 700)), max_size=6))
def test_a_pod_within_its_share_is_never_accused_whatever_others_do(rows: list[tuple[str, int]]) -> None:
    accused = {each.pod for each in watchdog.judge(HALVES, [used(pod, mib) for pod, mib in rows])}

    assert accused == {pod for pod in "ab" if sum(mib for each, mib in rows if each == pod) > 1000}


def test_it_acts_at_the_third_reading_in_a_row_and_once() -> None:
    over, fine = reading(used("a", 1500)), reading(used("a", 900))

    done = actions(watchdog.Watchdog(), [over, over, fine, over, over, over, over])

    assert done == [[], [], [], [], [], [("a", "end")], []]


def test_a_lost_device_says_nothing_about_anyone() -> None:
    over, lost = reading(used("a", 1500)), reading(is_lost=True)

    done = actions(watchdog.Watchdog(), [over, over, lost, lost, over])

    assert done == [[], [], [], [], [("a", "end")]]


def test_alone_on_its_device_a_pod_is_warned_and_ended_when_a_neighbour_comes() -> None:
    dog, over, alone = watchdog.Watchdog(readings=1), reading(used("a", 1500)), {"a": HALVES["a"]}

    before = [each.action for _ in range(2) for each in dog.observe(alone, over)]
    after = [each.action for _ in range(2) for each in dog.observe(HALVES, over)]

    assert (before, after) == (["warn"], ["end"])


def test_the_policy_warn_never_ends_a_pod() -> None:
    dog = watchdog.Watchdog(policy="warn", readings=1)

    assert actions(dog, [reading(used("a", 1500))]) == [[("a", "warn")]]


def test_a_pod_that_stopped_and_began_again_is_reported_again() -> None:
    over, fine = reading(used("a", 1500)), reading()

    assert actions(watchdog.Watchdog(readings=1), [over, fine, over]) == [[("a", "end")], [], [("a", "end")]]


def test_the_count_of_a_pod_does_not_pass_to_another() -> None:
    dog = watchdog.Watchdog(readings=2)

    assert actions(dog, [reading(used("a", 1500)), reading(used("b", 1500))]) == [[], []]


def test_the_sentence_names_the_numbers_and_the_consequence() -> None:
    (finding,) = watchdog.Watchdog(readings=1).observe(HALVES, reading(used("a", 1500)))

    assert finding.sentence == (
        "uses 1500 MiB of device d; its share is 1000 MiB. It is ended, because others hold shares of that device."
    )
