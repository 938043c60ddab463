"""The OpenAPI document: as its snapshot says, whole, and the same as what the client has."""

from typing import Any

import pytest

from aliquot import client
from aliquot.api import app as api
from aliquot.api import description, openapi
from aliquot.app import gen

WEBSOCKETS = {"exec_workload", "attach_workload"}
BESIDES = {"close", "of", "dry_run_workload", "preview_workload", "preview_project", "preview_department"}
"""What the client has that is not an operation: a dry run or preview is one with `dryRun=true`."""
OPEN = {"healthCheck", "createSession"}


def operations() -> list[dict[str, Any]]:  # Any: a JSON document
    """Every operation of the document."""
    return list(description.operations(api.assemble().openapi()))


def snake_case(operation: str) -> str:
    """`listWorkloads` as `list_workloads`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation)


def test_the_snapshot_is_what_the_code_says() -> None:
    assert gen.outdated() == [], "run `make gen` and commit the difference"


def test_a_snapshot_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Patched, as the alternative is to change a committed file while others read it.
    monkeypatch.setattr(gen, "GENERATED", {"docs/reference/openapi.json": lambda: openapi.render() + "x"})

    assert gen.main(["--check"]) == 1


def test_rendering_twice_gives_the_same() -> None:
    assert openapi.render() == openapi.render()


def test_every_operation_has_an_id_and_a_method_of_the_client() -> None:
    ids = [operation["operationId"] for operation in operations()]

    assert len(ids) == len(set(ids))
    missing = {snake_case(operation) for operation in ids} - set(dir(client.Client))
    assert missing == set()


def test_the_client_has_nothing_that_the_api_has_not() -> None:
    methods = {name for name in vars(client.Client) if not name.startswith("_")}
    ids = {snake_case(operation["operationId"]) for operation in operations()}

    assert methods - ids == WEBSOCKETS | BESIDES


def test_every_operation_says_that_its_errors_are_problems_and_how_one_gets_in() -> None:
    for operation in operations():
        problem = operation["responses"]["default"]["content"]["application/problem+json"]
        assert problem["schema"] == {"$ref": "#/components/schemas/Problem"}
        assert operation["operationId"] in OPEN or {"token": []} in operation["security"]


def test_every_operation_has_a_sentence() -> None:
    silent = [operation["operationId"] for operation in operations() if not operation.get("description")]

    assert silent == []


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    document = api.assemble().openapi()
    schemas = document["components"]["schemas"]

    used = set(_references(document))

    assert used == {f"#/components/schemas/{name}" for name in schemas}


def _references(part: Any) -> list[str]:  # Any: a JSON document
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [found for value in part.values() for found in _references(value)]
    if isinstance(part, list):
        return [found for value in part for found in _references(value)]
    return []
