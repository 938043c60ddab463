"""Our fair share against vectors that were computed elsewhere. They lie beside the checkout and are not ours."""

import json
import math
import os
import pathlib
from fractions import Fraction
from typing import Any

import pytest

from aliquot.core import fairshare

FOLDER = pathlib.Path(os.environ.get("ALIQUOT_SHARED", pathlib.Path(__file__).parents[3] / "shared")) / "conformance"
VECTORS = FOLDER / "fairshare.json"
Vector = dict[str, Any]  # Any: JSON


def vectors() -> list[Any]:
    """One parameter for each vector, or one that says why there is none."""
    if not VECTORS.exists():
        return [pytest.param({}, id="none", marks=pytest.mark.skip("no conformance folder beside the checkout"))]
    return [pytest.param(vector, id=vector["name"]) for vector in json.loads(VECTORS.read_text(encoding="utf-8"))]


def exact(vector: Vector) -> dict[str, Fraction]:
    """The shares expected: where the quotas pass the total we cut them, so that no guarantee exceeds what there is."""
    shares = (vector["cut"] if "cut" in vector else vector["exact"])["shares"]
    return {name: Fraction(str(share)) for name, share in shares.items()}


@pytest.mark.parametrize("vector", vectors())
def test_the_exact_shares_are_met_to_the_last_digit(vector: Vector) -> None:
    expected = exact(vector)
    # Shares are whole units: so many for each unit of the file that all its fractions are whole.
    scale = math.lcm(*(share.denominator for share in expected.values()))

    def scaled(amount: object) -> int | None:
        return None if amount is None else int(Fraction(str(amount)) * scale)

    claimants = [
        fairshare.Claimant(
            queue["name"],
            request=scaled(queue["request"]) or 0,
            quota=scaled(queue["quota"]),
            weight=queue["weight"],
            limit=scaled(queue["limit"]),
            priority=queue["priority"],
        )
        for queue in vector["queues"]
    ]

    found = fairshare.divide(scaled(vector["total"]) or 0, claimants)

    assert {name: Fraction(found[name].share, scale) for name in expected} == expected
