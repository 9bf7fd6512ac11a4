from __future__ import annotations

import polars as pl
import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.layouts import (
    CORPUS,
    QRELS,
    CorpusColumns,
    QrelsColumns,
    corpus_table,
    qrels_table,
    queries_table,
    run_table,
)
from rageval_spec.reading.records import Records


def records(**columns: list[object]) -> Records:
    return Records(pl.DataFrame(columns), lambda row: f"file:{row + 1}")


def test_a_block_names_columns_and_the_others_keep_their_known_names() -> None:
    query_id, doc_id, _ = QrelsColumns(doc_id="page").over(QRELS, "columns")
    assert (doc_id.known, doc_id.mapped, doc_id.key) == (("page",), True, "columns.doc_id")
    assert query_id.known == QRELS[0].known and not query_id.mapped
    text = CorpusColumns(text="body").over(CORPUS, "columns", "corpus")[2]
    assert (text.known, text.key) == (("body",), "columns.corpus.text")


def test_tables_have_their_columns_and_types() -> None:
    assert queries_table(records(query_id=["q"], text=[""], more=[1])).rows() == [("q", "")]
    assert corpus_table(records(doc_id=["d"], title=[None], text=["t"])).rows() == [("d", "", "t")]
    assert qrels_table(records(query_id=["q"], doc_id=["d"], relevance=["1.0"])).rows() == [("q", "d", 1)]
    assert run_table(records(query_id=["q"], doc_id=["d"], score=["1e-3"])).rows() == [("q", "d", 0.001)]


@pytest.mark.parametrize(
    ("relevance", "shown"),
    [("1.5", "'1.5'"), ("high", "'high'"), (None, "None"), ("1e300", "'1e300'"), ("nan", "'nan'")],
)
def test_a_relevance_is_an_integer(relevance: object, shown: str) -> None:
    with pytest.raises(DataError, match=rf"^file:2: the relevance of document 'd' .* must be an integer, not {shown}$"):
        qrels_table(records(query_id=["p", "q"], doc_id=["d", "d"], relevance=["1", relevance]))


@pytest.mark.parametrize("score", ["high", None, "NaN"])
def test_a_score_is_a_number(score: object) -> None:
    with pytest.raises(DataError, match=r"^file:1: the score of document 'd' for query 'q' must be a number"):
        run_table(records(query_id=["q"], doc_id=["d"], score=[score]))


def test_what_is_missing_or_twice_is_named_with_its_places() -> None:
    with pytest.raises(DataError, match=r"^file:2: no query_id$"):
        queries_table(records(query_id=["q", " "], text=["a", "b"]))
    with pytest.raises(DataError, match=r"^file:1: the query 'q' has no text$"):
        queries_table(records(query_id=["q"], text=pl.Series([None], dtype=pl.String).to_list()))
    with pytest.raises(DataError, match=r"^file:3: the query 'q' is there twice, first at file:1$"):
        queries_table(records(query_id=["q", "p", "q"], text=["a", "b", "c"]))
    with pytest.raises(DataError, match=r"^file:2: the document 'd' is judged twice for query 'q', first at file:1$"):
        qrels_table(records(query_id=["q", "q"], doc_id=["d", "d"], relevance=["1", "0"]))
