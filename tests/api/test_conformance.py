"""What the OpenAPI document promises, held against a live server with requests made up from the document itself."""

from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

from aliquot.api import app as api
from aliquot.api import description
from tests import serving
from tests.api.raw import with_token

ENDLESS = {"streamEvents", "followLogs"}
EXAMPLES = 12

# What the document cannot say is refused too (an unknown project, a cursor of another list): a request that it allows
# need not be accepted; every other check holds. A tar stream is made up as any bytes are.
schemathesis.serializer.alias("application/x-tar", "application/octet-stream")

NAMES = {one["operationId"] for one in description.operations(api.assemble().openapi())}


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:  # Any: schemathesis has no types for mypy
    """The operations of the document by their names, each able to make requests up."""
    document: Any = schemathesis.openapi.from_dict(api.assemble().openapi())  # Any: as above
    found = [result.ok() for result in document.get_all_operations()]
    return {one.definition.raw["operationId"]: one for one in found}


@pytest.mark.slow  # A few hundred requests.
@pytest.mark.parametrize("name", sorted(NAMES - ENDLESS))
def test_an_operation_answers_made_up_requests_as_the_document_says(
    live: serving.Live, operations: dict[str, Any], name: str
) -> None:  # Any: as above
    operation = operations[name]
    valid = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
    broken = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), database=None
    )
    @hypothesis.given(case=st.one_of(valid, broken))
    def ask(case: Any) -> None:  # Any: as above
        response = case.call(base_url=live.url, headers=with_token())
        case.validate_response(response, excluded_checks=[checks.positive_data_acceptance])
        assert response.status_code < 500

    ask()
