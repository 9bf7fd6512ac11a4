from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.findings import Failed, Finding, Questions
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample

DONT_KNOW, PARIS = "I don't know.", "It is Paris."


@pytest.mark.parametrize(
    ("answer", "answerable", "value"),
    [
        (DONT_KNOW, False, 1.0),
        (DONT_KNOW, True, 0.0),
        (PARIS, False, 0.0),
        (PARIS, True, 1.0),
        ("", False, 1.0),
        ("", True, 0.0),
    ],
)
def test_hand_worked(answer: str, answerable: bool, value: float) -> None:
    (found,) = measure(metric("answerability", by="phrases"), sample(answer=answer, answerable=answerable))
    assert found.value == value
    assert found.details is not None
    assert found.details["answerable"] is answerable
    assert found.details["refused"] is (answer != PARIS)


def test_rates_of_rgb_and_nomiracl() -> None:
    # 3 unanswerable questions, 2 refused: rejection rate 2/3; 2 answerable ones, 1 refused: error rate 1/2
    given = [(DONT_KNOW, False), (DONT_KNOW, False), (PARIS, False), (PARIS, True), (DONT_KNOW, True)]
    samples = [sample(str(n), answer=answer, answerable=known) for n, (answer, known) in enumerate(given)]

    def values(**keys: Any) -> list[float | None]:
        return [one.value for one in measure(metric("answerability", by="phrases", **keys), *samples)]

    assert values() == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert values(of="unanswerable") == [1.0, 1.0, 0.0, None, None]
    assert values(of="answerable") == [None, None, None, 1.0, 0.0]
    left_out = measure(metric("answerability", by="phrases", of="answerable"), samples[0])[0]
    assert (left_out.status, left_out.reason) == ("unscorable", "the question is unanswerable")


def test_phrases_of_the_spec_count_as_refusals() -> None:
    built = metric("answerability", by="phrases", phrases=["[NO ANSWER]", " "])
    (found,) = measure(built, sample(answer="so: [no  answer]!", answerable=False))
    assert found.value == 1.0
    assert found.details == {"refused": True, "answerable": False, "decided_by": "phrases", "phrase": "[no answer]"}
    assert measure(built, sample(answer="42", answerable=False))[0].value == 0.0
    assert built.name == "answerability(by=phrases)"
    assert "write 'by: phrases'" in str(metric("answerability", RuleJudge(), phrases=["x"]).check())


def test_a_judge_that_generates_questions_reports_noncommittal_answers() -> None:
    judge = RuleJudge(
        questions={"a": Questions(("q?",), False), "b": Questions((), True), "c": Failed("no JSON", "Sure")}
    )
    built = metric("answerability", judge)
    samples = [sample(answer, answer=answer, answerable=False) for answer in "abca"]
    found = measure(built, *samples)
    assert [one.value for one in found] == [0.0, 1.0, None, 0.0]
    assert (found[2].status, found[2].reason, found[2].details) == ("error", "no JSON", {"raw": "Sure"})
    assert judge.asked == [
        ("3 questions", ("a", "b", "c"))
    ]  # as many as answer_relevancy asks, so that calls are shared
    assert built.criteria() == ()
    assert calls(built.estimate(samples)) == ["questions 3  a", "questions 3  b", "questions 3  c"]


def test_a_judge_that_grades() -> None:
    grades: dict[str, Finding | Failed] = {
        "a": Finding(0.5),
        "b": Finding(0.49),
        "c": Failed("no JSON"),
        "d": Finding(None, reason="no text"),
    }
    judge = RuleJudge(abilities=frozenset({"grade"}), say=lambda one: grades[str(one.answer)])
    found = measure(metric("answerability", judge), *(sample(a, answer=a, answerable=False) for a in grades))
    assert [(one.value, one.status) for one in found] == [
        (1.0, "scored"), (0.0, "scored"), (None, "error"), (None, "unscorable"),
    ]  # fmt: skip
    assert judge.criteria[0].kind == "grade"
