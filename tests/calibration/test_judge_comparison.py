"""Which of several judges is better, and when that is not known.

What a judge costs, as far as the results say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rageval_spec.calibration.judge_quality import (
    ComparedJudge,
    JudgeComparison,
    JudgeDifference,
    Spending,
    compare_judges,
    find_spending,
    list_chat_models,
)
from rageval_spec.calibration.labelled_items import Item, Joined
from rageval_spec.data.evaluation import Evaluation, JudgingCost
from rageval_spec.history.metric_definitions import read_recorded_spec
from tests.answered_evaluation import answered, value
from tests.history.recorded import evaluate
from tests.sample_evaluation import alter


def simulate(rows: int, skills: dict[str, float], seed: int = 1, answers: int = 1) -> list[ComparedJudge]:
    """Judges that know the truth with a probability, and guess otherwise."""
    random = np.random.default_rng(seed)
    truth = (random.random(rows) < 0.5).astype(np.float64)
    items: list[Item] = [("golden", "v1", f"q{row // answers}", row) for row in range(rows)]
    found = []
    for name, skill in skills.items():
        knows = random.random(rows) < skill
        values = np.where(knows, 0.2 + 0.6 * truth, random.random(rows))
        found.append(
            ComparedJudge(Joined(name, tuple(items), tuple(values.tolist()), tuple(truth.tolist()), (), {}), name)
        )
    return found


def compare(contenders: list[ComparedJudge]) -> JudgeComparison:
    found = compare_judges(contenders, resamples=400)
    assert found is not None
    return found


def find(found: JudgeComparison, first: str, second: str, measure: str = "auroc") -> JudgeDifference:
    return next(one for one in found.differences if (one.first, one.second, one.measure) == (first, second, measure))


def test_the_better_judge_is_found() -> None:
    found = compare(simulate(200, {"weak": 0.2, "strong": 0.9, "twin": 0.9}))
    assert found.items == 200
    auroc = find(found, "weak", "strong")
    assert auroc.better == "strong"
    assert auroc.interval is not None and auroc.interval.high < 0
    assert find(found, "weak", "strong", "kappa").better == "strong"
    error = find(found, "weak", "strong", "mae")
    assert error.difference > 0 and error.better == "strong"
    assert find(found, "strong", "twin").better is None
    rows = {row.metric: row.find("auroc") for row in found.rows}
    assert rows["weak"] is not None and rows["strong"] is not None
    assert rows["weak"].value is not None and rows["strong"].value is not None
    assert auroc.difference == pytest.approx(rows["weak"].value - rows["strong"].value)


def test_p_values_are_adjusted_for_all_pairs() -> None:
    pairs = [
        one for one in compare(simulate(120, {"a": 0.3, "b": 0.5, "c": 0.6})).differences if one.measure == "auroc"
    ]
    assert len(pairs) == 3
    smallest = min(pairs, key=lambda one: one.p_value)
    assert smallest.p_adjusted == pytest.approx(min(1.0, 3 * smallest.p_value))


def test_equal_judges_are_rarely_told_apart() -> None:
    told = 0
    for seed in range(60):
        one = simulate(80, {"a": 0.5, "b": 0.5}, seed)
        told += find(compare(one), "a", "b").better is not None
    assert told <= 8


def test_a_judge_differs_from_itself_in_nothing() -> None:
    (one,) = simulate(60, {"a": 0.5})
    found = compare([one, replace(one, joined=replace(one.joined, metric="b"))])
    assert {(one.difference, one.p_value, one.better) for one in found.differences} == {(0.0, 1.0, None)}


def test_only_items_that_all_judges_scored_count() -> None:
    first, second = simulate(60, {"a": 0.8, "b": 0.8})
    part = second.joined
    part = replace(part, items=part.items[20:], judged=part.judged[20:], labelled=part.labelled[20:])
    found = compare([first, replace(second, joined=part)])
    assert found.items == 40
    alone = replace(first.joined, items=first.joined.items[:20], judged=part.judged[:20], labelled=part.labelled[:20])
    assert compare_judges([replace(first, joined=alone), replace(second, joined=part)]) is None


def test_answers_to_one_question_are_drawn_together() -> None:
    apart = find(compare(simulate(120, {"a": 0.4, "b": 0.6}, 3)), "a", "b")
    together = find(compare(simulate(120, {"a": 0.4, "b": 0.6}, 3, answers=30)), "a", "b")
    assert apart.difference == together.difference
    assert apart.interval != together.interval


def test_labels_that_all_say_the_same_leave_the_errors() -> None:
    contenders = [
        replace(one, joined=replace(one.joined, labelled=(1.0,) * 30)) for one in simulate(30, {"a": 0.2, "b": 0.9})
    ]
    found = compare(contenders)
    assert {one.measure for one in found.differences} == {"mae"}
    assert [one.name for one in found.rows[0].measures] == ["mae", "bias"]


STRICT = {"use": "faithfulness", "judge": "strict"}
WORDS = {"use": "faithfulness", "judge": "words", "as": "cheap"}


def spend(metrics: dict[str, Any], judging: dict[str, JudgingCost], metric: str = "faithfulness") -> Spending:
    rows = [value(f"q{number}", metric, None if number == 4 else 0.5) for number in range(5)]
    evaluation: Evaluation = alter(evaluate(metrics), values=answered(rows).values, judging=judging)
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
