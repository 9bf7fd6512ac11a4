"""A spec that reads from and writes to the tool."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import invoke
from tests.exchange.blocks import list_answers, list_gold, open_dataset
from tests.exchange.braintrust.server import KEY, BraintrustServer, rag_trace

SPEC = """\
version: 1
name: weekly
datasets:
  prod: {{use: braintrust, url: "{url}", project: support}}
systems:
  bot: {{use: braintrust, url: "{url}", project: support}}
metrics: [is_json]
reports: [terminal, {{use: braintrust, url: "{url}"}}]
"""


def test_answers_come_with_their_contexts_and_their_row(server: BraintrustServer, tmp_path: Path) -> None:
    server.add("project_logs", "support", *rag_trace(1), *rag_trace(2))
    row = list_answers(tmp_path, use="braintrust", url=server.url, project="support")["t1"]
    assert (row["answer"], row["contexts"], row["context_ids"]) == ("It is 1.", ["about 1", "elsewhere"], ["d1", "d0"])


def test_rows_of_a_dataset_are_questions_with_gold_answers(server: BraintrustServer, tmp_path: Path) -> None:
    server.add("dataset", "golden", {"id": "e1", "input": "Why?", "expected": "So.", "metadata": {"relevant": ["d1"]}})
    collection = open_dataset(tmp_path, use="braintrust", url=server.url, project="support", dataset="golden")
    assert list_gold(collection) == [("e1", "Why?", ["So."])]
    assert collection.qrels is not None and collection.qrels.rows() == [("e1", "d1", 1)]


def test_values_of_logged_answers_go_back_to_their_rows(server: BraintrustServer, tmp_path: Path) -> None:
    identity = server.add("project_logs", "support", *rag_trace(1), *rag_trace(2))
    (tmp_path / "spec.yaml").write_text(SPEC.format(url=server.url))
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert f"braintrust: sent 2 rows to {server.url}" in done.output
    assert server.rows[identity]["t2"]["scores"] == {"Factuality": 0.75, "is_json": 0.0}
    again = invoke("export", "braintrust", tmp_path / "results", "--url", server.url)
    assert again.output == f"sent nothing to {server.url}; 2 values had been sent before\n"
    assert KEY not in done.output + again.output
