from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.reading.column_meanings import holds_answers, unwrap
from rageval_spec.reading.column_names import AnswerColumns
from rageval_spec.reading.missing_columns import advise_answers, explain_ambiguity


@pytest.mark.parametrize(
    ("present", "columns", "expected"),
    [
        (["id", "answer"], {}, True),
        (["id", "response"], {}, True),
        (["id", "contexts"], {}, True),
        (["id", "error"], {}, True),
        (["query_id", "doc_id", "score", "answer"], {}, False),
        (["query_id", "docid", "answer"], {}, False),
        (["id", "said"], {}, False),
        (["id", "said"], {"answer": "said"}, True),
        (["id", "docid"], {"contexts": "docid"}, True),
        (["id", "answer", "page"], {"doc_id": "page"}, False),
        ([], {}, False),
    ],
)
def test_the_columns_say_whether_a_file_has_answers(
    present: list[str], columns: dict[str, str], expected: bool
) -> None:
    assert holds_answers(present, AnswerColumns(**columns)) is expected


def test_no_advice_takes_what_people_wrote_for_a_systems_answers() -> None:
    assert advise_answers(["User Question", "Expert Response", "Bot Response"]) == (
        "write columns: {answer: Bot Response}"
    )
    assert "human_text" not in advise_answers(["id", "human_text", "text"])
    assert explain_ambiguity(AnswerColumns(), ["question", "label", "answer", "prediction"]) is None


def test_a_row_of_promptfoo_is_flattened() -> None:
    row = {"response": {"output": "x", "tokenUsage": {"prompt": 7, "completion": 3}}, "cost": 0.1}
    assert unwrap(row) == {"response": "x", "input_tokens": 7, "output_tokens": 3, "cost": 0.1}
    assert unwrap({"response": {"output": "x", "tokenUsage": None}, "input_tokens": 9}) == {
        "response": "x",
        "input_tokens": 9,
    }


@pytest.mark.parametrize(
    ("response", "reason", "kept"), [({"output": "x"}, 1, None), ({}, 1, "why"), ({"output": "x"}, 2, "why")]
)
def test_the_reason_of_a_failed_assertion_is_no_error_of_the_system(
    response: dict[str, Any], reason: int, kept: str | None
) -> None:
    assert unwrap({"response": response, "error": "why", "failureReason": reason})["error"] == kept


def test_an_output_that_is_no_text_is_json() -> None:
    assert unwrap({"response": {"output": {"a": ["b"]}}})["response"] == '{"a": ["b"]}'


@pytest.mark.parametrize("row", [{"response": "x"}, {"response": None}, {"answer": "x"}, {}])
def test_other_rows_stay_as_they_are(row: dict[str, Any]) -> None:
    assert unwrap(row) == row
