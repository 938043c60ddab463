"""What holds for every test: how random ones run, that none leaves this machine, and which may not be skipped in CI.

Promises: a test never reaches a server, a data folder or a token of the person who runs it, and never another machine.
"""

import ipaddress
import os
import pathlib
import sys
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest

HERE = pathlib.Path(__file__).parent
IS_CI = os.environ.get("CI") == "true"

# `dev` finds new cases at every run, `ci` repeats the same ones, `prop` is the long search of `make prop`.
hypothesis.settings.register_profile("dev", deadline=None, max_examples=50)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("prop", deadline=None, max_examples=5000, print_blob=True)
# For `make mutants`: the same few cases for each mutant, and none made smaller once it is known that it fails.
hypothesis.settings.register_profile(
    "mutants", deadline=None, max_examples=10, derandomize=True, database=None, phases=[hypothesis.Phase.generate]
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IS_CI else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in tests/machine starts real processes or servers, so it is marked by its folder."""
    for item in items:
        if item.path.is_relative_to(HERE / "machine"):
            item.add_marker(pytest.mark.machine)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A must-have test that skips where CI=true fails: CI that quietly tests less is worse than a red one."""
    report = yield
    if IS_CI and report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker("must_have"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but CI must run it (marker must_have): {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, which is what the server runs on."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Data, state and settings of the tests lie in a folder of their own, whatever the caller's environment says."""
    for name in [name for name in os.environ if name.startswith("ALIQUOT_")]:
        del os.environ[name]
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        os.environ[name] = str(tmp_path_factory.mktemp(name.lower()))


def refuse_other_machines(event: str, arguments: tuple[Any, ...]) -> None:  # Any: what the interpreter hands to hooks
    """Stops a connection that would leave the loopback interface."""
    if event != "socket.connect":
        return
    address = arguments[1]
    if not isinstance(address, tuple) or address[0] in {"localhost", ""}:
        return
    if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise RuntimeError(f"a test tried to connect to {address[0]}; tests stay on loopback")


sys.addaudithook(refuse_other_machines)
