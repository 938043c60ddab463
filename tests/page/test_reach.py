"""By keyboard alone."""

from collections.abc import Callable

from tests.machine.server.served import Served
from tests.page.browser import Tab


def test_a_workload_is_found_opened_and_stopped_by_keyboard_alone(server: Served, open_tab: Callable[..., Tab]) -> None:
    for number in range(3):
        server.submit(f"job-{number}", "sleep 600", gpu="1")
    server.wait_phase("job-1", "running")
    tab = open_tab(server)
    keys = tab.page.keyboard
    tab.page.get_by_role("navigation").wait_for()

    keys.press("g")
    keys.press("w")
    tab.page.get_by_text("job-2").first.wait_for()
    keys.press("/")
    keys.type("job-1")
    tab.page.get_by_text("1 workload").wait_for()
    keys.press("Escape")
    keys.press("j")
    keys.press("j")
    keys.press("Enter")
    tab.page.get_by_role("heading", name="job-1").wait_for()
    tab.page.get_by_role("button", name="Stop").focus()
    keys.press("Enter")
    tab.page.get_by_role("dialog").wait_for()
    keys.press("Tab")
    keys.press("Enter")

    server.wait_phase("job-1", "stopped")
    tab.page.get_by_text("stopped").first.wait_for()


def test_the_palette_goes_to_a_workload_by_name(server: Served, open_tab: Callable[..., Tab]) -> None:
    made = server.submit("needle", "true")
    tab = open_tab(server)
    tab.page.get_by_role("navigation").wait_for()

    tab.page.keyboard.press("Control+k")
    tab.page.get_by_label("go to or do").fill("needle")
    tab.page.get_by_text("workload of default").wait_for()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")

    tab.page.wait_for_url(f"{tab.url}/workloads/{made.id}")
