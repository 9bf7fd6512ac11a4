from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.reading.answer_rows import (
    AnswerRow,
    UnusableReplyError,
    read_amount,
    read_contexts,
    read_count,
    read_id,
)
from tests.reading.any_json import ANY_JSON


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


def test_contexts_can_be_texts_or_objects() -> None:
    assert read_contexts("one").texts == ("one",)
    assert read_contexts([]).texts == () and read_contexts([]).ids is None
    found = read_contexts([{"page_content": "a", "doc_id": 1}, {"page_content": "b", "doc_id": 2}])
    assert found == (("a", "b"), ("1", "2"), None)
    with pytest.raises(UnusableReplyError, match="both texts and objects"):
        read_contexts(["a", {"text": "b"}])
