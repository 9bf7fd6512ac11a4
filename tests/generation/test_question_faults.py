""""""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from rageval_spec.generation.question_faults import (
    AcceptedQuestions,
    TextSpan,
    find_leak,
    find_quote,
    find_unanchored,
    split_question_words,
)
from rageval_spec.judging.segments import list_shingles
from rageval_spec.plugin import Embeddings

ASKED = "What is the refund period for shoes that were bought online?"


class Meaning:
    """An embedding model for which questions about money have one direction and all others another."""

    is_calibrated = True

    def embed(self, texts: Sequence[str], role: str) -> Embeddings:
        assert role == "query"
        vectors = [[2.0, 0.0] if "money" in text or "refund" in text else [0.0, 3.0] for text in texts]
        return Embeddings(np.array(vectors, dtype=np.float32), np.zeros(len(texts), dtype=bool))


def test_other_case_marks_and_small_words_are_the_same_question() -> None:
    known = AcceptedQuestions()
    assert known.find(ASKED) is None
    known.add("What else is there to know?")
    known.add(ASKED)
    found = known.find("what is the refund period, for the shoes that were bought online")
    assert found is not None
    assert found.number == 1
    assert found.likeness.endswith("% of the shingles")


def test_another_thing_in_the_same_sentence_is_another_question() -> None:
    known = AcceptedQuestions()
    known.add("What is the refund period for shoes?")
    assert known.find("What is the refund period for hats?") is None


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("How many litres of water per minute does the Ember pump deliver?",
         "How many litres of water per minute does the Nimbus pump deliver?", False),
        ("What is new in version 3.11 of the database server for clusters?",
         "What is new in version 3.12 of the database server for clusters?", False),
        ("How many litres of water per minute does the Ember pump deliver?",
         "How many liters of water per minute does the Ember pump deliver", True),
        ("How many litres of water per minute does the Ember pump deliver?",
         "How many litres of water per minute does the new Ember pump deliver?", True),
    ],
)  # fmt: skip
def test_only_a_word_of_its_own_on_each_side_tells_questions_apart(first: str, second: str, is_same: bool) -> None:
    known = AcceptedQuestions()
    known.add(first)
    assert (known.find(second) is not None) == is_same


def test_with_a_model_the_same_in_other_words_is_found() -> None:
    known = AcceptedQuestions(cast(Any, Meaning()))
    known.add("How tall is the tower?")
    known.add(ASKED)
    found = known.find("When do I get my money back?")
    assert found is not None
    assert (found.number, found.likeness) == (1, "cosine 1.00")
    assert known.find("Who built the bridge over the river in the north?") == (0, "cosine 1.00")


def test_empty_and_short_texts_are_compared() -> None:
    assert list_shingles("") != frozenset()
    known = AcceptedQuestions()
    known.add("a")
    assert known.find("A?") is not None
    assert known.find("b") is None


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What does the author say about refunds?", "does the author say"),
        ("According to the passage, when do refunds arrive?", "According to the passage"),
        ("What is shown in this table?", "shown in this table"),
        ("What is the  given\nexcerpt about, in the given excerpt?", "in the given excerpt"),
        ("Was steht laut dem Text über Erstattungen?", "laut dem Text"),
        ("Selon le texte, quand arrive le remboursement ?", "Selon le texte"),
        ("¿Qué dice, según el autor, la política?", "según el autor"),
    ],
)
def test_words_that_point_at_a_text_nobody_has_are_found(question: str, words: str) -> None:
    assert find_unanchored(question) == words


@pytest.mark.parametrize(
    "question",
    [
        "Who is the author of Dune?",
        "How do I share the document with a colleague?",
        "How do I change the colour of the text in a cell?",
        "Which paragraph of the GDPR covers consent?",
        "Wer ist der Autor von Faust?",
        "Qui est l'auteur de Candide ?",
    ],
)
def test_such_words_in_another_meaning_are_not(question: str) -> None:
    assert find_unanchored(question) is None


@pytest.mark.parametrize(
    ("question", "answer", "leak"),
    [
        ("Who founded Apple with Steve Jobs?", "Steve Jobs", "steve jobs"),
        ("Is the limit of 14 days for refunds 14 days?", "It is 14 days.", "14 days"),
        ("Why does a float switch open the circuit of the pump?", "A float switch opens the circuit", None),
        ("Does the pump stop because a float switch opens its circuit?", "A float switch opens its circuit.",
         "a float switch opens its circuit"),
        ("How long do refunds take?", "Refunds take 14 days.", None),
        ("Are refunds possible?", "Yes.", None),
        ("返金は十四日かかりますか", "十四日", "十四 四日"),
        ("What is it?", "The of and", None),
    ],
)  # fmt: skip
def test_an_answer_in_the_question_is_found(question: str, answer: str, leak: str | None) -> None:
    assert find_leak(question, answer, "factual", "en") == leak


def test_a_comparative_question_may_name_its_answer() -> None:
    assert find_leak("Which is longer, the Nile or the Rhine?", "The Nile", "factual", "en") == "nile"
    assert find_leak("Which is longer, the Nile or the Rhine?", "The Nile", "comparative", "en") is None


def test_frequent_words_of_the_language_do_not_count() -> None:
    assert find_leak("Wann wird die Rechnung bezahlt?", "die Rechnung", "factual", "de") == "rechnung"
    assert find_leak("Was ist das?", "Das ist es", "factual", "de-AT") is None


def test_words_have_no_marks_and_wide_scripts_give_pairs() -> None:
    assert split_question_words("Don't: re-use!") == ["don", "t", "re", "use"]
    assert split_question_words("東京都 Tokyo") == ["東京", "京都", "tokyo"]


TEXTS = ["Refunds take 14 days.\nThey go to the card — never “cash”.", "A licence costs 40 EUR. A seat costs 5 EUR."]


def said(spans: list[TextSpan] | None) -> list[str] | None:
    return None if spans is None else [TEXTS[place][start:end] for place, start, end in spans]


def test_a_quote_has_the_offsets_of_the_text_that_it_stands_in() -> None:
    assert find_quote("take 14 days", TEXTS) == [TextSpan(0, 8, 20)]
    assert said(find_quote("take 14 days", TEXTS)) == ["take 14 days"]


def test_case_white_space_marks_and_dashes_may_differ() -> None:
    assert said(find_quote('"refunds take 14 days. They go to the card - never "cash"."', TEXTS)) == [
        "Refunds take 14 days.\nThey go to the card — never “cash"
    ]


def test_parts_around_a_gap_are_found_in_their_order() -> None:
    assert said(find_quote("A licence costs ... 5 EUR", TEXTS)) == ["A licence costs", "5 EUR"]
    assert find_quote("5 EUR ... A licence costs", TEXTS) is None
    assert find_quote("Refunds take ... 5 EUR", TEXTS) is None, "the parts stand in two texts"


def test_a_quote_is_found_in_another_text_than_the_model_said() -> None:
    assert find_quote("A seat costs 5 EUR", TEXTS, place=0) == [TextSpan(1, 24, 42)]
    both = ["the same words", "the same words"]
    assert find_quote("same words", both, place=1) == [TextSpan(1, 4, 14)]
    assert find_quote("same words", both, place=7) == [TextSpan(0, 4, 14)]


def test_words_that_no_text_has_are_no_evidence() -> None:
    assert find_quote("take 15 days", TEXTS) is None
    assert find_quote("...", TEXTS) is None
    assert find_quote("", TEXTS) is None


def test_patterns_in_a_quote_are_plain_text() -> None:
    assert find_quote("a (b) [c] .*", ["See a (b) [c] .* there"]) == [TextSpan(0, 4, 16)]
