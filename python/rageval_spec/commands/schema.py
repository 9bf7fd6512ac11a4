"""`rageval-spec schema`: the JSON Schema of a spec, including all installed plugins."""

from __future__ import annotations

import json

from rageval_spec.spec import schema


def render_schema() -> str:
    """The JSON Schema as indented JSON that ends with a newline."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
