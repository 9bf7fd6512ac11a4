"""Run and qrels files as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec import _core
from rageval_spec.kernels.bounds import check_bounds

if TYPE_CHECKING:
    from os import PathLike

    import polars as pl


def read_run(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a TREC run file (`query_id Q0 doc_id rank score tag`; plain, .gz or .zst) as query_id, doc_id, score.

    Rows keep the order of the file; the rank column is ignored, as trec_eval ignores it.

    Raises:
        DataError: with `file:line`, for a line with fewer columns, a score that is no number or NaN, an id that is
            not UTF-8; a file that cannot be read or is empty.
    """
    import polars as pl

    check_bounds(path)
    return pl.DataFrame(_core.read_run(path))


def read_qrels(path: str | PathLike[str]) -> pl.DataFrame:
    """Read qrels, TREC's four columns or BEIR's three with tabs, as query_id, doc_id, relevance; plain, .gz or .zst.

    Raises:
        DataError: with `file:line`, for a wrong number of columns, a relevance that is no whole number, an id that
            is not UTF-8, a document that is judged twice for a query; a file that cannot be read or is empty.
    """
    import polars as pl

    check_bounds(path)
    return pl.DataFrame(_core.read_qrels(path))
