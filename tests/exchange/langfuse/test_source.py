from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.trace import Trace
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.langfuse.source import LangfuseSource, LangfuseSourceNode
from rageval_spec.plugin import Context
from tests.exchange.langfuse.server import SECRET, LangfuseServer, observation, rag_trace, score
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
        (Answer({"rows": []}), "the reply has no 'data' and 'meta'"),
        (Answer({"data": {}, "meta": {}}), "the reply has no 'data' and 'meta'"),
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
