"""The OpenAPI document: what FastAPI knows of the routes, with what it gets wrong put right.

Promises: the document says that every error is a problem, that an answer has all its fields, names a security scheme
where one is needed, and depends on nothing but the routes, so that its snapshot in the repository changes only with
them.
"""

from collections.abc import Iterator
from typing import Any

import fastapi
from fastapi.openapi import utils

from aliquot.api import problems
from aliquot.wire import records

# 3.2 is the first version that has a word (`itemSchema`) for what a stream of events holds.
OPENAPI_VERSION = "3.2.0"
API_VERSION = "1"
METHODS = {"get", "post", "put", "patch", "delete"}
_DROPPED = ("HTTPValidationError", "ValidationError")
_REF = "#/components/schemas/{model}"


def describe(app: fastapi.FastAPI) -> dict[str, Any]:  # Any: a JSON document
    """The document of all routes of the app."""
    document = utils.get_openapi(
        title="Aliquot",
        version=API_VERSION,
        openapi_version=OPENAPI_VERSION,
        description="Share GPUs fairly, see what runs, and know why something waits.",
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    schemas = document["components"]["schemas"]
    for name in _DROPPED:
        schemas.pop(name, None)
    problem = records.Problem.model_json_schema(ref_template=_REF)
    schemas |= problem.pop("$defs") | {"Problem": problem}
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    for operation in operations(document):
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = {"description": "A problem (RFC 9457).", "content": content}
    _require_answers(document)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document


def _require_answers(document: dict[str, Any]) -> None:  # Any: a JSON document
    """What the server alone writes has every field, those with a default too: a client need not ask whether."""
    schemas = document["components"]["schemas"]
    asked: set[str] = set()
    left = [name for one in operations(document) for name in _named(one.get("requestBody", {}))]
    while left:
        name = left.pop()
        if name not in asked:
            asked.add(name)
            left += _named(schemas[name])
    for name, schema in schemas.items():
        if name not in asked and "properties" in schema:
            schema["required"] = list(schema["properties"])


def _named(part: object) -> Iterator[str]:
    """The schemas to which a part of the document refers."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _named(value)
    elif isinstance(part, list):
        for value in part:
            yield from _named(value)


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:  # Any: a JSON document
    """Every operation of a document."""
    for path in document["paths"].values():
        for method, operation in path.items():
            if method in METHODS:
                yield operation
