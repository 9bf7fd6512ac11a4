"""The judges of a spec are asked about samples that are already there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.execution.sample_judging import expect_calls, find_asked, open_parts
from rageval_spec.progress import ProgressDisplay
from rageval_spec.spec import load
from tests.models.chat_endpoint import ChatServer
from tests.tiny import write_spec

SAMPLES = [Sample(f"q{n}", "Is it red?", answer=f"It is red {n}.", contexts=("It is red.",)) for n in range(3)]
METRICS: list[Any] = [
    {"use": "faithfulness", "judge": "strict"},
    {"use": "factual_correctness", "judge": "words"},
    "token_f1",
]


def write(folder: Path, server: ChatServer) -> Path:
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red", "contexts": ["red"]}\n')
    return write_spec(
        folder,
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        models={"gpt": {"use": "chat", "base_url": server.url, "model": "m", "retries": 0}},
        judges={"strict": {"use": "binary", "model": "gpt"}, "words": {"use": "overlap"}},
        metrics=METRICS,
    )


@pytest.fixture
def server() -> Any:
    running = ChatServer()
    yield running
    running.close()


def test_calls_are_counted_before_they_are_made_and_replies_are_kept(tmp_path: Path, server: ChatServer) -> None:
    spec = load(write(tmp_path, server))
    for calls, made in ((3, 3), (0, 3)):
        with ProgressDisplay(quiet=True) as display, open_parts(spec, tmp_path / "store", display) as parts:
            asked = find_asked(parts, "faithfulness")
            expected = expect_calls(parts, [asked.judge], asked.criterion, SAMPLES)
            assert sum(one.calls for one in expected) == calls
            assert len(asked.judge.assess(asked.criterion, SAMPLES).findings) == 3
            assert len(server.calls) == made


def test_without_a_store_everything_is_asked_again(tmp_path: Path, server: ChatServer) -> None:
    spec = load(write(tmp_path, server))
    for made in (3, 6):
        with ProgressDisplay(quiet=True) as display, open_parts(spec, None, display) as parts:
            asked = find_asked(parts, "faithfulness")
            asked.judge.assess(asked.criterion, SAMPLES)
            assert len(server.calls) == made


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("token_f1", "the spec has no metric 'token_f1' with a judge; it has faithfulness or factual_correctness"),
        ("x", "the spec has no metric 'x' with a judge"),
        ("factual_correctness", "factual_correctness asks its judge 2 questions; name a metric that asks one"),
    ],
)
def test_a_metric_without_one_question_is_explained(
    tmp_path: Path, server: ChatServer, metric: str, message: str
) -> None:
    spec = load(write(tmp_path, server))
    quiet, wrong = ProgressDisplay(quiet=True), pytest.raises(UsageError, match=message)
    with quiet as display, open_parts(spec, None, display) as parts, wrong:
        find_asked(parts, metric)
