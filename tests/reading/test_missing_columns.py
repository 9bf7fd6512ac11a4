from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rageval_spec.errors import DataError
from rageval_spec.reading.column_names import (
    CORPUS,
    QRELS,
    QUERIES,
    RUN,
    CorpusColumns,
    QrelsColumns,
    QueryColumns,
    RecordColumn,
    RunColumns,
)
from rageval_spec.reading.missing_columns import (
    choose_keys,
    explain_absent,
    guess_names,
    guess_question,
    write_mapping,
)
from rageval_spec.recorded.json_path import list_keys


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


@pytest.mark.parametrize("name", ["Frage", "the question?", "a: b", "no", "{x}", "#1", "", "質問", "it's", "12"])
def test_a_mapping_is_yaml_for_any_name(name: str) -> None:
    written = write_mapping(("columns", "queries"), {"text": name, "reference": "gold"})
    assert "\n" not in written
    assert yaml.safe_load(written) == {"columns": {"queries": {"text": name, "reference": "gold"}}}


def test_a_mapping_looks_handwritten() -> None:
    assert write_mapping(("columns",), {"doc_id": "page"}) == "columns: {doc_id: page}"


def test_names_are_listed_up_to_a_dozen() -> None:
    assert list_keys([]) == "nothing"
    assert list_keys(["a", "b"]) == "'a', 'b'"
    assert list_keys([str(number) for number in range(13)]).endswith("'11', ...")


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
