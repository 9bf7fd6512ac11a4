"""Query files of TREC collections: id, tab, text."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.errors import DataError
from rageval_spec.reading.files import text_lines
from rageval_spec.reading.records import Records


def read_pairs(path: Path) -> Records:
    """`query_id, text` of lines `id<TAB>text` without a header; further tabs belong to the text, blank lines to none.

    Raises:
        DataError: a line without a tab, with its number; a file without any pair.
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
        raise DataError(f"{path}: the file has blank lines only")
    return Records(pl.DataFrame({"query_id": ids, "text": texts}), lambda row: f"{path}:{lines[row]}")
