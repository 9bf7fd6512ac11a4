from __future__ import annotations

import pytest

from rageval_spec.datasets.langsmith import LangSmithDataset, LangSmithDatasetNode
from rageval_spec.plugin import Context
from tests.exchange.langsmith.server import LangSmithServer, make_id, set_keys


def test_examples_are_questions_with_gold_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    server = LangSmithServer()
    server.datasets["golden"] = [
        {"id": make_id("e1"), "inputs": {"question": "Why?"}, "outputs": {"answer": "So.", "relevant_doc_ids": ["d1"]}}
    ]
    collection = LangSmithDataset(
        LangSmithDatasetNode(use="langsmith", url=server.url, dataset="golden"), Context("gold")
    ).open()
    assert collection.queries is not None
    assert collection.queries.rows() == [(make_id("e1"), "Why?")]
    assert collection.references is not None
    assert collection.references["references"].to_list() == [["So."]]
    assert collection.qrels is not None
    assert collection.qrels.rows() == [(make_id("e1"), "d1", 1)]
    server.close()
