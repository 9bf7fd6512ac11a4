"""JSON files that this package writes and reads again: a `format_version`, the fields of a dataclass, and a schema.

Within a version, keys are only added. Numbers have all their digits and are never NaN, keys are sorted, and equal
content gives equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError

from rageval_spec.diagnostics import describe_invalid, dump_visible
from rageval_spec.errors import DataError

FORMAT_VERSION = 1


def dump_document(content: Any) -> bytes:
    """The content as JSON text, in UTF-8."""
    return dump_visible(content, sort_keys=True).encode("utf-8", "backslashreplace")


def parse_document(shape: Any, content: bytes, path: str, what: str, remedy: str) -> Any:
    """Read a file into its dataclass. Messages name it by its `path` and by `what` it should be: `a calibration`.

    Raises:
        DataError: the content is not JSON, or has another shape or version; the message ends with the `remedy`.
    """
    try:
        data = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not {what}: {error}; it is incomplete, or was edited; {remedy}") from error
    version = data.get("format_version") if isinstance(data, dict) else None
    if version != FORMAT_VERSION:
        told = "it has no format_version" if version is None else f"its format_version is {version!r}"
        raise DataError(f"{path} is not {what} of format_version {FORMAT_VERSION}: {told}; {remedy}")
    try:
        return TypeAdapter(shape).validate_python(data)
    except ValidationError as error:
        raise DataError(f"{path} is not {what}: {describe_invalid(error)}; {remedy}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def build_document_schema(shape: Any, title: str, optional: Collection[str] | None = None) -> dict[str, Any]:
    """The JSON Schema of a file. All keys but the `optional` ones are required; None makes those with a default so."""
    schema = TypeAdapter(shape).json_schema(mode="serialization")
    for part in (schema, *schema["$defs"].values()):
        keys = part.get("required", ()) if optional is None else part["properties"].keys() - optional
        part["required"] = sorted(keys)
        for key in part["properties"].values():
            key.pop("title", None)
            key.pop("default", None)
    schema["properties"]["format_version"] = {"const": FORMAT_VERSION}
    return schema | {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
