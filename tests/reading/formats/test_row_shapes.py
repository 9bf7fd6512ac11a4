""""""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.reading.formats.row_shapes import (
    OtherFilesError,
    RowShape,
    ShapeError,
    ask_last_turn,
    find_remarks,
    find_shape,
    holds_conversation,
    take_rows,
)

ROWS = [{"question": "a?", "answer": "1"}, {"question": "b?", "answer": "2"}]
COLUMNS = {"question": ["a?", "b?"], "answer": ["1", "2"]}


def rows_of(document: Any) -> list[Any]:
    shape, value = find_shape(document), document
    for key in shape.path:
        value = value[key]
    return list(take_rows(shape, value))


@pytest.mark.parametrize(
    ("document", "shape"),
    [
        (ROWS, RowShape("list")),
        ({"version": "1", "test_cases": ROWS}, RowShape("list", ("test_cases",))),
        ({"results": {"version": 3, "results": ROWS}}, RowShape("list", ("results", "results"))),
        (COLUMNS, RowShape("columns", (), "question")),
        ({"version": "1", **COLUMNS}, RowShape("columns", (), "question")),
        ({"data": COLUMNS}, RowShape("columns", ("data",), "question")),
        ({"question": {"0": "a?", "1": "b?"}, "answer": {"0": "1", "1": "2"}}, RowShape("columns", (), "question")),
        ({"columns": ["question", "answer"], "data": [["a?", "1"], ["b?", "2"]]}, RowShape("split")),
    ],
)
def test_every_way_of_writing_rows_gives_the_same_rows(document: Any, shape: RowShape) -> None:
    assert find_shape(document) == shape
    assert rows_of(document) == ROWS


@pytest.mark.parametrize(
    "row",
    [
        {"question": "a?", "contexts": ["one", "two"]},
        {"id": "7", "contexts": ["one"], "reference_contexts": ["two"]},
        {"question": "a?", "relevant": {"1": 2, "4": 1}},
        {"question": "a?", "data": []},
        {"contexts": ["one", "two"]},
        {},
    ],
)
def test_one_row_with_lists_stays_one_row(row: dict[str, Any]) -> None:
    assert rows_of(row) == [row]


def test_columns_need_no_known_name_if_all_are_as_long() -> None:
    assert rows_of({"frage": ["a?", "b?"], "antwort": ["1", "2"]}) == [
        {"frage": "a?", "antwort": "1"},
        {"frage": "b?", "antwort": "2"},
    ]


def test_columns_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ShapeError, match="the column 'question' has 2 values, but 'answer' has 1"):
        rows_of({"question": ["a?", "b?"], "answer": ["1"]})
    with pytest.raises(ShapeError, match="the column 'answer' has no value for row '3'"):
        rows_of({"question": {"0": "a?", "3": "b?"}, "answer": {"0": "1", "1": "2"}})
    with pytest.raises(ShapeError, match="the row has 1 value, but the header has 2 columns"):
        rows_of({"columns": ["question", "answer"], "data": [["a?"]]})


@pytest.mark.parametrize("document", ["text", 7, None])
def test_a_document_without_rows_is_an_error(document: object) -> None:
    with pytest.raises(ShapeError, match="expected an object or a list of objects"):
        find_shape(document)


def test_remarks_are_what_is_beside_the_rows_and_short() -> None:
    document = {"version": "2", "metadata": {"made": "by hand"}, "test_cases": ROWS, "config": "x" * 10_001}
    assert find_remarks(find_shape(document), document) == {"version": "2", "metadata": {"made": "by hand"}}
    columns = {"version": "2", **COLUMNS}
    assert find_remarks(find_shape(columns), columns) == {"version": "2"}
    assert find_remarks(find_shape(ROWS), ROWS) == {}
    assert find_remarks(find_shape(ROWS[0]), ROWS[0]) == {}


@pytest.mark.parametrize("tests", ["file://tests.csv", ["file://tests.csv", "file://more.yaml"]])
def test_tests_in_another_file_are_named(tests: object) -> None:
    with pytest.raises(OtherFilesError) as raised:
        find_shape({"prompts": ["{{q}}"], "tests": tests})
    assert raised.value.names == tuple([tests] if isinstance(tests, str) else tests)  # type: ignore[arg-type]


def test_tests_here_and_elsewhere_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"some tests are in other files, such as file://a\.csv, and some are here"):
        find_shape({"tests": ["file://a.csv", {"vars": {"question": "?"}}]})


CHAT = [{"role": "user", "content": "Rome?"}, {"role": "assistant", "content": "Yes"}]
RAGAS = [{"type": "human", "content": "Rome?"}]


def test_the_last_turn_of_a_conversation_is_the_question_and_the_conversation_stays() -> None:
    assert ask_last_turn({"id": 1, "messages": CHAT}) == {"id": 1, "messages": CHAT, "question": "Rome?"}
    assert ask_last_turn({"user_input": RAGAS}) == {"user_input": "Rome?", "messages": RAGAS}
    assert ask_last_turn({"input": {"messages": CHAT}})["input"] == "Rome?"


def test_other_rows_stay_as_they_are() -> None:
    for row in (
        {"question": "Why?", "messages": CHAT},
        {"messages": "none"},
        {"messages": CHAT[1:]},
        {"question": ["a", "b"]},
        {"question": "Why?"},
    ):
        assert ask_last_turn(dict(row)) == row
    assert not holds_conversation({"question": "Why?"})
