from __future__ import annotations

import re

import pytest

from rageval_spec.judging.refusal_phrases import REFUSAL_PHRASES
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
