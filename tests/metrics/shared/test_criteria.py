from __future__ import annotations

from rageval_spec.metrics.shared.criteria import ANSWER_IN_CONTEXTS
from tests.metrics.judges import RuleJudge, metric


def test_metrics_that_ask_the_same_use_the_same_criterion() -> None:
    judge = RuleJudge()
    recall = metric("factual_correctness", judge, mode="recall")
    assert recall.criteria() == metric("completeness", judge).criteria()
    assert metric("answer_correctness", judge).criteria() == metric("factual_correctness", judge).criteria()
    assert ANSWER_IN_CONTEXTS in metric("noise_sensitivity", judge).criteria()
