from __future__ import annotations

from pathlib import Path

from rageval_spec.datasets.mlflow import MlflowDataset, MlflowDatasetNode
from rageval_spec.plugin import Context
from tests.exchange.mlflow.conftest import mlflow as mlflow
from tests.exchange.mlflow.server import MlflowServer


def test_the_records_of_a_dataset_are_its_questions(mlflow: MlflowServer, tmp_path: Path) -> None:
    expected = {"expected_response": "So.", "expected_documents": ["d1", "d2"]}
    mlflow.records = [{"dataset_record_id": "dr-1", "inputs": {"question": "Why?"}, "expectations": expected}]
    node = MlflowDatasetNode(use="mlflow", experiment="support", dataset="golden")
    collection = MlflowDataset(node, Context("golden", tmp_path)).open()
    assert collection.queries is not None
    assert collection.references is not None
    assert collection.qrels is not None
    assert collection.queries.rows() == [("dr-1", "Why?")]
    assert collection.references["references"].to_list() == [["So."]]
    assert collection.qrels.rows() == [("dr-1", "d1", 1), ("dr-1", "d2", 1)]
