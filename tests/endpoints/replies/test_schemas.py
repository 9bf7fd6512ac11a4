from __future__ import annotations

import pytest

from rageval_spec.endpoints.replies import UnreadableReplyError
from rageval_spec.endpoints.replies.schemas import describe_format, fit_value, keep_decisions, list_types
from tests.endpoints.replies.test_reading import MIXED, TWO, VERDICT, VERDICTS


def test_a_format_is_described_as_an_example() -> None:
    assert describe_format(VERDICTS) == (
        '{"verdicts": [{"claim": <whole number from 1 to 9>, "reason": "<text>", '
        '"verdict": "supported" | "contradicted" | "not_enough_info"}, exactly 2 of them]}'
    )
    assert describe_format(MIXED) == (
        '{"score": <number from 0 to 1>, "grade": <whole number from 1 to 5>, "noncommittal": true | false, '
        '"questions": ["<text>", ...]}'
    )


def test_a_single_bound_is_not_shown() -> None:
    assert describe_format({"type": "integer", "minimum": 1}) == "<whole number>"
    assert describe_format({"type": ["string", "null"]}) == '"<text>"'


def test_decisions_are_the_parts_that_cannot_be_null() -> None:
    assert keep_decisions(TWO, VERDICTS) == {
        "verdicts": [{"claim": 1, "verdict": "supported"}, {"claim": 2, "verdict": "not_enough_info"}]
    }


def test_the_wrapping_of_a_value_is_removed_once() -> None:
    (verdict, _) = TWO["verdicts"]
    assert fit_value([verdict], VERDICT) == fit_value({"answer": verdict}, VERDICT) == verdict
    with pytest.raises(UnreadableReplyError):
        fit_value([[verdict]], VERDICT)
    with pytest.raises(UnreadableReplyError):
        fit_value([verdict, verdict], VERDICT)


def test_a_key_in_two_spellings_must_have_equal_values() -> None:
    grade = {"type": "object", "properties": {"grade": {"type": "integer"}}}
    assert fit_value({"Grade": 2, "gra-de": 2}, grade) == {"grade": 2}
    with pytest.raises(UnreadableReplyError, match='it says "grade" twice'):
        fit_value({"grade": 1, "GRADE": 2}, grade)


def test_a_schema_can_allow_several_types() -> None:
    assert (list_types({}), list_types({"type": "integer"})) == (("string",), ("integer",))
    assert [*list_types({"type": ["integer", "null"]})] == ["integer", "null"]
