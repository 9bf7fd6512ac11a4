from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.data.samples import Sample
from tests.metrics.comparing import answer_metric, measure


def test_seconds_are_the_value() -> None:
    first, second = measure("latency", [Sample("q1", "?", seconds=1.25), Sample("q2", "?", answer="yes")])
    assert (first.value, first.status) == (1.25, "scored")
    assert (second.value, second.status, second.reason) == (
        None,
        "unscorable",
        "the system does not report how long it took",
    )


def test_a_percentile_is_in_the_name_and_the_statistic() -> None:
    assert (answer_metric("latency").name, answer_metric("latency").statistic) == ("latency", "mean")
    metric = answer_metric("latency", percentile=95)
    assert (metric.name, metric.statistic) == ("latency@p95", "p95")
    assert metric.higher_is_better is False


@pytest.mark.parametrize("percentile", [0, 100, 99.5, "p95"])
def test_percentiles_are_whole_numbers_from_1_to_99(percentile: object) -> None:
    with pytest.raises(ValidationError, match="percentile"):
        answer_metric("latency", percentile=percentile)


def test_answers_and_references_are_not_needed_and_failed_samples_are_left_out() -> None:
    assert answer_metric("latency").needs == frozenset()
    assert not answer_metric("latency").counts_failures
