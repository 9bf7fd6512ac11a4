from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.data.traces import TraceLink
from rageval_spec.history.saved_evaluations import load_record
from tests.command_line import invoke
from tests.exchange.phoenix.conftest import phoenix as phoenix
from tests.exchange.phoenix.server import PhoenixServer

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
    done = invoke("run", folder / "spec.yaml", "-o", folder / "results")
    return done.output


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


def test_a_dataset_has_no_answers(phoenix: PhoenixServer, tmp_path: Path) -> None:
    output = run(
        tmp_path,
        SPEC.replace("bot: {use: phoenix, project: support, limit: 5}", "bot: {use: phoenix, dataset: golden}"),
    )
    assert "a dataset of Arize Phoenix has no answers" in output


@pytest.mark.parametrize("word", ["arize", "arize_phoenix"])
def test_other_names_are_understood(word: str, tmp_path: Path) -> None:
    assert "did you mean 'phoenix'" in run(tmp_path, SPEC.replace("use: phoenix", f"use: {word}"))
