"""Finds duplicate ids in small files before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.errors import DataError

_MOST_BYTES = 8_000_000
"""Larger files are checked when they are read: at this size, the check takes as long as `validate` itself."""
_COMPRESSED = (".gz", ".zst")


def find_twice(path: Path, rows: Iterable[tuple[str, Mapping[str, Any]]], keys: Sequence[str]) -> str | None:
    """The first duplicate query id and where it is; None if there is no duplicate or the file is too large.

    Args:
        path: the file, for its size.
        rows: the place of each row (`file:line`) and its values by name.
        keys: the names the id may have; the first one in a row is used. Rows without any of them are skipped.
    """
    try:
        if path.stat().st_size > (_MOST_BYTES // 8 if path.suffix in _COMPRESSED else _MOST_BYTES):
            return None
        seen: dict[str, str] = {}
        for place, row in rows:
            query_id = next((row[key] for key in keys if key in row), None)
            if isinstance(query_id, str | int) and (first := seen.setdefault(str(query_id), place)) != place:
                return f"{place}: the query {str(query_id)!r} is listed twice, first at {first}"
    except (DataError, OSError):
        pass  # reported when the file is read
    return None
