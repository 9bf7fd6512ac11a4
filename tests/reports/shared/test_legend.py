"""What signs in reports stand for."""

from __future__ import annotations

from dataclasses import replace

from rageval_spec.data.evaluation import Aggregate, Interval
from rageval_spec.reports.shared.legend import describe_legend
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
        ("p95", "slow: the value below which 95% of the queries are, with its 90% interval of order statistics"),
        ("p99", "latency@p99: the value below which 99% of the queries are; too few queries for its interval"),
    ]
    evaluation = replace(evaluation, aggregates=(cells[1],), units={"cost": "US dollars", "slow": "seconds"})
    assert ("unit", "cost in US dollars; slow in seconds") in describe_legend(evaluation, "golden")
    evaluation = replace(evaluation, units={})
    assert [sign for sign, _ in describe_legend(evaluation, "golden")] == ["p95"]
