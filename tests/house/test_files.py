"""Holds what every committed file must be: short, well named, and free of what only one machine knows."""

import re

import pytest

from tests.house import sources

MOST_LINES = 600

VAGUE = {"utils", "util", "common", "helpers", "helper", "managers", "manager", "misc"}

# Written in halves, so that this file does not contain what it looks for.
HOSTS = [
    "registry.npm" + "js",
    "files.pythonhos" + "ted",
    "py" + "pi.org/simple",
    "proxy.go" + "lang",
    "sum.go" + "lang",
    "deb.deb" + "ian",
    "index.crates" + ".io",
]
PLACES = ["/wo" + "rk/", "/ro" + "ot/", "/fa" + "rm/", "bash_" + "jobs", "/opt/whe" + "els"]

SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep"}


def texts() -> list[tuple[str, str]]:
    """Every text file by its path in the checkout, with what it says."""
    found = []
    for path in sources.tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            found.append((str(path.relative_to(sources.ROOT)), content.decode("utf-8")))
    return found


def python_files() -> list[tuple[str, str]]:
    """The Python files among them."""
    return [(name, text) for name, text in texts() if name.endswith(".py")]


def test_no_python_file_passes_600_lines() -> None:
    long = {name: text.count("\n") for name, text in python_files() if text.count("\n") > MOST_LINES}

    assert long == {}


def test_no_file_or_folder_has_a_name_that_could_hold_anything() -> None:
    vague = [
        str(path)
        for path in (path.relative_to(sources.ROOT) for path in sources.tracked())
        if VAGUE & {part.removesuffix(path.suffix) for part in path.parts}
    ]

    assert vague == []


@pytest.mark.parametrize("words", [HOSTS, PLACES], ids=["package index", "path of one machine"])
def test_no_file_names_a(words: list[str]) -> None:
    pattern = re.compile("|".join(re.escape(word) for word in words))

    lines = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]

    assert lines == []


def test_every_silenced_type_error_says_why() -> None:
    bare = re.compile(r"#\s*type:\s*ignore(\[[^]]*\])?\s*$")

    lines = [
        f"{name}:{number}"
        for name, text in python_files()
        for number, line in enumerate(text.splitlines(), start=1)
        if bare.search(line)
    ]

    assert lines == []


def test_no_test_replaces_parts_with_mocks() -> None:
    mocks = re.compile(r"^\s*(from|import) (unittest\.mock|unittest import mock|mock|pytest_mock)\b", re.MULTILINE)

    assert [name for name, text in python_files() if mocks.search(text)] == []


def test_no_fast_test_sleeps() -> None:
    files = [path for path in (sources.ROOT / "tests").rglob("*.py") if "machine" not in path.parts]

    sleepy = [
        f"{path.relative_to(sources.ROOT)}:{line}"
        for path in files
        for call, line in sources.calls_in(path)
        if call in SLEEPS
    ]

    assert sleepy == []
