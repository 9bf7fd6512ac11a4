from __future__ import annotations

from rageval_spec.audit.repeats import check_repeats
from tests.question_sets import ask


def test_a_repeated_question_names_the_first_one_and_can_be_removed() -> None:
    duplicates, conflicts = check_repeats(ask("Who won?", "How?", "who won", references=["Ann", "So", "ann"]), None)
    (found,) = duplicates.findings
    assert (found.code, found.severity, found.removes) == ("duplicate", "warning", True)
    assert found.message == "the same question as set.jsonl:1"
    assert [row.query_id for row in found.rows] == ["q3", "q1"]
    assert conflicts.state == "clean"


def test_different_gold_answers_are_a_contradiction_and_no_duplicate() -> None:
    questions = ask("When is it due?", "when is it due", references=["14 days", "30 days"])
    duplicates, conflicts = check_repeats(questions, None)
    assert duplicates.state == "clean"
    (found,) = conflicts.findings
    assert (found.code, found.severity, found.removes) == ("contradiction", "error", False)
    assert "'30 days' here, '14 days' there" in found.message


def test_split_judgements_are_not_removed() -> None:
    questions = ask("Who won?", "Who won?", relevant=[{"d1": 1}, {"d2": 1}])
    duplicates, conflicts = check_repeats(questions, None)
    assert not duplicates.findings[0].removes
    assert "all relevant documents" in duplicates.findings[0].advice
    assert conflicts.skipped == "the dataset has no references"


def test_variants_of_one_question_in_a_group_may_be_equal() -> None:
    assert check_repeats(ask("Who won?", "Who won?", group="g"), None)[0].state == "clean"


def test_judgements_without_texts_are_not_compared() -> None:
    duplicates, conflicts = check_repeats(ask("", "", relevant=[{"d1": 1}]), None)
    assert duplicates.state == conflicts.state == "skipped"
