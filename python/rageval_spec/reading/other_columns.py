"""Reads the columns of a question file that no part is read from: difficulty, category, tags, expectations."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_ROWS_AT_ONCE = 4096


def other_columns_table(rows: Iterable[tuple[str, Mapping[str, Any]]], names: Collection[str]) -> pl.DataFrame | None:
    """`query_id, columns`: for each row, the values of the columns `names` as a JSON object with sorted keys.

    A name that a row lacks is not in its object. None if there are no names.

    Args:
        rows: the query id and the named values of each row.
        names: the columns to keep.
    """
    import polars as pl

    if not names:
        return None
    schema = {"query_id": pl.String, "columns": pl.String}
    frames = [pl.DataFrame(schema=schema)]
    kept = ((query_id, dump_columns({name: row[name] for name in names if name in row})) for query_id, row in rows)
    while block := list(islice(kept, _ROWS_AT_ONCE)):  # Python's texts take more memory than the table
        frames.append(pl.DataFrame(block, schema=schema, orient="row"))
    return pl.concat(frames)


def dump_columns(values: Mapping[str, Any]) -> str:
    """The values as a compact JSON object with sorted keys.

    Numbers that JSON does not have (NaN, infinity) become null, bytes become base64, and dates and other values become
    text. Half of a surrogate pair stays an escape.
    """
    try:
        text = _dump(values)
    except ValueError:
        text = _dump(_without_infinities(values))
    return text.encode("utf-8", "backslashreplace").decode()


def _dump(values: Any) -> str:
    return json.dumps(
        values, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_as_text
    )


def _as_text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _without_infinities(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_infinities(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
