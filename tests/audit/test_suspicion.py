from __future__ import annotations

from rageval_spec.audit.measured import Output
from rageval_spec.audit.question_set import Question
from rageval_spec.audit.suspicion import LIKELY, suspect

TEXTS = {
    "label": "The museum opens at nine on weekdays.",
    "found": "Refunds of a subscription take fourteen days after the cancellation.",
    "other": "Bicycles are not allowed in the park.",
}


def ask(question: str, *references: str, label: str = "label") -> Question:
    return Question("q1", question, "", references, {label: 1})


def rank(*firsts: str) -> list[Output]:
    return [Output(f"s{number}", (doc_id,), None) for number, doc_id in enumerate(firsts)]


def test_a_document_with_the_questions_words_that_all_systems_find_speaks_against_the_label() -> None:
    question = ask("How long do refunds of a subscription take after a cancellation?")
    found = suspect(question, rank("found", "found", "found"), TEXTS)
    assert found.score >= LIKELY
    assert found.reasons[0] == "3 of 3 systems put 'found' first"
    assert "of the question's words, and the relevant document" in found.reasons[1]


def test_a_document_that_is_judged_as_not_relevant_is_said_to_be() -> None:
    question = Question("q1", "How long do refunds take?", "", (), {"label": 1, "found": 0})
    reasons = suspect(question, rank("found", "found"), TEXTS).reasons
    assert reasons[0] == "2 of 2 systems put 'found' first, which is judged as not relevant"


def test_a_hard_question_is_not_suspicious() -> None:
    question = ask("When does the museum open on weekdays?")
    found = suspect(question, rank("found", "other"), TEXTS)
    assert found.score < 0.3 and found.reasons == ()


def test_the_gold_answer_in_another_document_settles_it() -> None:
    question = ask("What is the time limit?", "fourteen days")
    found = suspect(question, rank("found", "other", "found"), TEXTS)
    assert found.score == 1.0 and "it contains the reference 'fourteen days'" in found.reasons[-1]


def test_without_texts_only_agreement_counts() -> None:
    question = ask("What is the time limit?", label="lost")
    assert suspect(question, rank("x", "x"), {}).score == 0.5
    assert suspect(question, rank("x", "y"), {}).score == 0.0


def test_answers_that_agree_with_each_other_speak_against_the_reference() -> None:
    question = Question("q1", "How long?", "", ("thirty days",))
    agreeing = [Output("a", None, "It takes 14 days."), Output("b", None, "it takes 14 days")]
    found = suspect(question, agreeing, {})
    assert round(found.score, 2) == 0.67, "they agree fully, and a third of their words are those of the reference"
    assert found.reasons == (
        "2 systems give nearly the same answer, 'It takes 14 days.', and the reference is 'thirty days'",
    )
    apart = [Output("a", None, "It takes 14 days."), Output("b", None, "Nobody knows that")]
    assert suspect(question, apart, {}).reasons == ()
    assert suspect(question, agreeing[:1], {}).score == 0.0
