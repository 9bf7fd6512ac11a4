from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.assessment import Failed, Finding, Questions
from rageval_spec.refusals import REFUSAL_PHRASES, find_refusal
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


@pytest.mark.parametrize(
    "answer",
    [
        "I don’t know the answer to this question.",
        "Sorry, but I CANNOT ANSWER that.",
        "The provided documents do not contain the release date.",
        "Insufficient information",
        "Das geht aus den Texten nicht hervor: keine Angaben.",
        "Je ne sais pas.",
        "Los documentos no mencionan la fecha.",
        "Non lo so.",
        "Não sei.",
        "Ik weet het niet.",
        "Я не знаю.",
        "根据文档,信息不足,无法回答。",
        "申し訳ありませんが、わかりません。",
        "죄송하지만 모르겠습니다.",
        "लगता है, मुझे नहीं पता।",
        "عذرا، لا أعرف.",
    ],
)
def test_refusals_are_found(answer: str) -> None:
    assert find_refusal(answer) is not None


@pytest.mark.parametrize(
    "answer",
    [
        "Paris.",
        "The mountain does contain gold.",
        "Casino lo sé is a song.",  # "no lo sé" stands inside a word
        "Das weiß jeder: Berlin.",
        "",
        "Es gibt Informationen dazu auf Seite 3.",
        "No, it was built in 1889.",
    ],
)
def test_answers_are_no_refusals(answer: str) -> None:
    assert find_refusal(answer) is None


def test_every_phrase_of_the_list_finds_itself() -> None:
    assert len(REFUSAL_PHRASES) == 16
    for phrases in REFUSAL_PHRASES.values():
        for phrase in phrases:
            assert find_refusal(f"({phrase.capitalize()})") is not None


def test_own_phrases() -> None:
    built = metric("answerability", by="phrases", phrases=["[NO ANSWER]", " "])
    (found,) = measure(built, sample(answer="so: [no  answer]!", answerable=False))
    assert found.value == 1.0
    assert found.details == {"refused": True, "answerable": False, "decided_by": "phrases", "phrase": "[NO ANSWER]"}
    assert measure(built, sample(answer="42", answerable=False))[0].value == 0.0
    assert built.name == "answerability(by=phrases)"
    assert "write 'by: phrases'" in str(metric("answerability", RuleJudge(), phrases=["x"]).check())


def test_a_judge_that_makes_up_questions_says_noncommittal() -> None:
    judge = RuleJudge(
        questions={"a": Questions(("q?",), False), "b": Questions((), True), "c": Failed("no JSON", "Sure")}
    )
    built = metric("answerability", judge)
    samples = [sample(answer, answer=answer, answerable=False) for answer in "abca"]
    found = measure(built, *samples)
    assert [one.value for one in found] == [0.0, 1.0, None, 0.0]
    assert (found[2].status, found[2].reason, found[2].details) == ("error", "no JSON", {"raw": "Sure"})
    assert judge.asked == [("3 questions", ("a", "b", "c"))]  # as many as answer_relevancy, so that calls are shared
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
