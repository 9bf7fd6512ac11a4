from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.exchange.mlflow.tables import read_table


def test_a_row_is_a_question_with_its_answer_contexts_and_the_rest() -> None:
    columns = ["query_id", "inputs", "predictions", "targets", "retrieved_context", "score/v1"]
    data = [
        ["q1", {"question": "Why?"}, "So.", "Because.", [{"doc_uri": "d1", "content": "Text."}, "plain"], 0.5],
        ["q2", "How?", None, None, None, None],
    ]
    first, second = read_table({"columns": columns, "data": data}, "r0", "eval.json", "here")
    assert (first.id, first.question, first.answer, first.references) == ("q1", "Why?", "So.", ("Because.",))
    assert [(one.doc_id, one.text) for one in first.documents or ()] == [("d1", "Text."), (None, "plain")]
    assert dict(first.metadata) == {"score/v1": 0.5}
    assert (second.question, second.answer, second.documents) == ("How?", None, None)
    assert first.link.to_dict() == {"tool": "mlflow", "trace_id": "r0/0", "run": "r0", "table": "eval.json"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "here: not a table of MLflow"),
        ({"columns": ["v"], "data": []}, "here: no column holds the question; the columns are v"),
        ({"columns": ["question"], "data": [["a", "b"]]}, "here: row 1 does not have 1 values"),
        ({"columns": ["question"], "data": [["a"], [None]]}, "here: row 2 has no text in 'question'"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error_with_its_place(content: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_table(content, "r0", "eval.json", "here"))
