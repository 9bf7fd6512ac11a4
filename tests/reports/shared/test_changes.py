"""Values of a baseline beside those of an evaluation."""

from __future__ import annotations

from rageval_spec.reports.shared.changes import find_base_values, match_systems
from tests.answered_evaluation import answered, value


def test_systems_are_matched_by_name() -> None:
    assert match_systems(["a", "b"], ["b", "c"]) == {"b": "b"}


def test_two_single_systems_are_compared_whatever_their_names() -> None:
    assert match_systems(["v2"], ["v1"]) == {"v2": "v1"}
    assert match_systems(["v2", "v3"], ["v1", "v0"]) == {}


def test_the_first_system_with_a_metric_is_the_baseline_of_the_others() -> None:
    rows = [value("q", "ndcg@10", 0.1, "bm25"), value("q", "ndcg@10", 0.2, "v1"), value("q", "token_f1", 0.3, "v1"),
            value("q", "token_f1", 0.4, "v2")]  # fmt: skip
    table = find_base_values(answered(rows), None)
    assert sorted(table.select("system", "metric", "base").rows()) == [("v1", "ndcg@10", 0.1), ("v2", "token_f1", 0.3)]


def test_values_that_are_not_scored_are_no_baseline() -> None:
    now, before = answered([value("q", "token_f1", 0.1, "v2")]), answered([value("q", "token_f1", None, "v1")])
    assert find_base_values(now, before).height == 0
    assert find_base_values(before, now).rows() == [("golden", "v1", "token_f1", "q", 0.1)]
