""""""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.traces import Document, Step
from rageval_spec.recorded.answers_and_steps import (
    AnswerRow,
    UnusableReplyError,
    dump_steps,
    is_truncated,
    list_retrieved,
    load_steps,
    read_amount,
    read_contexts,
    read_count,
    read_id,
    read_steps,
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


def test_contexts_can_say_where_they_are_in_their_documents() -> None:
    place = {"document_id": "guide.md", "start": 3, "end": "9"}
    found = read_contexts([{"text": "a", "id": 1, **place}, {"text": "b", "id": 2}])
    assert (found.ids, found.places) == (("1", "2"), '[["guide.md", 3, 9], null]')
    assert read_contexts([{"text": "a", **place}]).ids == ("guide.md",)
    assert read_contexts([{"text": "a", "metadata": place}]).places == '[["guide.md", 3, 9]]'
    assert read_contexts([{"text": "a", "document_id": "x", "start": 4}]).places is None
    with pytest.raises(UnusableReplyError, match=r"contexts\[0\].end, 2, is before its start, 3"):
        read_contexts([{"text": "a", **place, "end": 2}])
    with pytest.raises(UnusableReplyError, match=r"contexts\[0\].start must be a whole number, not 0.5"):
        read_contexts([{"text": "a", **place, "start": 0.5}])


def test_contexts_can_be_texts_or_objects() -> None:
    assert read_contexts("one").texts == ("one",)
    assert read_contexts([]).texts == () and read_contexts([]).ids is None
    found = read_contexts([{"page_content": "a", "doc_id": 1}, {"page_content": "b", "doc_id": 2}])
    assert found == (("a", "b"), ("1", "2"), None, None)
    with pytest.raises(UnusableReplyError, match="both texts and objects"):
        read_contexts(["a", {"text": "b"}])


TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
DOCUMENTS = [{"id": 1, "text": "one", "score": 0.5}, {"id": "d2", "page_content": "two", "score": 0.25}]
READ = (Document("one", "1", 0.5), Document("two", "d2", 0.25))


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        ([{"name": "add", "input": "1+1", "output": 2}], [Step("tool", "add", "1+1", "2")]),
        ([{"name": "search", "input_parameters": {"q": "x"}, "output": DOCUMENTS}],
         [Step("retrieval", "search", '{"q": "x"}', documents=READ)]),
        ([{"type": "retriever", "query": "x", "documents": ["a", "b"]}],
         [Step("retrieval", "", "x", documents=(Document("a"), Document("b")))]),
        ([[{"tool": "wiki", "tool_input": "x", "log": "..."}, "found"]], [Step("retrieval", "wiki", "x", "found")]),
        ([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}], [Step("tool", "f", "{}")]),
        ([{"kind": "thought", "text": "hm"}], [Step("model", "thought", output="hm")]),
        (["said"], [Step("other", output="said")]),
        ('[{"name": "f", "seconds": 1, "error": "broken"}]', [Step("other", "f", seconds=1.0, error="broken")]),
        ([{"name": "lookup", "input": "x", "documents": []}], [Step("retrieval", "lookup", "x", documents=())]),
        ([{"name": "search", "input": "x", "output": []}], [Step("retrieval", "search", "x", documents=())]),
        ([{"name": "list_orders", "input": "x", "output": []}], [Step("tool", "list_orders", "x", "[]")]),
        ([], []),
    ],
)  # fmt: skip
def test_steps_of_many_formats_are_read_and_kept(value: Any, steps: list[Step]) -> None:
    found = read_steps(value)
    assert list(found) == steps
    assert load_steps(dump_steps(found)) == found


def test_an_action_and_its_observation_are_one_step() -> None:
    trace = [
        {"kind": "thought", "text": "hm"}, {"kind": "action", "text": "Search[Ada]"},
        {"kind": "observation", "text": "Ada is a name."}, {"kind": "action", "text": "Finish[yes]"},
    ]  # fmt: skip
    thought, search, finish = read_steps(trace)
    assert thought.output == "hm"
    assert search == Step("retrieval", "Search", "Ada", "Ada is a name.", (Document("Ada is a name."),))
    assert finish == Step("tool", "Finish", "yes")


def test_calls_of_tools_in_a_conversation_find_their_results() -> None:
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "of b"},
        {"role": "tool", "tool_call_id": "a", "content": json.dumps(DOCUMENTS)},
        {"role": "assistant", "content": None, "tool_calls": calls[:1]},
        {"role": "tool", "content": "again"},
        {"role": "assistant", "content": "done", "tool_calls": calls[1:]},
    ]
    first, second, third, fourth = read_steps(messages)
    assert first == Step("retrieval", "a", "{}", documents=READ)
    assert second == Step("tool", "b", "{}", "of b")
    assert third.output == "again"
    assert fourth.output is None


def test_retrieved_documents_are_listed_once_in_order() -> None:
    steps = read_steps([{"name": "search", "output": DOCUMENTS}, {"name": "search", "output": DOCUMENTS[::-1]}])
    assert list_retrieved(steps) == READ
    assert list_retrieved(read_steps([{"name": "f", "input": 1, "output": "x"}])) == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [(5, "steps must be a list of steps, not a number"), ({"a": 1}, "not an object"), ("x", "not text"),
     ([5], r"steps\[0\] must be an object, not a number"), ([{"name": "f"}, None], r"steps\[1\] must be an object")],
)  # fmt: skip
def test_something_else_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(UnusableReplyError, match=message):
        read_steps(value)


@given(ANY_JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        steps = read_steps(value)
    except UnusableReplyError:
        return
    assert load_steps(dump_steps(steps)) == steps


def test_half_a_surrogate_pair_costs_nothing_else() -> None:
    (step,) = read_steps([{"name": "search", "input": "\ud83d", "output": [{"text": "a\udc00", "id": "\ud83d"}]}])
    assert (step.input, step.documents) == ("\ufffd", (Document("a\ufffd", "\ufffd"),))
    (dump_steps([step]) or "").encode()


@pytest.mark.parametrize("text", ["", "{", "5", '[{"other": 1}]', "null"])
def test_damaged_steps_are_none(text: str) -> None:
    assert load_steps(text) == ()


def read_trace(name: str) -> list[dict[str, Any]]:
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"{path} is absent: these traces are not part of the repository")
    lines = (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8")
    with lines:
        return [json.loads(line) for line in lines]


def test_real_traces_of_a_reasoning_agent() -> None:
    rows = read_trace("react_hotpotqa.jsonl")
    steps = [read_steps(row["steps"]) for row in rows]
    assert all(steps)
    assert {step.name for step in steps[0]} == {"thought", "Search", "Finish"}
    assert len(list_retrieved(steps[0])) == 2


def test_real_conversations_of_an_agent_with_tools() -> None:
    rows = read_trace("tau_bench_airline_gpt4o.jsonl.gz")
    for row in rows:
        calls = sum(len(turn.get("tool_calls") or ()) for turn in row["messages"])
        steps = read_steps(row["messages"])
        assert len(steps) == calls
        assert sum(step.output is not None or step.documents is not None for step in steps) >= calls - 1


@pytest.mark.parametrize("key", ["inputParameters", "arguments"])
def test_a_call_that_says_it_is_a_function_is_a_step_and_no_message(key: str) -> None:
    (step,) = read_steps([{"name": "weather", "type": "FUNCTION", key: {"city": "Bonn"}}])
    assert (step.kind, step.name, step.input) == ("tool", "weather", '{"city": "Bonn"}')


@pytest.mark.parametrize(
    "content",
    [
        {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]},
        {"choices": [{"finish_reason": "length"}, {"finish_reason": "stop"}]},
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        {"content": [{"type": "text", "text": "x"}], "stop_reason": "max_tokens"},
        {"stop_reason": "model_context_window_exceeded"},
        {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "MAX_TOKENS"}]},
        {"candidates": [{"finish_reason": "FinishReason.MAX_TOKENS"}]},
        {"message": {"content": "x"}, "done": True, "done_reason": "length"},
        {"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": "max_tokens"},
        {"generated_text": "x", "details": {"finish_reason": "length"}},
        {"answer": "x", "finish_reason": "length"},
        {"data": {"answer": "x", "finishReason": "length"}},
        {"answer": "x", "metadata": {"finish_reason": "length"}},
        {"answer": {"type": "ai", "content": "x", "response_metadata": {"finish_reason": "length"}}},
        {"answer": {"lc": 1, "type": "constructor", "kwargs": {"response_metadata": {"stop_reason": "max_tokens"}}}},
        {"finish_reasons": ["length"]},
        {"generations": [[{"text": "x", "generation_info": {"finish_reason": "length"}}]]},
        {"messages": [{"type": "human"}, {"type": "ai", "response_metadata": {"finish_reason": "length"}}]},
        {"kwargs": {"content": "x", "response_metadata": {"stop_reason": "max_tokens"}}},
        {"replies": [{"content": "x", "meta": {"finish_reason": "length"}}]},
        [{"role": "assistant", "parts": [], "finish_reason": "length"}],
        '{"choices": [{"finish_reason": "length"}]}',
    ],
)  # fmt: skip
def test_a_reply_that_ended_at_the_token_limit_is_truncated(content: Any) -> None:
    assert is_truncated(content)
    ended = re.sub("length|max_|MAX_|model_context_window_exceeded", "end", json.dumps(content))
    assert not is_truncated(json.loads(ended))


@pytest.mark.parametrize(
    "content",
    [
        None, "length", 7, [], {}, {"finish_reason": None}, {"finish_reason": "stop"}, {"length": "length"},
        {"choices": [{"finish_reason": "stop"}, {"finish_reason": "length"}]},
        {"messages": [{"finish_reason": "length"}, {"finish_reason": "stop"}]},
        {"contexts": [{"finish_reason": "length"}]},
        {"steps": [{"finish_reason": "length"}]},
        {"answer": '{"finish_reason": "length"}'},
        {"incomplete_details": None}, {"incomplete_details": {"reason": "content_filter"}},
    ],
)  # fmt: skip
def test_what_is_not_the_answer_s_end_truncates_nothing(content: Any) -> None:
    assert not is_truncated(content)


def test_the_end_of_a_reply_is_looked_for_to_a_bounded_depth() -> None:
    content: dict[str, Any] = {"finish_reason": "length"}
    for _ in range(5000):
        content = {"data": content}
    assert not is_truncated(content)
