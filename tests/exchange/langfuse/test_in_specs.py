"""A spec that reads from and writes to the tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.data.traces import TraceLink
from tests.command_line import invoke
from tests.exchange.blocks import list_answers, list_gold, open_dataset
from tests.exchange.langfuse.server import SECRET, LangfuseServer, rag_trace

SPEC = """\
version: 1
name: weekly
datasets:
  prod: {{use: langfuse, url: "{url}", since: "2026-01-01"}}
systems:
  bot: {{use: langfuse, url: "{url}", since: "2026-01-01", secret_key: "${{secret:KEY}}"}}
metrics: [latency@p50, is_json]
reports: [terminal, {{use: langfuse, url: "{url}"}}]
"""


@pytest.fixture
def traced(server: LangfuseServer, monkeypatch: pytest.MonkeyPatch) -> LangfuseServer:
    """The server with two traces."""
    monkeypatch.setenv("KEY", SECRET)
    server.observations = [*rag_trace(1), *rag_trace(2)]
    return server


def test_answers_come_with_their_contexts_and_their_trace(traced: LangfuseServer, tmp_path: Path) -> None:
    row = list_answers(tmp_path, use="langfuse", url=traced.url, since="2026-01-01")["t1"]
    assert {key: row[key] for key in ("answer", "contexts", "context_ids", "input_tokens", "cost")} == {
        "answer": "It is 1.",
        "contexts": ["about 1", "elsewhere"],
        "context_ids": ["d1", "d0"],
        "input_tokens": 120,
        "cost": 0.002,
    }
    assert TraceLink.load(row["trace"]) == TraceLink(
        "langfuse", "t1", project="p1", others={"started": "2026-03-01T12:00:10Z", "environment": "production"}
    )


def test_a_dataset_gives_questions_gold_answers_and_relevant_documents(server: LangfuseServer, tmp_path: Path) -> None:
    server.items["golden"] = [
        {"id": "i1", "input": {"question": "Why?"}, "expectedOutput": "So.", "metadata": {"relevant_doc_ids": ["d1"]}},
        {"id": "i2", "input": "How?", "expectedOutput": None, "metadata": None},
    ]
    collection = open_dataset(tmp_path, use="langfuse", url=server.url, dataset="golden")
    assert list_gold(collection) == [("i1", "Why?", ["So."]), ("i2", "How?", [])]
    assert collection.qrels is not None and collection.qrels.rows() == [("i1", "d1", 1)]


def test_values_of_production_answers_go_back_to_their_traces(traced: LangfuseServer, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.format(url=traced.url))
    done = invoke("run", spec, "-o", tmp_path / "results")
    assert f"langfuse: sent 4 scores to {traced.url}" in done.output
    told = {(one["subject"]["id"], one["name"]): one["value"] for one in traced.scores.values()}
    assert told == {
        ("t1", "latency@p50"): 0.5, ("t2", "latency@p50"): 0.5, ("t1", "is_json"): 0.0, ("t2", "is_json"): 0.0,
    }  # fmt: skip
    again = invoke("export", "langfuse", tmp_path / "results", "--url", traced.url)
    assert again.output == f"sent nothing to {traced.url}; 4 values had been sent before\n"
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()
    assert SECRET not in done.output + again.output


def test_what_is_imported_can_be_evaluated_and_exported(traced: LangfuseServer, tmp_path: Path) -> None:
    traces = tmp_path / "traces.jsonl"
    done = invoke("import", "langfuse", "--url", traced.url, "-o", traces)
    assert "wrote 2 questions with 2 answers" in done.output
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "version: 1\nname: weekly\ndatasets: {prod: {use: jsonl, path: traces.jsonl}}\n"
        "systems: {bot: {use: file, path: traces.jsonl}}\nmetrics: [is_json]\n"
    )
    assert invoke("run", spec, "-o", tmp_path / "results").exit_code in (0, 1)
    dry = invoke("export", "langfuse", tmp_path / "results", "--url", traced.url, "--dry-run")
    assert "is_json 0.00 -> trace t2" in dry.output
    assert not traced.scores
    invoke("export", "langfuse", tmp_path / "results", "--url", traced.url)
    assert len(traced.scores) == 2
