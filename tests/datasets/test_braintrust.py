from __future__ import annotations

import pytest

from rageval_spec.datasets.braintrust import BraintrustDataset, BraintrustDatasetNode
from rageval_spec.plugin import Context
from tests.exchange.braintrust.server import BraintrustServer, set_keys


def test_rows_of_a_dataset_are_questions_with_gold_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    server = BraintrustServer()
    server.add("dataset", "golden", {"id": "e1", "input": "Why?", "expected": "So.", "metadata": {"relevant": ["d1"]}})
    node = BraintrustDatasetNode(use="braintrust", url=server.url, project="support", dataset="golden")
    collection = BraintrustDataset(node, Context("gold")).open()
    assert collection.queries is not None
    assert collection.queries.rows() == [("e1", "Why?")]
    assert collection.references is not None
    assert collection.references["references"].to_list() == [["So."]]
    assert collection.qrels is not None
    assert collection.qrels.rows() == [("e1", "d1", 1)]
    server.close()
