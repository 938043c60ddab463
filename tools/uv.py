"""Runs the project's pinned uv with the package settings that pip has on this machine.

uv does not read pip's configuration. A machine that reaches its packages through a mirror, a folder of wheels or its
own certificates has said so to pip, so this module asks pip and tells uv. Promise: nothing of that is written down.
"""

from __future__ import annotations  # so that an old Python gets as far as being told that it is too old

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"

# pip's name of a setting, and the environment variables by which uv takes the same.
SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", ""),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "cert": ("SSL_CERT_FILE", ""),
    "default-timeout": ("UV_HTTP_TIMEOUT", ""),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
    "no-index": ("UV_NO_INDEX", ""),
}


def pip_settings(python: pathlib.Path) -> dict[str, str]:
    """What pip is configured to use; the environment beats the files, as in pip itself."""
    listing = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    found: dict[str, str] = {}
    rank = {"global": 0, "install": 1, ":env:": 2}
    lines = [line.partition("=") for line in listing.stdout.splitlines() if "=" in line]
    for key, _, value in sorted(lines, key=lambda line: rank.get(line[0].rpartition(".")[0], 0)):
        found[key.rpartition(".")[2]] = value.strip("'\"").replace("\\n", " ")
    return found


def environment(python: pathlib.Path) -> dict[str, str]:
    """The environment for uv: ours, plus what pip knows and uv was not told otherwise."""
    result = dict(os.environ)
    for name, value in pip_settings(python).items():
        variable, separator = SETTINGS.get(name, ("", ""))
        if not variable or not value:
            continue
        words = [word for word in value.split() if name != "find-links" or "://" in word or pathlib.Path(word).exists()]
        if words:
            result.setdefault(variable, separator.join(words) if separator else words[0])
    result.setdefault("UV_PYTHON_DOWNLOADS", "never")
    return result


def run(*arguments: str) -> int:
    """Runs uv on the project's environment; its exit code is ours."""
    python = VENV / "bin" / "python"
    if not (VENV / "bin" / "uv").exists():
        print("uv is not installed yet; run `make setup` first", file=sys.stderr)
        return 2
    command = [str(VENV / "bin" / "uv"), *arguments]
    return subprocess.run(command, env=environment(python) | {"VIRTUAL_ENV": str(VENV)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
