from __future__ import annotations

from collections.abc import Iterator

import pytest

from rageval_spec.datasets.langfuse import LangfuseDataset, LangfuseDatasetNode
from rageval_spec.plugin import Context
from tests.exchange.langfuse.server import LangfuseServer, set_keys


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangfuseServer]:
    set_keys(monkeypatch)
    running = LangfuseServer()
    yield running
    running.close()


def test_a_dataset_gives_questions_gold_answers_and_relevant_documents(server: LangfuseServer) -> None:
    server.items["golden"] = [
        {"id": "i1", "input": {"question": "Why?"}, "expectedOutput": "So.", "metadata": {"relevant_doc_ids": ["d1"]}},
        {"id": "i2", "input": "How?", "expectedOutput": None, "metadata": None},
    ]
    collection = LangfuseDataset(
        LangfuseDatasetNode(use="langfuse", url=server.url, dataset="golden"), Context("gold")
    ).open()
    assert collection.queries is not None
    assert collection.queries.rows() == [("i1", "Why?"), ("i2", "How?")]
    assert collection.references is not None
    assert collection.references["references"].to_list() == [["So."], []]
    assert collection.qrels is not None
    assert collection.qrels.rows() == [("i1", "d1", 1)]
