"""The lists of frequent words are lists that the detector can use."""

from __future__ import annotations

from rageval_spec.judging.frequent_words import FREQUENT_WORDS, LETTERS
from rageval_spec.judging.language import NAMES


def test_all_words_are_lower_case_and_no_two_languages_have_the_same() -> None:
    for languages in FREQUENT_WORDS.values():
        for words in languages.values():
            assert words == words.lower()
            assert len(words.split()) >= 15
        assert len(set(languages.values())) == len(languages)


def test_rare_letters_are_of_languages_with_words() -> None:
    known = {language for languages in FREQUENT_WORDS.values() for language in languages}
    assert LETTERS.keys() <= known


def test_the_languages_whose_refusals_are_known_have_names() -> None:
    assert {"en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "ja", "ko", "ar", "hi"} <= NAMES.keys()
