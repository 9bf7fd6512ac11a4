from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.plugin import ChatModel, Context, EmbeddingModel
from tests.metrics.judges import RuleJudge, TableModel


def test_relative_paths_start_at_the_specs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    context = Context("golden", Path("/specs"))
    assert context.resolve("data/a.csv") == Path("/specs/data/a.csv")
    assert context.resolve("/data/a.csv") == Path("/data/a.csv")
    assert context.resolve("~/a.csv") == tmp_path / "a.csv"


def test_a_model_is_found_by_its_name_and_kind() -> None:
    model = TableModel({})
    context = Context("near", models={"minilm": model})
    assert context.model("minilm", EmbeddingModel) is model  # type: ignore[type-abstract]
    assert context.explain_model("minilm", EmbeddingModel, "gives no embeddings") is None
    assert context.explain_model("absent", EmbeddingModel, "gives no embeddings") is None  # the spec's reader says so


def test_a_missing_model_and_one_of_another_kind_are_reported() -> None:
    context = Context("near", models={"minilm": TableModel({})})
    with pytest.raises(UsageError, match="near: there is no model 'small'; declare it under 'models:'"):
        context.model("small", EmbeddingModel)  # type: ignore[type-abstract]
    with pytest.raises(UsageError, match=r"near: the model 'minilm' \(use: .*\) is not a chat model; name one with"):
        context.model("minilm", ChatModel)  # type: ignore[type-abstract]
    fault = context.explain_model("minilm", ChatModel, "writes no replies")
    assert fault is not None and fault.startswith("the model 'minilm' (use: ") and fault.endswith("writes no replies")


def test_a_judge_is_found_by_its_name() -> None:
    judge = RuleJudge("strict")
    context = Context("metric", judges={"strict": judge})
    assert context.judge("strict") is judge
    with pytest.raises(UsageError, match="metric: there is no judge 'mild'; declare it under 'judges:'"):
        context.judge("mild")


def test_without_a_store_nothing_is_kept() -> None:
    answers = Context("m").answers
    answers.keep("model", {b"question": b"answer"})
    assert answers.find("model", [b"question"]) == {}
