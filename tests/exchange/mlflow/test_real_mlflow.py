"""Against MLflow itself: traces, datasets and tables that its SDK logged are read, and values written and read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import TraceLink
from rageval_spec.endpoints.service import Service
from rageval_spec.errors import UsageError
from tests.exchange.mlflow.sending import AGGREGATES, send
from tests.exchange.mlflow.test_source import read
from tests.exchange.otel.rotel import free_port
from tests.exchange.peer_server import run_server
from tests.exchange.peers import run_peer
from tests.exchange.traced_evaluation import evaluate

REQUIREMENT = "mlflow==3.17.2"
COUNT = 9
SEED = """
import json, os, sys
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import mlflow
from mlflow.entities import AssessmentSource, Document
from mlflow.genai.datasets import create_dataset
url, count = json.loads(sys.argv[1]), json.loads(sys.argv[2])
mlflow.set_tracking_uri(url)
experiment = mlflow.set_experiment("support").experiment_id
for i in range(count):
    try:
        with mlflow.start_span("answer", span_type="CHAIN") as root:
            root.set_inputs({"question": f"Question {i}?"})
            whose = {"mlflow.trace.session": "s1", "mlflow.trace.user": "u1"}
            mlflow.update_current_trace(tags={"env": "prod"}, metadata=whose)
            with mlflow.start_span("retrieve", span_type="RETRIEVER") as span:
                span.set_inputs({"query": "q"})
                found = [Document(page_content=f"Text {k}.", id=f"d{k}", metadata={"page": k}) for k in range(2)]
                span.set_outputs(found)
            with mlflow.start_span("llm", span_type="CHAT_MODEL") as span:
                used = {"input_tokens": 100 + i, "output_tokens": 20, "total_tokens": 120 + i}
                span.set_attribute("mlflow.chat.tokenUsage", used)
                span.set_attribute("mlflow.llm.model", "gpt-4o-mini")
            if i == count - 1:
                raise TimeoutError("out of time")
            root.set_outputs({"answer": f"Answer {i}."})
    except TimeoutError:
        pass
    if i == 0:
        mlflow.flush_trace_async_logging()
        ann = AssessmentSource(source_type="HUMAN", source_id="ann")
        trace = mlflow.get_last_active_trace_id()
        mlflow.log_feedback(trace_id=trace, name="helpful", value=True, rationale="nice", source=ann)
        mlflow.log_expectation(trace_id=trace, name="expected_response", value="Gold 0.", source=ann)
mlflow.flush_trace_async_logging()
dataset = create_dataset(name="golden", experiment_id=[experiment])
golden = [({"question": f"Q{i}?"}, {"expected_response": f"Gold {i}."}) for i in range(3)]
dataset.merge_records([{"inputs": inputs, "expectations": expected} for inputs, expected in golden])
with mlflow.start_run() as run:
    mlflow.log_table({"inputs": ["Q?"], "outputs": ["A."], "score": [0.5]}, artifact_file="eval.json")
print(json.dumps(run.info.run_id))
"""
LOOK = """
import json, os, sys
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import mlflow
mlflow.set_tracking_uri(json.loads(sys.argv[1]))
mlflow.set_experiment("nightly")
runs = mlflow.search_runs(experiment_names=["nightly"], output_format="list")
tables = [mlflow.load_table("rageval_values.json", run_ids=[run.info.run_id]).to_dict("list") for run in runs]
pages = [mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/report.html") for run in runs]
support = mlflow.get_experiment_by_name("support").experiment_id
said = {}
for trace in mlflow.search_traces(experiment_ids=[support], return_type="list"):
    ours = [one for one in trace.info.assessments if one.source.source_id == "rageval-spec"]
    said[trace.info.trace_id] = [[one.name, one.value, one.rationale, one.source.source_type] for one in ours]
metrics, tags = [run.data.metrics for run in runs], [run.data.tags for run in runs]
print(json.dumps([metrics, tags, tables, pages, said], default=str))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL of an MLflow with the experiment `support`, and the id of a run with a table."""
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/m.db", "--artifacts-destination", str(folder / "artifacts")]
    settings = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with run_server("mlflow", REQUIREMENT, command, f"{url}/health", folder, settings):
        yield url, run_peer("mlflow", REQUIREMENT, SEED, url, COUNT)


def look(url: str) -> Any:
    """What MLflow's own SDK reads: metrics, tags, tables and reports of runs, and what was said of each trace."""
    return run_peer("mlflow", REQUIREMENT, LOOK, url)


def test_traces_are_read_as_they_were_logged(server: tuple[str, str]) -> None:
    url, _ = server
    traces = read(url=url)
    assert sorted(trace.question for trace in traces) == [f"Question {i}?" for i in range(COUNT)]
    first = next(trace for trace in traces if trace.question == "Question 0?")
    assert (first.answer, first.input_tokens, first.output_tokens, first.model) == ("Answer 0.", 100, 20, "gpt-4o-mini")
    assert [(one.doc_id, one.text, dict(one.metadata)) for one in first.documents or ()] == [
        ("d0", "Text 0.", {"page": 0}), ("d1", "Text 1.", {"page": 1}),
    ]  # fmt: skip
    assert (first.session, first.user, dict(first.metadata), first.references) == (
        "s1",
        "u1",
        {"env": "prod"},
        ("Gold 0.",),
    )
    assert [(one.name, one.value, one.comment, one.author) for one in first.feedback] == [
        ("helpful", 1.0, "nice", "ann")
    ]
    last = next(trace for trace in traces if trace.answer is None)
    assert "out of time" in str(last.error)
    assert len(read(url=url, limit=4)) == 4
    assert read(url=url, since="2100-01-01T00:00:00Z") == []


def test_datasets_and_tables_are_read(server: tuple[str, str]) -> None:
    url, run = server
    records = read(url=url, dataset="golden")
    assert sorted((one.question, one.references) for one in records) == [(f"Q{i}?", (f"Gold {i}.",)) for i in range(3)]
    (row,) = read(url=url, experiment=None, run=run, table="eval.json")
    assert (row.question, row.answer, dict(row.metadata)) == ("Q?", "A.", {"score": 0.5})


def test_what_is_not_there_is_named(server: tuple[str, str]) -> None:
    url, run = server
    with pytest.raises(UsageError, match="there is no experiment 'suport'; did you mean 'support'"):
        read(url=url, experiment="suport")
    with pytest.raises(UsageError, match="there is no dataset 'silver'; the datasets are golden"):
        read(url=url, dataset="silver")
    with pytest.raises(UsageError, match=r"has no file 'x\.json'; it has eval\.json"):
        read(url=url, experiment=None, run=run, table="x.json")
    with pytest.raises(UsageError, match="there is no run 'r0'"):
        read(url=url, experiment=None, run="r0", table="x.json")


def test_runs_and_assessments_are_stored_once(server: tuple[str, str], tmp_path: Path) -> None:
    url, _ = server
    (tmp_path / "report.html").write_text("<h1>Report</h1>")
    traces = read(url=url)
    seen = []
    for _ in range(2):
        receipt = send(evaluate(traces, aggregates=AGGREGATES), url=url, experiment="nightly", output=tmp_path)
        assert dict(receipt.sent) == {"run": 1, "file": 2, "assessment": 2 * COUNT}
        seen.append(look(url))
    assert seen[0] == seen[1]
    (metrics,), (tags,), (table,), pages, said = seen[0]
    assert (metrics["ndcg_at_10"], metrics["faithfulness/high"]) == (0.25, 0.75)
    assert tags["rageval_spec.metric.ndcg_at_10"] == "ndcg@10"
    assert (len(table["question"]), pages) == (COUNT, ["<h1>Report</h1>"])
    assert {len(one) for one in said.values()} == {2}
    judged = sorted(
        one[1] for found in said.values() for one in found if one[0] == "faithfulness" and one[1] is not None
    )
    assert len(judged) == COUNT - 1
    assert all(
        one[2].startswith("1 supported") for found in said.values() for one in found if one[3] == "LLM_JUDGE" and one[1]
    )
    assert read(url=url) == traces


def test_other_values_replace_those_before(server: tuple[str, str]) -> None:
    url, _ = server
    traces = read(url=url)
    for shift in (0.0, 0.5):
        send(evaluate(traces, shift), url=url, write="assessments")
    said = look(url)[4]
    values = [one[1] for found in said.values() for one in found if one[0] == "faithfulness" and one[1]]
    assert min(values) >= 0.5  # before, the lowest was below 0.5
    assert {len(one) for one in said.values()} == {2}


def test_traces_that_are_not_there_are_left_out(server: tuple[str, str]) -> None:
    url, _ = server
    (trace,) = read(url=url, limit=1)
    lost = replace(trace, link=TraceLink("mlflow", "tr-" + "0" * 32), query_id="lost")
    receipt = send(evaluate([lost, trace]), url=url, write="assessments")
    assert receipt.remarks == (f"2 assessments left out: 1 trace not in MLflow, such as tr-{'0' * 32}",)


def test_names_that_mlflow_refuses_are_never_sent(server: tuple[str, str]) -> None:
    url, _ = server
    hostile = ("a@b", "../x", "ndcg(gain=exp)@10", "a//b", ".", "x" * 300, "größe %", "a\nb")
    aggregates = [replace(AGGREGATES[1], metric=name) for name in hostile]
    traces = read(url=url, limit=1)
    send(evaluate(traces, aggregates=aggregates, metrics=hostile), url=url, write="runs", experiment="hostile")
    with Service(url, "test") as service:
        found = service.get("/api/2.0/mlflow/experiments/get-by-name", [("experiment_name", "hostile")])
        body = {"experiment_ids": [found["experiment"]["experiment_id"]]}
        (run,) = service.post("/api/2.0/mlflow/runs/search", body)["runs"]
    tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
    true_names = {value for key, value in tags.items() if key.startswith("rageval_spec.metric.")}
    assert true_names == set(hostile)
    assert len(run["data"]["metrics"]) == 2 * len(hostile)
