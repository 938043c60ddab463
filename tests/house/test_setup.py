"""Holds what the setup promises before it installs anything; that it installs is seen by every fresh clone."""

import os
import subprocess
import sys

from tests.house import sources


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs this Python in the folder of the tools."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=sources.ROOT / "tools",
        env={name: value for name, value in os.environ.items() if not name.startswith("UV_")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_unknown_group_is_refused_with_the_groups_there_are() -> None:
    done = run("setup.py", "dve")

    assert done.returncode == 1
    assert (
        done.stderr
        == "setup: no lock for dve; there are: browser, build, dev, docs, examples, mutation, notebook, page, run, uv\n"
    )


def test_uv_is_told_the_index_that_pip_is_configured_to_use() -> None:
    script = "import pathlib, sys, uv; print(uv.environment(pathlib.Path(sys.executable))['UV_DEFAULT_INDEX'])"

    done = run("-c", script, PIP_INDEX_URL="http://127.0.0.1:9/simple")

    assert done.stdout.strip() == "http://127.0.0.1:9/simple"
