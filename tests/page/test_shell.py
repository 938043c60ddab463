"""The shell of the page: getting in, the policy, going about by keyboard, and honesty about how fresh it is."""

import os
import signal
from collections.abc import Callable

from aliquot.wire import workloads
from tests.machine.server import served
from tests.machine.server.served import Served
from tests.page.browser import Browser, Tab

INLINE = """() => new Promise((resolve) => {
  document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
  const script = document.createElement("script");
  script.textContent = "window.isInline = true";
  document.head.append(script);
})"""


def test_who_is_not_signed_in_gets_in_by_the_token(browser: Browser, server: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    url = server.client.create_sign_in_link().url.partition("/sign-in")[0]

    page.goto(url + "/workloads")
    page.get_by_label("Token", exact=True).fill("not the token")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("token").last.wait_for()
    assert page.get_by_label("Token", exact=True).input_value() == "not the token"

    page.get_by_label("Token", exact=True).fill((server.data / "token").read_text())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation").wait_for()
    assert page.url == url + "/workloads"
    assert page.evaluate("document.cookie") == ""
    context.close()


def test_the_page_runs_under_a_policy_that_allows_no_inline_code(tab: Tab) -> None:
    with tab.page.expect_response(lambda one: one.url.rstrip("/") == tab.url) as answered:
        tab.go("/")
    policy = answered.value.headers["content-security-policy"]
    tab.page.get_by_role("navigation").wait_for()

    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    refused = tab.page.evaluate(INLINE)
    assert refused == "script-src-elem"
    assert tab.page.evaluate("window.isInline") is None
    tab.faults.clear()  # The browser said so in its console.


def test_every_place_is_reached_by_keys(tab: Tab) -> None:
    tab.page.get_by_role("navigation").wait_for()
    for key, path in {"w": "/workloads", "q": "/queue", "p": "/projects", "d": "/devices", "u": "/usage"}.items():
        tab.page.keyboard.press("g")
        tab.page.keyboard.press(key)
        tab.page.wait_for_url(tab.url + path)


def test_a_killed_server_is_told_of_and_its_return_is_noticed_without_a_reload(
    open_tab: Callable[..., Tab], server: Served
) -> None:
    tab = open_tab(server, "/workloads")
    tab.page.get_by_text("● live").wait_for()
    tab.page.evaluate("window.isSamePage = true")

    os.kill(server.pid, signal.SIGKILL)
    tab.page.get_by_text("live updates stopped").wait_for()

    port = tab.url.rpartition(":")[2]
    again = served.start(server.data, "--devices", "8xH100", "--port", port)
    with again.client as asked:
        asked.submit_workload(workloads.Definition(name="after-the-death", command=["true"]))
    tab.page.get_by_text("● live").wait_for(timeout=60_000)
    tab.page.get_by_text("after-the-death").first.wait_for()
    assert tab.page.evaluate("window.isSamePage") is True
