"""The questions that changed between two evaluations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.commands.compare.changes import find_changes
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Diagnosis
from rageval_spec.drawing.question_order import Filter
from rageval_spec.errors import UsageError
from tests.answered_evaluation import answered, sample, value
from tests.commands.compare.results import AFTER, BEFORE, evaluation


def kinds(after: Evaluation, before: Evaluation, **wanted: object) -> list[tuple[str, str]]:
    found = find_changes(after, before, Filter(**wanted))  # type: ignore[arg-type]
    return [(one.query_id, one.kind) for one in found.shown]


def test_each_question_has_one_kind_and_broken_ones_come_first() -> None:
    found = find_changes(evaluation(AFTER), evaluation(BEFORE), Filter())
    assert [(one.query_id, one.kind) for one in found.shown] == [
        ("q1", "broken"),
        ("q2", "fixed"),
        ("q3", "worse"),
        ("q4", "changed"),
    ]
    assert found.counts == {"broken": 1, "fixed": 1, "worse": 1, "better": 0, "changed": 1}
    assert found.shared == 5
    broken = found.shown[0]
    assert (broken.metric, broken.before, broken.after) == ("token_f1", 0.9, 0.1)
    assert broken.size == pytest.approx(0.8)
    assert (broken.answer_before, broken.answer) == ("It is red.", "It is blue.")


def test_the_largest_changes_come_first_and_the_limit_is_for_each_kind() -> None:
    before = evaluation({"q1": 0.9, "q2": 0.9, "q3": 0.2, "q4": 0.3})
    after = evaluation({"q1": 0.4, "q2": 0.1, "q3": 0.6, "q4": 0.9})
    assert kinds(after, before) == [("q2", "broken"), ("q1", "broken"), ("q4", "fixed"), ("q3", "fixed")]
    assert kinds(after, before, limit=1) == [("q2", "broken"), ("q4", "fixed")]


def test_the_diagnosis_says_what_is_wrong() -> None:
    before, after = evaluation({"q1": 0.4}), evaluation({"q1": 0.2})
    assert kinds(after, before) == [("q1", "worse")]
    diagnosis = Diagnosis("ndcg@10", "token_f1", None, 0.3, 0.7)
    assert kinds(replace(after, diagnosis=diagnosis), before) == [("q1", "broken")]


def test_an_answer_that_came_or_went_is_fixed_or_broken() -> None:
    here, gone = sample("q1"), sample("q1", answer=None, error="timeout")
    rows, none = [value("q1", "token_f1", 0.9)], [value("q1", "token_f1", None)]
    assert kinds(answered(none, [gone]), answered(rows, [here])) == [("q1", "broken")]
    assert kinds(answered(rows, [here]), answered(none, [gone])) == [("q1", "fixed")]
    (change,) = find_changes(answered(none, [gone]), answered(rows, [here]), Filter()).shown
    assert (change.size, change.metric, change.error) == (1.0, None, "timeout")


def test_the_metric_that_crosses_the_line_decides_before_one_that_moves_further() -> None:
    before = answered([value("q1", "token_f1", 0.55), value("q1", "ndcg@10", 0.51)])
    after = answered([value("q1", "token_f1", 0.95), value("q1", "ndcg@10", 0.45)])
    (change,) = find_changes(after, before, Filter()).shown
    assert (change.kind, change.metric) == ("broken", "ndcg@10")
    assert kinds(after, before, metric="token_f1") == [("q1", "better")]


def test_systems_that_only_retrieve_are_compared_too() -> None:
    before, after = answered([value("q1", "ndcg@10", 0.9)]), answered([value("q1", "ndcg@10", 0.1)])
    assert kinds(after, before) == [("q1", "broken")]


def test_questions_of_one_side_are_left_out() -> None:
    assert find_changes(evaluation({"q1": 0.5, "q2": 0.1}), evaluation({"q1": 0.5, "q3": 0.1}), Filter()).shared == 1


def test_a_renamed_system_is_matched_and_filters_apply() -> None:
    after, before = evaluation(AFTER, "v2"), evaluation(BEFORE, "v1")
    assert len(kinds(after, before, system="v2", dataset="golden")) == 4
    assert find_changes(after, before, Filter(limit=1)).shown[0].answer_before == "It is red."
    with pytest.raises(UsageError, match="unknown system 'v1'"):
        kinds(after, before, system="v1")


def test_an_answer_that_one_of_the_results_does_not_hold_is_not_said_to_be_removed() -> None:
    values = ([value("q1", "token_f1", 1.0)], [value("q1", "token_f1", 0.0)])
    before = answered(values[0], [sample("q1", status="answered")])
    (one,) = find_changes(answered(values[1], [sample("q1", status="answered", answer=None)]), before, Filter()).shown
    assert (one.kind, one.answer_before, one.answer) == ("broken", None, None)
    (one,) = find_changes(answered(values[1]), before, Filter()).shown
    assert (one.kind, one.answer_before, one.answer) == ("broken", None, None)
    (one,) = find_changes(answered(values[1], [sample("q1", status="failed", answer=None)]), before, Filter()).shown
    assert (one.kind, one.answer is None, one.answer_before is None) == ("broken", True, False)
