"""What a person does from the first click to the last: each ends on the real server as the page said it would."""

from collections.abc import Callable

import pytest

from tests.machine.server import served
from tests.machine.server.served import Served
from tests.page.browser import Tab

HOSTILE = '<img src=x onerror="window.isHacked=1">&amp;<b>\'" \u202eevil\u202c'


@pytest.fixture
def tight(server: Served) -> Served:
    """All eight devices are held."""
    server.submit("holder", "sleep 600", gpu="7")
    server.wait_phase("holder", "running")
    return server


def fill(tab: Tab, label: str, text: str) -> None:
    tab.page.get_by_label(label, exact=True).first.fill(text)


def test_a_training_is_submitted_seen_waiting_helped_and_followed_to_its_end(
    tight: Served, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(tight, "/submit")
    fill(tab, "Name", "mine")
    fill(tab, "GPU", "2")
    fill(tab, "Command", "/bin/sh -c 'for n in 1 2 3; do echo line $n; done'")
    outlook = tab.page.get_by_label("what would happen")
    outlook.get_by_text("Would wait: needs 2 whole GPUs; 1 of 8 is free").wait_for()

    outlook.get_by_role("button", name="Submit", exact=True).dblclick()
    tab.page.get_by_text("It waits:").wait_for()
    assert tight.client.list_workloads(name="mine").total == 1

    tab.page.get_by_role("button", name="ask for 1 GPU instead of 2").click()
    tab.page.get_by_text("line 3").wait_for(timeout=60_000)
    tab.page.get_by_text("succeeded").first.wait_for()
    tab.page.get_by_text("3 lines, complete").wait_for()
    assert tight.wait_phase("mine", "succeeded").gpu == "1"


def test_the_form_and_the_yaml_are_one_and_faults_stand_at_their_fields(
    server: Served, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(server, "/submit")
    yaml = tab.page.get_by_label("the definition as YAML")

    yaml.fill("name: from-yaml\ngpu: nonsense\ncommand: [echo, 'a b']\n")
    assert tab.page.get_by_label("Name", exact=True).input_value() == "from-yaml"
    assert tab.page.get_by_label("Command", exact=True).input_value() == "echo 'a b'"
    tab.page.get_by_text("gpu: 'nonsense'").first.wait_for()
    assert tab.page.get_by_label("GPU", exact=True).input_value() == "nonsense"
    assert tab.page.get_by_role("button", name="Submit", exact=True).last.is_disabled()

    yaml.fill("name: [")
    tab.page.get_by_text("line 1").first.wait_for()
    fill(tab, "GPU", "0.5")
    tab.page.get_by_text("Starts now").wait_for()
    assert "gpu: " in yaml.input_value()
    tab.faults.clear()  # The browser tells of each refused request.


def test_a_quota_is_changed_as_its_preview_said(tight: Served, open_tab: Callable[..., Tab]) -> None:
    for words in (
        ("create", "team", "--gpu-quota", "0"),
        ("update", "team", "--gpu-weight", "0"),
        ("update", "default", "--gpu-quota", "4"),
    ):
        done = tight.run("projects", *words)
        assert done.returncode == 0, done.stderr
    tight.submit("waits", "sleep 600", gpu="4", project="team")
    tab = open_tab(tight, "/projects")
    tab.page.get_by_role("button", name="team").click()
    panel = tab.page.get_by_label("project team")
    panel.get_by_label("Quota", exact=True).first.fill("4")
    panel.get_by_text("waits of team").wait_for()
    preview = panel.get_by_label("what would happen").inner_text()

    panel.get_by_role("button", name="Apply").click()
    tight.wait_phase("waits", "running")

    assert "1 workload would start" in preview
    assert ("holder of default" in preview) == (tight.client.get_workload("holder").evictions > 0)


def test_many_are_stopped_at_once_with_a_result_for_each(server: Served, open_tab: Callable[..., Tab]) -> None:
    for number in range(5):
        server.submit(f"job-{number}", "sleep 600", gpu="1")
    tab = open_tab(server, "/workloads?q=job")
    tab.page.get_by_text("job-4").first.wait_for()
    tab.page.get_by_label("select all that are loaded").check()
    tab.page.get_by_role("button", name="Stop").click()
    dialog = tab.page.get_by_role("dialog")
    assert "frees 5 GPU" in dialog.inner_text() or "Nothing of it runs" in dialog.inner_text()
    dialog.get_by_role("button", name="Stop").click()
    tab.page.get_by_text("5 done, 0 refused").wait_for()

    served.wait_for("all to stop", lambda: server.client.list_workloads(phase="unfinished").total == 0)


def test_hostile_content_is_text_and_breaks_nothing(server: Served, open_tab: Callable[..., Tab]) -> None:
    writes = r"""printf "%s\n" "$TEXT"; printf "\033[31mred\033[0m \377\376 end\n"
      head -c 100000 /dev/zero | tr '\0' x; echo; echo after"""
    server.submit("hostile", writes, environment={"TEXT": HOSTILE}, labels={"note": HOSTILE})
    server.wait_phase("hostile", "succeeded")
    tab = open_tab(server, "/workloads/hostile")
    tab.page.get_by_text("after", exact=True).wait_for()

    log = tab.page.get_by_role("log")
    assert "<img src=x onerror=" in log.inner_text()
    assert "red" in log.inner_text()
    assert "more characters" in log.inner_text()
    tab.page.get_by_role("tab", name="Definition").click()
    tab.page.get_by_text("onerror").first.wait_for()
    assert tab.page.evaluate("window.isHacked") is None


def test_two_tabs_act_on_one_workload_and_both_are_right(server: Served, open_tab: Callable[..., Tab]) -> None:
    server.submit("shared", "sleep 600", gpu="1")
    server.wait_phase("shared", "running")
    first, second = open_tab(server, "/workloads/shared"), open_tab(server, "/workloads")
    second.page.get_by_text("running").first.wait_for()

    first.page.get_by_role("button", name="Suspend").click()

    second.page.get_by_text("suspended").first.wait_for()
    first.page.get_by_role("button", name="Resume").wait_for()


def test_ages_are_told_by_the_clock_of_the_server(server: Served, open_tab: Callable[..., Tab]) -> None:
    server.submit("aged", "true")
    tab = open_tab(server, "/")
    tab.page.clock.install(time=tab.page.evaluate("Date.now() + 3600 * 1000"))
    tab.go("/workloads")
    tab.page.get_by_text("● live").wait_for()
    tab.page.clock.run_for(2_000)

    text = tab.page.get_by_role("table").inner_text()

    assert "aged" in text
    assert "1 h" not in text
