from __future__ import annotations

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.records import Column, choose_keys, explain_absent, with_absent

ID = Column("query_id", ("query_id", "_id", "id"), "id", setting=("columns", "queries"))
TEXT = Column("text", ("text", "query"), setting=("columns", "queries"))
TITLE = Column("title", ("title",), required=False)
MAPPED = Column("text", ("Frage",), mapped=True, setting=("columns", "queries"))
MAPPED_TITLE = Column("title", ("Titel",), required=False, mapped=True, setting=("columns",))


def test_the_first_known_name_in_the_file_is_taken() -> None:
    assert choose_keys("f", [ID, TEXT], ["query", "id", "_id"]) == {ID: "_id", TEXT: "query"}


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
    message, hint = explain_absent([ID, TEXT], ["Nr", "Frage"])
    assert message == (
        "no column 'query_id', '_id' or 'id' and no column 'text' or 'query'; the columns are 'Nr', 'Frage'"
    )
    assert hint is not None
    assert yaml.safe_load(hint.removeprefix("write ")) == {"columns": {"queries": {"query_id": "Nr", "text": "Frage"}}}


def test_a_column_that_is_taken_is_not_offered_again() -> None:
    message, hint = explain_absent([TEXT], ["id"], taken=["id"])
    assert message == "no column 'text' or 'query'; the only column is 'id'"
    assert hint == "name it in 'columns.queries.text'"


def test_advice_about_columns_comes_last_and_nothing_set_gives_no_advice() -> None:
    advised = Column("doc_id", ("doc_id",), advice="give it 'qrels:'", setting=("columns",))
    assert explain_absent([advised], ["page"])[1] == "write columns: {doc_id: page}, or give it 'qrels:'"
    assert explain_absent([TITLE], ["a", "b"]) == ("no column 'title'; the columns are 'a', 'b'", None)


NAMES = st.lists(st.sampled_from(["query_id", "_id", "id", "text", "query", "title", "Frage", "x"]), unique=True)


@given(present=NAMES, columns=st.lists(st.sampled_from([ID, TEXT, TITLE, MAPPED]), unique=True))
def test_chosen_names_are_known_and_in_the_file(present: list[str], columns: list[Column]) -> None:
    try:
        keys = choose_keys("f", columns, present)
    except DataError:
        assert any((c.required or c.mapped) and not set(c.known) & set(present) for c in columns)
    else:
        assert all(key in present and key in column.known for column, key in keys.items())
        assert all(column in keys or not (column.required or column.mapped) for column in columns)


def test_columns_that_the_file_does_not_have_are_null() -> None:
    frame = with_absent(pl.DataFrame({"text": ["a"], "extra": [1]}), [TITLE, TEXT])
    assert frame.to_dicts() == [{"title": None, "text": "a"}]
    assert dict(frame.schema) == {"title": pl.String, "text": pl.String}
