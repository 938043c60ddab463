"""Holds the locks to pyproject.toml: everything asked for is pinned, with hashes, in a version that fits."""

import re
import tomllib

import pytest
from packaging import requirements, utils

from tests.house import sources

LOCKS = sources.ROOT / "requirements"
PROJECT = tomllib.loads((sources.ROOT / "pyproject.toml").read_text())
GROUPS: dict[str, list[str]] = {"run": PROJECT["project"]["dependencies"], **PROJECT["dependency-groups"]}


def pinned(group: str) -> dict[str, list[str]]:
    """The versions of each package in a lock; more than one where they differ by Python or platform."""
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", (LOCKS / f"{group}.txt").read_text(), re.M):
        versions.setdefault(utils.canonicalize_name(name), []).append(version)
    return versions


def test_every_group_has_a_lock_and_every_lock_a_group() -> None:
    assert {path.stem for path in LOCKS.glob("*.txt")} == set(GROUPS)


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_everything_a_group_asks_for_is_pinned_in_a_version_that_fits(group: str) -> None:
    locked = pinned(group)
    asked = [requirements.Requirement(text) for text in GROUPS[group]]

    missing = [
        str(one)
        for one in asked
        if not any(one.specifier.contains(version) for version in locked.get(utils.canonicalize_name(one.name), []))
    ]

    assert missing == [], "run `make lock`"


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_every_pin_has_a_hash_and_no_line_says_where_to_fetch(group: str) -> None:
    text = (LOCKS / f"{group}.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]

    assert [line for line in lines if "--hash=sha256:" not in line] == []
    assert [line for line in lines if "://" in line or line.startswith("-")] == []


def test_groups_agree_on_versions_so_that_any_mix_installs() -> None:
    seen: dict[str, set[tuple[str, ...]]] = {}
    for group in GROUPS:
        for name, versions in pinned(group).items():
            seen.setdefault(name, set()).add(tuple(versions))

    assert {name: versions for name, versions in seen.items() if len(versions) > 1} == {}
