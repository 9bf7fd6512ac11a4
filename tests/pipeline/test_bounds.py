"""Bounds on the evaluation's own numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.bands import make_scale
from rageval_spec.data.evaluation import Interval
from rageval_spec.pipeline.gates import check_gates
from rageval_spec.spec.nodes import GateNode
from tests.pipeline.gating import CERTAIN, METRICS, cell, check


@pytest.mark.parametrize(
    ("gate", "outcome", "reason"),
    [
        ({"min": 0.45}, "fail", "ndcg@10 of bm25 is 0.412, below the minimum 0.450"),
        ({"min": 0.4}, "pass", "ndcg@10 of bm25 is 0.412, at least the minimum 0.400"),
        ({"max": 0.4}, "fail", "ndcg@10 of bm25 is 0.412, above the maximum 0.400"),
        ({"max": 0.5}, "pass", "ndcg@10 of bm25 is 0.412, at most the maximum 0.500"),
        ({"min": 0.412}, "pass", "ndcg@10 of bm25 is 0.412, exactly the minimum 0.412"),
        ({"min": 0.4, "target": 0.5}, "warn", "ndcg@10 of bm25 is 0.412, below the target 0.500"),
        ({"min": 0.45, "target": 0.5}, "fail", "ndcg@10 of bm25 is 0.412, below the minimum 0.450"),
        (
            {"min": 0.4, "on": "lower"},
            "fail",
            "the lower end of the 95% interval of ndcg@10 of bm25 is 0.370, below the minimum 0.400",
        ),
        (
            {"max": 0.5, "on": "upper"},
            "pass",
            "the upper end of the 95% interval of ndcg@10 of bm25 is 0.450, at most the maximum 0.500",
        ),
        ({}, "pass", "40 of 40 queries could be scored for ndcg@10 of bm25"),
    ],
)
def test_bounds(gate: dict[str, Any], outcome: str, reason: str) -> None:
    checked = check(gate)
    assert (checked.outcome, checked.reason) == (outcome, reason)


def test_bounds_are_compared_exactly_and_shown_with_enough_digits() -> None:
    checked = check({"min": 0.45}, cell(0.44999999))
    assert checked.outcome == "fail"
    assert checked.reason == "ndcg@10 of bm25 is 0.44999999, below the minimum 0.45000000"
    assert check({"min": 0.3}, cell(0.1 + 0.2)).outcome == "pass"
    nearly = check({"min": 0.3}, cell(0.3 - 2**-54))
    assert nearly.reason == "ndcg@10 of bm25 is 0.2999999999999999, below the minimum 0.3000000000000000"


def test_a_missing_interval_fails_a_gate_that_needs_it() -> None:
    checked = check({"min": 0.1, "on": "lower"}, cell(0.412, interval=None, scored=1, total=1))
    assert checked.outcome == "fail"
    assert checked.reason == (
        "ndcg@10 of bm25 is 0.412 and has no interval, which 'on: lower' needs: 1 of 1 queries could be scored"
    )


def test_too_few_scored_queries_fail_although_the_bound_holds() -> None:
    checked = check({"min": 0.4}, cell(0.9, scored=30))
    assert checked.outcome == "fail"
    assert checked.reason == (
        "only 30 of 40 queries could be scored for ndcg@10 of bm25 (75%); the gate requires 90% (min_scored)"
    )
    assert check({"min": 0.4}, cell(0.9, scored=36)).outcome == "pass"
    close = check({"min": 0.4}, cell(0.9, scored=8999, total=10000))
    assert "(89.99%); the gate requires 90%" in close.reason


def test_the_target_of_a_metric_where_lower_is_better() -> None:
    slow = cell(3.0, metric="latency")
    checked = check({"metric": "latency", "max": 5, "target": 2}, slow)
    assert (checked.outcome, checked.reason) == ("warn", "latency of bm25 is 3.000, above the target 2.000")
    assert check({"metric": "latency", "max": 5, "target": 4}, slow).outcome == "pass"


def test_counts_have_no_digits_after_the_point() -> None:
    count = cell(400.0, metric="num_ret", statistic="sum", interval=None)
    assert check({"metric": "num_ret", "min": 500}, count).reason == "num_ret of bm25 is 400, below the minimum 500"
    drop = check({"metric": "num_ret", "baseline": "main", "max_drop": 3}, count)
    assert drop.outcome == "fail"
    assert drop.reason == "num_ret of bm25 is a count, which is not compared with main; use 'min' or 'max'"


def test_bounds_of_percentiles() -> None:
    slow = cell(1.24, metric="latency@p95", statistic="p95", interval=Interval(1.1, 1.9, 0.95, "order-statistics"))
    gate = {"metric": "latency@p95", "max": 1.5}
    assert check(gate, slow).reason == "latency@p95 of bm25 is 1.240, at most the maximum 1.500"
    upper = check({**gate, "on": "upper"}, slow)
    assert upper.outcome == "fail"
    assert upper.reason.startswith("the upper end of the 95% interval of latency@p95 of bm25 is 1.900, above the max")
    few = check({**gate, "on": "upper"}, replace(slow, interval=None, scored=20, total=20))
    assert few.reason == (
        "latency@p95 of bm25 is 1.240 and has no interval, which 'on: upper' needs: "
        "20 of 20 queries could be scored, too few for this percentile"
    )


REFUSING = {"scored": 8, "total": 80, "excused": 72}


def test_a_mean_of_fewer_than_half_the_queries_warns_although_the_bound_holds() -> None:
    checked = check({"min": 0.8}, cell(1.0, **REFUSING))
    assert (checked.outcome, checked.reason) == (
        "warn",
        "ndcg@10 of bm25 is 1.000, but only 8 of 80 queries could be scored (10%); "
        "if that is expected, add 'min_scored: 0.1' to the gate",
    )
    assert check({"min": 0.8}, cell(1.0, scored=40, total=80, excused=40)).outcome == "pass"
    assert check({"min": 0.8}, cell(0.5, **REFUSING)).outcome == "fail"


def test_a_gate_with_min_scored_is_not_warned() -> None:
    assert check({"min": 0.8, "min_scored": 0.1}, cell(1.0, **REFUSING)).outcome == "pass"
    assert check({"min": 0.8, "min_scored": 0.2}, cell(1.0, **REFUSING)).outcome == "warn"
    third = cell(1.0, scored=1, total=3, excused=2)
    assert "'min_scored: 0.33'" in check({"min": 0.8}, third).reason
    assert check({"min": 0.8, "min_scored": 0.33}, third).outcome == "pass"


def test_a_partial_metric_can_leave_out_most_queries() -> None:
    assert check({"metric": "robustness", "min": 0.8}, cell(1.0, metric="robustness", **REFUSING)).outcome == "pass"


@pytest.mark.parametrize(
    ("word", "outcome", "reason"),
    [
        ("good", "fail", "ndcg@10 of bm25 is 0.412 (fair), below the level good, which starts at 0.600"),
        ("fair", "pass", "ndcg@10 of bm25 is 0.412 (fair), at least the level fair, which starts at 0.400"),
    ],
)
def test_a_gate_can_require_a_word(word: str, outcome: str, reason: str) -> None:
    gate = GateNode(metric="ndcg@10", at_least=word)
    bands = {"ndcg@10": make_scale({"good": 0.6, "fair": 0.4})}
    [found] = check_gates([gate], [cell(0.412)], METRICS, bands=bands)
    assert (found.outcome, found.reason, found.bound) == (outcome, reason, f"at least {word}")


def test_a_word_for_low_values_is_an_upper_bound() -> None:
    gate = GateNode(metric="latency", at_least="fast")
    bands = {"latency": make_scale({"fast": 1.0, "slow": 3.0}, lower_is_better=True)}
    [found] = check_gates([gate], [cell(2.0, metric="latency")], METRICS, bands=bands)
    assert (found.outcome, found.observed) == ("fail", 2.0)
    assert found.reason == "latency of bm25 is 2.000 (slow), above the level fast, which starts at 1.000"


@pytest.mark.parametrize(
    ("gate", "outcome", "reason"),
    [
        (
            {"min": 0.35},
            "pass",
            "ndcg@10 of bm25 is 0.412 [0.370, 0.450], with the whole interval at or above the minimum 0.350",
        ),
        (
            {"min": 0.46},
            "fail",
            "ndcg@10 of bm25 is 0.412 [0.370, 0.450], with the whole interval below the minimum 0.460",
        ),
        (
            {"min": 0.4},
            "inconclusive",
            "ndcg@10 of bm25 is 0.412 [0.370, 0.450], with the minimum 0.400 inside the interval; "
            "at the variance seen, about 450 more queries would decide",
        ),
        (
            {"max": 0.5},
            "pass",
            "ndcg@10 of bm25 is 0.412 [0.370, 0.450], with the whole interval at or below the maximum 0.500",
        ),
        (
            {"max": 0.3},
            "fail",
            "ndcg@10 of bm25 is 0.412 [0.370, 0.450], with the whole interval above the maximum 0.300",
        ),
        (
            {"min": 0.1, "target": 0.6},
            "warn",
            "ndcg@10 of bm25 is 0.412 [0.370, 0.450], with the whole interval below the target 0.600",
        ),
    ],
)
def test_a_certain_gate_needs_the_whole_interval(gate: dict[str, Any], outcome: str, reason: str) -> None:
    found = check(gate | CERTAIN)
    assert (found.outcome, found.reason, found.observed) == (outcome, reason, 0.412)


def test_an_inconclusive_gate_counts_as_the_spec_says() -> None:
    assert check({"min": 0.4} | CERTAIN).counts_as == "warn"
    assert check({"min": 0.4, "on_inconclusive": "fail"} | CERTAIN).counts_as == "fail"
    assert check({"min": 0.4, "on_inconclusive": "pass"} | CERTAIN).counts_as == "pass"
    assert check({"target": 0.4, "on_inconclusive": "fail"} | CERTAIN).counts_as == "warn"
    assert check({"min": 0.1, "on_inconclusive": "fail"} | CERTAIN).counts_as is None


def test_a_certain_gate_fails_if_one_bound_is_missed_for_certain() -> None:
    found = check({"min": 0.46, "target": 0.48} | CERTAIN)
    assert (found.outcome, found.counts_as) == ("fail", None)
    assert check({"min": 0.4, "max": 0.3, "decide": "certain"}).outcome == "fail"


def test_a_certain_gate_tells_a_mean_from_a_bound_next_to_it() -> None:
    found = check({"min": 0.4121} | CERTAIN)
    assert found.reason == (
        "ndcg@10 of bm25 is 0.4120 [0.370, 0.450], with the minimum 0.4121 inside the interval; "
        "the two are so close that no number of queries would decide"
    )


def test_a_certain_gate_needs_an_interval() -> None:
    found = check({"min": 0.4} | CERTAIN, cell(0.412, interval=None, scored=1))
    assert found.outcome == "fail"
    assert "has no interval, which 'decide: certain' needs: 1 of 40 queries could be scored" in found.reason


def test_a_certain_word_names_the_word_of_the_mean() -> None:
    scale = {"ndcg@10": make_scale({"good": 0.4, "fair": 0.2})}
    gate = GateNode(metric="ndcg@10", at_least="good", decide="certain")
    [found] = check_gates([gate], [cell(0.412)], METRICS, bands=scale)
    assert found.outcome == "inconclusive"
    assert found.reason.startswith("ndcg@10 of bm25 is 0.412 [0.370, 0.450] (good), with the level good")
