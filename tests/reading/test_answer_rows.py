from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import ANSWERS
from rageval_spec.reading.answer_rows import (
    AnswerRow,
    ReplyLayout,
    UnusableReplyError,
    read_amount,
    read_contexts,
    read_count,
    read_id,
    table_of,
)
from rageval_spec.reading.json_path import parse_path

KEYS = st.sampled_from(
    ["answer", "contexts", "context_ids", "text", "id", "score", "usage", "prompt_tokens", "cost", "choices", "message"]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=5),
)
LAYOUTS = [ReplyLayout(), ReplyLayout(**{part: parse_path(part) for part in ("answer", "contexts", "cost")})]


@given(content=ANY_JSON, layout=st.sampled_from(LAYOUTS))
def test_any_reply_is_a_row_that_can_be_kept_or_is_refused(content: Any, layout: ReplyLayout) -> None:
    try:
        row = layout.read(content)
    except UnusableReplyError as error:
        assert str(error)
        return
    assert row.answer is not None
    assert AnswerRow.unpack(row.pack()) == row
    table = table_of([("q1", row)])
    assert tuple(table.columns) == ANSWERS and table["answer"].to_list() == [row.answer]
    for number in (row.input_tokens, row.output_tokens, row.cost):
        assert number is None or (math.isfinite(number) and number >= 0)


@given(content=st.binary() | ANY_JSON.map(lambda content: json.dumps(content).encode()))
def test_stored_content_is_a_row_or_nothing(content: bytes) -> None:
    row = AnswerRow.unpack(content)
    assert row is None or isinstance(row, AnswerRow)


@pytest.mark.parametrize("value", ["7", 7, 7.0, " 7 "])
def test_counts(value: Any) -> None:
    assert read_count(value, "it") == 7


@pytest.mark.parametrize("value", [None, True, "x", "", math.nan, math.inf, -1, [], 1.5, 2**60, 10**400])
def test_values_that_are_not_counts_are_refused(value: Any) -> None:
    with pytest.raises(UnusableReplyError, match=r"^it must be a"):
        read_count(value, "it")


def test_amounts_and_ids() -> None:
    assert read_amount("-1e-3", "it", low=-math.inf) == -0.001
    assert [read_id(value, "it") for value in (7, 7.0, "a b")] == ["7", "7", "a b"]
    wrong: list[Any] = [None, True, 7.5, "", " ", []]
    for value in wrong:
        with pytest.raises(UnusableReplyError):
            read_id(value, "it")


def test_contexts_are_texts_or_objects_alike() -> None:
    assert read_contexts("one").texts == ("one",)
    assert read_contexts([]).texts == () and read_contexts([]).ids is None
    found = read_contexts([{"page_content": "a", "doc_id": 1}, {"page_content": "b", "doc_id": 2}])
    assert found == (("a", "b"), ("1", "2"), None)
    with pytest.raises(UnusableReplyError, match="both texts and objects"):
        read_contexts(["a", {"text": "b"}])
