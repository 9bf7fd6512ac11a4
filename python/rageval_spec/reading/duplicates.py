"""Ids that stand in a file twice, found before anything runs, where that takes no more than a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.errors import DataError

_MOST_BYTES = 8_000_000
"""Larger files are checked when they are read: this look costs as long as `validate` itself."""
_COMPRESSED = (".gz", ".zst")


def find_twice(path: Path, rows: Iterable[tuple[str, Mapping[str, Any]]], keys: Sequence[str]) -> str | None:
    """The first query id that comes again, and where; None where none does or the file is too large.

    Args:
        path: the file, for its size.
        rows: the place of each row (`file:line`) and its values by name.
        keys: what the id may be called; the first that a row has counts. Rows without any are passed over.
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
        pass  # said when the file is read
    return None
