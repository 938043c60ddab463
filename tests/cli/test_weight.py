"""Holds `aliquot --help` light: what makes it slow is never imported for it."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
from aliquot.cli import main
try:
    main.main(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
HEAVY = {
    "aliquot.app",
    "aliquot.client",
    "aliquot.wire",
    "asyncio",
    "fastapi",
    "httpx2",
    "numpy",
    "pydantic",
    "rich",
    "sqlalchemy",
    "websockets",
    "yaml",
}


@pytest.mark.parametrize("arguments", [["--help"], [], ["--version"], ["lisst"], ["completion", "bash"]])
def test_the_command_line_alone_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=True
    )

    assert HEAVY & set(json.loads(done.stderr.splitlines()[-1])) == set()


def test_the_options_of_up_are_shown_without_loading_the_server() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "up", "--help"], capture_output=True, text=True, timeout=120, check=True
    )

    assert {"aliquot.app", "fastapi", "sqlalchemy"} & set(json.loads(done.stderr.splitlines()[-1])) == set()
