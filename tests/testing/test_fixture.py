from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.api.finished_evaluation import FinishedEvaluation
from rageval_spec.errors import UsageError
from rageval_spec.testing.fixture import Rageval
from tests.answered_evaluation import answered, save, value
from tests.sample_evaluation import make_evaluation
from tests.tiny import write_spec

RAGEVAL = Rageval()


def evaluate(number: float, metric: str = "faithfulness", count: int = 20) -> FinishedEvaluation:
    """One system with almost the same value for each question."""
    from rageval_spec.data.evaluation import Aggregate

    values = [value(f"q{index}", metric, number + index / 10_000) for index in range(count)]
    mean = sum(one["value"] for one in values) / count
    return FinishedEvaluation(
        answered(values, aggregates=(Aggregate("golden", "v1", metric, mean, None, count, count),))
    )


def complaint(*arguments: FinishedEvaluation | str | Path, **options: object) -> str:
    with pytest.raises(AssertionError) as caught:
        RAGEVAL.assert_no_regression(*arguments, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_significant_drop_is_a_regression() -> None:
    assert complaint(evaluate(0.5), evaluate(0.7)) == (
        "faithfulness of v1 on golden fell from 0.701 (the baseline) to 0.501, Holm-adjusted p < 0.0001 on 20 questions"
    )
    RAGEVAL.assert_no_regression(evaluate(0.7), evaluate(0.5))


def test_where_low_values_are_good_a_rise_is_a_regression() -> None:
    assert "latency of v1 on golden rose from" in complaint(evaluate(3.0, "latency"), evaluate(2.0, "latency"))
    RAGEVAL.assert_no_regression(evaluate(2.0, "latency"), evaluate(3.0, "latency"))


def test_a_drop_that_is_not_significant_counts_only_beyond_max_drop() -> None:
    later, earlier = evaluate(0.5, count=3), evaluate(0.7, count=3)
    with pytest.warns(UserWarning, match=r"is unresolvable: 3 pairs cannot show a difference \(p < 0.05\)"):
        RAGEVAL.assert_no_regression(later, earlier)
    RAGEVAL.assert_no_regression(later, earlier, max_drop=0.3)
    assert "fell from 0.700" in complaint(later, earlier, max_drop=0.1)


def test_the_baseline_can_be_a_folder(tmp_path: Path) -> None:
    folder = save(evaluate(0.7).data, tmp_path / "main")
    assert f"({folder})" in complaint(evaluate(0.5), folder)


def test_only_the_named_metrics_are_compared() -> None:
    RAGEVAL.assert_no_regression(evaluate(0.7), evaluate(0.5), metrics="faithfulness")
    with pytest.raises(UsageError, match="did you mean 'faithfulness'"):
        RAGEVAL.assert_no_regression(evaluate(0.5), evaluate(0.7), metrics=["faithfullness"])


def test_an_evaluation_that_failed_does_not_pass() -> None:
    broken = FinishedEvaluation(replace(make_evaluation(), gates=(), failures=("v1: out of memory",)))
    with pytest.raises(AssertionError, match="v1: out of memory"):
        RAGEVAL.assert_passes(broken)


def test_run_takes_the_arguments_of_the_function(tmp_path: Path) -> None:
    evaluation = RAGEVAL.run(write_spec(tmp_path), limit=1, store=None)
    assert evaluation.data.aggregates[0].total == 1
    RAGEVAL.assert_passes(evaluation)


def test_both_numbers_are_of_the_questions_that_were_compared() -> None:
    later, earlier = evaluate(0.5, count=20), evaluate(0.7, count=400)
    assert "fell from 0.701 (the baseline) to 0.501" in complaint(later, earlier)


def test_a_drop_of_exactly_max_drop_is_no_regression() -> None:
    RAGEVAL.assert_no_regression(evaluate(0.5, count=3), evaluate(0.7, count=3), max_drop=0.2)
