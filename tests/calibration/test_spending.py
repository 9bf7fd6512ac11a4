"""What a judge costs, as far as the results say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.calibration.spending import Spending, find_spending, list_chat_models
from rageval_spec.data.evaluation import Evaluation, JudgingCost
from rageval_spec.history.recorded_spec import read_recorded_spec
from tests.answered_evaluation import answered, value
from tests.history.recorded import evaluate

STRICT = {"use": "faithfulness", "judge": "strict"}
WORDS = {"use": "faithfulness", "judge": "words", "as": "cheap"}


def spend(metrics: dict[str, Any], judging: dict[str, JudgingCost], metric: str = "faithfulness") -> Spending:
    rows = [value(f"q{number}", metric, None if number == 4 else 0.5) for number in range(5)]
    evaluation: Evaluation = replace(evaluate(metrics), values=answered(rows).values, judging=judging)
    recorded = read_recorded_spec(evaluation)
    assert recorded is not None
    return find_spending(evaluation, recorded, metric)


def test_cost_and_calls_for_each_scored_sample() -> None:
    found = spend({"faithfulness": STRICT}, {"gpt": JudgingCost(12, 100, 10, 0.02)})
    assert found.cost == pytest.approx(0.005)
    assert found.calls == pytest.approx(3.0)
    assert found.seconds is None


def test_a_judge_that_asks_no_chat_model_costs_nothing() -> None:
    both = {"faithfulness": STRICT, "cheap": WORDS}
    assert spend(both, {"gpt": JudgingCost(12, 100, 10, 0.02)}, "cheap") == Spending(0.0, 0.0)


def test_a_model_without_a_price_has_calls_only() -> None:
    assert spend({"faithfulness": STRICT}, {"gpt": JudgingCost(8, None, None, None)}) == Spending(None, 2.0)


def test_a_model_that_another_metric_asks_too_tells_nothing() -> None:
    both = {"faithfulness": STRICT, "relevance": {"use": "answer_relevancy", "judge": "strict"}}
    assert spend(both, {"gpt": JudgingCost(12, 100, 10, 0.02)}) == Spending()


def test_results_that_counted_no_calls_tell_nothing() -> None:
    assert spend({"faithfulness": STRICT}, {}) == Spending()


def test_chat_models_are_found_behind_other_judges() -> None:
    recorded = read_recorded_spec(evaluate({"faithfulness": {"use": "faithfulness", "judge": "fast"}}))
    assert recorded is not None
    assert [*list_chat_models(recorded, "faithfulness")] == ["gpt"]
