""""""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.formats.column_layouts import (
    CORPUS,
    QRELS,
    QUERIES,
    RUN,
    CorpusColumns,
    QrelsColumns,
    QueryColumns,
    RecordColumn,
    Records,
    RunColumns,
    choose_keys,
    corpus_table,
    explain_absent,
    guess_names,
    guess_question,
    list_names,
    qrels_table,
    queries_table,
    read_parts,
    require_columns,
    run_table,
    with_absent,
    write_mapping,
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


def run(*rows: tuple[Any, ...], number: Any = TEXT) -> Records:
    return records({"query_id": TEXT, "doc_id": TEXT, "score": number}, *rows)


@pytest.mark.parametrize(
    ("block", "columns"),
    [(QueryColumns, QUERIES), (CorpusColumns, CORPUS), (QrelsColumns, QRELS), (RunColumns, RUN)],
)
def test_a_named_column_is_looked_up_only_under_that_name(
    block: type[QueryColumns], columns: tuple[RecordColumn, ...]
) -> None:
    first, *others = columns
    named, *left = block(**{first.name: "mine"}).over(columns, "columns", "part")
    assert (named.known, named.mapped, named.key) == (("mine",), True, f"columns.part.{first.name}")
    assert [(column.known, column.mapped) for column in left] == [(column.known, False) for column in others]
    assert {column.setting for column in left} == {("columns", "part")}


def test_a_part_that_no_column_has_is_refused() -> None:
    with pytest.raises(ValidationError, match="relevanz"):
        QrelsColumns.model_validate({"relevanz": "grade"})


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


ID = RecordColumn("query_id", ("query_id", "_id", "id"), "id", setting=("columns", "queries"))
TEXT_COLUMN = RecordColumn("text", ("text", "query"), setting=("columns", "queries"))
TITLE = RecordColumn("title", ("title",), required=False)
MAPPED = RecordColumn("text", ("Frage",), mapped=True, setting=("columns", "queries"))
MAPPED_TITLE = RecordColumn("title", ("Titel",), required=False, mapped=True, setting=("columns",))


def test_the_first_known_name_in_the_file_is_taken() -> None:
    assert choose_keys("f", [ID, TEXT_COLUMN], ["query", "id", "_id"]) == {ID: "_id", TEXT_COLUMN: "query"}


def test_a_column_that_need_not_be_there_is_left_out() -> None:
    assert choose_keys("f", [ID, TITLE], ["id"]) == {ID: "id"}


def test_a_column_that_the_spec_names_must_be_there() -> None:
    with pytest.raises(DataError) as caught:
        choose_keys("f:1", [ID, MAPPED, MAPPED_TITLE], ["id", "text", "title"])
    assert str(caught.value) == (
        "f:1: no column 'Frage' and no column 'Titel'; the columns are 'id', 'text', 'title'; "
        "correct 'columns.queries.text' and 'columns.title'"
    )


def test_a_duplicate_column_name_is_refused() -> None:
    with pytest.raises(DataError, match=r"^f: 'id' is listed twice$"):
        choose_keys("f", [ID], ["id", "text", "id"])
    assert choose_keys("f", [ID], ["id", "other", "other"]) == {ID: "id"}


def test_absent_columns_come_with_the_mapping_to_write() -> None:
    message, hint = explain_absent([ID, TEXT_COLUMN], ["Nr", "Frage"])
    assert message == (
        "no column 'query_id', '_id' or 'id' and no column 'text' or 'query'; the columns are 'Nr', 'Frage'"
    )
    assert hint is not None
    assert yaml.safe_load(hint.removeprefix("write ")) == {"columns": {"queries": {"query_id": "Nr", "text": "Frage"}}}


def test_a_column_that_is_taken_is_not_offered_again() -> None:
    message, hint = explain_absent([TEXT_COLUMN], ["id"], taken=["id"])
    assert message == "no column 'text' or 'query'; the only column is 'id'"
    assert hint == "name it in 'columns.queries.text'"


def test_advice_about_columns_comes_last_and_nothing_set_gives_no_advice() -> None:
    advised = RecordColumn("doc_id", ("doc_id",), advice="give it 'qrels:'", setting=("columns",))
    assert explain_absent([advised], ["page"])[1] == "write columns: {doc_id: page}, or give it 'qrels:'"
    assert explain_absent([TITLE], ["a", "b"]) == ("no column 'title'; the columns are 'a', 'b'", None)


NAMES = st.lists(st.sampled_from(["query_id", "_id", "id", "text", "query", "title", "Frage", "x"]), unique=True)


@given(present=NAMES, columns=st.lists(st.sampled_from([ID, TEXT_COLUMN, TITLE, MAPPED]), unique=True))
def test_chosen_names_are_known_and_in_the_file(present: list[str], columns: list[RecordColumn]) -> None:
    try:
        keys = choose_keys("f", columns, present)
    except DataError:
        assert any((c.required or c.mapped) and not set(c.known) & set(present) for c in columns)
    else:
        assert all(key in present and key in column.known for column, key in keys.items())
        assert all(column in keys or not (column.required or column.mapped) for column in columns)


def test_columns_that_the_file_does_not_have_are_null() -> None:
    frame = with_absent(pl.DataFrame({"text": ["a"], "extra": [1]}), [TITLE, TEXT_COLUMN])
    assert frame.to_dicts() == [{"title": None, "text": "a"}]
    assert dict(frame.schema) == {"title": pl.String, "text": pl.String}


@pytest.mark.parametrize("name", ["Frage", "the question?", "a: b", "no", "{x}", "#1", "", "質問", "it's", "12"])
def test_a_mapping_is_yaml_for_any_name(name: str) -> None:
    written = write_mapping(("columns", "queries"), {"text": name, "reference": "gold"})
    assert "\n" not in written
    assert yaml.safe_load(written) == {"columns": {"queries": {"text": name, "reference": "gold"}}}


def test_a_mapping_looks_handwritten() -> None:
    assert write_mapping(("columns",), {"doc_id": "page"}) == "columns: {doc_id: page}"


def test_names_are_listed_up_to_a_dozen() -> None:
    assert list_names([]) == "nothing"
    assert list_names(["a", "b"]) == "'a', 'b'"
    assert list_names([str(number) for number in range(13)]).endswith("'11', ...")


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [
        (["doc_id"], ["query_id", "page", "relevance"], {"doc_id": "page"}),
        (["query_id", "doc_id", "relevance"], ["topic", "page", "grade"], None),
        (["query_id", "doc_id", "relevance"], ["grade", "topic", "page"], None),
        (["text", "reference"], ["Antwort", "Frage"], {"text": "Frage", "reference": "Antwort"}),
        (["reference"], ["expected-output"], {"reference": "expected-output"}),
        (["text", "reference"], ["Frage", "Musterantwort", "Antwort"], {"text": "Frage"}),
        (
            ["text", "reference"],
            ["Frage", "Musterantwort", "Bot-Antwort"],
            {"text": "Frage", "reference": "Musterantwort"},
        ),
        (["text", "reference"], ["Frage", "Antwort", "Gold"], {"text": "Frage", "reference": "Gold"}),
        (["text", "reference"], ["ask", "modelOutput"], {"text": "ask"}),
        (["text", "reference"], ["Frage", "Antworten des Bots"], {"text": "Frage"}),
        (["text", "reference"], ["ask", "GPT answer", "note"], {"text": "ask", "reference": "note"}),
        (["query_id"], ["x", "y"], {"query_id": "x"}),
        (["query_id"], ["relevant", "title"], {}),
        (["query_id", "text"], ["a"], {"query_id": "a"}),
    ],
)
def test_names_are_guessed_by_their_words_and_then_by_order(
    wanted: list[str], present: list[str], expected: dict[str, str] | None
) -> None:
    assert guess_names(wanted, present) == (expected or {} if expected is not None else dict(TOPICS))


TOPICS = {"query_id": "topic", "doc_id": "page", "relevance": "grade"}


def test_each_free_column_is_guessed_at_most_once() -> None:
    assert guess_names(["text", "reference"], ["question"]) == {"text": "question"}
    assert guess_names(["text"], ["question", "b"], taken=["question"]) == {"text": "b"}


def test_the_question_is_the_column_that_mostly_ends_in_a_question_mark() -> None:
    rows = [{"a": "yes", "b": "is it? "}, {"a": "no?", "b": "何ですか\uff1f"}, {"a": "no", "b": "say it"}]
    assert guess_question(rows, ["a", "b"]) == "b"
    assert guess_question(rows[2:], ["a", "b"]) is None
    assert guess_question([], []) is None


PARTS = ("query_id", "value")


def test_columns_are_named_by_part() -> None:
    assert read_parts(["value=my rating", "query_id=a=b"], PARTS, "a label", "value=rating") == {
        "value": "my rating",
        "query_id": "a=b",
    }


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("rating", "--column rating: write PART=NAME, such as value=rating"),
        ("value=", "--column value=: write PART=NAME, such as value=rating"),
        ("valeu=x", "--column valeu=x: a label has no 'valeu'; did you mean 'value'?"),
        ("zzz=x", "--column zzz=x: a label has no 'zzz'; write one of query_id, value"),
    ],
)
def test_what_names_no_part_says_what_to_write(column: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_parts([column], PARTS, "a label", "value=rating")
    assert str(caught.value) == message


def test_a_named_column_must_be_there() -> None:
    require_columns(Path("labels.csv"), {"value": "rating"}, ["rating", "id"])
    with pytest.raises(DataError, match=r"labels\.csv: there is no column 'grade' for value; the columns are"):
        require_columns(Path("labels.csv"), {"value": "grade"}, ["rating", "id"])
