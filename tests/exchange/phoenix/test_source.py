from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rageval_spec.data.traces import Trace
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.phoenix.source import (
    PhoenixConnection,
    PhoenixSource,
    PhoenixSourceNode,
    gather_metadata,
    read_example,
    read_span,
)
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import nanoseconds_of
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
        (Answer({"data": {}}), "the reply has no list 'data'; is url that of Phoenix"),
        (Answer([1, 2]), "the reply has no list 'data'; is url that of Phoenix"),
        (Answer({"data": [1]}), "'data' lists something that is not an object"),
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
        ({"context": None}, "phoenix: project support: span None: traceId: null where 32 hexadecimal"),
        ({"attributes": "none"}, f"span {5:014x}01: attributes: text where a list"),
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
        ({}, "name one of these: `project` or `dataset`"),
        ({"project": "a", "dataset": "b"}, "name one of these: `project` or `dataset`"),
        ({"dataset": "b", "since": "7d"}, "`since` does not go together with `dataset`"),
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


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nothing_set")
def test_settings_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (PhoenixConnection().find_url(), PhoenixConnection().find_headers()) == (PhoenixConnection.usual_url, {})
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "https://phoenix.example.org/v1/traces")
    monkeypatch.setenv("PHOENIX_API_KEY", "px-1")
    assert PhoenixConnection().find_url() == "https://phoenix.example.org"
    assert PhoenixConnection().find_headers()["Authorization"].reveal() == "Bearer px-1"
    assert PhoenixConnection(url="http://localhost:1").find_url() == "http://localhost:1"
    assert PhoenixConnection(api_key=Secret("px-2")).find_headers()["Authorization"].reveal() == "Bearer px-2"


@pytest.mark.usefixtures("nothing_set")
def test_a_wrong_url_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://user:pw@host")
    with pytest.raises(UsageError, match="PHOENIX_COLLECTOR_ENDPOINT: this URL has credentials"):
        PhoenixConnection().find_url()


NAMES = st.text("abcdefgh_", min_size=1, max_size=5)
VALUES = st.one_of(
    st.text(max_size=20), st.integers(-(10**9), 10**9), st.booleans(), st.lists(st.text(max_size=5), max_size=3)
)
DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {"id": st.text(min_size=1, max_size=8), "content": st.text(min_size=1, max_size=30),
         "score": st.floats(-1, 1), "metadata": st.dictionaries(NAMES, VALUES, max_size=3)}
    ),
    min_size=1, max_size=5, unique_by=lambda one: (one["id"], one["content"]),
)  # fmt: skip


def spread(prefix: str, value: Any) -> dict[str, Any]:
    """An attribute as Phoenix answers it: objects are spread over dotted names."""
    if isinstance(value, dict):
        return {name: one for key, inner in value.items() for name, one in spread(f"{prefix}.{key}", inner).items()}
    return {prefix: value}


@given(st.text("abc? ", min_size=1).filter(str.strip), st.text("xyz. ", min_size=1).filter(str.strip), DOCUMENTS,
       st.dictionaries(NAMES, VALUES, max_size=4))  # fmt: skip
def test_what_phoenix_knows_of_a_trace_comes_back(
    question: str, answer: str, documents: list[dict[str, Any]], metadata: dict[str, Any]
) -> None:
    asked = {"input.value": question, "output.value": answer, **spread("metadata", metadata)}
    found = {
        name: value
        for number, document in enumerate(documents)
        for name, value in spread(f"retrieval.documents.{number}.document", document).items()
    }
    spans = [make_span(1, attributes=asked), make_span(1, "RETRIEVER", 2, attributes=found)]
    read = [read_span(span, "support", "here") for span in spans]
    (trace,) = SpanReader("phoenix").read(read)
    assert (trace.question, trace.answer, dict(trace.metadata)) == (question, answer, metadata)
    back = [{"id": one.doc_id, "content": one.text, "score": one.score, "metadata": dict(one.metadata)}
            for one in trace.documents or ()]  # fmt: skip
    assert back == documents
    assert trace.link.others["retriever"] == read[1].span_id


def test_metadata_that_is_spread_is_one_object_again() -> None:
    spread_out = {
        "metadata.a": 1,
        "metadata.b.c": 2,
        "reranker.output_documents.0.document.metadata.p": 3,
        "other.x": 4,
    }
    assert gather_metadata(spread_out) == {
        "metadata": {"a": 1, "b.c": 2},
        "reranker.output_documents.0.document.metadata": {"p": 3},
        "other.x": 4,
    }


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)))
def test_times_keep_their_microseconds(moment: datetime) -> None:
    nanoseconds = nanoseconds_of(moment.replace(tzinfo=UTC).isoformat())
    assert nanoseconds % 1000 == 0
    assert datetime.fromtimestamp(nanoseconds // 10**9, UTC).replace(tzinfo=None) == moment.replace(microsecond=0)
    assert nanoseconds // 1000 % 10**6 == moment.microsecond


def test_what_is_no_time_is_not_known() -> None:
    assert [nanoseconds_of(one) for one in (None, 5, "yesterday")] == [0, 0, 0]


def test_the_usual_keys_hold_the_question_and_the_reference() -> None:
    found = {"id": "e1", "node_id": "N1", "input": {"query": "Why?"}, "output": {"expected": "So."}, "metadata": None}
    trace = read_example(found, "golden", "v1", "here")
    assert (trace.id, trace.question, trace.references) == ("e1", "Why?", ("So.",))
    assert trace.link.to_dict() == {"tool": "phoenix", "trace_id": "N1", "dataset": "golden", "version": "v1"}


def test_messages_are_questions_too() -> None:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}]
    trace = read_example({"id": "e1", "input": {"messages": messages}, "output": {}}, "", "", "here")
    assert (trace.question, trace.references) == ("Why?", ())
    assert dict(trace.metadata) == {"input.messages": messages}


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"input": {"question": "x"}}, "here: it has no id"),
        ({"id": "e1", "input": {}}, "here: it has no input"),
        ([], "here: it has no id"),
    ],
)
def test_an_example_that_cannot_be_read_is_named(example: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_example(example, "golden", "v1", "here")
