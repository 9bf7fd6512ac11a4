from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import TraceLink
from rageval_spec.datasets.langfuse import LangfuseDataset as Questions
from rageval_spec.datasets.langfuse import LangfuseDatasetNode as QuestionsNode
from rageval_spec.plugin import Context
from rageval_spec.systems.langfuse import LangfuseSystem, LangfuseSystemNode
from tests.exchange.langfuse.server import LangfuseServer, rag_trace, set_keys


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangfuseServer]:
    set_keys(monkeypatch)
    running = LangfuseServer()
    running.observations = [*rag_trace(1), *rag_trace(2)]
    yield running
    running.close()


def test_answers_come_with_their_contexts_and_their_trace(server: LangfuseServer, tmp_path: Path) -> None:
    context = Context("prod", tmp_path)
    settings: dict[str, Any] = {"use": "langfuse", "url": server.url, "since": "2026-01-01"}
    collection = Questions(QuestionsNode(**settings), context).open()
    answers = LangfuseSystem(LangfuseSystemNode(**settings), context).answer(collection).answers
    row = answers.sort("query_id").row(0, named=True)
    assert {key: row[key] for key in ("query_id", "answer", "contexts", "context_ids", "input_tokens", "cost")} == {
        "query_id": "t1",
        "answer": "It is 1.",
        "contexts": ["about 1", "elsewhere"],
        "context_ids": ["d1", "d0"],
        "input_tokens": 120,
        "cost": 0.002,
    }
    assert TraceLink.load(row["trace"]) == TraceLink(
        "langfuse", "t1", project="p1", others={"started": "2026-03-01T12:00:10Z", "environment": "production"}
    )


def test_a_dataset_has_no_answers() -> None:
    with pytest.raises(ValueError, match="a dataset of Langfuse has no answers; write it under 'datasets:'"):
        LangfuseSystemNode(use="langfuse", dataset="golden")
