"""Bad input in each form: the message stands at the field, what was typed is kept, and nothing is made."""

from collections.abc import Callable, Iterator

import pytest

from tests.machine.server import served
from tests.machine.server.served import Served
from tests.page.browser import Tab


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the whole table: nothing that is refused changes it."""
    with served.serving(tmp_path_factory.mktemp("calm") / "data", "--devices", "8xH100") as server:
        yield server


def field_of(tab: Tab, label: str) -> tuple[str, str]:
    """What stands in a field, and what is said at it."""
    entry = tab.page.get_by_label(label, exact=True).first
    said = tab.page.locator(".mantine-InputWrapper-root", has=entry).first.inner_text()
    return entry.input_value(), said


@pytest.mark.parametrize(
    ("label", "typed", "said"),
    [
        ("Name", "Not A Name", "lower-case letters"),
        ("Project", "nobody", "no project 'nobody'"),
        ("GPU", "a lot", "gpu"),
        ("GPU", "9", "9 GPUs on one node"),
        ("GPU", "-1", "gpu"),
        ("GPU", "NaN", "gpu"),
        ("CPU", "many", "cpu"),
        ("Memory", "8 potatoes", "memory"),
        ("Priority", "5000", "0 to 1000"),
        ("Priority", "urgent", "very-high"),
        ("At most", "soon", "max"),
        ("Working directory", "here", "absolute"),
        ("Grace period", "a while", "grace"),
        ("Deleted after", "never", "ttl"),
    ],
)
def test_what_is_wrong_with_a_submission_stands_at_its_field(
    calm: Served, open_tab: Callable[..., Tab], label: str, typed: str, said: str
) -> None:
    tab = open_tab(calm, "/submit")
    tab.page.get_by_text("Starts now").wait_for()

    tab.page.get_by_label(label, exact=True).first.fill(typed)
    tab.page.wait_for_function(
        "([label, said]) => [...document.querySelectorAll('.mantine-InputWrapper-error')]"
        ".some((one) => one.textContent.toLowerCase().includes(said.toLowerCase()))",
        arg=[label, said],
    )

    value, text = field_of(tab, label)
    assert value == typed
    assert said.lower() in text.lower()
    assert tab.page.get_by_role("button", name="Submit", exact=True).last.is_disabled()
    assert calm.client.list_workloads().total == 0
    tab.faults.clear()  # The browser tells of each refused request.


@pytest.mark.parametrize(
    ("kind", "name", "quota", "said"),
    [
        ("project", "Bad Name", "1", "name"),
        ("project", "default", "1", "already"),
        ("department", "fine", "-3", "quota"),
        ("project", "fine", "lots", "quota"),
    ],
)
def test_what_is_wrong_with_a_new_queue_is_said_and_nothing_is_made(
    calm: Served, open_tab: Callable[..., Tab], kind: str, name: str, quota: str, said: str
) -> None:
    before = (calm.client.list_projects().total, calm.client.list_departments().total)
    tab = open_tab(calm, "/projects")
    tab.page.get_by_role("button", name="New").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_text(kind, exact=True).first.click()
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("GPU quota, devices").fill(quota)

    dialog.get_by_role("button", name="Make it").click()

    dialog.get_by_text(said).last.wait_for()
    assert dialog.get_by_label("Name").input_value() == name
    assert (calm.client.list_projects().total, calm.client.list_departments().total) == before
    tab.faults.clear()


def test_a_limit_below_the_quota_is_said_at_the_limit(calm: Served, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(calm, "/projects")
    tab.page.get_by_role("button", name="default").last.click()
    panel = tab.page.get_by_role("complementary")
    panel.get_by_label("Quota", exact=True).first.fill("4")
    panel.get_by_label("Limit", exact=True).first.fill("2")

    panel.get_by_text("less than the quota").wait_for()

    assert panel.get_by_role("button", name="Apply").is_disabled()
    panel.get_by_role("button", name="Drop").click()
    assert panel.get_by_label("Limit", exact=True).first.input_value() == ""
    tab.faults.clear()
