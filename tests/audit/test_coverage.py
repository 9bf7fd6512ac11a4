from __future__ import annotations

from dataclasses import replace

from rageval_spec.audit.coverage import check_judgements, check_questions, check_references
from rageval_spec.audit.question_set import Question
from tests.question_sets import ask, wrap


def test_an_empty_question_and_judgements_of_no_question_are_errors() -> None:
    questions = replace(ask("Who?", "  "), lost=("q9",))
    check = check_questions(questions)
    assert [(one.code, one.severity, one.rows[0].query_id) for one in check.findings] == [
        ("empty_question", "error", "q2"), ("unknown_query", "error", "q9")
    ]  # fmt: skip
    assert check_questions(ask("", "", relevant=[{"d1": 1}, {"d1": 1}])).state == "clean"


def test_a_missing_reference_is_a_warning_unless_the_question_has_no_answer() -> None:
    questions = ask("a", "b", "c", references=["x"], relevant=[None, {"d1": 1}])
    check = check_references(questions)
    assert [one.rows[0].query_id for one in check.findings] == ["q2", "q3"]
    assert [one.message for one in check.findings] == ["no reference", "no reference, and no relevant document either"]
    unanswerable = [Question("q1", "a", "", ("x",)), Question("q2", "b", "", answerable=False)]
    assert check_references(wrap(unanswerable)).state == "clean"
    assert check_references(ask("a")).state == "skipped"


def test_questions_need_a_relevant_document_that_exists() -> None:
    judged = [{"d1": 1}, {"d1": 0}, None, {"d9": 1}, {"d1": 1, "d8": 2}]
    check = check_judgements(ask("a", "b", "c", "d", "e", relevant=judged, corpus={"d1": "x"}))
    assert [(one.rows[0].query_id, one.code, one.severity) for one in check.findings] == [
        ("q2", "no_relevant", "warning"),
        ("q3", "no_relevant", "warning"),
        ("q4", "absent_document", "error"),
        ("q5", "absent_document", "warning"),
    ]
    assert check.findings[2].details == {"absent": ["d9"], "relevant": 1}


def test_without_a_corpus_the_audit_says_that_documents_were_not_looked_up() -> None:
    check = check_judgements(ask("a", relevant=[{"d1": 1}]))
    assert check.state == "clean" and "no corpus" in check.remark
    assert check_judgements(ask("a")).state == "skipped"
