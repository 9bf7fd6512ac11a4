from __future__ import annotations

import numpy as np
import pytest

from rageval_spec.audit.pairs import Asked, Pair, contradicts, find_pairs, is_same_word


def find(*texts: str, references: str | None = None) -> list[str]:
    answers = () if references is None else (references,)
    return [pair.sameness for pair in find_pairs([Asked(text, answers) for text in texts])]


def test_equal_words_are_equal_questions() -> None:
    assert find_pairs([Asked("Who won?"), Asked("Who lost?"), Asked("who  won"), Asked("WHO WON!")]) == [
        Pair(2, 0, "equal"), Pair(3, 0, "equal")
    ]  # fmt: skip
    assert find("", "", "?") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What flows between Bingen and Bonn?", "What flows between the Bingen and Bonn?"),
        ("How do I cancel my subscription?", "How do I cancel my subscriptions?"),
        ("How do I cancel my subscription?", "How do I cancel my subscripton?"),
        ("Please, how long does delivery take to Norway?", "How long does delivery take to Norway"),
    ],
)
def test_articles_endings_and_typing_errors_do_not_matter(one: str, other: str) -> None:
    assert find(one, other) == ["wording"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How many points did they score in Super Bowl 50?", "How many points did they score in Super Bowl 49?"),
        ("X increases resistance to tyrosine inhibitors", "X decreases resistance to tyrosine inhibitors"),
        ("Headaches are correlated with impairment", "Headaches are not correlated with impairment"),
        ("Which trains go from Paris to London on Sundays?", "Which trains go from London to Paris on Sundays?"),
        ("When was the treaty of Westphalia signed?", "Where was the treaty of Westphalia signed?"),
        ("Is patient hypertension treated with this drug?", "Is patient hypotension treated with this drug?"),
        ("Who is the president of the company?", "Who was the president of the company?"),
    ],
)  # fmt: skip
def test_questions_that_ask_something_else_are_no_pair(one: str, other: str) -> None:
    assert find(one, other) == []
    assert find(one, other, references="yes") == []


def test_more_words_are_the_same_question_if_the_gold_answer_is_the_same() -> None:
    one, other = (
        "who has most followers on instagram in world",
        "who has the most followers in the world on instagram now",
    )
    assert find(one, other) == []
    assert find(one, other, references="Selena Gomez") == ["reference"]
    assert find(one, other, references="14") == find(one, other, references="yes") == []


def test_close_vectors_need_the_same_gold_answer_and_the_same_names() -> None:
    def embed(texts: object) -> np.ndarray:
        return np.ones((len(texts), 3), dtype=np.float32)  # type: ignore[arg-type]

    texts = ["What city did the final take place in?", "Where was the final played?"]
    asked = [Asked(text, ("Santa Clara",)) for text in texts]
    assert [(pair.sameness, round(pair.share, 3)) for pair in find_pairs(asked, embed)] == [("meaning", 1.0)]
    assert find_pairs([Asked(text) for text in texts], embed) == []
    named = [Asked("When did Anna meet Bert?", ("May 1999",)), Asked("On which day was Carl born?", ("May 1999",))]
    assert find_pairs(named, embed) == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("order", "orders", True),
        ("subscription", "subscripton", True),
        ("cancel", "cancle", True),
        ("protons", "photons", False),
        ("2019", "2018", False),
        ("form", "from", False),
        ("class", "glass", False),
    ],
)
def test_words_with_an_ending_or_a_slip_are_the_same(one: str, other: str, expected: bool) -> None:
    assert is_same_word(one, other) is is_same_word(other, one) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (["30 days"], ["14 days"], True),
        (["Yes, within a year."], ["No, within a year."], True),
        (["Denver Broncos"], ["New England Patriots"], True),
        (["Denver Broncos"], ["the Broncos"], False),
        (["three"], ["3"], False),
        (["Paris", "Lyon"], ["Lyon"], False),
        (["a refund takes 14 days"], ["Refunds take 14 days"], False),
        ([], ["14 days"], False),
    ],
)
def test_gold_answers_contradict_if_none_is_like_another(one: list[str], other: list[str], expected: bool) -> None:
    assert contradicts(one, other) is contradicts(other, one) is expected
