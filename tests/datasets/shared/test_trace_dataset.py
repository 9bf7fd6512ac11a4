"""Datasets whose questions are the traces of a tool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.data.traces import Feedback, Trace, TraceLink
from rageval_spec.plugin import Context
from tests.exchange.tool import ToySource
from tests.systems.shared.test_trace_system import ToyDataset, ToyDatasetNode


def open_dataset(folder: Path, traces: list[Trace], monkeypatch: pytest.MonkeyPatch) -> ToyDataset:
    monkeypatch.setattr(ToySource, "traces", traces)
    return ToyDataset(ToyDatasetNode(use="toy"), Context("prod", folder))


def test_questions_references_judgements_and_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Trace(
        TraceLink("toy", "t1"), "Why?", references=("So.",), relevant=("d1", "d1"), session="s",
        metadata={"lang": "en"},
        feedback=(Feedback("thumbs", 1.0), Feedback("note", comment="good"), Feedback("thumbs", 0.0)),
    )  # fmt: skip
    collection = open_dataset(tmp_path, [first, Trace(TraceLink("toy", "t2"), "How?"), first], monkeypatch).open()
    assert collection.queries is not None and collection.references is not None and collection.qrels is not None
    assert collection.queries.rows() == [("t1", "Why?"), ("t2", "How?")]
    assert collection.references["references"].to_list() == [["So."], []]
    assert collection.qrels.rows() == [("t1", "d1", 1)]
    assert collection.columns is not None
    assert json.loads(collection.columns["columns"][0]) == {
        "lang": "en", "session": "s", "feedback.thumbs": 0.5, "feedback.note": "good",
    }  # fmt: skip


def test_traces_without_gold_answers_have_no_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = open_dataset(tmp_path, [Trace(TraceLink("toy", "t2"), "How?")], monkeypatch).open()
    assert (collection.references, collection.qrels) == (None, None)


def test_the_texts_that_hold_the_gold_answer_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [
        Trace(TraceLink("toy", "t1"), "Why?", reference_contexts=("So it is.",)),
        Trace(TraceLink("toy", "t2"), "How?"),
    ]
    found = open_dataset(tmp_path, asked, monkeypatch).open().references
    assert found is not None
    assert found["reference_contexts"].to_list() == [["So it is."], None]
