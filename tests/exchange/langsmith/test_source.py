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
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.langsmith.source import (
    LangSmithSource,
    LangSmithSourceNode,
    make_trace,
    read_example,
)
from rageval_spec.plugin import Context
from rageval_spec.recorded.questions_and_answers import RecordedPaths
from tests.exchange.langfuse.test_connection import JSON
from tests.exchange.langsmith.server import PROJECT, LangSmithServer, feedback, make_id, rag_trace, run

EXPECTED_ROW = {
    "id": make_id("t1"),
    "question": "What is 1?",
    "answer": "It is 1.",
    "seconds": 0.5,
    "input_tokens": 120,
    "output_tokens": 30,
    "cost": 0.002,
    "session": "s1",
    "user": "u1",
    "model": "gpt-5",
    "started": "2026-03-01T12:00:10Z",
}


@pytest.fixture(params=["new", "old"])
def server(request: pytest.FixtureRequest) -> Iterator[LangSmithServer]:
    running = LangSmithServer(is_old=request.param == "old", page=4)
    yield running
    running.close()


def open_source(**settings: Any) -> LangSmithSource:
    return LangSmithSource(LangSmithSourceNode(**settings), Context("langsmith"))


def read(**settings: Any) -> list[Trace]:
    source = open_source(**settings)
    try:
        return list(source.read())
    finally:
        source.close()


def check_row(trace: Trace) -> None:
    row = trace.to_row()
    if "session" not in row:
        row["session"] = row["metadata"].get("thread_id")
    assert {key: row.get(key) for key in EXPECTED_ROW} == EXPECTED_ROW
    contexts = [(one["id"], one["text"], one["score"]) for one in row["contexts"]]
    assert contexts == [("d1", "about 1", 0.9), ("d0", "elsewhere", 0.5)]
    assert row["metadata"]["tags"] == ["blue"]


def test_runs_become_questions_with_answers_documents_and_costs(server: LangSmithServer) -> None:
    server.add(*rag_trace(1), *rag_trace(2))
    traces = read(url=server.url, project="support")
    assert [trace.id for trace in traces] == [make_id("t2"), make_id("t1")]
    check_row(traces[1])
    link = {"tool": "langsmith", "trace_id": make_id("t1"), "project": "support", "session_id": PROJECT}
    assert link.items() <= traces[1].link.to_dict().items()


def test_feedback_on_any_run_belongs_to_its_trace(server: LangSmithServer) -> None:
    rows = rag_trace(1)
    rows[0]["feedback_stats"] = rows[1]["feedback_stats"] = {"thumbs": {"n": 1, "avg": 1.0}}
    server.add(*rows)
    said = [
        feedback("f1", "t1", "thumbs", score=1, comment="good", feedback_source={"type": "app", "user_id": "u"}),
        feedback("f2", "t1", "tone", value="kind", feedback_source={"type": "model"}),
        {**feedback("f3", "r1", "found", score=True), "trace_id": None},
    ]
    server.feedback = {one["id"]: one for one in said}
    (trace,) = read(url=server.url, project="support")
    told = {one.name: (one.value, one.label, one.comment, one.source) for one in trace.feedback}
    assert told == {
        "thumbs": (1.0, None, "good", "annotator"),
        "tone": (None, "kind", None, "program"),
        "found": (1.0, None, None, "unknown"),
    }


def test_examples_are_questions_with_gold_answers_in_their_order(server: LangSmithServer) -> None:
    server.datasets["golden"] = [
        {"id": make_id(f"e{n}"), "inputs": {"question": f"q{n}"}, "outputs": {"answer": f"a{n}"}, "metadata": {"n": n}}
        for n in range(5)
    ]
    server.datasets["golden"].append({"id": make_id("e9"), "inputs": {"a": 1, "b": 2}})
    source = open_source(url=server.url, dataset="golden")
    traces = list(source.read())
    assert [(trace.question, trace.references) for trace in traces] == [(f"q{n}", (f"a{n}",)) for n in range(5)]
    assert traces[3].id == make_id("e3")
    assert "1 trace without a question" in source.remarks()[0]
    source.close()


def test_runs_and_examples_in_files(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rag_trace(1)))
    check_row(read(path=str(tmp_path / "runs.jsonl"))[0])
    examples = [{"inputs": {"question": f"q{n}"}, "outputs": {"answer": f"a{n}"}} for n in range(12)]
    (tmp_path / "examples.json").write_text(json.dumps(examples))
    with (tmp_path / "examples.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["input_question", "output_answer"])
        writer.writerows((f"q{n}", f"a{n}") for n in range(12))
    for name in ("examples.json", "examples.csv"):
        found = [(trace.question, trace.references) for trace in read(path=str(tmp_path / name))]
        assert found == [(f"q{n}", (f"a{n}",)) for n in range(12)]


def test_a_failed_run_says_why_it_has_no_answer(server: LangSmithServer) -> None:
    server.add(run("t1", "t1", "chain", 1, inputs={"question": "Why?"}, error="timeout", status="error"))
    (trace,) = read(url=server.url, project="support")
    assert (trace.answer, trace.error) == (None, "timeout")


@pytest.mark.parametrize("settings", [{}, {"project": "a", "dataset": "b"}, {"project": "a", "path": "b"}])
def test_one_thing_is_read_at_a_time(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="name one of these: `project` or `dataset` or `path`"):
        LangSmithSourceNode(**settings)


def test_a_wrong_key_is_masked(server: LangSmithServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_wrong_but_secret")
    with pytest.raises(RagevalError, match=r"answered 401 .*Invalid token \*\*\*") as caught:
        read(url=server.url, project="support")
    assert "wrong_but_secret" not in str(caught.value)


def test_a_run_without_an_id_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text('{"run_type": "chain", "inputs": {}}\n')
    with pytest.raises(RagevalError, match=r"runs\.jsonl:1: there is no 'id' in this run"):
        read(path=str(tmp_path / "runs.jsonl"))


@given(
    question=st.text(min_size=1).filter(lambda text: text.strip()),
    answer=st.text(min_size=1),
    documents=st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique_by=lambda pair: pair[0], max_size=4),
    tokens=st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)),
    cost=st.floats(0, 1e6).map(lambda number: round(number, 6)),
)
def test_what_both_sides_know_arrives_unchanged(
    question: str, answer: str, documents: list[tuple[str, str]], tokens: tuple[int, int], cost: float
) -> None:
    found = [{"page_content": text, "metadata": {"id": doc_id}} for doc_id, text in documents]
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_cost": cost}
    trace = make_trace(
        [
            run("t", "t", "chain", 1, inputs={"question": question}, outputs={"answer": answer}),
            run("r", "t", "retriever", 2, outputs={"documents": found}),
            run("m", "t", "llm", 3, **usage),
        ],
        RecordedPaths(),
        "support",
    )
    assert trace is not None
    assert (trace.question, trace.answer) == (question, answer)
    assert [(one.doc_id, one.text) for one in trace.documents or ()] == documents
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (*tokens, cost)
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


def test_a_trace_without_its_first_run_is_none() -> None:
    rows = rag_trace(1)
    source = LangSmithSource(LangSmithSourceNode(path="runs.jsonl"), Context("langsmith"))
    assert not source.is_cut(rows)
    assert source.is_cut(rows[1:])
    assert make_trace(rows[1:], RecordedPaths(), None) is None


def test_a_run_names_the_revision_of_its_application() -> None:
    root = run("t", "t", "chain", 1, inputs={"q": "Why?"}, extra={"metadata": {"revision_id": "51f7a9b-dirty"}})
    trace = make_trace([root], RecordedPaths(), None)
    assert trace is not None and trace.version == "51f7a9b-dirty"


def test_a_root_that_adds_up_is_counted_once() -> None:
    root = run("t", "t", "chain", 1, inputs={"q": "Why?"}, prompt_tokens=10, completion_tokens=5, total_cost=0.5)
    trace = make_trace([root], RecordedPaths(), None)
    assert trace is not None
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (10, 5, 0.5)


@pytest.mark.parametrize(("end", "expected"), [("length", "length"), ("stop", None)])
def test_the_end_of_the_last_model_is_the_answer_s(end: str, expected: str | None) -> None:
    root = run("t", "t", "chain", 1, inputs={"q": "Why?"}, outputs={"answer": "So."})
    said = {"choices": [{"finish_reason": end, "message": {"role": "assistant", "content": "So."}}]}
    trace = make_trace([root, run("m", "t", "llm", 2, outputs=said)], RecordedPaths(), None)
    assert trace is not None and trace.finish_reason == expected


def test_examples_of_every_form() -> None:
    for row in (
        {"id": "e", "inputs": {"question": "Why?"}, "outputs": {"answer": "So."}},
        {"id": "e", "inputs": '{"question": "Why?"}', "outputs": '{"answer": "So."}'},
        {"id": "e", "input_question": "Why?", "output_answer": "So."},
        {"id": "e", "inputs.question": "Why?", "outputs.answer": "So."},
    ):
        trace = read_example(row, RecordedPaths(), "golden")
        assert trace is not None
        assert (trace.id, trace.question, trace.references) == ("e", "Why?", ("So.",))


def test_an_example_without_an_id_gets_one_that_stays() -> None:
    first, second = (read_example({"inputs": {"q": "Why?"}}, RecordedPaths(), "golden") for _ in range(2))
    assert first is not None
    assert first == second
    assert first.id != make_id("x")


@given(st.lists(st.dictionaries(st.sampled_from([*rag_trace(1)[0]]), JSON), max_size=3))
def test_no_types_break_the_reading(changes: list[dict[str, Any]]) -> None:
    rows = rag_trace(1)
    for row, change in zip(rows, changes, strict=False):
        row |= {key: value for key, value in change.items() if key not in ("id", "trace_id")}
    trace = make_trace(rows, RecordedPaths(), None)
    if trace is not None:
        json.dumps(trace.to_row(), allow_nan=False)
