"""A spec that reads from and writes to the tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.data.traces import TraceLink
from rageval_spec.history.saved_evaluations import load_record
from tests.command_line import invoke
from tests.exchange.blocks import list_gold, open_dataset, render_report
from tests.exchange.phoenix.sending import make_traces
from tests.exchange.phoenix.server import PhoenixServer
from tests.exchange.traced_evaluation import evaluate

SPEC = """
version: 1
datasets: {prod: {use: phoenix, project: support, limit: 5}}
systems: {bot: {use: phoenix, project: support, limit: 5}}
metrics: [is_json, latency@p50]
reports: [{use: phoenix}]
"""


def run(folder: Path, spec: str = SPEC) -> str:
    """What `run` prints; the results are in the folder `results`."""
    (folder / "spec.yaml").write_text(spec)
    return invoke("run", folder / "spec.yaml", "-o", folder / "results").output


def test_traces_are_evaluated_and_their_values_written_back(phoenix: PhoenixServer, tmp_path: Path) -> None:
    output = run(tmp_path)
    assert "phoenix: sent 10 span annotations to http://127.0.0.1" in output
    evaluation = load_record(tmp_path / "results").evaluation
    assert sorted(evaluation.samples["question"].to_list()) == [f"Question {number}?" for number in range(1, 6)]
    link = TraceLink.load(evaluation.samples["trace"][0])
    assert link is not None
    assert link.project == "support"
    values = {key[1]: one["result"]["score"] for key, one in phoenix.annotations.items() if key[3] == "is_json"}
    assert values == {f"{number:014x}01": 0.0 for number in range(1, 6)}


@pytest.mark.parametrize("word", ["arize", "arize_phoenix"])
def test_other_names_are_understood(word: str, tmp_path: Path) -> None:
    assert "did you mean 'phoenix'" in run(tmp_path, SPEC.replace("use: phoenix", f"use: {word}"))


def test_the_examples_of_a_dataset_are_its_questions(phoenix: PhoenixServer, tmp_path: Path) -> None:
    phoenix.examples = [{"id": "e1", "node_id": "N1", "input": {"question": "Why?"}, "output": {"answer": "So."}}]
    collection = open_dataset(tmp_path, use="phoenix", dataset="golden")
    assert list_gold(collection) == [("e1", "Why?", ["So."])]


def test_the_report_says_what_it_wrote_and_writes_nothing_twice(phoenix: PhoenixServer, tmp_path: Path) -> None:
    evaluation = evaluate(make_traces(2))
    first, second = (render_report(evaluation, tmp_path, use="phoenix") for _ in range(2))
    assert first == f"phoenix: sent 2 document annotations and 4 span annotations to {phoenix.url}\n"
    assert "sent nothing" in second
    assert len(phoenix.annotations) == 6
