"""Query files of TREC collections: lines of id, tab, text."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.errors import DataError
from rageval_spec.reading.files import text_lines
from rageval_spec.reading.records import Records


def read_pairs(path: Path) -> Records:
    """Read lines `id<TAB>text` with no header as `query_id, text`. Later tabs are text; blank lines are skipped.

    Raises:
        DataError: a line has no tab (with its number), or the file has no pairs.
    """
    import polars as pl

    lines: list[int] = []
    ids: list[str] = []
    texts: list[str] = []
    for number, line in text_lines(path):
        if not line.strip():
            continue
        query_id, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{path}:{number}: no tab; each line must be id, tab, text")
        lines.append(number)
        ids.append(query_id)
        texts.append(text)
    if not lines:
        raise DataError(f"{path}: the file has only blank lines")
    return Records(pl.DataFrame({"query_id": ids, "text": texts}), lambda row: f"{path}:{lines[row]}")
