"""A spec that reads from and writes to the tool."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import invoke
from tests.exchange.blocks import list_answers, list_gold, open_dataset
from tests.exchange.langsmith.server import KEY, LangSmithServer, make_id, rag_trace

SPEC = """\
version: 1
name: weekly
datasets:
  prod: {{use: langsmith, url: "{url}", project: support}}
systems:
  bot: {{use: langsmith, url: "{url}", project: support}}
metrics: [latency@p50]
reports: [terminal, {{use: langsmith, url: "{url}"}}]
"""


def test_answers_come_with_their_contexts_and_their_run(server: LangSmithServer, tmp_path: Path) -> None:
    server.add(*rag_trace(1), *rag_trace(2))
    row = list_answers(tmp_path, use="langsmith", url=server.url, project="support")[make_id("t1")]
    assert (row["answer"], row["contexts"], row["context_ids"]) == ("It is 1.", ["about 1", "elsewhere"], ["d1", "d0"])


def test_examples_are_questions_with_gold_answers(server: LangSmithServer, tmp_path: Path) -> None:
    server.datasets["golden"] = [
        {"id": make_id("e1"), "inputs": {"question": "Why?"}, "outputs": {"answer": "So.", "relevant_doc_ids": ["d1"]}}
    ]
    collection = open_dataset(tmp_path, use="langsmith", url=server.url, dataset="golden")
    assert list_gold(collection) == [(make_id("e1"), "Why?", ["So."])]
    assert collection.qrels is not None and collection.qrels.rows() == [(make_id("e1"), "d1", 1)]


def test_values_of_production_answers_go_back_to_their_runs(server: LangSmithServer, tmp_path: Path) -> None:
    server.add(*rag_trace(1), *rag_trace(2))
    (tmp_path / "spec.yaml").write_text(SPEC.format(url=server.url))
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert f"langsmith: sent 2 feedback rows to {server.url}" in done.output
    assert {one["run_id"] for one in server.feedback.values()} == {make_id("t1"), make_id("t2")}
    again = invoke("export", "langsmith", tmp_path / "results", "--url", server.url)
    assert again.output == f"sent nothing to {server.url}; 2 values had been sent before\n"
    assert KEY not in done.output + again.output
