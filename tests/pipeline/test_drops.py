"""How far a number may fall below a baseline."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.gating import CERTAIN, cell, check, comparison


def test_a_change_that_is_not_significant_says_so() -> None:
    checked = check({"baseline": "main", "alpha": 0.01}, against=comparison(-0.01, p_adjusted=0.5))
    assert checked.reason == "ndcg@10 of bm25 is 0.010 below main on 40 shared queries (p = 0.5000), not significant"


@pytest.mark.parametrize(
    ("gate", "difference", "p_adjusted", "outcome"),
    [
        ({"max_drop": 0.02}, -0.03, 0.5, "fail"),
        ({"max_drop": 0.02}, -0.02, 0.0, "pass"),
        ({"max_drop": 0.02}, 0.5, 0.0, "pass"),
        ({"max_drop": 0.02, "alpha": 0.05}, -0.03, 0.01, "fail"),
        ({"max_drop": 0.02, "alpha": 0.05}, -0.03, 0.05, "warn"),
        ({"max_drop": 0.02, "alpha": 0.05}, -0.01, 0.01, "pass"),
        ({"alpha": 0.05}, -0.01, 0.01, "fail"),
        ({"alpha": 0.05}, -0.01, 0.2, "pass"),
        ({"alpha": 0.05}, 0.01, 0.01, "pass"),
        ({}, -1e-12, 1.0, "fail"),
        ({}, 0.0, 1.0, "pass"),
        ({"max_drop": 0.02, "on": "lower"}, -0.005, 0.5, "pass"),
        ({"max_drop": 0.02, "on": "lower"}, -0.015, 0.5, "fail"),
        ({"max_drop": 0.02, "on": "upper"}, -0.025, 0.5, "pass"),
    ],
)
def test_drops(gate: dict[str, Any], difference: float, p_adjusted: float, outcome: str) -> None:
    checked = check({"baseline": "main"} | gate, against=comparison(difference, p_adjusted=p_adjusted))
    assert checked.outcome == outcome, checked.reason


def test_the_sentence_of_a_drop() -> None:
    checked = check({"baseline": "main", "max_drop": 0.02}, against=comparison(-0.03))
    assert checked.reason == (
        "ndcg@10 of bm25 is 0.030 below main on 40 shared queries (p = 0.0040), more than the allowed 0.020"
    )
    assert checked.observed == -0.03
    lower = check({"baseline": "main", "max_drop": 0.02, "on": "lower"}, against=comparison(-0.015))
    assert lower.reason == (
        "ndcg@10 of bm25 is 0.025 below main at the lower end of the difference's interval "
        "on 40 shared queries (p = 0.0040), more than the allowed 0.020"
    )
    better = check({"baseline": "main", "max_drop": 0.02}, against=comparison(0.03, p_adjusted=0.00001))
    assert better.reason == "ndcg@10 of bm25 is 0.030 above main on 40 shared queries (p < 0.0001)"
    insignificant = check({"baseline": "main", "max_drop": 0, "alpha": 0.01}, against=comparison(-1.0, p_adjusted=0.5))
    assert insignificant.reason == (
        "ndcg@10 of bm25 is 1.000 below main on 40 shared queries (p = 0.5000), "
        "more than the allowed 0.000: not significant"
    )


def test_max_drop_means_a_rise_where_lower_is_better() -> None:
    gate = {"metric": "latency", "baseline": "main", "max_drop": 0.5}
    slow = cell(3.0, metric="latency")
    assert check(gate, slow, against=comparison(1.0, metric="latency")).outcome == "fail"
    assert check(gate, slow, against=comparison(-1.0, metric="latency")).outcome == "pass"


def test_nothing_to_compare_with_fails() -> None:
    checked = check({"baseline": "main", "max_drop": 1})
    assert checked.outcome == "fail"
    assert checked.reason == (
        "ndcg@10 of bm25 could not be compared with main: fewer than two queries have a value of ndcg@10 in both"
    )
    geometric = comparison(-0.5, interval=None)
    assert "no interval of its difference" in check({"baseline": "main", "on": "lower"}, against=geometric).reason


@pytest.mark.parametrize(
    ("difference", "max_drop", "outcome"),
    [
        (0.02, None, "pass"),
        (-0.02, None, "fail"),
        (0.005, None, "inconclusive"),
        (-0.005, 0.02, "pass"),
        (-0.015, 0.02, "inconclusive"),
        (-0.05, 0.02, "fail"),
    ],
)
def test_a_certain_drop_looks_at_the_interval_of_the_difference(
    difference: float, max_drop: float | None, outcome: str
) -> None:
    gate = {"baseline": "main", "max_drop": max_drop} | CERTAIN
    assert check(gate, against=comparison(difference)).outcome == outcome
    rise = {"metric": "latency"} | gate
    slower = comparison(-difference, metric="latency")
    assert check(rise, cell(1.0, metric="latency"), against=slower).outcome == outcome


def test_the_sentence_of_a_certain_drop() -> None:
    found = check({"baseline": "main", "max_drop": 0.02} | CERTAIN, against=comparison(-0.015))
    assert found.reason == (
        "ndcg@10 of bm25 is 0.015 below main on 40 shared queries ([-0.025, -0.0050] for the difference), with the "
        "allowed -0.02 inside the interval; at the variance seen, about 120 more queries would decide"
    )
    assert found.bound == "drop from main ≤ 0.02 (whole interval)"
    level = check({"baseline": "main"} | CERTAIN, against=comparison(0.0))
    assert level.reason.endswith(
        "with zero inside the interval; the two are so close that no number of queries would decide"
    )
