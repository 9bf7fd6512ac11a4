"""Traces as rows of files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.traces import Document, Feedback, Step, Trace, TraceLink

TEXT = st.text(max_size=8)
OPTIONAL = st.none() | TEXT
NUMBER = st.none() | st.floats(0, 10, allow_nan=False)
DOCUMENTS = st.builds(Document, OPTIONAL, OPTIONAL, NUMBER, st.dictionaries(TEXT, TEXT, max_size=2))
LINKS = st.builds(TraceLink, TEXT, TEXT, OPTIONAL, OPTIONAL, st.dictionaries(st.just("run"), TEXT))
RETRIEVED = st.none() | st.lists(DOCUMENTS, max_size=2).map(tuple)
STEPS = st.builds(Step, st.sampled_from(["tool", "retrieval"]), TEXT, OPTIONAL, OPTIONAL, RETRIEVED, NUMBER, OPTIONAL)
FEEDBACK = st.builds(Feedback, TEXT, NUMBER, OPTIONAL, OPTIONAL, st.sampled_from(["user", "unknown"]), OPTIONAL)
TRACES = st.builds(
    Trace,
    LINKS,
    TEXT,
    query_id=TEXT,
    answer=OPTIONAL,
    documents=st.none() | st.lists(DOCUMENTS, max_size=3).map(tuple),
    references=st.lists(TEXT, max_size=3).map(tuple),
    reference_contexts=st.none() | st.lists(TEXT, max_size=2).map(tuple),
    relevant=st.none() | st.lists(TEXT, max_size=2).map(tuple),
    error=OPTIONAL,
    seconds=NUMBER,
    input_tokens=st.none() | st.integers(0, 9),
    session=OPTIONAL,
    messages=st.lists(st.dictionaries(TEXT, TEXT, max_size=1), max_size=2).map(tuple),
    steps=st.lists(STEPS, max_size=2).map(tuple),
    feedback=st.lists(FEEDBACK, max_size=2).map(tuple),
    metadata=st.dictionaries(TEXT, st.integers(), max_size=2),
)


@given(TRACES)
def test_a_row_loses_nothing(trace: Trace) -> None:
    row = json.loads(json.dumps(trace.to_row()))
    found = Trace.from_row(row)
    assert found.to_row() == trace.to_row()
    assert (found.id, found.documents, found.steps, found.feedback) == (
        trace.id,
        trace.documents,
        trace.steps,
        trace.feedback,
    )
    assert (found.link, found.references, found.metadata) == (trace.link, trace.references, trace.metadata)


def test_the_id_is_that_of_the_trace_and_of_the_span_if_it_has_one() -> None:
    assert Trace(TraceLink("phoenix", "t"), "?").id == "t"
    assert Trace(TraceLink("phoenix", "t", "s"), "?").id == "t:s"
    assert Trace(TraceLink("phoenix", "t", "s"), "?", query_id="7").id == "7"


def test_contexts_have_what_all_documents_have_and_the_rest_stands_beside_them() -> None:
    link = TraceLink("phoenix", "t")
    both = (Document("a", "1", 0.5), Document("b", "2"))
    row = Trace(link, "?", documents=both).to_row()
    assert row["contexts"] == [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]
    assert row["documents"] == [{"id": "1", "text": "a", "score": 0.5}, {"id": "2", "text": "b"}]
    assert "contexts" not in Trace(link, "?").to_row()
    assert Trace(link, "?", documents=()).to_row()["contexts"] == []
    only_ids = Trace(link, "?", documents=(Document(doc_id="1"), Document("b", "2"))).to_row()
    assert (only_ids["context_ids"], "contexts" in only_ids) == (["1", "2"], False)


@pytest.mark.parametrize(
    "row", [{}, {"question": "?"}, {"question": "?", "trace": {"tool": "x"}}, {"trace": {"tool": "x", "trace_id": "t"}}]
)
def test_a_row_that_is_not_a_trace_is_refused(row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no question, or no trace"):
        Trace.from_row(row)


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"tool": 1, "trace_id": "t"}', "[" * 100_000])
def test_what_is_not_a_link_is_none(text: str | None) -> None:
    assert TraceLink.load(text) is None
