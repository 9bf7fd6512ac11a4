"""Holds for every metric that asks a judge or can do so: documentation, names, keys."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from rageval_spec import registry
from rageval_spec.data.evidence.citations import Citation
from rageval_spec.data.findings import Questions
from rageval_spec.metrics.shared.judged_metrics import JudgedMetric, JudgeMetricNode
from rageval_spec.plugin import MetricInfo
from tests.metrics.judges import RuleJudge, TableModel, metric, sample

WORDS = [word for word in registry.words("metrics") if issubclass(registry.load("metrics", word), JudgedMetric)]
REQUIRED: dict[str, dict[str, Any]] = {"rubric": {"criteria": "Is it polite?"}, "verified_f1": {"cutoff": 5}}
PAIRED = {"noise_robustness", "information_integration"}
FULL = sample(
    question="a",
    answer="a|b",
    contexts=("a", "b"),
    context_ids=("x", "y"),
    reference="a|c",
    reference_contexts=("a",),
    relevant={"x": 1},
    answerable=True,
    group="g",
    condition="clean",
    columns={"nuggets": ["a", "b"]},
    citations=(Citation(0, 3, "1", None, 0),),
    steps=(),
)


def judged(word: str) -> Any:
    """The metric with a judge that has every ability."""
    return metric(word, RuleJudge(), TableModel({}), **keys_of(word))


def keys_of(word: str) -> dict[str, Any]:
    """The keys that the metric requires, or needs in order to ask a judge."""
    return {"by": "judge"} if word in PAIRED else REQUIRED.get(word, {})


def test_every_answer_metric_is_registered() -> None:
    assert {*WORDS} >= {
        "answer_correctness", "answer_relevancy", "answerability", "completeness", "conciseness",
        "context_entity_recall", "context_precision", "context_recall", "context_relevance", "factual_correctness",
        "faithfulness", "information_integration", "noise_robustness", "noise_sensitivity", "rubric",
    }  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_documentation_is_complete(word: str) -> None:
    metric = registry.load("metrics", word)
    info: MetricInfo = metric.info
    cases = metric.list_edge_cases()
    assert info.summary.endswith(".")
    assert info.formula.startswith(f"{word} = ")
    assert all(": " in case for case in cases)
    assert any(case.startswith("failure: ") for case in cases)
    assert re.search(r"\b20\d\d\b", info.source)
    for name, field in registry.load("metrics", word).node_type.model_fields.items():
        assert field.description, name


@pytest.mark.parametrize("word", WORDS)
def test_a_block_with_only_use_is_named_after_its_word(word: str) -> None:
    built = judged(word)
    assert built.check() is None
    assert built.name.partition("@")[0] == word or word in PAIRED
    assert built.name.startswith(word)
    assert len(built.judges()) == 1


@pytest.mark.parametrize("word", WORDS)
def test_a_required_judge_is_required_in_the_schema(word: str) -> None:
    node = registry.load("metrics", word).node_type
    assert ("judge" in node.model_json_schema()["required"]) is issubclass(node, JudgeMetricNode)


@pytest.mark.parametrize("word", WORDS)
def test_estimating_calls_no_judge(word: str) -> None:
    built = judged(word)
    assert not any(FULL.lacks(part) for part in built.needs)
    built.estimate([FULL])
    assert built.judge.asked == []


@pytest.mark.parametrize("word", WORDS)
def test_no_samples_give_no_values(word: str) -> None:
    built = judged(word)
    assert list(built.compute([]).measurements) == []
    assert built.judge.asked == []


@pytest.mark.parametrize("word", WORDS)
def test_only_declared_criteria_are_asked(word: str) -> None:
    judge = RuleJudge(questions={"a|b": Questions(("q?",), noncommittal=False)})
    built = metric(word, judge, TableModel({text: [1.0] for text in ("a", "a|b", "a|c", "q?")}), **keys_of(word))
    other = replace(FULL, query_id="q2", condition={"noise_robustness": "noisy"}.get(word, "without"))
    first = replace(FULL, condition="all") if word == "information_integration" else FULL
    built.compute([first, other])
    assert judge.asked
    assert all(criterion in built.criteria() for criterion in judge.criteria)
