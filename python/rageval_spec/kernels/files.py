"""Reads run and qrels files into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec import _core
from rageval_spec.kernels.bounds import check_bounds

if TYPE_CHECKING:
    from os import PathLike

    import polars as pl


def read_run(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a TREC run file (`query_id Q0 doc_id rank score tag`) into the columns query_id, doc_id, score.

    The file can be plain, .gz or .zst. Rows keep the order of the file; the rank column is ignored, as in trec_eval.

    Raises:
        DataError: a line has too few columns, a score is NaN or not a number, or an id is not UTF-8 (with `file:line`);
            or the file is empty or cannot be read.
    """
    import polars as pl

    check_bounds(path)
    return pl.DataFrame(_core.read_run(path))


def read_qrels(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a qrels file into the columns query_id, doc_id, relevance.

    The file has TREC's four columns, or BEIR's three separated by tabs, and can be plain, .gz or .zst.

    Raises:
        DataError: a line has the wrong number of columns, a relevance is not a whole number, an id is not UTF-8, or a
            document is judged twice for a query (with `file:line`); or the file is empty or cannot be read.
    """
    import polars as pl

    check_bounds(path)
    return pl.DataFrame(_core.read_qrels(path))
