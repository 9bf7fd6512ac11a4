"""The legends of reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.data.evaluation import Aggregate, Comparison, Interval
from rageval_spec.reports.shared.legend import describe_legend, significance_mark
from tests.sample_evaluation import make_evaluation


def test_the_legend_says_what_a_percentile_is() -> None:
    cells = [
        Aggregate("golden", "rag", "ndcg@10", 0.5, Interval(0.4, 0.6, 0.9), 100, 100),
        Aggregate("golden", "rag", "slow", 1.5, Interval(1, 2, 0.9, "order-statistics"), 100, 100, "p95"),
        Aggregate("golden", "rag", "latency@p99", 1.5, None, 100, 100, "p99"),
        Aggregate("other", "rag", "latency@p50", 1.5, None, 1, 1, "p50"),
    ]
    evaluation = replace(make_evaluation(systems=("rag",)), aggregates=tuple(cells), comparisons=())
    assert describe_legend(evaluation, "golden") == [
        ("[ ]", "90% bootstrap interval"),
        ("p95", "slow: 95% of the queries have a value below this one, shown with its 90% order-statistics interval"),
        ("p99", "latency@p99: 99% of the queries have a value below this one; too few queries for an interval"),
    ]
    evaluation = replace(evaluation, aggregates=(cells[1],), units={"cost": "US dollars", "slow": "seconds"})
    assert ("unit", "cost in US dollars; slow in seconds") in describe_legend(evaluation, "golden")
    evaluation = replace(evaluation, units={})
    assert [sign for sign, _ in describe_legend(evaluation, "golden")] == ["p95"]


def test_marks_against_the_baseline_of_a_gate_are_explained() -> None:
    gated = Comparison("golden", "map", "rag", "main", -0.2, None, 0.01, 0.01, 50, 30, 20)
    evaluation = replace(make_evaluation(systems=("rag",)), comparisons=(), baselines=(gated,))
    legend = dict(describe_legend(evaluation, "golden"))
    assert legend["▲ ▼"].startswith("significantly higher or lower than main (paired permutation test")
    both = replace(make_evaluation(systems=("bm25", "dense")), baselines=(gated,))
    assert "than bm25 or main (" in dict(describe_legend(both, "golden"))["▲ ▼"]
    sliced = replace(evaluation, baselines=(replace(gated, slice="hard"),))
    assert "▲ ▼" not in dict(describe_legend(sliced, "golden"))


@pytest.mark.parametrize(
    ("difference", "p_adjusted", "mark"), [(0.1, 0.01, "▲"), (-0.1, 0.049, "▼"), (0.1, 0.05, ""), (-0.1, 1.0, "")]
)
def test_a_mark_shows_the_direction_of_a_significant_difference(
    difference: float, p_adjusted: float, mark: str
) -> None:
    comparison = Comparison("golden", "map", "dense", "bm25", difference, None, 0.01, p_adjusted, 50, 30, 20)
    assert significance_mark(comparison) == mark
    assert significance_mark(None) == ""
