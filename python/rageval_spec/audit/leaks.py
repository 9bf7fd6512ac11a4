"""Checks for gold answers that stand in their own question."""

from __future__ import annotations

import re

from rageval_spec.audit.finding import Check, Finding
from rageval_spec.audit.question_set import Question, QuestionSet
from rageval_spec.audit.words import contains, drop_fillers, find_numbers, is_yes_or_no, split_words

_CHOICE = re.compile(
    r"\b(or|oder|ou|ode|o|u|lub|czy|eller|или|або|veya|mı|mi|nebo|sau|hoặc)\b|还是|それとも|أم|या", re.IGNORECASE
)
_DUTCH_CHOICE = re.compile(r"\bof\b", re.IGNORECASE)
_DUTCH = re.compile(r"\b(wie|wat|welke?|waar|wanneer|hoe|waarom|het|een|zijn|heeft|niet)\b", re.IGNORECASE)
"""Words of Dutch questions, because "of" is "or" in Dutch and another word in English."""
_AND = r"\s(?:and|und|et|y|e|en|i|och|ve|и|та|a|și|và|&)\s"
_SHORTEST = 4
"""Letters. Shorter answers, such as a single sign, stand in a question by chance."""


def check_leaks(questions: QuestionSet) -> Check:
    """The check `leaks`.

    A question that offers its answers ("A or B?") does not leak one, and small numbers stand there by chance.
    """
    title = "Answers in their question"
    if not questions.has_references:
        return Check("leaks", title, skipped="the dataset has no references")
    found = ((question, find_leak(question)) for question in questions.questions)
    return Check("leaks", title, tuple(_describe(question, leak) for question, leak in found if leak is not None))


def find_leak(question: Question) -> str | None:
    """The gold answer that stands in its question; None if there is none, or if the question offers answers."""
    if _offers_answers(question.text):
        return None
    asked = drop_fillers(split_words(question.text))
    return next(
        (text for text in question.references if _stands_in(asked, text) and not _is_listed(question, text)), None
    )


def _offers_answers(text: str) -> bool:
    """Whether the question asks to choose: "A or B?"."""
    return bool(_CHOICE.search(text)) or (bool(_DUTCH_CHOICE.search(text)) and bool(_DUTCH.search(text)))


def _is_listed(question: Question, reference: str) -> bool:
    """Whether the question names it next to others: "between A and B", "A, B and C"."""
    named = re.escape(reference.strip())
    return bool(re.search(rf"{named}\s*(,|{_AND})|(,|{_AND})\s*(the\s+)?{named}", question.text, re.IGNORECASE))


def _stands_in(asked: tuple[str, ...], reference: str) -> bool:
    words = drop_fillers(split_words(reference))
    if not words or is_yes_or_no(words) or len("".join(words)) < _SHORTEST:
        return False
    return find_numbers(words) != set(words) and contains(asked, words)


def _describe(question: Question, leak: str) -> Finding:
    shown = leak if len(leak) <= 60 else f"{leak[:59]}…"
    return Finding(
        "leak",
        "warning",
        f"the reference '{shown}' stands in the question",
        "ask so that the answer must be found; a system that repeats the question is right as it is",
        (question.row,),
        details={"reference": leak},
    )
