from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.column_names import (
    CORPUS,
    QUERIES,
)
from rageval_spec.reading.corpus_files import corpus_tables
from rageval_spec.reading.formats.records import (
    Records,
    qrels_table,
    queries_table,
    run_table,
    with_absent,
)

TEXT = pl.String


def records(types: dict[str, Any], *rows: tuple[Any, ...]) -> Records:
    """Rows on lines 2, 4, 6, ... of a file."""
    return Records(pl.DataFrame(rows, types, orient="row"), lambda row: f"f:{2 * row + 2}")


def queries(*rows: tuple[Any, ...]) -> Records:
    return records({"query_id": TEXT, "text": TEXT}, *rows)


def corpus(*rows: tuple[Any, ...]) -> Records:
    return records({"doc_id": TEXT, "title": TEXT, "text": TEXT}, *rows)


def qrels(*rows: tuple[Any, ...], number: Any = TEXT) -> Records:
    return records({"query_id": TEXT, "doc_id": TEXT, "relevance": number}, *rows)


def corpus_table(found: Records) -> pl.DataFrame:
    return pl.concat(corpus_tables(lambda: iter([found])))


def run(*rows: tuple[Any, ...], number: Any = TEXT) -> Records:
    return records({"query_id": TEXT, "doc_id": TEXT, "score": number}, *rows)


def test_an_empty_query_text_is_kept() -> None:
    assert queries_table(queries(("q1", ""), ("q2", "a"))).rows() == [("q1", ""), ("q2", "a")]


def test_a_query_whose_text_is_null_is_refused() -> None:
    with pytest.raises(DataError, match=r"^f:4: the query 'q2' has no text$"):
        queries_table(queries(("q1", ""), ("q2", None)))


def test_a_document_can_lack_its_title_or_its_text_but_not_both() -> None:
    table = corpus_table(corpus(("d1", None, "x"), ("d2", "T", None), ("d3", "", "")))
    assert table.rows() == [("d1", "", "x"), ("d2", "T", ""), ("d3", "", "")]
    with pytest.raises(DataError, match=r"^f:4: the document 'd2' has neither title nor text$"):
        corpus_table(corpus(("d1", None, "x"), ("d2", None, None)))


@pytest.mark.parametrize(
    ("table", "bad"),
    [
        (queries_table, queries(("q1", "a"), (None, "b"))),
        (queries_table, queries(("q1", "a"), ("", "b"))),
        (queries_table, queries(("q1", "a"), (" \t", "b"))),
        (qrels_table, qrels(("q1", "d1", "1"), (" ", "d1", "1"))),
        (run_table, run(("q1", "d1", "1"), (None, "d1", "1"))),
    ],
)
def test_a_row_without_a_query_is_named(table: Any, bad: Records) -> None:
    with pytest.raises(DataError, match=r"^f:4: no query_id$"):
        table(bad)


@pytest.mark.parametrize(
    ("table", "bad"),
    [
        (corpus_table, corpus(("d1", "T", "x"), (" ", "T", "x"))),
        (qrels_table, qrels(("q1", "d1", "1"), ("q1", None, "1"))),
        (run_table, run(("q1", "d1", "1"), ("q1", "", "1"))),
    ],
)
def test_a_row_without_a_document_is_named(table: Any, bad: Records) -> None:
    with pytest.raises(DataError, match=r"^f:4: no doc_id$"):
        table(bad)


@pytest.mark.parametrize(
    ("table", "bad", "message"),
    [
        (queries_table, queries(("q1", "a"), ("q2", "b"), ("q1", "a")), "the query 'q1' is listed twice"),
        (corpus_table, corpus(("d1", "", "a"), ("d2", "", "b"), ("d1", "", "c")), "the document 'd1' is listed twice"),
        (
            qrels_table,
            qrels(("q1", "d1", "1"), ("q1", "d2", "1"), ("q1", "d1", "1")),
            "the document 'd1' is judged twice for query 'q1'",
        ),
    ],
)
def test_duplicates_are_refused_with_both_places(table: Any, bad: Records, message: str) -> None:
    with pytest.raises(DataError) as caught:
        table(bad)
    assert str(caught.value) == f"f:6: {message}, first at f:2"


def test_a_document_can_be_judged_for_several_queries_and_retrieved_twice() -> None:
    assert qrels_table(qrels(("q1", "d", "1"), ("q2", "d", "0"))).height == 2
    assert run_table(run(("q1", "d", "1"), ("q1", "d", "2"))).height == 2


@pytest.mark.parametrize(("written", "meant"), [("2", 2), (" -1 ", -1), ("2.0", 2), ("1e2", 100), ("0", 0)])
def test_a_relevance_can_be_written_in_many_ways(written: str, meant: int) -> None:
    assert qrels_table(qrels(("q", "d", written)))["relevance"].to_list() == [meant]


@pytest.mark.parametrize("written", ["", "high", "0.5", "nan", "inf", "-inf", "1e300", "1,5", "0x1", None])
def test_a_relevance_must_be_an_integer(written: str | None) -> None:
    with pytest.raises(DataError) as caught:
        qrels_table(qrels(("q0", "d0", "1"), ("q", "d", written)))
    message = "f:4: the relevance of document 'd' for query 'q' must be an integer, not "
    assert str(caught.value).startswith(f"{message}{written!r}")


@given(st.integers(-(2**63), 2**63 - 1))
@example(2**53 - 1)
@example(-(2**53) - 1)
def test_a_relevance_is_kept_to_the_last_digit_or_refused(relevance: int) -> None:
    for table in (qrels(("q", "d", relevance), number=pl.Int64), qrels(("q", "d", str(relevance)))):
        try:
            assert qrels_table(table)["relevance"].to_list() == [relevance]
        except DataError:
            assert abs(relevance) >= 2**53


@given(st.floats(allow_nan=False))
def test_every_number_is_a_score_unchanged(score: float) -> None:
    for table in (run(("q", "d", score), number=pl.Float64), run(("q", "d", f" {score!r} "))):
        assert run_table(table)["score"].to_list() == [score]


@pytest.mark.parametrize("score", [None, math.nan])
def test_a_score_must_be_a_number(score: float | None) -> None:
    with pytest.raises(
        DataError, match=r"^f:2: the score of document 'd' for query 'q' must be a number, not (None|nan)"
    ):
        run_table(run(("q", "d", score), number=pl.Float64))
    with pytest.raises(DataError, match=r"must be a number, not 'best'$"):
        run_table(run(("q", "d", "best")))


def test_braces_in_ids_are_shown_as_they_are() -> None:
    with pytest.raises(DataError, match=r"the document '{doc_id}' is judged twice for query '{0}'"):
        qrels_table(qrels(("{0}", "{doc_id}", "1"), ("{0}", "{doc_id}", "1")))


def test_tables_have_fixed_types_whatever_the_file_had() -> None:
    assert dict(qrels_table(qrels(("q", "d", 1.0), number=pl.Float32)).schema) == {
        "query_id": pl.String,
        "doc_id": pl.String,
        "relevance": pl.Int64,
    }
    assert run_table(run(("q", "d", 1), number=pl.UInt8)).schema["score"] == pl.Float64


def test_columns_that_the_file_does_not_have_are_null() -> None:
    frame = with_absent(pl.DataFrame({"text": ["a"], "extra": [1]}), [CORPUS[1], QUERIES[1]])
    assert frame.to_dicts() == [{"title": None, "text": "a"}]
    assert dict(frame.schema) == {"title": pl.String, "text": pl.String}
