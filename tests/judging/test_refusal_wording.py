""""""

from __future__ import annotations

import re

import pytest

from rageval_spec.judging import refusal_wording as guards
from rageval_spec.judging.refusal_wording import REFUSAL_PHRASES
from rageval_spec.judging.refusals import find_refusal


@pytest.mark.parametrize("language", REFUSAL_PHRASES)
def test_phrases_are_written_as_the_search_folds_them(language: str) -> None:
    """In lower case, without duplicates, with a star only between words: at an end it would match anything."""
    phrases = REFUSAL_PHRASES[language]
    assert len({*phrases}) == len(phrases)
    for phrase in phrases:
        assert phrase == phrase.lower().strip()
        assert not re.search(r"^\^?\s*\*|\*\s*$|\*\s*\*", phrase), phrase


@pytest.mark.parametrize("language", REFUSAL_PHRASES)
def test_a_phrase_is_found_without_the_optional_words_at_its_star(language: str) -> None:
    for phrase in REFUSAL_PHRASES[language]:
        said = " ".join(phrase.removeprefix("^").replace("*", "").split())
        assert find_refusal(said) is not None, phrase


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("i don't know when, but he was born in ulm", 2),
        ("잘 모르겠지만 그는 울름에서 태어났습니다", 2),
        ("죄송하지만 잘 모르겠습니다", 1),
        ("لا اعرف التاريخ، لكنه ولد في اولم", 2),
        ("मुझे नहीं पता, लेकिन वह उल्म में पैदा हुए", 2),
        ("i do not know the answer", 1),
    ],
)
def test_a_sentence_is_split_where_it_turns(text: str, clauses: int) -> None:
    assert len([part for part in guards.TURN.split(text) if part and part.strip()]) == clauses


@pytest.mark.parametrize(
    "clause",
    [
        *["unfortunately", "i'm very sorry", "please ask the support team", "tut mir leid", "désolé", "lo siento"],
        *["죄송합니다", "عذرا", "क्षमा करें", "माफ\u093c करें", "非常抱歉", "申し訳ありません", "извините", "przepraszam"],
    ],
)
def test_courtesies_claim_nothing(clause: str) -> None:
    assert guards.MANNERS.fullmatch(clause)


@pytest.mark.parametrize(
    ("quoted", "counts"),
    [
        ('"I don\'t know."', True),
        ("'I don't know' is a song.", False),
        ('He answered with "I cannot answer".', True),
        ('"I cannot answer" was all he wrote.', False),
        ("“I don’t know” means no points.", False),
    ],
)
def test_a_quotation_in_a_sentence_that_goes_on_is_no_refusal(quoted: str, counts: bool) -> None:
    assert (find_refusal(quoted) is not None) is counts


@pytest.mark.parametrize("word", ["if", "when", "unless", "should", "once", "in case"])
def test_an_english_condition_ends_with_its_clause(word: str) -> None:
    assert guards.CONDITION_IN_ENGLISH.search(f"{word} you ")
    assert guards.CONDITION_IN_ENGLISH.search(f"open the page. {word} ")
    assert not guards.CONDITION_IN_ENGLISH.search(f"{word} asked about paris, ")
    assert not guards.CONDITION_IN_ENGLISH.search("the shelf ")
