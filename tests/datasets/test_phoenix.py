from __future__ import annotations

from pathlib import Path

from rageval_spec.datasets.phoenix import PhoenixDataset, PhoenixDatasetNode
from rageval_spec.plugin import Context
from tests.exchange.phoenix.conftest import phoenix as phoenix
from tests.exchange.phoenix.server import PhoenixServer


def test_the_examples_of_a_dataset_are_its_questions(phoenix: PhoenixServer, tmp_path: Path) -> None:
    phoenix.examples = [{"id": "e1", "node_id": "N1", "input": {"question": "Why?"}, "output": {"answer": "So."}}]
    collection = PhoenixDataset(PhoenixDatasetNode(use="phoenix", dataset="golden"), Context("golden", tmp_path)).open()
    assert collection.queries is not None
    assert collection.references is not None
    assert collection.queries.rows() == [("e1", "Why?")]
    assert collection.references["references"].to_list() == [["So."]]
