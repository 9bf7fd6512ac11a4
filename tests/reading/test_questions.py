from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.questions import QuestionColumns, QuestionRow, answers_in, contexts_in, references_table


def table(*rows: dict[str, Any], **columns: str) -> list[dict[str, Any]] | None:
    read = (QuestionRow(f"f:{number}", f"q{number}", row) for number, row in enumerate(rows, 1))
    found = references_table(Path("f"), read, QuestionColumns(**columns), "columns")
    return None if found is None else found.to_dicts()


def test_answer_is_gold_where_it_stands_alone_and_a_systems_beside_gold() -> None:
    assert answers_in(["question", "answer"]) == ()
    assert answers_in(["question", "answer", "ground_truth"]) == ("answer",)
    assert answers_in(["answer", "contexts"]) == ("answer",)
    assert answers_in(["answer", "response"]) == ("response",)
    assert contexts_in(["context"]) == ("context",)
    assert contexts_in(["context", "expected_output"]) == ()


def test_a_row_a_question_with_what_is_known_of_it() -> None:
    found = table({"question": "a", "answer": "x"}, {"question": "b", "answer": None, "is_impossible": "true"})
    assert found is not None
    assert [(row["query_id"], row["references"], row["answerable"]) for row in found] == [
        ("q1", ["x"], None),
        ("q2", [], False),
    ]


def test_nothing_known_is_no_table() -> None:
    assert table({"question": "a", "response": "x", "contexts": ["y"]}) is None
    assert table() is None


def test_names_of_the_spec_come_first_and_must_be_somewhere() -> None:
    found = table({"reference": "no", "gold": "yes"}, reference="gold")
    assert found is not None and found[0]["references"] == ["yes"]
    with pytest.raises(DataError, match=r"^f: no row has 'gold'; correct 'columns\.reference'$"):
        table({"reference": "no"}, reference="gold")


def test_a_wrong_value_is_named_with_its_row() -> None:
    with pytest.raises(DataError, match=r"^f:2: 'answerable' must be true or false, not 'maybe'$"):
        table({"answerable": True}, {"answerable": "maybe"})
