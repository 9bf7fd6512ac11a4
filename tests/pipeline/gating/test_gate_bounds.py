"""Bounds on the evaluation's own numbers.

How far a number may fall below a baseline.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.arithmetic import reaches
from rageval_spec.data.bands import make_scale
from rageval_spec.data.datasets import CellDesign
from rageval_spec.data.evaluation import PairLimit
from rageval_spec.data.outcomes import BaselineChange, Correction, Interval
from rageval_spec.pipeline.gating.gate_bounds import GateEstimate, count_more
from rageval_spec.spec.blocks.gates import GateNode
from tests.pipeline.gate_samples import CERTAIN, METRICS, Bounded, cell, check, check_gates, comparison


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
    nearly = check({"min": 0.3}, cell(0.3 - 1e-13))
    assert nearly.reason == "ndcg@10 of bm25 is 0.2999999999999, below the minimum 0.3000000000000"


@pytest.mark.parametrize("numbers", [(0.7, 0.8, 0.75), (0.75,) * 7, (0.1,) * 3, (0.7,) * 11, (1 / 3,) * 9])
@pytest.mark.parametrize("key", ["min", "max", "target"])
def test_a_number_at_its_bound_meets_it_whatever_rounding_did(numbers: tuple[float, ...], key: str) -> None:
    bound, added = sum(map(Fraction, numbers)) / len(numbers), sum(numbers) / len(numbers)
    for mean in (added, math.nextafter(added, 0), math.nextafter(added, 1)):
        found = check({key: float(bound)}, cell(mean, scored=40))
        assert found.outcome == "pass"
        assert "exactly the" in found.reason


@pytest.mark.parametrize(("after", "before", "drop"), [(0.4, 0.42, 0.02), (0.7, 0.8, 0.1), (0.57, 0.6, 0.03)])
def test_a_drop_of_exactly_what_is_allowed_is_allowed(after: float, before: float, drop: float) -> None:
    gate = {"baseline": "main", "max_drop": drop}
    against = comparison(after - before, baseline_mean=before)
    found = check(gate, cell(after), against=against)
    assert (found.outcome, f"{drop:.3f} below main" in found.reason) == ("pass", True)
    assert "within the allowed" in found.reason
    more = check(gate, cell(after), against=replace(against, difference=after - before - 1e-6))
    assert more.outcome == "fail"


def test_a_difference_that_is_only_rounding_is_no_drop() -> None:
    found = check({"baseline": "main"}, against=comparison(-(2**-54), baseline_mean=0.4))
    assert (found.outcome, "level with main" in found.reason) == ("pass", True)


def test_an_interval_that_ends_at_the_bound_clears_it() -> None:
    ends = Interval(math.nextafter(0.75, 0), 0.9, 0.95, "bootstrap-bca")
    assert check({"min": 0.75, "decide": "certain"}, cell(0.8, interval=ends)).outcome == "pass"
    assert check({"min": 0.75, "on": "lower"}, cell(0.8, interval=ends)).outcome == "pass"


def test_a_missing_interval_makes_a_gate_that_needs_it_inconclusive() -> None:
    checked = check({"min": 0.1, "on": "lower"}, cell(0.412, interval=None, scored=1, total=1))
    assert (checked.outcome, checked.counts_as) == ("inconclusive", "warn")
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
    assert few.outcome == "inconclusive"
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
    assert found.outcome == "fail", "min_scored is missed"
    found = check({"min": 0.4, "min_scored": 0} | CERTAIN, cell(0.412, interval=None, scored=1))
    assert found.outcome == "inconclusive"
    assert "has no interval, which 'decide: certain' needs: 1 of 40 queries could be scored" in found.reason


def test_a_certain_word_names_the_word_of_the_mean() -> None:
    scale = {"ndcg@10": make_scale({"good": 0.4, "fair": 0.2})}
    gate = GateNode(metric="ndcg@10", at_least="good", decide="certain")
    [found] = check_gates([gate], [cell(0.412)], METRICS, bands=scale)
    assert found.outcome == "inconclusive"
    assert found.reason.startswith("ndcg@10 of bm25 is 0.412 [0.370, 0.450] (good), with the level good")


def test_a_change_that_is_not_significant_says_so() -> None:
    checked = check({"baseline": "main", "alpha": 0.01}, against=comparison(-0.01, p_adjusted=0.5))
    assert (
        checked.reason
        == "ndcg@10 of bm25 is 0.010 below main on 40 shared queries (Holm-adjusted p = 0.5000), not significant"
    )


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
        "ndcg@10 of bm25 is 0.030 below main on 40 shared queries (Holm-adjusted p = 0.0040), "
        "more than the allowed 0.020"
    )
    assert checked.observed == -0.03
    lower = check({"baseline": "main", "max_drop": 0.02, "on": "lower"}, against=comparison(-0.015))
    assert lower.reason == (
        "ndcg@10 of bm25 is 0.025 below main at the lower end of the difference's interval "
        "on 40 shared queries (Holm-adjusted p = 0.0040), more than the allowed 0.020"
    )
    better = check({"baseline": "main", "max_drop": 0.02}, against=comparison(0.03, p_adjusted=0.00001))
    assert better.reason == "ndcg@10 of bm25 is 0.030 above main on 40 shared queries (Holm-adjusted p < 0.0001)"
    insignificant = check({"baseline": "main", "max_drop": 0, "alpha": 0.01}, against=comparison(-1.0, p_adjusted=0.5))
    assert insignificant.reason == (
        "ndcg@10 of bm25 is 1.000 below main on 40 shared queries (Holm-adjusted p = 0.5000), "
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


@pytest.mark.parametrize(
    ("baseline", "told"),
    [
        ("previous", "there is no earlier evaluation"),
        ("branch:main", "no evaluation on the branch main has passed"),
    ],
)
def test_a_first_evaluation_has_nothing_to_be_compared_with(baseline: str, told: str) -> None:
    gate = GateNode(metric="ndcg@10", baseline=baseline, max_drop=0.02)
    [found] = check_gates([gate], [cell(0.412)], METRICS, missing={baseline})
    assert (found.outcome, found.counts_as, found.observed) == ("inconclusive", "warn", None)
    assert found.reason == f"ndcg@10 of bm25 has nothing to be compared with yet: {told}"
    strict = gate.model_copy(update={"on_inconclusive": "fail"})
    [failed] = check_gates([strict], [cell(0.412)], METRICS, missing={baseline})
    assert failed.counted == "fail"
    assert failed.reason.endswith("; to record a first one that passes, run with --set 'gates=[]'")


def test_a_bound_decides_although_there_is_no_baseline_yet() -> None:
    gate = GateNode(metric="ndcg@10", baseline="previous", min=0.5)
    [found] = check_gates([gate], [cell(0.412)], METRICS, missing={"previous"})
    assert (found.outcome, found.observed) == ("fail", 0.412)


CHANGED = (
    BaselineChange("references", "the references of 3 queries changed"),
    BaselineChange("judge", "the judge changed: x → y"),
)


def test_a_comparison_that_is_not_comparable_decides_nothing() -> None:
    gate = {"baseline": "main", "max_drop": 0.02}
    against = comparison(-0.5, changes=CHANGED)
    found = check(gate, against=against)
    assert (found.outcome, found.counts_as, found.observed) == ("inconclusive", "warn", -0.5)
    assert found.reason == (
        "ndcg@10 of bm25 is not comparable with main: the references of 3 queries changed; the judge changed: x → y; "
        "to compare all the same, write 'accept_changes: [references, judge]'"
    )
    half = check({**gate, "accept_changes": ["references"]}, against=against)
    assert half.outcome == "inconclusive"
    assert "not comparable with main: the judge changed: x → y; to compare" in half.reason
    assert check({**gate, "decide": "certain"}, against=against).outcome == "inconclusive"


def test_accepted_changes_are_named_and_the_comparison_decides() -> None:
    gate = {"baseline": "main", "max_drop": 0.02, "accept_changes": ["references", "judge"]}
    found = check(gate, against=comparison(-0.5, changes=CHANGED))
    assert found.outcome == "fail"
    assert ", although the references of 3 queries changed; the judge changed: x → y, more than" in found.reason
    certain = check({**gate, "decide": "certain"}, against=comparison(-0.5, changes=CHANGED))
    assert certain.outcome == "fail"
    assert "although the references of 3 queries changed" in certain.reason


RELATIVE = {"baseline": "main", "max_drop": "5%"}


@pytest.mark.parametrize(
    ("difference", "outcome", "relation"),
    [
        (-0.03, "fail", "more than the allowed 0.021 (5% of 0.420)"),
        (-0.0211, "fail", "more than the allowed 0.0210 (5% of 0.420)"),
        (-0.02, "pass", "within the allowed 0.021 (5% of 0.420)"),
        (-0.0209, "pass", "within the allowed 0.0210 (5% of 0.420)"),
    ],
)
def test_a_share_is_shown_as_what_it_comes_to(difference: float, outcome: str, relation: str) -> None:
    found = check(RELATIVE, against=comparison(difference, baseline_mean=0.42))
    assert (found.outcome, found.bound, found.baseline) == (outcome, "drop from main ≤ 5%", "main")
    assert found.reason.endswith(f"(Holm-adjusted p = 0.0040), {relation}")
    assert found.max_drop == pytest.approx(0.021)


def test_a_share_limits_a_rise_where_low_values_are_good() -> None:
    gate, slow = {**RELATIVE, "metric": "latency", "max_drop": "150%"}, cell(3.0, metric="latency")
    rise = comparison(1.6, metric="latency", baseline_mean=1.0)
    assert check(gate, slow, against=rise).reason.endswith("more than the allowed 1.500 (150% of 1.000)")
    assert check(gate, slow, against=replace(rise, difference=1.4)).outcome == "pass"


def test_a_share_of_nothing_allows_no_drop_and_says_so() -> None:
    gate, slow = {**RELATIVE, "metric": "latency"}, cell(3.0, metric="latency")
    found = check(gate, slow, against=comparison(0.1, metric="latency", baseline_mean=0.0))
    assert (found.outcome, found.max_drop) == ("fail", 0.0)
    assert found.reason.endswith(
        "more than the allowed 0.000 (5% of 0.000), so no drop is small enough; write the amount as a number"
    )
    level = check(gate, slow, against=comparison(0.0, metric="latency", baseline_mean=0.0))
    assert level.outcome == "pass"


GRADED = {"baseline": "main", "severities": {"low": "5%", "medium": 0.05, "high": "20%"}}


@pytest.mark.parametrize(
    ("difference", "outcome", "severity", "relation"),
    [
        (0.1, "pass", None, ""),
        (-0.01, "pass", None, ", within 0.020 (5% of 0.400), where low severity begins"),
        (-0.03, "warn", "low", ", a regression of low severity, which begins at 0.020 (5% of 0.400)"),
        (-0.06, "fail", "medium", ", a regression of medium severity, which begins at 0.050"),
        (-0.09, "fail", "high", ", a regression of high severity, which begins at 0.080 (20% of 0.400)"),
    ],
)
def test_a_drop_is_graded_by_its_size(difference: float, outcome: str, severity: str | None, relation: str) -> None:
    found = check(GRADED, against=comparison(difference, baseline_mean=0.4))
    assert (found.outcome, found.severity) == (outcome, severity)
    assert found.reason.endswith(f"(Holm-adjusted p = 0.0040){relation}")
    assert found.bound == "drop from main: low > 5%, medium > 0.05, high > 20%"
    assert found.max_drop == 0.05


def test_with_max_drop_severities_only_grade() -> None:
    gate = {**GRADED, "max_drop": "1%"}
    found = check(gate, against=comparison(-0.03, baseline_mean=0.4))
    assert (found.outcome, found.severity) == ("fail", "low")
    assert found.reason.endswith(
        "more than the allowed 0.0040 (1% of 0.400); a regression of low severity, which begins at 0.020 (5% of 0.400)"
    )
    assert found.bound == "drop from main ≤ 1%, low > 5%, medium > 0.05, high > 20%"
    large = check({**gate, "max_drop": 0.5}, against=comparison(-0.3, baseline_mean=0.4))
    assert (large.outcome, large.severity) == ("pass", "high")


def test_a_graded_drop_that_is_not_significant_warns() -> None:
    gate = {**GRADED, "alpha": 0.01}
    found = check(gate, against=comparison(-0.09, baseline_mean=0.4, p_adjusted=0.5))
    assert (found.outcome, found.severity) == ("warn", "high")
    assert found.reason.endswith(": not significant")


@pytest.mark.parametrize(
    ("difference", "outcome", "counts_as", "severity"),
    [
        (0.0, "pass", None, None),
        (-0.02, "inconclusive", "warn", None),
        (-0.035, "warn", None, "low"),
        (-0.05, "inconclusive", "fail", "low"),
        (-0.065, "fail", None, "medium"),
        (-0.095, "fail", None, "high"),
    ],
)
def test_a_certain_severity_is_that_of_the_whole_interval(
    difference: float, outcome: str, counts_as: str | None, severity: str | None
) -> None:
    gate = GRADED | CERTAIN | {"on_inconclusive": "fail"}
    found = check(gate, against=comparison(difference, baseline_mean=0.4))
    assert (found.outcome, found.counts_as, found.severity) == (outcome, counts_as, severity), found.reason
    mirrored = comparison(-difference, metric="latency", baseline_mean=0.4)
    rise = check({**gate, "metric": "latency"}, cell(1.0, metric="latency"), against=mirrored)
    assert (rise.outcome, rise.counts_as, rise.severity) == (outcome, counts_as, severity), rise.reason


def test_a_percentile_is_compared_like_a_mean() -> None:
    slow = cell(1.24, metric="latency@p95", statistic="p95")
    gate = {"metric": "latency@p95", "baseline": "main", "max_drop": "20%"}
    against = comparison(0.3, metric="latency@p95", baseline_mean=1.0)
    found = check(gate, slow, against=against)
    assert found.outcome == "fail"
    assert found.reason == (
        "latency@p95 of bm25 is 0.300 above main on 40 shared queries (Holm-adjusted p = 0.0040), "
        "more than the allowed 0.200 (20% of 1.000)"
    )
    few = check({**gate, "decide": "certain"}, slow, against=replace(against, interval=None))
    assert (few.outcome, few.reason) == (
        "inconclusive",
        "latency@p95 of bm25 has no interval of its difference from main, which 'decide: certain' needs: the two share "
        "40 queries, too few for this percentile",
    )


def test_a_certain_share_is_shown_as_what_it_comes_to() -> None:
    found = check(RELATIVE | CERTAIN, against=comparison(-0.05, baseline_mean=0.4))
    assert "with the whole interval below the allowed -0.020 (5% of 0.400)" in found.reason


def decide(estimate: GateEstimate, bound: float, *, below_is_bad: bool) -> str:
    count = estimate.queries
    seen = cell(estimate.point, interval=Interval(estimate.low, estimate.high), scored=count, total=count)
    return check({"min" if below_is_bad else "max": bound} | CERTAIN, seen).outcome


ENDS = st.tuples(*[st.floats(-1, 1)] * 3).map(sorted)


@given(ENDS, st.floats(-1, 1), st.booleans())
def test_a_decision_holds_for_every_number_in_the_interval(ends: list[float], bound: float, below_is_bad: bool) -> None:
    low, point, high = ends
    outcome = decide(GateEstimate(point, low, high, 10), bound, below_is_bad=below_is_bad)
    misses = {not reaches(*((one, bound) if below_is_bad else (bound, one)), terms=10) for one in (low, point, high)}
    assert outcome == ("inconclusive" if len(misses) == 2 else "fail" if misses == {True} else "pass")


def test_more_queries_shrink_the_interval_with_their_square_root() -> None:
    assert count_more(GateEstimate(0.5, 0.3, 0.6, 100), 0.4) == 300
    assert count_more(GateEstimate(0.5, 0.3, 0.6, 100), 0.55) == 300
    assert count_more(GateEstimate(0.5, 0.3, 0.6, 100), 0.3) == 1


@pytest.mark.parametrize("bound", [0.5, 0.5000001])
def test_a_bound_next_to_the_mean_cannot_be_decided(bound: float) -> None:
    assert count_more(GateEstimate(0.5, 0.3, 0.6, 100), bound) is None


def test_the_promised_number_of_queries_decides() -> None:
    chance = random.Random(5)
    values = [chance.betavariate(2, 1) for _ in range(2000)]

    def estimate(queries: int) -> GateEstimate:
        seen = values[:queries]
        half = 1.96 * statistics.stdev(seen) / queries**0.5
        return GateEstimate(
            statistics.fmean(seen), statistics.fmean(seen) - half, statistics.fmean(seen) + half, queries
        )

    first = estimate(50)
    bound = first.point - 0.04
    more = count_more(first, bound)
    assert decide(first, bound, below_is_bad=True) == "inconclusive"
    assert more is not None
    assert decide(estimate(50 + 2 * more), bound, below_is_bad=True) == "pass"


@pytest.mark.parametrize(
    ("queries", "bound", "fewest", "most"), [(5, 0.95, 60, 75), (2, 0.9, 30, 36), (40, 0.95, 30, 36)]
)
def test_advice_for_answers_that_are_all_right_counts_those_that_would_do(
    queries: int, bound: float, fewest: int, most: int
) -> None:
    """By hand: 0.025 ** (1 / 72) is 0.950, so 72 right answers of 72 clear a minimum of 0.95."""
    low = 0.025 ** (1 / queries)
    more = count_more(GateEstimate(1.0, low, 1.0, queries, range=(0.0, 1.0), parts=queries), bound)
    assert more is not None
    assert fewest <= more <= most
    decided = GateEstimate(1.0, 0.025 ** (1 / (queries + more)), 1.0, queries + more)
    assert decide(decided, bound, below_is_bad=True) == "pass"


def test_advice_counts_questions_of_clusters() -> None:
    """Four clusters of ten questions each: 72 clusters would decide, which are 720 questions."""
    estimate = GateEstimate(1.0, 0.025 ** (1 / 4), 1.0, 40, range=(0.0, 1.0), parts=4)
    more = count_more(estimate, 0.95)
    assert more is not None
    assert 670 <= more <= 690


UNRESOLVABLE = {"baseline": "main", "max_drop": 0.02, "alpha": 0.05}


@pytest.mark.parametrize(
    ("limit", "lack"),
    [
        (PairLimit(4, 0.125, 0.125), "4 pairs cannot show a difference (p < 0.05); that takes at least 6"),
        (PairLimit(1, 1.0, 1.0), "1 pair cannot show a difference (p < 0.05); that takes at least 6"),
        (
            PairLimit(8, 2 / 256, 20 * 2 / 256, 20),
            "8 pairs cannot show a difference (p < 0.05 among 20 comparisons); that takes at least 10",
        ),
        (
            PairLimit(40, 1 / 101, 10 / 101, 10),
            "the spec's permutations cannot show a difference (p < 0.05 among 10 comparisons); that takes at least "
            "200, under 'statistics'",
        ),
    ],
)
@pytest.mark.parametrize("difference", [-0.5, 0.0, 0.1])
def test_a_drop_that_no_test_could_find_is_inconclusive(limit: PairLimit, lack: str, difference: float) -> None:
    found = check(UNRESOLVABLE, against=replace(comparison(difference), limit=limit))
    assert (found.outcome, found.counts_as) == ("inconclusive", "warn")
    assert f"unresolvable: {lack}" in found.reason


def test_an_unresolvable_drop_can_be_made_to_fail_or_pass() -> None:
    against = replace(comparison(-0.5), limit=PairLimit(4, 0.125, 0.125))
    for counts_as in ("fail", "pass"):
        assert check(UNRESOLVABLE | {"on_inconclusive": counts_as}, against=against).counted == counts_as


def test_enough_pairs_and_a_gate_without_a_test_decide() -> None:
    found = replace(comparison(-0.5), limit=PairLimit(6, 2 / 64, 2 / 64))
    assert check(UNRESOLVABLE, against=found).outcome in ("warn", "fail")
    few = replace(comparison(-0.5), limit=PairLimit(4, 0.125, 0.125))
    assert check({"baseline": "main", "max_drop": 0.02}, against=few).outcome == "fail"


def test_every_number_without_an_interval_is_one_rule() -> None:
    """A mean, a percentile, a count, one cluster, corrected means, differences: none passes, and none fails."""
    lacking = {"interval": None, "scored": 40, "total": 40}
    alone = CellDesign(clusters=1)
    corrected = Correction("ppi", 0.5, None, 0.5, None, labels=30, worth=None, source="people")
    cells = [
        cell(0.5, metric="cost", **lacking),
        cell(0.5, metric="latency@p95", statistic="p95", **lacking),
        cell(40.0, metric="num_ret", statistic="sum", **lacking),
        cell(0.5, design=alone, **lacking),
        cell(0.5, correction=corrected, **lacking),
    ]
    for one in cells:
        for need in ({"decide": "certain"}, {"on": "upper"}, {"on": "lower"}):
            for bound in ({"max": 0.1}, {"max": 100.0}):
                found = check({"metric": one.metric, **bound, **need, "on_inconclusive": "fail"}, one)
                assert (found.outcome, found.counts_as) == ("inconclusive", "fail"), found.reason
                assert "has no interval, which '" in found.reason
            against = comparison(-0.3, metric=one.metric, interval=None, baseline_mean=1.0)
            drop = check({"metric": one.metric, "baseline": "main", "max_drop": 0.1, **need}, one, against=against)
            assert drop.outcome == "inconclusive", drop.reason


FREE = {"rating": Bounded(bounds=(-math.inf, None))}


@pytest.mark.parametrize("need", [{"decide": "certain"}, {"on": "lower"}])
@pytest.mark.parametrize("bound", [{"min": 4.6}, {"min": 4.6, "target": 4.65}, {"target": 4.65}])
def test_no_gate_passes_by_an_interval_of_values_without_a_range(need: dict[str, str], bound: dict[str, float]) -> None:
    """Ratings of 5, 4 and 1 whose mean is below 4.67 pass `min: 4.67` in 12% of the sets of 20, had they no range."""
    ratings = cell(4.75, metric="rating", interval=Interval(4.68, 4.81, 0.95, "bootstrap-bca-t"))
    gate = GateNode.model_validate({"metric": "rating", **bound, **need, "on_inconclusive": "fail"})
    [found] = check_gates([gate], [ratings], FREE)
    assert (found.outcome, found.counts_as) == ("inconclusive", "fail" if "min" in bound else "warn")
    assert "the lowest and highest value of rating are not known; write 'range: [lowest, highest]'" in found.reason
    [known] = check_gates([gate], [ratings], {"rating": Bounded(bounds=(1.0, 5.0))})
    assert known.outcome == "pass"


def test_what_needs_no_range_decides_without_one() -> None:
    """A mean, a percentile, a number that misses its bound; and seconds, of which it is known that there is none."""
    ends = Interval(4.68, 4.81, 0.95, "bootstrap-bca-t")
    ratings = cell(4.75, metric="rating", interval=ends)
    for keys, of, outcome in (
        ({"min": 4.6}, ratings, "pass"),
        ({"min": 4.9, "decide": "certain"}, ratings, "fail"),
        ({"min": 4.7, "on": "lower"}, ratings, "fail"),
        ({"min": 4.6, "on": "lower"}, replace(ratings, statistic="p50"), "pass"),
    ):
        [found] = check_gates([GateNode.model_validate({"metric": "rating", **keys})], [of], FREE)
        assert found.outcome == outcome
    seconds = {"rating": Bounded(bounds=(0.0, None))}
    [found] = check_gates([GateNode(metric="rating", min=4.6, on="lower")], [ratings], seconds)
    assert found.outcome == "pass"


@pytest.mark.parametrize("need", [{"decide": "certain"}, {"on": "lower"}])
def test_no_drop_passes_by_an_interval_of_values_without_a_range(need: dict[str, str]) -> None:
    gate = GateNode.model_validate({"metric": "rating", "baseline": "main", "max_drop": 0.2, **need})
    for difference, outcome in ((-0.01, "inconclusive"), (-0.5, "fail")):
        against = comparison(difference, metric="rating", baseline_mean=4.7)
        [found] = check_gates([gate], [cell(4.7, metric="rating")], FREE, {"main": [against]})
        assert found.outcome == outcome
        assert ("write 'range: [lowest, highest]'" in found.reason) == (outcome == "inconclusive")


def test_equal_values_without_a_range_say_how_to_write_one() -> None:
    gate = GateNode(metric="rating", min=4.0, decide="certain")
    [found] = check_gates([gate], [cell(5.0, metric="rating", interval=None)], FREE)
    assert found.outcome == "inconclusive"
    assert (
        "all values are equal, and the lowest and highest value of rating are not known; write 'range:" in found.reason
    )


@pytest.mark.parametrize("gate", [{"decide": "certain"}, {"on": "upper"}])
def test_equal_values_without_a_highest_one_are_inconclusive(gate: dict[str, Any]) -> None:
    free = cell(0.002, metric="cost", interval=None, scored=40, total=40)
    found = check({"metric": "cost", "max": 0.1, **gate}, free)
    assert found.outcome == "inconclusive"
    assert "all values are equal, and cost has no highest value" in found.reason


def test_advice_for_answers_that_are_all_right_says_that_all_others_must_be() -> None:
    right = cell(1.0, metric="correct", interval=Interval(0.025**0.2, 1.0), scored=5, total=5)
    found = check({"metric": "correct", "min": 0.95, **CERTAIN}, right)
    assert found.outcome == "inconclusive"
    assert found.reason.endswith("if all others are like these, 67 more queries would decide")


PERCENT = {"ndcg@10": Bounded(is_percent=True)}


@pytest.mark.parametrize(
    ("gate", "bound", "reason"),
    [
        ({"min": 0.45}, "≥ 45%", "ndcg@10 of bm25 is 41.2%, below the minimum 45%"),
        ({"min": 0.4121}, "≥ 41.21%", "ndcg@10 of bm25 is 41.2%, below the minimum 41.21%"),
        ({"min": 0.4, "target": 0.555}, "≥ 40%, target 55.5%", "ndcg@10 of bm25 is 41.2%, below the target 55.5%"),
        ({"min": 0.4, "on": "lower"}, "lower end ≥ 40%",
         "the lower end of the 95% interval of ndcg@10 of bm25 is 37%, below the minimum 40%"),
        ({"min": 0.3, **CERTAIN}, "whole interval ≥ 30%",
         "ndcg@10 of bm25 is 41.2% [37%, 45%], with the whole interval at or above the minimum 30%"),
        ({"baseline": "main", "max_drop": 0.02}, "drop from main ≤ 2 pp",
         "ndcg@10 of bm25 is 5 pp below main on 40 shared queries (Holm-adjusted p = 0.0040), more than the allowed "
         "2 pp"),
        ({"baseline": "main", "max_drop": "5%"}, "drop from main ≤ 5%",
         "ndcg@10 of bm25 is 5 pp below main on 40 shared queries (Holm-adjusted p = 0.0040), more than the allowed "
         "2 pp (5% of 40%)"),
        ({"baseline": "main", "max_drop": 0.02, **CERTAIN}, "drop from main ≤ 2 pp (whole interval)",
         "ndcg@10 of bm25 is 5 pp below main on 40 shared queries ([-6, -4 pp] for the difference), with the whole "
         "interval below the allowed -2 pp"),
        ({"baseline": "main", "severities": {"low": 0.01, "high": 0.1}}, "drop from main: low > 1 pp, high > 10 pp",
         "ndcg@10 of bm25 is 5 pp below main on 40 shared queries (Holm-adjusted p = 0.0040), a regression of low "
         "severity, which begins at 1 pp"),
    ],
)  # fmt: skip
def test_a_gate_on_a_share_speaks_of_percentages_and_points(gate: dict[str, Any], bound: str, reason: str) -> None:
    node = GateNode.model_validate({"metric": "ndcg@10"} | gate)
    against = {} if node.baseline is None else {node.baseline: [comparison(-0.05, baseline_mean=0.4)]}
    [checked] = check_gates([node], [cell(0.412)], PERCENT, against)
    assert (checked.bound, checked.reason) == (bound, reason)
    assert checked.observed in (0.412, 0.37, -0.05)
