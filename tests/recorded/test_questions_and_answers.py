""""""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.traces import Document
from rageval_spec.exchange.shared.contracts import PlacesNode
from rageval_spec.recorded.questions_and_answers import (
    SPAN_ANSWER_KEYS,
    SPAN_QUESTION_KEYS,
    RecordedPaths,
    clean,
    clean_json,
    clean_text,
    dump_text,
    find_contexts,
    find_documents,
    find_question,
    find_recorded_answer,
    last_text,
    list_messages,
    parse_text,
    pick_text,
    read_count,
    read_messages,
    read_number,
    read_relevant,
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
    assert find_recorded_answer(found) == "So."


def test_an_answer_that_is_json_stays_as_it_is() -> None:
    for text in ('{"total": 5}', "[1, 2]", '{"answer": "inner"}'):
        assert find_recorded_answer({"answer": text}) == text
    assert find_recorded_answer('{"total": 5}') == '{"total": 5}'
    assert find_recorded_answer({"answer": ""}) == find_recorded_answer('{"answer": ""}') == ""
    assert find_documents(['{"id": "d"}']) == (Document('{"id": "d"}'),)


def test_a_conversation_without_a_reply_has_no_answer() -> None:
    assert find_recorded_answer({"messages": CHAT}) is None
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
    for read in (find_question, find_recorded_answer):
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


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"role": "user", "content": "a"}, {"role": "user", "content": "a"}),
        ({"message.role": "assistant", "message.content": "a"}, {"role": "assistant", "content": "a"}),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "url": "x"}]},
         {"role": "user", "content": "a"}),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "12:00"}]},
         {"role": "tool", "content": "12:00"}),
        ({"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": {"a": 1}}]},
         {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "arguments": {"a": 1}}]}),
        ({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
         {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}]}),
        ({"message.role": "assistant", "message.tool_calls.0.tool_call.function.name": "f"},
         {"role": "assistant", "tool_calls": [{"name": "f"}]}),
        ({"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"},
         {"role": "assistant", "content": "a"}),
        ({"message.role": "user", "message.contents.0.message_content.type": "text",
          "message.contents.0.message_content.text": "a"}, {"role": "user", "content": "a"}),
        ({"type": "human", "content": "a"}, {"role": "user", "content": "a"}),
    ],
)  # fmt: skip
def test_messages_of_every_layout(found: dict[str, Any], message: dict[str, Any]) -> None:
    assert read_messages([found]) == [message]


def test_only_the_roles_asked_for_count() -> None:
    messages = read_messages([{"role": "user", "content": "first"}, {"role": "user", "content": "last"},
                              {"role": "assistant", "content": "no"}])  # fmt: skip
    assert last_text(messages, ("user",)) == "last" and last_text(messages, ("tool",)) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", None),
        ("[]", "[]"),
        ("[1, 2]", "[1, 2]"),
        ({"question": "", "query": "q"}, "q"),
        ({"a": 1}, '{"a": 1}'),
        (["only"], "only"),
        (7, "7"),
    ],
)
def test_questions(value: Any, text: str | None) -> None:
    assert pick_text(value, SPAN_QUESTION_KEYS, ("user",)) == text


def test_answers_deep_inside_are_not_looked_for_without_end() -> None:
    value: Any = {"answer": "x"}
    for _ in range(50):
        value = {"outputs": value}
    text = pick_text(value, SPAN_ANSWER_KEYS, ("assistant",))
    assert text is not None and text.startswith('{"outputs"')


def test_text_stays_text_and_the_rest_becomes_json() -> None:
    values: list[Any] = ["é", {"é": 1}, [], {}, None, 0]
    assert [dump_text(value) for value in values] == ["é", '{"é": 1}', None, None, None, "0"]


def test_what_is_no_json_becomes_json() -> None:
    found = {"n": float("nan"), 1: [b"\x01", float("inf"), 2.5], "none": None}
    assert clean_json(found) == {"n": None, "1": ["01", None, 2.5], "none": None}
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert "list more than 32 levels deep" in str(clean_json(deep))


def test_halves_of_surrogate_pairs_become_a_mark_and_whole_pairs_their_character() -> None:
    assert clean_text("a\ud800b") == "a\ufffdb" and clean_text("\ud83d\ude00é") == "😀é" and clean_text("é") == "é"
    assert pick_text('{"question": "\\ud800?"}', SPAN_QUESTION_KEYS, ()) == "\ufffd?"


def test_a_named_place_wins_and_finds_nothing_elsewhere() -> None:
    places = PlacesNode(question="$.a.b", answer="out[*].text").places
    assert places.question({"question": "no", "a": {"b": "yes"}}) == "yes"
    assert places.question('{"a": {"b": 5}}') == "5"
    assert places.question({"question": "no"}) is None
    assert places.answer({"out": [{"text": "x"}]}) == "x"
    assert places.answer({"out": [{"text": "x"}, {"text": "y"}]}) == '["x", "y"]'


def test_a_path_that_is_wrong_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\$\.\[\["):
        PlacesNode(question="$.[[")


@pytest.mark.parametrize(
    ("expected", "references"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("So.", ("So.",)),
        (["So.", "Thus."], ("So.", "Thus.")),
        ({"ground_truth": "So.", "answer": "old"}, ("So.",)),
        ({"output": "So."}, ("So.",)),
        ({"a": 1, "b": 2}, ('{"a": 1, "b": 2}',)),
    ],
)
def test_gold_answers_of_every_form(expected: Any, references: tuple[str, ...]) -> None:
    assert RecordedPaths().references(expected) == references


def test_relevant_documents_are_named_in_one_of_several_mappings() -> None:
    assert read_relevant(None, {"relevant_doc_ids": [1, "b"]}, {"relevant": ["c"]}) == ("1", "b")
    assert read_relevant({"relevant": "a"}, "x") is None
