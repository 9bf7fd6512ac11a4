""""""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import ANSWERS, LATER_ANSWERS
from rageval_spec.recorded.answers_and_steps import AnswerRow, UnusableReplyError, table_of
from rageval_spec.recorded.http_replies import CutOffReplyError, ReplyLayout, assemble, is_event_stream, parse_events
from rageval_spec.recorded.json_path import parse_path
from tests.reading.any_json import ANY_JSON

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
    assert tuple(table.columns) == (*ANSWERS, *LATER_ANSWERS) and table["answer"].to_list() == [row.answer]
    for number in (row.input_tokens, row.output_tokens, row.cost):
        assert number is None or (math.isfinite(number) and number >= 0)


@pytest.mark.parametrize(
    "message", ["Internal error", "Internal server error", "Endpoint request timed out", "Not Found"]
)
def test_the_message_of_an_error_is_no_answer(message: str) -> None:
    with pytest.raises(UnusableReplyError, match=f"no answer but an error's message: {message}; if it is the"):
        ReplyLayout().read({"message": message, "requestId": "1"})
    assert ReplyLayout(answer=parse_path("$.message")).read({"message": message}).answer == message
    assert ReplyLayout().read({"answer": message}).answer == message


def test_the_message_of_a_reply_may_be_the_answer() -> None:
    for said in ("Because.", "An error is a mistake. It was not found in time.", "Is it not found?"):
        assert ReplyLayout().read({"message": said}).answer == said


def stream(*events: Any) -> bytes:
    """A stream of data, or of pairs of a name and data; text is sent as it is."""
    return "".join(_write(event) for event in events).encode()


def _write(event: Any) -> str:
    name, data = event if isinstance(event, tuple) else ("", event)
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "") + "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"


def chunk(content: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if content is None else {"content": content}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


USAGE: dict[str, Any] = {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}
FORMATS = {
    "chat": (
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        chunk("Be"), chunk("cause"), chunk(None, "stop"), {"choices": [], **USAGE}, "[DONE]",
    ),
    "chat without [DONE]": (chunk("Be"), chunk("cause", "stop")),
    "reasoning": ({"choices": [{"delta": {"reasoning_content": "hm"}}]}, chunk("Because"), "[DONE]"),
    "several choices": (chunk("Because"), {"choices": [{"index": 1, "delta": {"content": "No"}}]}, chunk(None, "stop")),
    "completions": ({"choices": [{"text": "Be"}]}, {"choices": [{"text": "cause", "finish_reason": "stop"}]}),
    "responses": (
        ("response.created", {"type": "response.created", "response": {"id": "r"}}),
        ("response.reasoning_text.delta", {"type": "response.reasoning_text.delta", "delta": "hm"}),
        ("response.output_text.delta", {"type": "response.output_text.delta", "delta": "Be"}),
        ("response.output_text.delta", {"type": "response.output_text.delta", "delta": "cause"}),
        ("response.output_text.done", {"type": "response.output_text.done", "text": "Because"}),
        ("response.completed", {"type": "response.completed", "response": {"output": [], **USAGE}}),
    ),
    "anthropic": (
        ("message_start", {"type": "message_start", "message": {"usage": {"input_tokens": 7}}}),
        ("ping", {"type": "ping"}),
        ("content_block_delta", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Be"}}),
        ("content_block_delta", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "cause"}}),
        ("message_delta", {"type": "message_delta", "delta": {"stop_reason": "end"}, "usage": {"output_tokens": 3}}),
        ("message_stop", {"type": "message_stop"}),
    ),
    "tgi": ({"token": {"text": "Be"}, "generated_text": None}, {"token": {"text": "!"}, "generated_text": "Because"}),
    "dify": (
        {"event": "message", "answer": "Be"}, {"event": "message", "answer": "cause"},
        {"event": "message_end", "metadata": {"retriever_resources": []}},
    ),
    "langserve": (("metadata", {"run_id": 1}), ("data", '"Be"'), ("data", '"cause"'), ("end", "")),
    "plain": ("Be", "cause", "[DONE]"),
    "the whole at the end": ({"token": "B"}, {"token": "e"}, ("final", {"answer": "Because"})),
    "only the whole": ({"status": "searching"}, ("done", {"answer": "Because"})),
    "the last piece is flagged": ({"text": "Be", "done": False}, {"text": "cause", "done": True}),
    "the whole is flagged": ({"text": "Be", "done": False}, {"text": "Because", "done": True}),
    "sources after the end": ("Be", "cause", ("end", ""), ("sources", [{"id": 1}])),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_the_pieces_of_usual_formats_are_joined(name: str) -> None:
    content = stream(*FORMATS[name])
    assert is_event_stream(content)
    assert assemble(content).text == "Because"


CUT_OFF = [name for name in FORMATS if name not in ("chat", "sources after the end", "chat without [DONE]")]


@pytest.mark.parametrize("name", CUT_OFF)
def test_half_a_stream_is_an_error_and_not_a_short_answer(name: str) -> None:
    events = FORMATS[name]
    with pytest.raises(CutOffReplyError, match="so the answer may be cut off"):
        assemble(stream(*events[:-1]))


def test_an_event_that_is_cut_in_its_middle_does_not_count() -> None:
    content = stream(chunk("Be"), chunk("cause", "stop"))
    for end in range(len(content) - 1):
        with pytest.raises(CutOffReplyError):
            assemble(content[:end] or b"\n")
    assert assemble(stream("Be", "cause") + b"data: [DONE]").text == "Because"


def test_other_keys_of_events_are_kept_later_ones_over_earlier_ones() -> None:
    sources = [{"id": "d1", "text": "t"}]
    content = stream(("sources", sources), {"step": 1}, chunk("x", step=2, **USAGE), {"usage": {"cost": 1}}, "[DONE]")
    found = assemble(content).content
    assert found["sources"] == sources
    assert found["step"] == 2
    assert found["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "cost": 1}
    assert assemble(stream(*FORMATS["anthropic"])).content["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert assemble(stream(*FORMATS["responses"])).content["usage"] == USAGE["usage"]


def test_pieces_of_plain_text_can_look_like_json() -> None:
    pieces = ("In ", "2024", " [", "[1]", "] ", "true", ' "q"', " null", "x\ny")
    assert assemble(stream(*pieces, "[DONE]")).text == "".join(pieces)


def test_a_path_names_the_pieces_and_a_name_the_last_event() -> None:
    events = ({"d": {"t": "Be"}, "answer": "no"}, {"d": {"t": "cause"}}, ("bye", {"n": 1}), {"d": {"t": "more"}})
    path = parse_path("$.d.t")
    assert assemble(stream(*events), path, "bye").text == "Because"
    assert assemble(stream(*events), path, "close").text == "Becausemore"
    with pytest.raises(CutOffReplyError, match=r"of 2 events has no event 'bye'"):
        assemble(stream(*events[:2]), path, "bye")
    with pytest.raises(CutOffReplyError, match=r"the events are 'bye'; name the last event in 'last_event'"):
        assemble(stream(*events), path)


def test_a_name_that_several_events_have_ends_nothing() -> None:
    with pytest.raises(CutOffReplyError):
        assemble(stream(("result", {"text": "Be"}), ("result", {"text": "cause"})))


@pytest.mark.parametrize(
    "event",
    [{"error": {"message": "out of tokens"}}, {"error": "out of tokens"}, ("error", "out of tokens"),
     {"type": "error", "error": {"type": "overloaded", "message": "out of tokens"}}],
)  # fmt: skip
def test_an_error_in_a_stream_is_an_error(event: Any) -> None:
    with pytest.raises(UnusableReplyError, match="its stream reports an error: out of tokens"):
        assemble(stream(chunk("Be"), event, "[DONE]"))


def test_an_empty_answer_is_an_answer_and_none_is_none() -> None:
    assert assemble(stream(chunk(""), chunk(None, "stop"))).text == ""
    assert assemble(stream({"status": "x"}, "[DONE]")).text is None


def test_lines_comments_and_byte_order_marks_are_read_as_browsers_do() -> None:
    content = b"\xef\xbb\xbf: hi\r\nretry: 10\r\nid: 1\r\nevent: a\r\ndata: x\r\ndata:y\r\n\r\n"
    content += b"event: b\r\n\r\ndata\r\rdata:  z\n\n"
    assert [(event.name, event.text) for event in parse_events(content)] == [("a", "x\ny"), ("", ""), ("", " z")]
    with pytest.raises(UnusableReplyError, match="is not UTF-8"):
        parse_events(b"data: \xff\n\n")


def test_lines_of_json_are_events_too() -> None:
    lines = [{"message": {"content": text}, "done": text == "cause", "eval_count": 3} for text in ("Be", "cause")]
    content = "\n".join(map(json.dumps, lines)).encode()
    assert not is_event_stream(content)
    found = assemble(content)
    assert (found.text, found.content["eval_count"]) == ("Because", 3)


@pytest.mark.parametrize("content", [b'{"data": 1}', b"data", b"[1]", b'"data: x"', b"", b"<html>"])
def test_json_and_other_text_are_no_streams(content: bytes) -> None:
    assert not is_event_stream(content)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(UnusableReplyError):
        assemble(b"data: " + content)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=6), min_size=1))
def test_deltas_are_joined_whatever_they_are(pieces: list[str]) -> None:
    assert assemble(stream(*map(chunk, pieces), "[DONE]")).text == "".join(pieces)
