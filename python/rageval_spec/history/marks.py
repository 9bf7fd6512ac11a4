"""Marks the tables of a results folder with the evaluation that they belong to.

Several files cannot be replaced in one step. So each table carries the digest of the `results.json` that was written
with it, and a reader notices if a run was killed after it had replaced only some of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from rageval_spec.errors import DataError

_KEY = "rageval-spec:results"


def make_mark(results: bytes) -> dict[str, str]:
    """The metadata of the tables that belong to these results: a digest of the JSON, whatever its layout."""
    content = json.dumps(json.loads(results), sort_keys=True, separators=(",", ":"))
    return {_KEY: hashlib.sha256(content.encode()).hexdigest()}


def check_marks(results: bytes, tables: Iterable[Path]) -> None:
    """Check that tables belong to the results. Absent tables and those of earlier versions, without a mark, pass.

    Raises:
        DataError: a table belongs to other results.
    """
    import polars as pl

    expected = make_mark(results)[_KEY]
    for path in tables:
        if not path.is_file():
            continue
        try:
            found = pl.read_parquet_metadata(path).get(_KEY)
        except (pl.exceptions.PolarsError, OSError):
            continue  # who reads the table says what is wrong with it
        if found not in (None, expected):
            raise DataError(
                f"{path.parent}: {path.name} is not of the evaluation in results.json; a run was killed while it "
                "replaced the files of another one, or is doing so now; run the spec again"
            )
