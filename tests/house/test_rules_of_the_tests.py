"""Holds the rules that tests/conftest.py gives to every test, by running a small suite under it."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

from tests.house import sources

SUITE = """
import pytest

@pytest.mark.must_have
def test_needs_a_part():
    pytest.skip("no compiler")

def test_may_be_skipped():
    pytest.skip("nothing to see")
"""


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed, 1 skipped"), ("", "2 skipped")])
def test_a_must_have_test_that_skips_fails_in_ci_only(tmp_path: pathlib.Path, ci: str, outcome: str) -> None:
    shutil.copy(sources.ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_sample.py").write_text(SUITE)
    settings = ["-c", str(sources.ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, str(tmp_path)],
        env=os.environ | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )

    assert outcome in done.stdout.splitlines()[-1]


def test_a_connection_to_another_machine_is_refused() -> None:
    # 192.0.2.0/24 is kept for documentation: no machine has it, should the guard ever fail.
    with socket.socket(type=socket.SOCK_DGRAM) as one, pytest.raises(RuntimeError, match="stay on loopback"):
        one.connect(("192.0.2.1", 9))
