""""""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import kernels
from rageval_spec.judging.mentions import (
    Mentions,
    find_language_of,
    find_mentions,
    is_name_in,
    may_be_noun,
    spell_dates,
)

WORDS = ("Marie", "Curie", "Paris", "met", "in", "2019", "1,200", "7", "the")


def find(text: str, *sources: str) -> Mentions:
    [mentions] = find_mentions([(text, sources)])
    return mentions


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("It has 1,000 seats.", "1000 seats"),
        ("It has 1000 seats.", "1.000 Sitze"),
        ("It has 1000 seats.", "1 000 places"),
        ("It grew by 5%.", "by 5 %"),
        ("It grew by 5 percent.", "by 5%"),
        ("It cost $3.5 million.", "3,500,000 dollars"),
        ("It cost 3,500,000.", "$3.5m"),
        ("They had 12 sheep.", "twelve sheep"),
        ("It was the 21st.", "the twenty-first"),
        ("It opened on 12 May 1999.", "opened 1999-05-12"),
        ("It opened on May 12, 1999.", "opened on 12/05/1999"),
        ("It opened in May 1999.", "opened 12.5.1999"),
        ("It opened on 12.05.1999.", "opened on 12 May 1999"),
        ("It took 2½ hours.", "it took 2.5 hours"),
        ("It took 2.5 hours.", "it took 2 ½ hours"),
        ("It costs 1,200.50.", "1 200,50"),
        ("It is in version 2.1.3.", "it is in v2.1.3"),
        ("We heard NASA speak.", "National Aeronautics and Space Administration"),
        ("We heard the World Health Organization speak.", "the WHO"),
        ("It costs 5 EUR.", "costs 5 €"),
        ("We met Mr. Jones.", "Jones"),
        ("Город основан Юрием Долгоруким.", "Юрий Долгорукий"),
        ("They met in the U.S. in May.", "the US, May"),
        ("We met Jean-Luc's friends.", "Jean Luc"),
        ("He met Marie Curie.", "Curie, Marie"),
        ("The population of Zürich grew.", "Zurich"),
    ],
)
def test_other_forms_of_a_number_or_name_are_found(text: str, source: str) -> None:
    assert find(text, "Nothing here.", source).missing == ()
    assert find(text, "Nothing here.").missing != ()


def test_missing_numbers_and_names_are_named_in_order() -> None:
    mentions = find("In 2019, Marie Curie moved to Paris with 7 friends.", "Marie moved to Paris.", "He had 7.")
    assert mentions == Mentions(4, ("2019", "Marie Curie"))
    assert mentions.share == 0.5
    assert mentions.describe("contexts") == "not in the contexts: 2019, Marie Curie"


def test_a_number_within_a_name_or_a_date_is_not_enough() -> None:
    assert find("It caused COVID-19.", "19 people").missing == ("COVID-19",)
    assert find("It opened on 12 May 1999.", "12 people in 1999").missing == ("12 May 1999",)
    assert find("It has 1,000 seats.", "It has 1 seat.").missing == ("1,000",)


def test_citations_list_numbers_and_first_words_are_not_looked_up() -> None:
    assert find("2. Whales sing [1], and [2, 3] dive.", "") == Mentions(0, ())
    assert find("US whales sing.", "") == Mentions(1, ("US",))
    assert find('"Moby Dick swims."', "") == Mentions(1, ("Moby Dick",))


def test_numbers_of_sources_and_steps_are_not_looked_up() -> None:
    assert find("According to Context 2, documents 1 and 3 and Source [4], it is red.", "") == Mentions(0, ())
    assert find("**Step 3:** Press it.", "") == Mentions(0, ())
    assert find("In context 2, there are 5 cats, and the document weighs 12.5 tons.", "").missing == ("5", "12.5 tons")


def test_a_german_noun_is_not_a_missing_name() -> None:
    source = "Ein Bauwerk aus Eisen ist nicht das, was wir von der Gesellschaft wollen."
    assert find("Laut Vertrag hat die Firma ein Kündigungsrecht.", source).missing == ()
    assert find("Der Turm wurde von Gustave Eiffel und der BMW gebaut.", source).missing == ("Gustave Eiffel", "BMW")


def test_another_name_is_not_an_abbreviation_or_another_form() -> None:
    assert find("We signed an NDA.", "Now did Anna sign it?").missing == ("NDA",)
    assert find("We met Mr. Brown.", "Browne").missing == ("Mr. Brown",)
    assert find("It is in version 3.", "it is in v3.1").missing == ("3",)


def test_many_missing_names_are_counted() -> None:
    mentions = find("It had 1, 2, 3, 4, 5, 6, 17 and 18.", "")
    assert mentions.describe("answer") == "not in the answer: 1, 2, 3, 4, 5, 6 and 2 more"


def test_nothing_to_look_up_is_found() -> None:
    assert find_mentions([]) == []
    assert find("", "") == Mentions(0, ())
    assert find("It is so.").share == 1
    assert find("It is so.").describe("contexts") is None


NUMBER_OF_NAME = re.compile("(?:Marie|Curie|Paris) (?:7|1,200)")
"""A number that belongs to the name before it, as in `Apollo 11`; with this name, only the same number is the same."""
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join).filter(lambda text: not NUMBER_OF_NAME.search(text))


@given(st.lists(st.tuples(texts, st.lists(texts, max_size=3)), max_size=4))
def test_names_are_missing_if_one_of_their_words_is_in_no_source(pairs: list[tuple[str, list[str]]]) -> None:
    """All names of all texts at once give what a search for each word by itself gives."""
    for (text, sources), mentions in zip(pairs, find_mentions(pairs), strict=True):
        for name in mentions.missing:
            assert any(kernels.word_support([word], [sources])[0][-1].found == 0 for word in name.split())
        # Function words within a name count as found.
        words = {word.replace(",", "") for source in sources for word in source.split()} | {"the", "in"}
        said = text.lstrip()
        expected = [name for name in kernels.names(said) if not words.issuperset(name.split())]
        expected = [name for name in expected if name.isdigit() or not is_first(name, said)]
        assert sorted(name.replace(",", "") for name in mentions.missing) == sorted(expected)


def is_first(name: str, text: str) -> bool:
    return " " not in name and text.startswith(name)


@given(st.text(), st.lists(st.text(), max_size=2))
def test_every_text_contains_its_own_names(text: str, others: list[str]) -> None:
    mentions = find(text, *others, text)
    assert mentions.missing == ()


def test_the_sources_tell_the_language_of_a_short_text() -> None:
    german = "Das ist nicht der Turm, den wir mit einem Kran und ohne die Leute gebaut haben."
    assert find_language_of("Firma Siemens", [german]) == "de"
    assert find_language_of("The tower is not what we have built with them.", [german]) == "en"
    assert find_language_of("", []) is None


@pytest.mark.parametrize(
    ("name", "unseen", "expected"),
    [
        ("Vertrag", ["Vertrag"], True),
        ("Laut Vertrag", ["Laut", "Vertrag"], True),
        ("Marie Curie", ["Marie", "Curie"], False),
        ("USA", ["USA"], False),
    ],
)
def test_a_single_german_word_may_be_a_noun(name: str, unseen: list[str], expected: bool) -> None:
    text = "Laut Vertrag ist Marie Curie in den USA."
    assert may_be_noun(name, unseen, text, "de") == expected
    assert not may_be_noun(name, unseen, text, "en")


@pytest.mark.parametrize(
    ("name", "source", "language"),
    [
        ("Dr. Anna Karl", "Anna Karl", "en"),
        ("WHO", "World Health Organization", "en"),
        ("UNESCO", "United Nations Educational, Scientific and Cultural Organization", "en"),
        ("World Health Organization", "W.H.O.", "en"),
        ("USD", "$5", "en"),
        ("Warszawie", "Warszawa", "pl"),
        ("Москве", "Москва", None),
    ],
)
def test_a_name_in_another_form_is_found(name: str, source: str, language: str | None) -> None:
    assert is_name_in(name, [source], language)
    assert not is_name_in(name, ["nothing here"], language)


@pytest.mark.parametrize(
    ("name", "source"),
    [("Dr. Karl", "Karla"), ("IT", "I think"), ("Warszawie", "Warszawa"), ("Curie", "C"), ("U", "U")],
)
def test_another_word_is_not_the_name(name: str, source: str) -> None:
    assert not is_name_in(name, [source], "en")


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(date.split()[1].isalpha() for date in spell_dates(text))


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("1999-05-12, 1999/5/12", {"12 May 1999"}),
        ("12/5/1999", {"12 May 1999", "5 December 1999"}),
        ("13.1.2020", {"13 January 2020"}),
        ("10/15/2019.", {"15 October 2019"}),
        ("1.2.3.4, 10/15, 40/40/2019", set()),
    ],
)
def test_dates_in_numbers_are_read_with_the_day_or_the_month_first(text: str, dates: set[str]) -> None:
    assert {*spell_dates(text)} == dates
