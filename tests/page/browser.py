"""Drives Chromium: where it is, how it is started, and a tab that knows of its own faults."""

import importlib.util
import pathlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.machine.server.served import Served

Browser: TypeAlias = Any
Page: TypeAlias = Any
"""Of the browser driver, which only those have installed who test the page."""

ROOT = pathlib.Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
IS_BUILT = (ROOT / "src/aliquot/api/built/index.html").is_file()
AXE = ROOT / "ui/node_modules/axe-core/axe.min.js"
MISSING = (
    "the browser driver is not installed; `make test-page` does it"
    if importlib.util.find_spec("playwright") is None
    else "there is no Chromium; `make test-page` installs it"
    if CHROMIUM is None
    else "the page is not built; `make page` does it"
    if not IS_BUILT
    else ""
)
# No sandbox, as tests may run as root; and Chromium is not to look up anybody outside.
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
EXPECTED = ("401", "409", "the server was not reached", "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED", "ERR_NETWORK")
"""Of what the console says of requests: who is not signed in, what does not wait any more, a server that is down."""


@contextmanager
def launched() -> Iterator[Browser]:
    """A headless Chromium."""
    from playwright import sync_api  # noqa: PLC0415 - only where it is installed

    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_ARGUMENTS))
        yield found
        found.close()


@dataclass(slots=True)
class Tab:
    """A tab of its own browser context."""

    page: Page
    server: Served
    url: str
    faults: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """To another URL of the page, as one types it."""
        self.page.goto(self.url + path)

    def close(self) -> None:
        """The tab and its context."""
        self.page.context.close()

    def axe(self) -> list[str]:
        """What axe finds wrong with what is shown: rule, how bad, where."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
        return [
            f"{one['id']} ({one['impact']}): {node['html'][:200]}: {node['failureSummary']}"
            for one in found
            for node in one["nodes"]
        ]


def open_tab(browser: Browser, at: Served, path: str, *, scheme: str = "light") -> Tab:
    """A new context, signed in by the link that the command line prints."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    link = at.client.create_sign_in_link()
    tab = Tab(context.new_page(), at, link.url.partition("/sign-in")[0])
    tab.page.on("pageerror", lambda error: tab.faults.append(str(error)))
    tab.page.on("console", lambda said: _listen(tab, said.type, said.text))
    tab.page.goto(link.url)
    if path != "/":
        tab.go(path)
    return tab


def _listen(tab: Tab, kind: str, text: str) -> None:
    if kind == "error" and not any(one in text for one in EXPECTED):
        tab.faults.append(text)
