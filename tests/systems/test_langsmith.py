from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.datasets.langsmith import LangSmithDataset as Questions
from rageval_spec.datasets.langsmith import LangSmithDatasetNode as QuestionsNode
from rageval_spec.plugin import Context
from rageval_spec.systems.langsmith import LangSmithSystem, LangSmithSystemNode
from tests.exchange.langsmith.server import LangSmithServer, make_id, rag_trace, set_keys


def test_answers_come_with_their_contexts_and_their_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    server = LangSmithServer()
    server.add(*rag_trace(1), *rag_trace(2))
    context = Context("prod", tmp_path)
    settings: dict[str, Any] = {"use": "langsmith", "url": server.url, "project": "support"}
    collection = Questions(QuestionsNode(**settings), context).open()
    answers = LangSmithSystem(LangSmithSystemNode(**settings), context).answer(collection).answers
    row = next(row for row in answers.iter_rows(named=True) if row["query_id"] == make_id("t1"))
    assert (row["answer"], row["contexts"], row["context_ids"]) == ("It is 1.", ["about 1", "elsewhere"], ["d1", "d0"])
    server.close()


def test_a_dataset_has_no_answers() -> None:
    with pytest.raises(ValueError, match="a dataset of LangSmith has no answers; write it under 'datasets:'"):
        LangSmithSystemNode(use="langsmith", dataset="golden")
