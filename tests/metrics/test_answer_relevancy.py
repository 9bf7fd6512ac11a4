from __future__ import annotations

import pytest

from rageval_spec.data.findings import Ability, Failed, Finding, Questions
from tests.metrics.judges import RuleJudge, TableModel, calls, measure, metric, sample, value_of

MODEL = TableModel(
    {"where?": [1, 0], "where is it?": [3, 4], "what?": [0, 1], "when?": [-1, 0], "none": [0, 0], "other?": [0, 2]}
)


def asking(**written: Questions | Failed) -> RuleJudge:
    return RuleJudge(questions=written)


def test_hand_worked() -> None:
    # cosines of "where?" with the generated questions: 0.6, 0, 1
    judge = asking(Paris=Questions(("where is it?", "what?", "where?"), noncommittal=False))
    (found,) = measure(metric("answer_relevancy", judge, MODEL), sample(question="where?", answer="Paris"))
    assert found.value == pytest.approx(1.6 / 3)
    assert found.details is not None
    assert found.details["way"] == "questions"
    assert [question["text"] for question in found.details["questions"]] == ["where is it?", "what?", "where?"]
    assert [question["cosine"] for question in found.details["questions"]] == pytest.approx([0.6, 0.0, 1.0])


def test_a_noncommittal_answer_scores_0() -> None:
    judge = asking(dunno=Questions(("where?",), noncommittal=True))
    model = TableModel({})
    (found,) = measure(metric("answer_relevancy", judge, model), sample(question="where?", answer="dunno"))
    assert (found.value, found.status, found.reason) == (0.0, "scored", "the answer is noncommittal")
    assert found.details == {"way": "questions", "noncommittal": True, "questions": ["where?"]}
    assert model.asked == []


def test_all_questions_are_asked_in_one_call_and_equal_answers_only_once() -> None:
    judge = asking(a=Questions(("what?",), False), b=Questions(("where?", "what?"), False))
    model = TableModel(MODEL.vectors)
    built = metric("answer_relevancy", judge, model, questions=2)
    samples = [
        sample("1", "where?", answer="a"),
        sample("2", "other?", answer="a"),
        sample("3", "where?", answer=" "),
        sample("4", "where?", answer="b"),
    ]
    found = measure(built, *samples)
    assert [one.value for one in found] == pytest.approx([0.0, 1.0, 0.0, 0.5])
    assert found[2].reason == "the answer is empty"
    assert judge.asked == [("2 questions", ("a", "b"))]
    assert model.asked == [("query", ("where?", "what?", "other?"))]
    assert calls(built.estimate(samples)) == ["questions 2  a", "questions 2  b"]
    assert built.name == "answer_relevancy(questions=2)"


def test_a_negative_cosine_is_kept() -> None:
    judge = asking(a=Questions(("when?",), noncommittal=False))
    assert value_of(metric("answer_relevancy", judge, MODEL), sample(question="where?", answer="a")) == -1.0


def test_failures_are_errors() -> None:
    judge = asking(
        a=Failed("no JSON", "Sure"),
        b=Questions((), noncommittal=False),
        c=Questions(("none", "where?"), noncommittal=False),
        d=Questions(("where?", " "), noncommittal=False),
    )
    samples = [sample(answer, "where?", answer=answer) for answer in "abcd"]
    found = measure(metric("answer_relevancy", judge, MODEL), *samples)
    assert [(one.value, one.status, one.reason) for one in found] == [
        (None, "error", "no JSON"),
        (None, "error", "the judge wrote no question"),
        (None, "error", "minilm gives a vector of zeros for 'none'"),
        (pytest.approx(1.0), "scored", None),
    ]
    assert found[0].details == {"raw": "Sure"}


@pytest.mark.parametrize(
    ("abilities", "kind"), [({"grade", "usefulness", "support"}, "grade"), ({"usefulness", "support"}, "usefulness")]
)
def test_judges_that_cannot_generate_questions(abilities: set[Ability], kind: str) -> None:
    judge = RuleJudge(abilities=frozenset(abilities), say=lambda one: Finding(0.4) if one.answer == "a" else None)
    built = metric("answer_relevancy", judge)  # no embedding model is needed
    (found,) = measure(built, sample(answer="a"))
    assert found.value == 0.4
    assert found.details == {"way": kind, "score": 0.4, "claims": []}
    (criterion,) = judge.criteria
    assert (criterion.kind, criterion.text, criterion.against) == (kind, "answer", "question")
    assert built.criteria() == (criterion,)


def test_a_judge_that_finds_nothing_gives_no_value() -> None:
    judge = RuleJudge(abilities=frozenset({"grade"}), say=lambda _: Finding(None, reason="no text"))
    (found,) = measure(metric("answer_relevancy", judge), sample(answer="a"))
    assert (found.value, found.status, found.reason) == (None, "unscorable", "no text")


def test_a_refusal_scores_0_without_a_judge() -> None:
    judge = asking()
    (found,) = measure(metric("answer_relevancy", judge, TableModel({})), sample(answer="I don't know."))
    assert (found.value, found.status, found.reason) == (0.0, "scored", "the answer refuses: 'i don't know'")
    assert judge.asked == []
