"""Ids of documents in one cell of a table: a list as a program prints it, or ids between separators."""

from __future__ import annotations

import json
import re
from typing import Any

from rageval_spec.errors import DataError
from rageval_spec.reading.rows import parse_list

_BETWEEN_IDS = ("\n", ";", "|", ",")
"""What separates ids in one cell of a table. The first of these that a cell has is its separator."""
_NUMBERS = re.compile(r"\[\s*\d+(?:\.0*)?(?:\s*[,\s]\s*\d+(?:\.0*)?)*\s*,?\s*\]")
_OPENED = ("[", "(", "array(")


def split_ids(place: str, what: str, value: Any) -> Any:
    """The ids in a cell: a list or a map as JSON, Python, pandas or numpy print it, or ids between separators.

    A value that is not text is unchanged.

    Raises:
        DataError: the text begins like a list or a map but is not one; `place` and `what` begin the message.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if _NUMBERS.fullmatch(text):
        return [number.partition(".")[0] for number in re.findall(r"[\d.]+", text)]
    listed = parse_list(place, what, value)
    if not isinstance(listed, str):
        return listed
    if text.startswith("{"):
        try:
            return json.loads(value)
        except ValueError as error:
            raise DataError(f"{place}: {what} is not JSON: {error}") from error
    separator = next((mark for mark in _BETWEEN_IDS if mark in value), None)
    if separator is not None and text.startswith(_OPENED) and text.endswith(("]", ")")):
        raise DataError(f"{place}: {what} begins like a list but is not one; write it as JSON: {text[:60]}")
    ids = [value] if separator is None else value.split(separator)
    return [found.strip() for found in ids if found.strip()]
