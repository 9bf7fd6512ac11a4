"""When a judge is unsure, and which answers are bad by its own account."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.reports.shared.changes import Baseline
from rageval_spec.reports.shared.worst import NoBaselineError
from rageval_spec.review.suspicion import list_judged_metrics, rate_low, rate_person, rate_regressed, rate_unsure
from tests.answered_evaluation import answered, sample, value


def unsure(number: float | None, details: dict[str, Any] | None = None, spec: dict[str, Any] | None = None) -> float:
    """How unsure the judge of one answer is; 0 if it is sure."""
    table = answered([value("q1", "faithfulness", number, details=details)], [sample("q1")])
    rated = rate_unsure(replace(table, spec=spec or {}), ["faithfulness"], 0.5)
    return next(iter(rated.values()), 0.0)


def test_a_value_near_the_threshold_is_unsure() -> None:
    assert unsure(0.5) == 1.0
    assert unsure(0.45) == pytest.approx(0.75)
    assert unsure(0.61) == unsure(0.39) == unsure(None) == 0.0


def test_the_scores_of_claims_count_instead_of_their_mean() -> None:
    assert unsure(0.5, {"claims": [{"text": "a", "score": 0.99}, {"text": "b", "score": 0.01}]}) == 0.0
    assert unsure(0.9, {"claims": [{"text": "a", "score": 0.99}, {"text": "b", "score": 0.5}]}) == 1.0


def test_members_of_a_panel_that_disagree_are_unsure() -> None:
    assert unsure(0.9, {"confidence": 0.4}) == pytest.approx(0.6)
    assert unsure(0.9, {"confidence": 0.7}) == 0.0


def test_a_later_step_of_a_cascade_decides_what_the_first_is_unsure_of() -> None:
    steps = [{"judge": "overlap", "low": 0.3}, "strict"]
    spec = {
        "judges": {"fast": {"use": "cascade", "steps": steps}},
        "metrics": [{"use": "faithfulness", "judge": "fast", "as": None}],
    }
    assert unsure(0.9, {"decided_by": "strict"}, spec) == 0.5
    assert unsure(0.9, {"decided_by": "overlap"}, spec) == 0.0
    assert unsure(0.9, {"decided_by": "strict"}) == 0.0


def test_steps_of_a_cascade_that_lie_apart_are_unsure() -> None:
    assert unsure(0.9, {"decided_by": "strict", "apart": 0.6}) == pytest.approx(0.6)
    assert unsure(0.9, {"decided_by": "strict", "apart": 0.2}) == 0.0


def test_low_values_are_those_below_the_bound_on_the_scale_of_the_metric() -> None:
    values = [value(f"q{at}", "faithfulness", number) for at, number in enumerate((0.0, 0.69, 0.7, 1.0))]
    values += [value(f"q{at}", "error_rate", number) for at, number in enumerate((0.0, 0.0, 0.2, 0.9))]
    table = answered(values, [sample(f"q{at}") for at in range(4)], lower_is_better=("error_rate",))
    rated = rate_low(table, ["faithfulness", "error_rate"], 0.7)
    assert {key[2]: round(rating, 2) for key, rating in rated.items()} == {"q0": 1.0, "q1": 0.31, "q3": 0.9}


def test_regressions_need_a_baseline_for_one_of_the_metrics_only() -> None:
    now = [value("q1", metric, 0.5) for metric in ("faithfulness", "completeness")]
    before = Baseline("main", answered([value("q1", "faithfulness", 0.8)], []))
    table = answered(now, [sample("q1")])
    rated = rate_regressed(table, ["completeness", "faithfulness"], before)
    assert {key[2]: round(fall, 2) for key, fall in rated.items()} == {"q1": 0.3}
    with pytest.raises(UsageError, match="the baseline lacks a value of completeness"):
        rate_regressed(table, ["completeness"], before)
    with pytest.raises(NoBaselineError):
        rate_regressed(table, ["completeness", "faithfulness"], None)


def test_what_a_waterfall_sent_to_a_person_is_found() -> None:
    reason = "sent to a person at retrieval: top similarity 0.20 is below 0.30"
    table = answered(
        [value("q1", "faithfulness", None, reason=reason), value("q2", "faithfulness", None, reason="no claims")],
        [sample("q1"), sample("q2")],
    )
    assert rate_person(table, ["faithfulness"]) == {("golden", "v1", "q1"): 1.0}


def test_metrics_of_judges_are_asked_about_and_without_them_those_from_0_to_1() -> None:
    judged = value("q1", "faithfulness", 0.5, details={"judge": "strict", "claims": []})
    others = [value("q1", "token_f1", 0.5), value("q1", "latency", 0.5), value("q1", "bleu", 31.0)]
    assert list_judged_metrics(answered([judged, *others], [sample("q1")])) == ("faithfulness",)
    assert list_judged_metrics(answered(others, [sample("q1")])) == ("token_f1",)
    assert list_judged_metrics(answered([value("q1", "token_f1", 0.5)], [sample("q1", answer=None)])) == ()
