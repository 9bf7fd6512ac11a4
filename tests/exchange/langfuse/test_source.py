""""""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.traces import Trace
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.exchange.langfuse.source import (
    LangfuseSource,
    LangfuseSourceNode,
    is_cut,
    make_trace,
    normalise,
    read_item,
)
from rageval_spec.plugin import Context
from rageval_spec.recorded.json_path import parse_path
from rageval_spec.recorded.questions_and_answers import RecordedPaths
from tests.exchange.langfuse.server import SECRET, LangfuseServer, observation, rag_trace, score
from tests.exchange.langfuse.test_connection import JSON
from tests.models.endpoint import Answer

EXPECTED_ROW = {
    "id": "t1",
    "question": "What is 1?",
    "answer": "It is 1.",
    "contexts": [
        {"id": "d1", "text": "about 1", "score": 0.9, "metadata": {"source": "d1"}},
        {"id": "d0", "text": "elsewhere", "score": 0.5, "metadata": {"source": "d0"}},
    ],
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
def server(request: pytest.FixtureRequest) -> Iterator[LangfuseServer]:
    running = LangfuseServer(is_old=request.param == "old", page=4)
    yield running
    running.close()


@pytest.fixture
def new_server() -> Iterator[LangfuseServer]:
    running = LangfuseServer()
    yield running
    running.close()


def open_source(**settings: Any) -> LangfuseSource:
    return LangfuseSource(LangfuseSourceNode(**settings), Context("langfuse"))


def read(**settings: Any) -> list[Trace]:
    source = open_source(**settings)
    try:
        return list(source.read())
    finally:
        source.close()


def test_a_trace_is_a_question_with_its_answer_documents_and_costs(server: LangfuseServer) -> None:
    server.observations = [*rag_trace(1), *rag_trace(2), *rag_trace(3)]
    traces = read(url=server.url)
    assert [trace.id for trace in traces] == ["t3", "t2", "t1"]
    row = traces[-1].to_row()
    assert {key: row.get(key) for key in EXPECTED_ROW} == EXPECTED_ROW
    where = {"tool": "langfuse", "trace_id": "t1", "project": "p1", "environment": "production"}
    assert row["trace"] == {**where, "started": "2026-03-01T12:00:10Z"}
    assert {"trace_name": "support", "release": "r7", "tags": ["blue"], "lang": "en"}.items() <= row["metadata"].items()
    assert tuple(step.kind for step in traces[-1].steps if step.kind != "other") == ("retrieval", "model")
    assert traces[-1].version == "r7"


def test_scores_become_feedback_of_their_trace(server: LangfuseServer) -> None:
    server.observations = rag_trace(1)
    given = [
        score(1, "t1", "thumbs", 1.0, comment="good", source="ANNOTATION"),
        score(2, "t1", "helpful", True, source="EVAL"),
        score(3, "t1", "tone", "friendly"),
        score(4, "gone", "thumbs", 0.0),
    ]
    server.scores = {one["id"]: one for one in given}
    source = open_source(url=server.url)
    (trace,) = source.read()
    told = {one.name: (one.value, one.label, one.comment, one.source) for one in trace.feedback}
    assert told == {
        "thumbs": (1.0, None, "good", "annotator"),
        "helpful": (1.0, None, None, "program"),
        "tone": (None, "friendly", None, "unknown"),
    }
    assert source.remarks() == ["1 score of no trace that was read left out"]
    source.close()


def test_a_corrected_answer_is_a_gold_answer(new_server: LangfuseServer) -> None:
    new_server.observations = rag_trace(1)
    new_server.scores = {"s1": score(1, "t1", "output", "It is one.", dataType="CORRECTION")}
    (trace,) = read(url=new_server.url)
    assert trace.references == ("It is one.",)
    assert not trace.feedback


def test_items_of_a_dataset_are_questions_with_gold_answers(server: LangfuseServer) -> None:
    about = {"datasetId": "d", "datasetName": "gold set", "mediaReferences": [], "createdAt": "", "updatedAt": ""}
    items = [
        {"id": f"i{n}", "status": "ACTIVE", "input": {"question": f"q{n}"}, "expectedOutput": f"a{n}", **about}
        for n in range(6)
    ]
    items[1] |= {"metadata": {"relevant_doc_ids": ["d1", "d2"], "category": "tax"}}
    items[2]["status"] = "ARCHIVED"
    server.items["gold set"] = items
    traces = read(url=server.url, dataset="gold set")
    assert [trace.id for trace in traces] == ["i0", "i1", "i3", "i4", "i5"]
    assert traces[0].references == ("a0",)
    assert traces[1].relevant == ("d1", "d2")
    assert traces[1].metadata["category"] == "tax"
    with pytest.raises(RagevalError, match="there is no dataset 'golden' in this project"):
        read(url=server.url, dataset="golden")


def test_only_the_window_and_at_most_the_limit_is_read(new_server: LangfuseServer) -> None:
    new_server.observations = [one for number in range(1, 5) for one in rag_trace(number)]
    within = read(url=new_server.url, since="2026-03-01T12:00:20Z", until="2026-03-01T12:00:40Z")
    assert [trace.id for trace in within] == ["t3", "t2"]
    assert [trace.id for trace in read(url=new_server.url, limit=1)] == ["t4"]


def test_the_steps_of_a_trace_count_although_they_began_after_the_window(new_server: LangfuseServer) -> None:
    new_server.observations = [*rag_trace(1), *rag_trace(2)]
    (trace,) = read(url=new_server.url, until="2026-03-01T12:00:10.500Z")
    assert (trace.id, trace.input_tokens) == ("t1", 120)


def test_the_rest_of_a_trace_that_began_before_the_window_is_no_trace(new_server: LangfuseServer) -> None:
    new_server.observations = [*rag_trace(1), *rag_trace(2)]
    source = open_source(url=new_server.url, since="2026-03-01T12:00:11Z")
    assert [trace.id for trace in source.read()] == ["t2"]
    assert source.remarks() == ["1 trace without a beginning in what was read left out; read from earlier on"]
    source.close()


def test_an_observation_that_comes_twice_counts_once(new_server: LangfuseServer) -> None:
    new_server.observations = [*rag_trace(1), *rag_trace(1)]
    (trace,) = read(url=new_server.url)
    assert trace.input_tokens == 120
    assert len(trace.documents or ()) == 2


def test_a_failed_trace_says_why_it_has_no_answer(new_server: LangfuseServer) -> None:
    root = observation(1, "t1", isRootObservation=True, input="Why?", level="ERROR", statusMessage="timeout")
    new_server.observations = [root]
    (trace,) = read(url=new_server.url)
    assert (trace.answer, trace.error) == (None, "timeout")


def test_traces_without_a_question_are_counted(new_server: LangfuseServer) -> None:
    new_server.observations = [*rag_trace(1), observation(50, "t5", isRootObservation=True, input='{"a": 1, "b": 2}')]
    source = open_source(url=new_server.url)
    assert len(list(source.read())) == 1
    assert "1 trace without a question in the input left out" in source.remarks()[0]
    source.close()
    assert [trace.question for trace in read(url=new_server.url, question="$.b")] == ["2"]


def write_files(folder: Path, form: str) -> None:
    """The observations and scores as Langfuse's blob storage export writes them."""
    names = {
        "traceId": "trace_id", "startTime": "start_time", "endTime": "end_time",
        "parentObservationId": "parent_observation_id",
        "usageDetails": "usage_details", "costDetails": "cost_details", "totalCost": "total_cost",
        "traceName": "trace_name",
        "model": "provided_model_name", "sessionId": "session_id", "userId": "user_id", "projectId": "project_id",
        "isRootObservation": "is_root_observation", "dataType": "data_type",
    }  # fmt: skip
    rows = [{names.get(key, key): value for key, value in row.items()} for n in (1, 2) for row in rag_trace(n)]
    scores: list[dict[str, Any]] = [
        {"id": "s1", "trace_id": "t1", "name": "thumbs", "value": 1.0, "data_type": "NUMERIC"}
    ]
    for name, part in (("observations", rows), ("scores", scores)):
        keys = list(dict.fromkeys(key for row in part for key in row))
        flat = [
            {key: json.dumps(row[key]) if isinstance(row.get(key), dict | list) else row.get(key) for key in keys}
            for row in part
        ]
        path = folder / name
        if form == "csv":
            with path.with_suffix(".csv").open("w", newline="") as stream:
                writer = csv.DictWriter(stream, keys)
                writer.writeheader()
                writer.writerows(flat)
        elif form == "parquet":
            frame = pl.DataFrame(flat, infer_schema_length=None)
            times = [name for name in ("start_time", "end_time") if name in keys]
            frame.with_columns(pl.col(name).str.to_datetime(time_zone="UTC") for name in times).write_parquet(
                path.with_suffix(".parquet")
            )
        elif form == "json":
            path.with_suffix(".json").write_text(json.dumps(part))
        else:
            lines = "".join(f"{json.dumps(row)}\n" for row in part)
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "parquet"])
def test_exported_files_hold_the_same_traces_as_the_api(tmp_path: Path, form: str) -> None:
    write_files(tmp_path, form)
    traces = read(path=str(tmp_path))
    assert [trace.id for trace in traces] == ["t2", "t1"]
    row = traces[1].to_row()
    assert {key: row.get(key) for key in EXPECTED_ROW} == EXPECTED_ROW
    assert [one.value for one in traces[1].feedback] == [1.0]
    assert [trace.id for trace in read(path=str(tmp_path), until="2026-03-01T12:00:15Z")] == ["t1"]


def test_a_row_without_an_id_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text(
        '{"id": "o1", "trace_id": "t1", "type": "SPAN"}\n{"trace_id": "t1", "type": "SPAN"}\n'
    )
    with pytest.raises(RagevalError, match=r"o\.jsonl:2: there is no 'id' in this row"):
        read(path=str(tmp_path))


def test_half_a_file_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text('{"id": "o1", "trace_id": "t1", "type": "SPAN"}\n{"id": "o2", "trace')
    with pytest.raises(RagevalError, match=r"o\.jsonl:2"):
        read(path=str(tmp_path / "o.jsonl"))


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Answer(b"<html>Sign in</html>", Content_Type="text/html"), "answered 200 with a web page"),
        (Answer({"message": f"no access for {SECRET}"}, 403), r"answered 403 .*no access for \*\*\*"),
        (Answer(b'{"data": [{"id": "o'), "something that is not JSON"),
        (Answer({"rows": []}), "the reply has no list 'data'; is url that of Langfuse"),
        (Answer({"data": {}, "meta": {}}), "the reply has no list 'data'; is url that of Langfuse"),
        (Answer({"data": [5], "meta": {}}), "page 1, row 1: this row is not an object"),
        (Answer({"data": [{"id": "o1"}], "meta": {"cursor": "again"}}), "gave the same rows twice"),
    ],
)
def test_a_reply_that_is_not_langfuses_is_an_error(new_server: LangfuseServer, reply: Answer, says: str) -> None:
    new_server.interrupt = lambda asked: reply
    with pytest.raises(RagevalError, match=says) as caught:
        read(url=new_server.url)
    assert SECRET not in str(caught.value)


def test_values_of_the_wrong_type_are_unknown_and_not_numbers(new_server: LangfuseServer) -> None:
    rows = rag_trace(1)
    rows[0] |= {"startTime": 5, "endTime": [], "latency": "soon", "sessionId": {"a": 1}, "tags": "x", "metadata": "y"}
    rows[2] |= {"usageDetails": "many", "costDetails": {"total": float("nan")}, "totalCost": -5, "model": []}
    new_server.observations = rows
    (trace,) = read(url=new_server.url)
    assert (trace.input_tokens, trace.session, trace.model, trace.seconds) == (None, None, None, None)
    json.dumps(trace.to_row(), allow_nan=False)


def test_a_wrong_key_is_masked(server: LangfuseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-wrong-but-secret")
    with pytest.raises(RagevalError, match=r"answered 401 .*Invalid credentials") as caught:
        read(url=server.url)
    assert "wrong-but-secret" not in str(caught.value)


def test_without_a_key_the_message_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGFUSE_PUBLIC_KEY")
    with pytest.raises(RagevalError, match="set the environment variable LANGFUSE_PUBLIC_KEY"):
        read()


def test_huge_texts_arrive_whole(new_server: LangfuseServer) -> None:
    new_server.observations = rag_trace(1, question="why? " * 100_000)
    (trace,) = read(url=new_server.url)
    assert len(trace.question) == 500_000


def make(*rows: dict[str, Any], places: RecordedPaths | None = None) -> Trace | None:
    return make_trace([normalise(row, "row") for row in rows], places or RecordedPaths())


@pytest.mark.parametrize(("end", "expected"), [("length", "length"), ("stop", None)])
def test_the_end_of_the_last_model_is_the_answer_s(end: str, expected: str | None) -> None:
    root = observation(1, "t", isRootObservation=True, input="Why?", output="So.")
    said = json.dumps({"role": "assistant", "content": "So.", "response_metadata": {"finish_reason": end}})
    trace = make(root, observation(2, "t", "GENERATION", parentObservationId="o1", output=said))
    assert trace is not None and trace.finish_reason == expected


@given(
    question=st.text(min_size=1).filter(lambda text: text.strip()),
    answer=st.text(),
    documents=st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique_by=lambda pair: pair[0], max_size=4),
    tokens=st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)),
    cost=st.floats(0, 1e6).map(lambda number: round(number, 6)),
)
def test_what_both_sides_know_arrives_unchanged(
    question: str, answer: str, documents: list[tuple[str, str]], tokens: tuple[int, int], cost: float
) -> None:
    retrieved = [{"id": doc_id, "text": text} for doc_id, text in documents]
    root = observation(1, "t", isRootObservation=True, input=json.dumps({"question": question}))
    root["output"] = json.dumps({"answer": answer})
    retriever = observation(2, "t", "RETRIEVER", parentObservationId="o1", output=json.dumps(retrieved))
    usage = {"usageDetails": {"input": tokens[0], "output": tokens[1]}, "totalCost": cost}
    trace = make(root, retriever, observation(3, "t", "GENERATION", parentObservationId="o1", **usage))
    assert trace is not None
    assert trace.question == question
    assert (trace.answer or "") == answer
    assert [(one.doc_id, one.text) for one in trace.documents or ()] == documents
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (*tokens, cost)
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


def test_chat_messages_give_the_last_question_and_the_conversation() -> None:
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Why?"},
    ]
    root = observation(1, "t", isRootObservation=True, input=json.dumps(said))
    root["output"] = json.dumps({"role": "assistant", "content": "So."})
    trace = make(root)
    assert trace is not None
    assert (trace.question, trace.answer, list(trace.messages)) == ("Why?", "So.", said)


def test_named_places_win() -> None:
    places = RecordedPaths(parse_path("$.a.b"), parse_path("$.out[0]"))
    rows = [
        observation(
            1, "t", isRootObservation=True, input='{"question": "no", "a": {"b": "yes"}}', output='{"out": ["x"]}'
        )
    ]
    trace = make(*rows, places=places)
    assert trace is not None
    assert (trace.question, trace.answer) == ("yes", "x")
    assert make(*rows, places=RecordedPaths(parse_path("$.c"))) is None


def test_a_part_of_a_trace_is_recognised() -> None:
    rows = [normalise(row, "row") for row in rag_trace(1)]
    assert not is_cut(rows)
    assert is_cut(rows[1:])
    assert not is_cut([*rows[1:], normalise({"id": "t1", "timestamp": "2026-03-01T12:00:00Z", "input": "q"}, "row")])


@given(st.lists(st.dictionaries(st.sampled_from([*rag_trace(1)[2], "input", "metadata", "scores"]), JSON), max_size=3))
def test_no_types_break_the_reading(changes: list[dict[str, Any]]) -> None:
    rows = rag_trace(1)
    for row, change in zip(rows, changes, strict=False):
        row |= {key: value for key, value in change.items() if key not in ("id", "traceId")}
    trace = make(*rows, score(1, "t1", "thumbs", 1.0))
    if trace is not None:
        json.dumps(trace.to_row(), allow_nan=False)


def read_items(**item: Any) -> Trace | None:
    return read_item({"id": "i1", "status": "ACTIVE", "input": "Why?", **item}, "golden", RecordedPaths(), "langfuse")


@pytest.mark.parametrize(
    ("expected", "references"),
    [
        ("So.", ("So.",)),
        ({"answer": "So."}, ("So.",)),
        ({"ground_truth": "So.", "answer": "old"}, ("So.",)),
        (["So.", "Thus."], ("So.", "Thus.")),
        ('{"text": "So."}', ("So.",)),
        (42, ("42",)),
        ({"steps": [1, 2]}, ('{"steps": [1, 2]}',)),
        (None, ()),
    ],
)
def test_expected_outputs_are_gold_answers(expected: Any, references: tuple[str, ...]) -> None:
    item = read_items(expectedOutput=expected)
    assert item is not None
    assert item.references == references


def test_an_item_names_relevant_documents_in_its_output_or_metadata() -> None:
    first, second = (
        read_items(expectedOutput={"answer": "a", "relevant_doc_ids": [1, "b"]}),
        read_items(metadata={"relevant": ["c"]}),
    )
    assert first is not None
    assert second is not None
    assert (first.relevant, second.relevant) == (("1", "b"), ("c",))


def test_archived_items_and_items_without_a_question_are_none() -> None:
    assert read_items(status="ARCHIVED") is None
    assert read_items(input=None) is None
    with pytest.raises(DataError, match="dataset 'golden': an item is not an object"):
        read_item("x", "golden", RecordedPaths(), "langfuse")


def nest(rows: list[dict[str, Any]], *scores: dict[str, Any]) -> dict[str, Any]:
    """A trace with its observations and scores inside, as `GET /traces/ID` gives it."""
    root = rows[0]
    told = {key: root[key] for key in ("input", "output", "metadata", "tags", "release", "sessionId", "userId")}
    return {
        "id": root["traceId"], "timestamp": root["startTime"], "name": "support", "environment": "production", **told,
        "projectId": "p1", "latency": 0.5, "observations": rows, "scores": [*scores],
    }  # fmt: skip


def tree(rows: list[dict[str, Any]], above: str | None = None) -> list[dict[str, Any]]:
    """The observations with those that are part of them inside, without the names of trace and parent."""
    dropped = ("traceId", "parentObservationId")
    return [
        {**{key: value for key, value in row.items() if key not in dropped}, "children": tree(rows, row["id"])}
        for row in rows
        if row["parentObservationId"] == above
    ]


@pytest.mark.parametrize("form", ["api", "page", "tree", "list", "data"])
def test_observations_and_scores_inside_a_trace_are_those_of_the_flat_rows(tmp_path: Path, form: str) -> None:
    rows = rag_trace(1)
    flat = make(*rows, score(1, "t1", "thumbs", 1.0))
    whole = nest(rows, {"id": "s1", "name": "thumbs", "value": 1.0, "dataType": "NUMERIC", "source": "API"})
    page = {"trace": {key: value for key, value in whole.items() if key != "observations"}, "observations": rows}
    content: Any = {"api": whole, "page": page, "list": [whole], "data": {"data": [whole], "meta": {"page": 1}}}.get(
        form
    )
    (tmp_path / "trace.json").write_text(json.dumps(content or {**whole, "observations": tree(rows)}))
    (found,) = read(path=str(tmp_path / "trace.json"))
    assert flat is not None
    row = found.to_row()
    assert {key: row.get(key) for key in EXPECTED_ROW} == EXPECTED_ROW
    assert (found.feedback, found.steps, found.documents) == (flat.feedback, flat.steps, flat.documents)


def test_a_score_of_an_observation_inside_is_named_after_it() -> None:
    rows = rag_trace(1)
    rows[1]["name"] = "retrieve"
    subjects = {"trace": {"kind": "trace", "id": "t1"}, "root": "o10", "retriever": "o11", "model": "o12"}
    scores = [
        score(number, "t1", "relevance", number / 10, subject=subject if isinstance(subject, dict) else
              {"kind": "observation", "id": subject, "traceId": "t1"})
        for number, subject in enumerate(subjects.values(), 1)
    ]  # fmt: skip
    trace = make(
        *rows, *scores, {**score(5, "t1", "old", 0.5), "subject": None, "traceId": "t1", "observationId": "o11"}
    )
    assert trace is not None
    said = [(one.name, one.value) for one in trace.feedback]
    assert said == [
        ("relevance", 0.1), ("relevance", 0.2), ("retrieve.relevance", 0.3), ("generation.relevance", 0.4),
        ("retrieve.old", 0.5),
    ]  # fmt: skip
    assert dict(trace.list_columns())["feedback.retrieve.relevance"] == 0.3


@pytest.mark.parametrize("kind", ["EVALUATOR", "GUARDRAIL", "TOOL", "RETRIEVER"])
def test_a_model_inside_an_evaluator_or_a_tool_answers_nobody(kind: str) -> None:
    root = observation(1, "t", isRootObservation=True, input="Why?")
    said = observation(2, "t", "GENERATION", parentObservationId="o1", input="[]", output="So.")
    aside = observation(3, "t", kind, parentObservationId="o1", input="x")
    inner = observation(4, "t", "GENERATION", parentObservationId="o3", input="[]", output="score: 5")
    trace = make(root, said, aside, observation(5, "t", "SPAN", parentObservationId="o3"), inner)
    assert trace is not None
    assert trace.answer == "So."


def test_spans_whose_names_say_that_they_retrieve_count_where_no_retriever_does() -> None:
    documents = json.dumps([{"id": "d1", "text": "a", "score": 0.5}])
    root = observation(1, "t", isRootObservation=True, input="Why?", output="So.", name="search_app")
    found = observation(2, "t", "SPAN", parentObservationId="o1", name="vector_search", output=documents)
    other = observation(3, "t", "SPAN", parentObservationId="o1", name="rank_users", output=documents)
    trace = make(root, found, other)
    assert trace is not None and [one.doc_id for one in trace.documents or ()] == ["d1"]
    retriever = observation(4, "t", "RETRIEVER", parentObservationId="o1", output=documents.replace("d1", "d2"))
    trace = make(root, found, other, retriever)
    assert trace is not None and [one.doc_id for one in trace.documents or ()] == ["d2"]


def test_a_model_call_inside_another_is_paid_once() -> None:
    usage = {"usageDetails": {"input": 10, "output": 5}, "totalCost": 0.5}
    root = observation(1, "t", isRootObservation=True, input="Why?", output="So.")
    outer = observation(2, "t", "GENERATION", parentObservationId="o1", **usage)
    inner = observation(3, "t", "GENERATION", parentObservationId="o2", **usage)
    again = observation(4, "t", "GENERATION", parentObservationId="o1", **usage)
    trace = make(root, outer, inner, again)
    assert trace is not None
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (20, 10, 1.0)
