"""The JSON Schemas of the replies that chat models are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OUTPUT_TOKENS = 40
"""The tokens that an estimate assumes for a reply with one verdict."""
TEXT: Mapping[str, Any] = {"type": "string"}
REMARK: Mapping[str, Any] = {"type": ["string", "null"]}
"""A text that a reply can lack and still be usable."""


def make_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these keys, in this order, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def make_list_schema(items: Mapping[str, Any], count: int | None = None) -> dict[str, Any]:
    """The JSON Schema of a list, of exactly `count` items if a count is given."""
    return {"type": "array", "items": items} | ({} if count is None else {"minItems": count, "maxItems": count})
