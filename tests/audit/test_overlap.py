from __future__ import annotations

from rageval_spec.audit.overlap import check_overlap
from tests.question_sets import ask


def test_questions_of_the_training_data_are_errors() -> None:
    train = ask("Who won?", "How do I cancel my subscription?", relevant=[{"d1": 1}, {"d2": 1}])
    test = ask("who WON", "How do I cancel my subscriptions?", "Who lost?", relevant=[{"d1": 1}, {"d5": 1}, {"d6": 1}])
    check = check_overlap(test, train, "train.jsonl")
    assert [(one.code, one.severity, one.rows[0].query_id, one.removes) for one in check.findings] == [
        ("train_overlap", "error", "q1", True),
        ("train_near_overlap", "warning", "q2", False),
    ]
    assert check.findings[1].details["train"]["place"] == "set.jsonl:2"
    assert check.remark == (
        "Compared with 2 questions of train.jsonl. "
        "1 question (33%) has a relevant document that is also relevant there."
    )


def test_questions_that_are_only_alike_do_not_overlap() -> None:
    train, test = ask("Who won in 2019?"), ask("Who won in 2020?")
    assert check_overlap(test, train, "train.jsonl").state == "clean"
    skipped = check_overlap(test, None, "").skipped
    assert skipped is not None and "--train FILE" in skipped
