"""The OpenAPI document as text, for the snapshot in the repository. Needs no server and no services."""

import json

from aliquot.api import app


def render() -> str:
    """What docs/reference/openapi.json must hold."""
    return json.dumps(app.assemble().openapi(), indent=2, ensure_ascii=False) + "\n"
