from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.trace import Feedback
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse.rows import normalise, read_feedback, read_list, read_mapping, tell_kind, trace_of

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "keys", [("id", "traceId", "startTime"), ("id", "trace_id", "start_time"), ("ID", "Trace ID", "Start Time")]
)
def test_the_styles_of_names_are_one(keys: tuple[str, str, str]) -> None:
    row = normalise(dict(zip(keys, ("o1", "t1", "2026"), strict=True)) | {"type": "SPAN", "output": ""}, "f:1")
    assert row == {"id": "o1", "traceid": "t1", "starttime": "2026", "type": "SPAN"}
    assert (tell_kind(row), trace_of(row)) == ("observation", "t1")


def test_a_row_without_an_id_is_an_error_with_its_keys() -> None:
    with pytest.raises(DataError, match="f:1: there is no 'id' in this row of Langfuse; its keys are question, answer"):
        normalise({"question": "q", "answer": "a"}, "f:1")


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ({"value": 0.5, "dataType": "NUMERIC"}, Feedback("x", 0.5)),
        ({"value": "0.5", "dataType": "NUMERIC"}, Feedback("x", 0.5)),
        ({"value": True, "dataType": "BOOLEAN"}, Feedback("x", 1.0)),
        ({"value": 0, "stringValue": "False", "dataType": "BOOLEAN"}, Feedback("x", 0.0)),
        ({"value": "kind", "dataType": "CATEGORICAL"}, Feedback("x", None, "kind")),
        (
            {"value": 0, "stringValue": "kind", "dataType": "CATEGORICAL", "source": "EVAL"},
            Feedback("x", None, "kind", None, "program"),
        ),
        ({"value": float("nan"), "dataType": "NUMERIC", "comment": "odd"}, Feedback("x", None, None, "odd")),
        ({"value": [1], "dataType": "NUMERIC", "authorUserId": "u"}, Feedback("x", author="u")),
    ],
)
def test_scores_of_all_types_and_versions(score: dict[str, Any], expected: Feedback) -> None:
    assert read_feedback(normalise({"id": "s", "name": "x", **score}, "f:1")) == expected


def test_the_subject_of_a_new_score_names_its_trace() -> None:
    row = {"id": "s", "name": "x", "value": 1, "dataType": "NUMERIC"}
    assert trace_of(row | {"subject": {"kind": "trace", "id": "t1"}, "datatype": "N"}) == "t1"
    assert trace_of(row | {"subject": {"kind": "observation", "id": "o1", "traceId": "t1"}, "datatype": "N"}) == "t1"
    assert trace_of(row | {"subject": {"kind": "session", "id": "s1"}, "datatype": "N"}) is None


def test_mappings_and_lists_are_read_from_text_too() -> None:
    assert read_mapping('{"input": 3}') == read_mapping([{"key": "input", "value": 3}]) == {"input": 3}
    assert read_mapping("3") == read_mapping(None) == {}
    assert read_list("['a','b']") == read_list('["a", "b"]') == read_list(["a", "b"]) == ["a", "b"]
    assert read_list("[") == read_list(5) == []


@given(st.dictionaries(st.sampled_from(["id", "name", "value", "dataType", "subject", "traceId", "type"]), JSON))
def test_no_row_breaks_the_reading(found: dict[str, Any]) -> None:
    try:
        row = normalise(found, "f:1")
    except DataError:
        return
    tell_kind(row), trace_of(row), read_feedback(row)
