"""Values of a baseline beside those of an evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rageval_spec.data.base_values import collect_base_values
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.reports.shared.changes import Baseline, find_base_values, list_baselines, match_systems
from tests.answered_evaluation import answered, value


def changes(evaluation: Evaluation, baseline: Baseline | None = None) -> list[tuple[Any, ...]]:
    """System, metric, query id, base value and the name of the baseline."""
    return sorted(find_base_values(evaluation, baseline).drop("dataset").rows())


def gated(gates: list[dict[str, Any]]) -> Evaluation:
    """Three systems, of which an earlier evaluation, `main`, has two."""
    rows = [value("q", "ndcg@10", number, system) for system, number in (("v1", 0.1), ("v2", 0.2), ("v3", 0.3))]
    before = answered([value("q", "ndcg@10", 0.7, "v1"), value("q", "ndcg@10", 0.8, "v2")])
    now = answered(rows, spec={"gates": gates})
    return replace(now, load_base_values=lambda: collect_base_values(now.values, {"main": before.values}))


def test_systems_are_matched_by_name() -> None:
    assert match_systems(["a", "b"], ["b", "c"]) == {"b": "b"}


def test_two_single_systems_are_compared_whatever_their_names() -> None:
    assert match_systems(["v2"], ["v1"]) == {"v2": "v1"}
    assert match_systems(["v2", "v3"], ["v1", "v0"]) == {}


def test_the_first_system_with_a_metric_is_the_baseline_of_the_others() -> None:
    rows = [value("q", "ndcg@10", 0.1, "bm25"), value("q", "ndcg@10", 0.2, "v1"), value("q", "token_f1", 0.3, "v1"),
            value("q", "token_f1", 0.4, "v2")]  # fmt: skip
    assert changes(answered(rows)) == [("v1", "ndcg@10", "q", 0.1, "bm25"), ("v2", "token_f1", "q", 0.3, "v1")]


def test_values_that_are_not_scored_are_no_baseline() -> None:
    now, before = answered([value("q", "token_f1", 0.1, "v2")]), answered([value("q", "token_f1", None, "v1")])
    assert changes(now, Baseline("main", before)) == []
    assert changes(before, Baseline("main", now)) == [("v1", "token_f1", "q", 0.1, "main")]


def test_a_baseline_of_a_gate_goes_before_the_first_system() -> None:
    now = gated([{"metric": "ndcg@10", "baseline": "main"}])
    assert list_baselines(now) == ["main"]
    assert changes(now) == [("v1", "ndcg@10", "q", 0.7, "main"), ("v2", "ndcg@10", "q", 0.8, "main"),
                            ("v3", "ndcg@10", "q", 0.1, "v1")]  # fmt: skip


def test_the_baseline_of_the_gate_on_a_metric_goes_before_those_of_other_metrics() -> None:
    gates = [{"metric": "token_f1", "baseline": "main"}, {"metric": "ndcg@10", "baseline": "v2"}]
    assert changes(gated(gates)) == [("v1", "ndcg@10", "q", 0.2, "v2"), ("v2", "ndcg@10", "q", 0.8, "main"),
                                     ("v3", "ndcg@10", "q", 0.2, "v2")]  # fmt: skip


def test_a_baseline_can_be_named() -> None:
    now = gated([{"metric": "ndcg@10", "baseline": "main"}])
    assert [row[3:] for row in changes(now, Baseline("main"))] == [(0.7, "main"), (0.8, "main")]
    assert [row[3:] for row in changes(now, Baseline("v3"))] == [(0.3, "v3"), (0.3, "v3")]


def test_a_baseline_without_values_is_not_one() -> None:
    now = gated([{"metric": "ndcg@10", "baseline": "gone"}, {"metric": "ndcg@10", "min": 0.5}])
    assert list_baselines(now) == ["main"]
