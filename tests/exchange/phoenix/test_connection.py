"""How the tool is reached, and its pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.phoenix.source import (
    LOCAL,
    find_headers,
    find_url,
    gather_metadata,
    read_example,
    read_span,
    read_time,
)
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.plugin.secrets import Secret
from tests.exchange.phoenix.server import make_span


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nothing_set")
def test_settings_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (find_url(None), find_headers(None)) == (LOCAL, {})
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "https://phoenix.example.org/v1/traces")
    monkeypatch.setenv("PHOENIX_API_KEY", "px-1")
    assert find_url(None) == "https://phoenix.example.org"
    assert find_headers(None)["authorization"].reveal() == "Bearer px-1"
    assert find_url("http://localhost:1") == "http://localhost:1"
    assert find_headers(Secret("px-2"))["authorization"].reveal() == "Bearer px-2"


@pytest.mark.usefixtures("nothing_set")
def test_a_wrong_url_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://user:pw@host")
    with pytest.raises(UsageError, match="PHOENIX_COLLECTOR_ENDPOINT: this URL has credentials"):
        find_url(None)


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
    nanoseconds = read_time(moment.replace(tzinfo=UTC).isoformat())
    assert nanoseconds % 1000 == 0
    assert datetime.fromtimestamp(nanoseconds // 10**9, UTC).replace(tzinfo=None) == moment.replace(microsecond=0)
    assert nanoseconds // 1000 % 10**6 == moment.microsecond


def test_what_is_no_time_is_not_known() -> None:
    assert [read_time(one) for one in (None, 5, "yesterday")] == [0, 0, 0]


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
