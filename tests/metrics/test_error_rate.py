from __future__ import annotations

from rageval_spec.data.samples import Sample
from tests.metrics.comparing import answer_metric, measure


def test_failures_are_counted() -> None:
    samples = [Sample("q1", "?", error="timed out"), Sample("q2", "?", answer=""), Sample("q3", "?", contexts=())]
    assert [m.value for m in measure("error_rate", samples)] == [1.0, 0.0, 0.0]


def test_failed_samples_are_included() -> None:
    metric = answer_metric("error_rate")
    assert metric.counts_failures
    assert metric.needs == frozenset()
    assert metric.higher_is_better is False
    assert metric.name == "error_rate"
