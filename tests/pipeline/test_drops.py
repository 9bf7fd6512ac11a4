"""How far a number may fall below a baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.comparability import Change
from rageval_spec.pipeline.gates import check_gates
from rageval_spec.spec.nodes import GateNode
from tests.pipeline.gating import CERTAIN, METRICS, cell, check, comparison


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


CHANGED = (Change("references", "the references of 3 queries changed"), Change("judge", "the judge changed: x → y"))


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
        "fail",
        "latency@p95 of bm25 has no interval of its difference from main, which 'decide: certain' needs",
    )


def test_a_certain_share_is_shown_as_what_it_comes_to() -> None:
    found = check(RELATIVE | CERTAIN, against=comparison(-0.05, baseline_mean=0.4))
    assert "with the whole interval below the allowed -0.020 (5% of 0.400)" in found.reason
