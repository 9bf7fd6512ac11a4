from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.datasets.braintrust import BraintrustDataset as Questions
from rageval_spec.datasets.braintrust import BraintrustDatasetNode as QuestionsNode
from rageval_spec.plugin import Context
from rageval_spec.systems.braintrust import BraintrustSystem, BraintrustSystemNode
from tests.exchange.braintrust.server import BraintrustServer, rag_trace, set_keys


def test_answers_come_with_their_contexts_and_their_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    server = BraintrustServer()
    server.add("project_logs", "support", *rag_trace(1), *rag_trace(2))
    context = Context("prod", tmp_path)
    settings: dict[str, Any] = {"use": "braintrust", "url": server.url, "project": "support"}
    collection = Questions(QuestionsNode(**settings), context).open()
    answers = BraintrustSystem(BraintrustSystemNode(**settings), context).answer(collection).answers
    row = next(row for row in answers.iter_rows(named=True) if row["query_id"] == "t1")
    assert (row["answer"], row["contexts"], row["context_ids"]) == ("It is 1.", ["about 1", "elsewhere"], ["d1", "d0"])
    server.close()


def test_a_dataset_has_no_answers() -> None:
    with pytest.raises(ValueError, match="a dataset of Braintrust has no answers; write it under 'datasets:'"):
        BraintrustSystemNode(use="braintrust", project="support", dataset="golden")
