from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.data.traces import Trace
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.phoenix.source import PhoenixSource, PhoenixSourceNode
from rageval_spec.plugin import Context
from rageval_spec.plugin.secrets import Secret
from tests.endpoints.api_server import Asked
from tests.exchange.phoenix.server import PAGE, PhoenixServer, make_span
from tests.models.endpoint import Answer


def read(**settings: Any) -> list[Trace]:
    source = PhoenixSource(PhoenixSourceNode(**({"project": "support"} | settings)), Context("phoenix", Path()))
    try:
        return list(source.read())
    finally:
        source.close()


def test_a_trace_has_its_question_answer_documents_and_usage(phoenix: PhoenixServer) -> None:
    trace = read()[0]
    assert (trace.question, trace.answer) == ("Question 5?", "Answer 5.")
    documents = trace.documents or ()
    assert [(one.doc_id, one.text, one.score, dict(one.metadata)) for one in documents] == [
        ("d0", "Text 0.", 0.9, {"page": 0}),
        ("d1", "Text 1.", 0.8, {"page": 1}),
    ]
    assert (trace.seconds, trace.input_tokens, trace.output_tokens, trace.model) == (1.5, 100, 20, "gpt-4o-mini")
    assert (trace.session, dict(trace.metadata)) == ("s1", {"lang": "de", "n": 5})
    assert trace.link.to_dict() == {
        "tool": "phoenix",
        "trace_id": f"{5:032x}",
        "span_id": f"{5:014x}01",
        "project": "support",
        "retriever": f"{5:014x}02",
        "ended": "1795352701500000000",
    }


def test_all_pages_are_read_newest_first(phoenix: PhoenixServer) -> None:
    assert [trace.question for trace in read()] == [f"Question {number}?" for number in (5, 4, 3, 2, 1)]
    assert len([one for one in phoenix.asked if one.route.endswith("/traces")]) == 3


def test_the_window_and_the_limit_select_traces(phoenix: PhoenixServer) -> None:
    window = {"since": "2026-11-22T13:02:00Z", "until": "2026-11-22T13:05:00Z"}
    assert [trace.question for trace in read(**window)] == ["Question 4?", "Question 3?", "Question 2?"]
    assert [trace.question for trace in read(limit=2)] == ["Question 5?", "Question 4?"]


def test_what_people_said_is_feedback_and_what_this_program_wrote_is_not(phoenix: PhoenixServer) -> None:
    thumbs = {"name": "thumbs", "annotator_kind": "HUMAN", "identifier": "", "result": {"score": 1.0, "label": "up"}}
    phoenix.annotations = {
        ("span", f"{5:014x}01", 1): {**thumbs, "span_id": f"{5:014x}01"},
        ("span", f"{5:014x}01", 2): {**thumbs, "span_id": f"{5:014x}01", "identifier": "rageval-spec:x/y/z"},
        ("trace", f"{5:032x}", 3): {**thumbs, "trace_id": f"{5:032x}", "name": "overall", "result": None},
    }
    trace = read(limit=1)[0]
    assert [(one.name, one.value, one.label, one.source) for one in trace.feedback] == [
        ("thumbs", 1.0, "up", "annotator"),
        ("overall", None, None, "annotator"),
    ]


def test_spans_twice_and_spans_without_their_root_do_no_harm(phoenix: PhoenixServer) -> None:
    phoenix.spans += [phoenix.spans[0]]
    lost = {"input.value": "Where is my root?", "output.value": "Nowhere."}
    phoenix.spans = [
        one for one in phoenix.spans if one["context"]["trace_id"] != f"{2:032x}" or one["parent_id"] is None
    ]
    phoenix.spans[3] |= {"attributes": lost, "end_time": "2020-01-01T00:00:00+00:00"}  # a clock that goes wrong
    traces = {trace.link.trace_id: trace for trace in read()}
    assert len(traces) == 5
    assert (traces[f"{2:032x}"].question, traces[f"{2:032x}"].seconds) == ("Where is my root?", None)


def test_what_is_not_a_number_is_left_out(phoenix: PhoenixServer) -> None:
    span = make_span(6, attributes={"input.value": "Q?", "output.value": "A.", "llm.token_count.prompt": "many"})
    phoenix.spans = [span]

    def reply(asked: Asked) -> Answer:
        answer = phoenix.answer(asked)
        answer.content = answer.content.replace(b'"many"', b"NaN")
        return answer

    phoenix.reply = reply
    assert [(trace.question, trace.input_tokens) for trace in read()] == [("Q?", None)]


def test_a_huge_field_is_read_whole(phoenix: PhoenixServer) -> None:
    phoenix.spans = [make_span(7, attributes={"input.value": "Q?", "output.value": "x" * 3_000_000})]
    assert len(read()[0].answer or "") == 3_000_000


def test_a_project_that_is_not_there_is_named_with_those_that_are(phoenix: PhoenixServer) -> None:
    with pytest.raises(UsageError, match="phoenix: there is no project 'suport'; did you mean 'support'"):
        read(project="suport")
    with pytest.raises(UsageError, match="no project 'zzz'; the projects are support, default"):
        read(project="zzz")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            Answer(PAGE, Content_Type="text/html"),
            r"/v1/projects/support/traces answered 200 with a web page; is url right",
        ),
        (Answer(b"no", 401), r"answered 401 Unauthorized \(is the key right\?\)"),
        (Answer({"detail": [{"msg": "bad limit"}]}, 422), "answered 422 .*bad limit"),
        (Answer(b'{"data": [{"trace_id": '), "answered 200 with something that is not JSON"),
        (Answer({"data": {}}), "answered without the list 'data'"),
        (Answer([1, 2]), "answered without the list 'data'"),
        (Answer({"data": [1]}), "answered without the list 'data'"),
        (Answer({"data": [], "next_cursor": "x"}), "gave the page 'x' twice"),
    ],
)
def test_a_bad_reply_is_an_error_with_its_place(phoenix: PhoenixServer, answer: Answer, message: str) -> None:
    phoenix.reply = lambda asked: answer
    with pytest.raises(ServiceError, match=message):
        read()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context": None}, "phoenix: project support: a span without a trace_id and a span_id"),
        ({"attributes": "none"}, f"the span {5:014x}01 has no object 'attributes'"),
    ],
)
def test_a_span_that_cannot_be_read_is_named(phoenix: PhoenixServer, changes: dict[str, Any], message: str) -> None:
    real = phoenix.answer

    def reply(asked: Asked) -> Answer:
        if not asked.route.endswith("/spans"):
            return real(asked)
        return Answer({"data": [make_span(5, **changes)], "next_cursor": None})

    phoenix.reply = reply
    with pytest.raises(DataError, match=message):
        read()


def test_the_key_is_sent_and_never_shown(phoenix: PhoenixServer) -> None:
    phoenix.reply = lambda asked: Answer(f"who is {asked.headers['authorization']}?".encode(), 403)
    with pytest.raises(ServiceError) as caught:
        read(api_key=Secret("px-very-secret-4711"))
    assert phoenix.asked[0].headers["authorization"] == "Bearer px-very-secret-4711"
    assert "4711" not in str(caught.value)


def test_a_dataset_gives_questions_with_references(phoenix: PhoenixServer) -> None:
    phoenix.examples = [
        {"id": "e1", "node_id": "N1", "input": {"question": "Why?", "lang": "de"}, "output": {"answer": "So."},
         "metadata": {"difficulty": "easy"}},
        {"id": "e2", "node_id": "N2", "input": {"question": "How?"}, "output": {}, "metadata": {}},
    ]  # fmt: skip
    first, second = read(project=None, dataset="golden")
    assert (first.id, first.question, first.references, first.answer) == ("e1", "Why?", ("So.",), None)
    assert dict(first.metadata) == {"input.lang": "de", "difficulty": "easy"}
    assert (first.link.trace_id, second.references) == ("N1", ())
    with pytest.raises(UsageError, match="there is no dataset 'silver'"):
        read(project=None, dataset="silver")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "name either `project`"),
        ({"project": "a", "dataset": "b"}, "name either `project`"),
        ({"dataset": "b", "since": "7d"}, "since and until select traces"),
        ({"project": "a", "url": "localhost:6006"}, "write a URL such as"),
        ({"project": "a", "since": "yesterday"}, "is not a moment"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PhoenixSourceNode(**settings)


def test_a_page_that_is_too_large_is_asked_for_in_parts(phoenix: PhoenixServer) -> None:
    phoenix.page = 1000
    for span in phoenix.spans:
        span["attributes"]["filler"] = "x" * 6_000_000
    assert [trace.question for trace in read()] == [f"Question {number}?" for number in (5, 4, 3, 2, 1)]
    limits = [one.parameters["limit"] for one in phoenix.asked if one.route.endswith("/spans")]
    assert limits == [["200"], ["20"], ["2"], *[["2"]] * 7]


def test_a_span_that_is_too_large_is_an_error(phoenix: PhoenixServer) -> None:
    phoenix.spans = [make_span(7, attributes={"input.value": "Q?", "output.value": "x" * 68_000_000})]
    with pytest.raises(ServiceError, match="replied with more than 64 MiB, which is the limit for a reply"):
        read()
