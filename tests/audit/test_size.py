from __future__ import annotations

from rageval_spec.audit.size import Power, check_size
from tests.question_sets import ask


def test_too_few_questions_and_a_gate_that_they_cannot_decide() -> None:
    power = Power("flat", "ndcg@10", "bm25", 2, 0.3, 0.25, 0.02, 1770)
    check = check_size(ask("a", "b"), 200, [power], "")
    assert [(one.code, one.severity) for one in check.findings] == [
        ("few_questions", "warning"),
        ("weak_gate", "warning"),
    ]
    assert "takes 1,770 questions; there are 2" in check.findings[1].message
    assert "raise max_drop to 0.250" in check.findings[1].advice
    assert check.tables[0].rows == (("flat", "ndcg@10", "bm25", "2", "0.300", "0.250"),)
    assert check.tables[0].values == (("flat", "ndcg@10", "bm25", 2, 0.3, 0.25),)


def test_the_drop_to_raise_a_gate_to_is_one_that_the_questions_show() -> None:
    (found,) = check_size(ask("a"), 1, [Power("s", "m", "b", 40, 0.156, 0.0711, 0.02, 483)], "").findings
    assert found.advice == "add 443 questions, or raise max_drop to 0.072"


def test_a_drop_without_a_second_evaluation_is_said_to_be_an_upper_estimate() -> None:
    alone = check_size(ask("a"), 1, [Power("s", "m", "another evaluation", 40, 0.3, 0.1)], "")
    assert "upper estimate" in alone.remark and "plan --power --from A --from B" in alone.remark
    assert "upper estimate" not in check_size(ask("a"), 1, [Power("s", "m", "b", 40, 0.3, 0.1)], "").remark


def test_without_values_the_check_says_what_is_missing() -> None:
    check = check_size(ask("a"), 1, None, "'x' has not been evaluated")
    assert check.state == "clean" and "'x' has not been evaluated" in check.remark


def test_a_gate_that_the_questions_can_decide_is_fine() -> None:
    assert check_size(ask("a"), 1, [Power("s", "m", "b", 500, 0.1, 0.01, 0.02, 300)], "").state == "clean"


def test_equal_values_say_nothing_about_the_spread() -> None:
    check = check_size(ask("a"), 1, [Power("s", "m", "b", 8, 0.0, 0.0)], "")
    assert check.tables[0].rows[0][-1] == "unknown: all values are equal"
