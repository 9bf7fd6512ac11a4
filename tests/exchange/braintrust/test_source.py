""""""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.traces import Trace
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.braintrust.source import (
    BraintrustApi,
    BraintrustConnection,
    BraintrustSource,
    BraintrustSourceNode,
    is_root,
    make_trace,
    read_row,
)
from rageval_spec.plugin import Context
from rageval_spec.recorded.questions_and_answers import RecordedPaths
from tests.exchange.braintrust.server import BraintrustServer, rag_trace, row
from tests.exchange.langfuse.test_connection import JSON
from tests.models.endpoint import Answer

EXPECTED_ROW = {
    "id": "t1",
    "question": "What is 1?",
    "answer": "It is 1.",
    "reference": "It is 1.",
    "seconds": 0.5,
    "input_tokens": 120,
    "output_tokens": 30,
    "cost": 0.002,
    "user": "u1",
    "model": "gpt-5",
    "started": "2026-03-01T12:00:10Z",
    "feedback": [{"name": "Factuality", "value": 0.75, "source": "program"}],
}


def read(**settings: Any) -> list[Trace]:
    source = BraintrustSource(BraintrustSourceNode(**settings), Context("braintrust"))
    try:
        return list(source.read())
    finally:
        source.close()


def check_row(trace: Trace) -> None:
    row = trace.to_row()
    assert {key: row.get(key) for key in EXPECTED_ROW} == EXPECTED_ROW
    contexts = [(one["id"], one["text"], one["score"]) for one in row["contexts"]]
    assert contexts == [("d1", "about 1", 0.9), ("d0", "elsewhere", 0.5)]
    assert row["metadata"]["tags"] == ["blue"]


@pytest.mark.parametrize("kind", ["experiment", "project_logs"])
def test_rows_become_questions_with_answers_documents_and_costs(server: BraintrustServer, kind: str) -> None:
    name, named = ("nightly", {"experiment": "nightly"}) if kind == "experiment" else ("support", {})
    identity = server.add(kind, name, *rag_trace(1), *rag_trace(2))
    traces = read(url=server.url, project="support", **named)
    assert [trace.id for trace in traces] == ["t2", "t1"]
    check_row(traces[1])
    where = {"tool": "braintrust", "trace_id": "span-t1", "row_id": "t1", "object": kind, "object_id": identity}
    assert where.items() <= traces[1].link.to_dict().items()
    assert [step.kind for step in traces[1].steps] == ["retrieval", "model"]


def test_rows_before_the_window_are_not_fetched(server: BraintrustServer) -> None:
    old = [row(f"x{n}", f"x{n}", "eval", n, input="q", created=f"2025-01-01T00:00:{n:02}Z") for n in range(40)]
    server.add("project_logs", "support", *rag_trace(1), *old)
    assert [trace.id for trace in read(url=server.url, project="support", since="2026-01-01")] == ["t1"]
    assert len(server.bodies) == 2


def test_rows_of_a_dataset_are_questions_with_gold_answers(server: BraintrustServer) -> None:
    times = [f"2026-03-01T00:00:0{n}Z" for n in range(6)]
    rows = [{"id": f"e{n}", "created": times[n], "input": f"q{n}", "expected": f"a{n}"} for n in range(6)]
    server.add("dataset", "golden", *rows)
    traces = read(url=server.url, project="support", dataset="golden")
    assert sorted((trace.id, trace.question, trace.references) for trace in traces) == [
        (f"e{n}", f"q{n}", (f"a{n}",)) for n in range(6)
    ]


def test_experiments_in_files(tmp_path: Path) -> None:
    (tmp_path / "whole.json").write_text(json.dumps(rag_trace(1)))
    check_row(read(path=str(tmp_path / "whole.json"))[0])
    with (tmp_path / "plain.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["input", "output", "expected", "scores.Factuality", "metadata"])
        for n in range(12):
            writer.writerow([f"q{n}", f"a{n}", f"e{n}", n / 12, json.dumps({"contexts": ["c"]})])
    traces = read(path=str(tmp_path / "plain.csv"))
    assert [(trace.question, trace.answer, trace.references) for trace in traces] == [
        (f"q{n}", f"a{n}", (f"e{n}",)) for n in range(12)
    ]
    assert [one.name for one in traces[3].feedback] == ["Factuality"]
    assert [one.text for one in traces[3].documents or ()] == ["c"]


def test_a_file_of_another_kind_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"input": "q"}\n{"question": "q"}\n')
    with pytest.raises(RagevalError, match=r"x\.jsonl:2: there is no 'input' and no 'id' in this row"):
        read(path=str(tmp_path / "x.jsonl"))


def test_a_wrong_key_is_masked(server: BraintrustServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINTRUST_API_KEY", "sk-bt-wrong-but-secret")
    with pytest.raises(RagevalError, match=r"answered 401 .*Invalid token Bearer \*\*\*") as caught:
        read(url=server.url, project="support")
    assert "wrong-but-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"project": "a", "path": "b"},
        {"path": "b", "dataset": "c"},
        {"project": "a", "experiment": "b", "dataset": "c"},
    ],
)
def test_one_thing_is_read_at_a_time(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"name one of these|leave one of them out"):
        BraintrustSourceNode(**settings)


@given(
    question=st.text(min_size=1).filter(lambda text: text.strip()),
    answer=st.text(min_size=1),
    expected=st.text(min_size=1).filter(lambda text: text.strip()),
    documents=st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique_by=lambda pair: pair[0], max_size=4),
    scores=st.dictionaries(st.text(min_size=1), st.floats(0, 1), max_size=3),
)
def test_what_both_sides_know_arrives_unchanged(
    question: str, answer: str, expected: str, documents: list[tuple[str, str]], scores: dict[str, float]
) -> None:
    contexts = [{"id": doc_id, "text": text} for doc_id, text in documents]
    output = {"answer": answer, "contexts": contexts}
    one = row("t", "t", "eval", 1, input={"question": question}, output=output, expected=expected, scores=scores)
    trace = make_trace([one], RecordedPaths(), {}, "support")
    assert trace is not None
    assert (trace.question, trace.answer) == (question, answer)
    assert trace.references == (expected,) or expected.lstrip()[:1] in ("{", "[", '"')
    assert [(doc.doc_id, doc.text) for doc in trace.documents or ()] == documents
    assert {one.name: one.value for one in trace.feedback} == scores
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


def test_a_trace_without_its_first_row_is_none() -> None:
    rows = rag_trace(1)
    assert [is_root(one) for one in rows] == [True, False, False, False]
    assert make_trace(rows[1:], RecordedPaths(), {}, None) is None


def test_metadata_can_name_the_version_of_the_application() -> None:
    trace = make_trace([row("t", "t", "task", 1, input="Why?", metadata={"version": "v3"})], RecordedPaths(), {}, None)
    assert trace is not None and trace.version == "v3"


@pytest.mark.parametrize(("end", "expected"), [("length", "length"), ("stop", None)])
def test_the_end_of_the_last_model_is_the_answer_s(end: str, expected: str | None) -> None:
    said = [{"finish_reason": end, "message": {"role": "assistant", "content": "So."}}]
    rows = [row("t", "t", "eval", 1, input="Why?", output="So."), row("m", "t", "llm", 2, output=said)]
    trace = make_trace(rows, RecordedPaths(), {}, None)
    assert trace is not None and trace.finish_reason == expected


def test_rows_of_datasets_have_gold_answers() -> None:
    trace = read_row(
        {"id": "e", "input": "Why?", "expected": {"answer": "So.", "relevant_doc_ids": ["d1"]}, "metadata": {"n": 1}},
        RecordedPaths(), "golden", "support",
    )  # fmt: skip
    assert trace is not None
    assert (trace.id, trace.question, trace.references, trace.relevant) == ("e", "Why?", ("So.",), ("d1",))
    assert read_row({"id": "e", "input": None}, RecordedPaths(), "golden", None) is None


@given(st.lists(st.dictionaries(st.sampled_from([*rag_trace(1)[0]]), JSON), max_size=3))
def test_no_types_break_the_reading(changes: list[dict[str, Any]]) -> None:
    rows = rag_trace(1)
    for one, change in zip(rows, changes, strict=False):
        one |= {key: value for key, value in change.items() if key not in ("id", "root_span_id")}
    trace = make_trace(rows, RecordedPaths(), {}, None)
    if trace is not None:
        json.dumps(trace.to_row(), allow_nan=False)


@pytest.fixture
def api(server: BraintrustServer) -> Iterator[BraintrustApi]:
    opened = BraintrustApi(BraintrustConnection(url=server.url), "braintrust")
    yield opened
    opened.close()


def test_all_pages_of_rows_are_read(server: BraintrustServer, api: BraintrustApi) -> None:
    server.add("experiment", "nightly", *rag_trace(1), *rag_trace(2), *rag_trace(3))
    identity = api.find("experiment", "support", "nightly")
    assert len([one for page in api.rows("experiment", identity) for one in page]) == 12


def test_names_that_are_not_there_are_errors(api: BraintrustApi) -> None:
    with pytest.raises(RagevalError, match="there is no experiment 'x' in the project 'support'"):
        api.find("experiment", "support", "x")
    with pytest.raises(RagevalError, match="there is no project 'y'"):
        api.find("project_logs", "y", None)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Answer(b"<html>", Content_Type="text/html"), "answered 200 with a web page"),
        (Answer({"data": []}), "the reply has no list 'events'"),
        (Answer({"events": [{"id": "1"}], "cursor": "x"}), "gave the same rows twice"),
    ],
)
def test_a_reply_that_is_not_braintrusts_is_an_error(
    server: BraintrustServer, api: BraintrustApi, reply: Answer, says: str
) -> None:
    server.interrupt = lambda asked: reply
    with pytest.raises(ServiceError, match=says):
        list(api.rows("experiment", "e"))


def test_rows_that_are_not_taken_are_an_error(server: BraintrustServer, api: BraintrustApi) -> None:
    server.interrupt = lambda asked: Answer({"row_ids": ["a"]})
    with pytest.raises(ServiceError, match="Braintrust took 1 of 2 rows"):
        api.insert("experiment", "e", [{"id": "a"}, {"id": "b"}])


def test_the_url_comes_from_the_node_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINTRUST_API_URL", "http://own/")
    assert BraintrustConnection(url="http://node/").find_url() == "http://node"
    assert BraintrustConnection().find_url() == "http://own"
    monkeypatch.delenv("BRAINTRUST_API_URL")
    assert BraintrustConnection().find_url() == BraintrustConnection.usual_url


def test_without_a_key_the_message_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAINTRUST_API_KEY")
    with pytest.raises(UsageError, match="set the environment variable BRAINTRUST_API_KEY"):
        BraintrustApi(BraintrustConnection(), "braintrust")
