"""Systems and datasets whose questions and answers are traces of a tool, and the report that sends values back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.trace import Trace, TraceLink
from rageval_spec.datasets.shared.traces import TraceDataset
from rageval_spec.exchange.shared.source import WindowNode
from rageval_spec.plugin import Context, DatasetNode, GeneratingNode
from rageval_spec.systems.shared.traces import TraceSystem
from tests.exchange.tool import TRACES, ToySource


class ToySystemNode(GeneratingNode, WindowNode):
    """Traces of a toy."""


class ToyDatasetNode(DatasetNode, WindowNode):
    """Questions of a toy."""


class ToySystem(TraceSystem[ToySystemNode]):
    node_type = ToySystemNode
    source_type = ToySource


class ToyDataset(TraceDataset[ToyDatasetNode]):
    node_type = ToyDatasetNode
    source_type = ToySource


def build(folder: Path) -> tuple[ToyDataset, ToySystem]:
    context = Context("prod", folder)
    return ToyDataset(ToyDatasetNode(use="toy"), context), ToySystem(ToySystemNode(use="toy"), context)


def test_the_same_traces_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "reads", 0)
    dataset, system = build(tmp_path)
    collection = dataset.open()
    answers = system.answer(collection).answers
    assert answers["query_id"].to_list() == [f"t{number}:s{number}" for number in range(5)]
    assert answers.row(0, named=True)["answer"] == "It is 0."
    assert answers.row(0, named=True)["scores"] == [0.5]
    assert TraceLink.load(answers["trace"][2]) == TRACES[2].link
    assert ToySource.reads == 1


def test_of_several_traces_of_a_question_the_newest_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(number: int, started: str) -> Trace:
        return Trace(TraceLink("toy", f"t{number}"), "What is 1?", answer=f"answer {number}", started=started)

    monkeypatch.setattr(ToySource, "traces", [ask(1, "2026-01-02T00:00:00Z"), ask(2, "2026-01-01T00:00:00Z")])
    _, system = build(tmp_path)
    answering = system.answer(_collection("q1", "What is 1?"))
    assert answering.answers.select("query_id", "answer").rows() == [("q1", "answer 1")]
    assert [note.message for note in answering.notes] == ["1 older trace of the same questions left out"]


def _collection(query_id: str, text: str) -> Any:
    import polars as pl

    from rageval_spec.data.tables import Collection

    return Collection("golden", load_queries=lambda: pl.DataFrame({"query_id": [query_id], "text": [text]}))
