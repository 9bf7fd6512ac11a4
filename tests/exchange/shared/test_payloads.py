from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.trace import Document
from rageval_spec.exchange.shared.payloads import (
    clean,
    find_answer,
    find_contexts,
    find_documents,
    find_question,
    list_messages,
    parse_text,
    read_count,
    read_number,
    read_text,
    read_time,
    write_text,
    write_time,
)

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
LANGCHAIN = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "HumanMessage"],
    "kwargs": {"content": "Why?"},
}


@pytest.mark.parametrize(
    "found",
    [
        "Why?",
        '"Why?"',
        {"question": "Why?"},
        '{"query": "Why?", "k": 3}',
        {"input": {"question": "Why?", "chat_history": []}},
        {"args": ["Why?"], "kwargs": {}},
        {"args": [], "kwargs": {"query": "Why?"}},
        CHAT,
        {"messages": CHAT},
        {"messages": [[LANGCHAIN]]},
        [["human", "Why?"]],
        [{"type": "human", "content": [{"type": "text", "text": "Why?"}]}],
        {"role": "user", "parts": [{"text": "Why?"}]},
        {"anything": "Why?"},
        ["Why?"],
    ],
)
def test_questions_of_every_form(found: Any) -> None:
    assert find_question(found) == "Why?"
    assert isinstance(found, str) or find_question(json.dumps(found)) == "Why?"


@pytest.mark.parametrize(
    "found",
    [
        "So.",
        {"answer": "So.", "contexts": ["c"]},
        {"output": "So."},
        {"choices": [{"message": {"role": "assistant", "content": "So."}}]},
        '{"answer": "So."}',
        {"generations": [[{"text": "So.", "message": {"kwargs": {"content": "So."}}}]]},
        {"messages": [*CHAT, {"type": "ai", "content": "So."}]},
        {"role": "assistant", "content": "So."},
        {"output": {"role": "assistant", "content": [{"type": "output_text", "text": "So."}]}},
    ],
)
def test_answers_of_every_form(found: Any) -> None:
    assert find_answer(found) == "So."


def test_an_answer_that_is_json_stays_as_it_is() -> None:
    for text in ('{"total": 5}', "[1, 2]", '{"answer": "inner"}'):
        assert find_answer({"answer": text}) == text
    assert find_answer('{"total": 5}') == '{"total": 5}'
    assert find_answer({"answer": ""}) == find_answer('{"answer": ""}') == ""
    assert find_documents(['{"id": "d"}']) == (Document('{"id": "d"}'),)


def test_a_conversation_without_a_reply_has_no_answer() -> None:
    assert find_answer({"messages": CHAT}) is None
    assert find_question([{"role": "assistant", "content": "Hello"}]) is None
    assert find_question({"a": "x", "b": "y"}) is None


def test_messages_are_kept_if_there_is_more_than_a_question() -> None:
    assert [dict(one) for one in list_messages({"messages": CHAT})] == CHAT
    assert list_messages([CHAT[1]]) == list_messages("Why?") == list_messages([1, 2]) == ()


@pytest.mark.parametrize(
    "found",
    [
        [{"page_content": "t", "metadata": {"id": "d", "score": 0.5}, "type": "Document"}],
        {"documents": [{"content": "t", "document_id": "d", "score": 0.5}]},
        [[{"text": "t", "id": "d"}, 0.5]],
        {"nodes": [{"node": {"text": "t", "id_": "d"}, "score": "0.5"}]},
        {"matches": [{"id": "d", "score": 0.5, "text": "t"}]},
        '[{"id": "d", "text": "t", "relevance_score": 0.5}]',
    ],
)
def test_documents_of_every_form(found: Any) -> None:
    (document,) = find_documents(found) or ()
    assert (document.text, document.doc_id, document.score) == ("t", "d", 0.5)


def test_texts_are_documents_and_other_things_are_not() -> None:
    assert find_documents(["a", "b"]) == (Document("a"), Document("b"))
    assert find_documents([]) == ()
    assert find_documents("plain") is None
    assert find_documents({"answer": "x"}) is None
    assert find_contexts({"answer": "x", "contexts": ["a"]}) == (Document("a"),)
    assert find_contexts({"answer": "x", "output": ["a"]}) is None


def test_numbers_counts_and_texts() -> None:
    numbers: list[Any] = ["0.5", 1, True, math.nan, "inf", [], None]
    assert [read_number(one) for one in numbers] == [0.5, 1.0, *[None] * 5]
    assert [read_count(one) for one in (3, "4", -1, 2.0, 1e300)] == [3, 4, None, 2, None]
    mixed: list[Any] = ["a", "", 7, True, {}]
    assert [read_text(one) for one in mixed] == ["a", None, "7", None, None]
    assert [write_text(one) for one in [*mixed[:1], None, {"a": math.nan}]] == ["a", None, '{"a": null}']
    mixed = ["[1", "{}", 5, "x"]
    assert [parse_text(one) for one in mixed] == ["[1", {}, 5, "x"]


def test_times_are_in_utc() -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for text in ("2026-03-01T12:00:00Z", "2026-03-01 12:00:00", "2026-03-01T13:00:00+01:00"):
        assert read_time(text) == moment
    assert read_time("soon") is read_time(5) is None
    assert write_time(moment) == "2026-03-01T12:00:00Z"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "messages",
                    "id",
                    "kwargs",
                    "args",
                    "text",
                    "documents",
                    "node",
                    "metadata",
                    "input",
                    "x",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_nothing_breaks_the_reading(found: Any) -> None:
    for read in (find_question, find_answer):
        assert isinstance(read(found), str | None)
    list_messages(found)
    for document in (*(find_documents(found) or ()), *(find_contexts(found) or ())):
        json.dumps(document.to_row(), allow_nan=False)
    json.dumps(clean(found), allow_nan=False)


def test_deep_nesting_ends() -> None:
    deep: Any = "Why?"
    for _ in range(5000):
        deep = {"input": deep}
    assert find_question(deep) is None
    json.dumps(clean(deep))
