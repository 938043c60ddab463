"""The given cases end as expected, but for those that the documentation lists. They lie beside the checkout."""

import importlib.util
import json
import os
import pathlib
import re
from types import ModuleType
from typing import Any

import pytest

from aliquot.sim import scenario
from aliquot.wire.scenario import outcome, reader

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = pathlib.Path(os.environ.get("ALIQUOT_SHARED", ROOT.parent / "shared")) / "conformance"
PAGE = (ROOT / "docs" / "explanation" / "differences.md").read_text(encoding="utf-8")
Case = dict[str, Any]  # Any: JSON

needs_cases = pytest.mark.skipif(not (FOLDER / "cases").exists(), reason="no conformance folder beside the checkout")


@pytest.fixture(scope="module")
def judge() -> ModuleType:
    """The judge that lies with the cases."""
    spec = importlib.util.spec_from_file_location("judge", FOLDER / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_cases
def test_just_the_cases_of_the_page_end_otherwise(judge: ModuleType) -> None:
    cases: list[tuple[pathlib.Path, Case]] = judge.load([str(FOLDER / "cases")])

    otherwise = {
        f"{path.parent.name}/{path.name.split('-')[0]}"
        for path, case in cases
        if judge.judge(case, run(judge, case))[0]
    }

    assert otherwise == set(re.findall(r"^\| `([a-z-]+/\w+)`", PAGE, flags=re.MULTILINE))


@needs_cases
def test_just_the_vectors_of_the_page_are_rounded_by_their_origin() -> None:
    vectors = json.loads((FOLDER / "fairshare.json").read_text(encoding="utf-8"))

    rows = [
        (f"`{one['name']}`", shares(one["expect"]["shares"]), shares(one["exact"]["shares"]))
        for one in vectors
        if "rounding" in one["origin"] or "rounding" in one
    ]

    assert rows
    assert all(f"| {' | '.join(row)} |" in PAGE for row in rows)
    assert f"Of {len(vectors)} divisions" in PAGE


def run(judge: ModuleType, case: Case) -> Case:
    """What comes of a case, without what it expects."""
    bare = {key: value for key, value in case.items() if key not in judge.HINTS}
    found: Case = json.loads(outcome.to_json(scenario.run(reader.parse(bare))))
    return found


def shares(by_name: dict[str, object]) -> str:
    """Shares in the order of the queues' names."""
    return ", ".join(str(share) for _, share in sorted(by_name.items()))
