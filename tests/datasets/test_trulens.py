from __future__ import annotations

from pathlib import Path

from rageval_spec.datasets.trulens import TrulensDataset, TrulensDatasetNode
from rageval_spec.plugin import Context
from tests.exchange.trulens.database import add_older, make_database


def test_ground_truths_are_questions(tmp_path: Path) -> None:
    add_older(make_database(tmp_path / "t.sqlite"))
    node = TrulensDatasetNode(use="trulens", path="t.sqlite", dataset="golden")
    collection = TrulensDataset(node, Context("golden", tmp_path)).open()
    assert collection.queries is not None
    assert collection.qrels is not None
    assert collection.queries.rows() == [("q1", "Why?")]
    assert collection.qrels.rows() == [("q1", "d1", 1)]
