from __future__ import annotations

import pytest

from rageval_spec.data.findings import Claim, Finding
from tests.metrics.judges import RuleJudge, measure, metric, sample, value_of


def test_hand_worked() -> None:
    one = sample(question="height|Eiffel", contexts=("height|330", "wine", "Eiffel|1889", "bread"))
    assert value_of(metric("context_relevance", RuleJudge()), one) == 0.5


def test_scores_are_averaged() -> None:
    judge = RuleJudge(say=lambda _: Finding(0.45, (Claim("x", 0.2), Claim("y", 0.7))))
    one = sample(contexts=("x", "", "y"))
    (found,) = measure(metric("context_relevance", judge), one)
    assert found.value == pytest.approx((0.2 + 0 + 0.7) / 3)
    assert found.details is not None
    assert [context["score"] for context in found.details["contexts"]] == [0.2, 0.0, 0.7]


def test_a_judge_that_only_grades_grades_all_contexts_together() -> None:
    judge = RuleJudge(abilities=frozenset({"grade"}), say=lambda _: Finding(0.75, reason="mostly"))
    (found,) = measure(metric("context_relevance", judge), sample(contexts=("x", "y")))
    assert (found.value, found.reason) == (0.75, "mostly")
    assert judge.criteria[0].kind == "grade"
    assert judge.criteria[0].shown == ("question", "contexts")


def test_edges() -> None:
    found = measure(
        metric("context_relevance", RuleJudge()),
        sample(contexts=()),
        sample(question="a", contexts=("broken",)),
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (0.0, "scored", "there are no contexts, or only empty ones"),
        (None, "error", "the reply is no JSON"),
    ]
