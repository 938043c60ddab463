"""Makes `.venv` what the locks say: `python3 tools/setup.py GROUP...` (run is always there).

Promises: nothing is installed without a hash; groups once installed stay, so that `make up` after `make test` does not
take the test tools away; when nothing changed it ends at once. It needs Python 3.11 with venv and nothing else.
"""

from __future__ import annotations  # so that an old Python gets as far as being told that it is too old

import fcntl
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import time

import uv

ROOT = uv.ROOT
VENV = uv.VENV
LOCKS = ROOT / "requirements"
STAMP = VENV / "aliquot-setup.json"
ALWAYS = {"build", "run", "uv"}


def say(text: str) -> None:
    """One line about what goes on, at once."""
    print(f"setup: {text}", flush=True)


def fail(text: str) -> None:
    """Ends the setup with a reason that tells what to do."""
    print(f"setup: {text}", file=sys.stderr, flush=True)
    sys.exit(1)


def fingerprint(groups: list[str]) -> str:
    """Changes when a lock of these groups or the package's own metadata changes; settings of tools do not count."""
    digest = hashlib.sha256()
    for path in lock_files(groups):
        digest.update(path.read_bytes())
    text = (ROOT / "pyproject.toml").read_text()  # no tomllib: an old Python must get as far as being told so
    digest.update(text.partition("\n[tool.ruff]")[0].encode())
    return digest.hexdigest()


def home() -> str:
    """What `.venv` was made for: a moved checkout or another Python needs a new one."""
    return f"{ROOT} {sys.version_info[0]}.{sys.version_info[1]}"


def stamp() -> dict[str, object]:
    """What the last finished setup left; empty when there was none."""
    try:
        content = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def leave_stamp(groups: list[str], state: str) -> None:
    """Says for the next time what is in `.venv`, or was being installed when it broke off."""
    STAMP.write_text(json.dumps({"groups": groups, "fingerprint": state, "home": home()}) + "\n")


def step(command: list[object]) -> None:
    """Runs one step with its output on the screen."""
    done = subprocess.run([str(word) for word in command], env=uv.environment(VENV / "bin" / "python"), check=False)
    if done.returncode:
        fail(f"this step failed with exit code {done.returncode}: {' '.join(str(word) for word in command)}")


def make_environment(*, is_fresh: bool) -> None:
    """A `.venv` with pip, then the pinned uv in it, checked by hash."""
    python = VENV / "bin" / "python"
    if is_fresh or not (python.exists() and (VENV / "bin" / "pip").exists()):
        say(f"making .venv with Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False)
        if made.returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            fail("python3 cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv")
    say("installing uv, which installs the rest")
    lock = LOCKS / "uv.txt"
    step([python, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:", "-r", lock])


def install(groups: list[str]) -> None:
    """The locked packages of the groups, and this checkout as an editable package."""
    program = VENV / "bin" / "uv"
    say(f"installing {', '.join(groups)}")
    step([program, "pip", "sync", "--python", VENV / "bin" / "python", "--require-hashes", *lock_files(groups)])
    say("installing aliquot itself (editable)")
    own = ["--no-deps", "--no-build-isolation", "--editable", ROOT]
    step([program, "pip", "install", "--quiet", "--python", VENV / "bin" / "python", *own])


def lock_files(groups: list[str]) -> list[pathlib.Path]:
    """The lock of each group."""
    return [LOCKS / f"{group}.txt" for group in groups]


def main(wanted: list[str]) -> None:
    """Installs what is wanted on top of what is there."""
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs `make` may have an older Python first in PATH
        fail(f"Aliquot needs Python 3.11 or newer, this is {sys.version.split()[0]}; try `make PYTHON=python3.12 ...`")
    known = {path.stem for path in LOCKS.glob("*.txt")}
    unknown = sorted(set(wanted) - known)
    if unknown:
        fail(f"no lock for {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    with pathlib.Path(__file__).open() as this_file:
        fcntl.flock(this_file, fcntl.LOCK_EX)  # two makes at once: the second waits, and finds all done
        update(wanted, known)


def update(wanted: list[str], known: set[str]) -> None:
    """Brings `.venv` to what is wanted and to what was wanted before."""
    last = stamp()
    is_ours = last.get("home") == home()
    before = last.get("groups")
    kept = set(before) & known if is_ours and isinstance(before, list) else set()
    groups = sorted(ALWAYS | set(wanted) | kept)
    if is_ours and last.get("fingerprint") == fingerprint(groups) and (VENV / "bin" / "aliquot").exists():
        return
    began = time.monotonic()
    make_environment(is_fresh=bool(last) and not is_ours)
    leave_stamp(groups, "unfinished")
    install(groups)
    leave_stamp(groups, fingerprint(groups))
    say(f"done in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
