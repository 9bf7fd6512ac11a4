from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.kernels import SentenceSupport, WordShare, names, sentence_support, split_sentences, word_support
from tests.reference.words import share_words

# --- Sentences ---


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def test_sentences_of_an_answer() -> None:
    text = 'Dr. Smith moved to the U.S. in 1999.[1] "Why?" he was asked. He said: "It is 3.5 times larger."\n\n- Yes'
    assert sentences(text) == [
        "Dr. Smith moved to the U.S. in 1999.[1]",
        '"Why?" he was asked.',
        'He said: "It is 3.5 times larger."',
        "- Yes",
    ]


def test_offsets_are_code_points() -> None:
    text = "😀 Käse! 東京です。終わり"
    assert split_sentences(text) == [(0, 7), (8, 13), (13, 16)]


def test_lone_surrogates_are_characters_too() -> None:
    assert sentences("A \ud83d one. Two.") == ["A \ud83d one.", "Two."]


@given(st.text(st.characters(), max_size=60) | st.text('aA1 .!?…。"\n\r([])-\x1f\u3000', max_size=60))
def test_sentences_are_trimmed_and_cover_every_character(text: str) -> None:
    offsets = split_sentences(text)
    ends = [0, *(end for _, end in offsets)]
    assert all(sentence == sentence.strip() != "" for sentence in sentences(text))
    assert all(before <= start for before, (start, _) in zip(ends, offsets, strict=False))
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_sentences_match_those_that_people_marked(shared_data: Path) -> None:
    with gzip.open(shared_data / "faithfulness" / "scifact_claims.jsonl.gz", "rt", encoding="utf-8") as lines:
        contexts = {str(context): context for line in lines for context in json.loads(line)["contexts"]}
    marked = found = both = 0
    for context in contexts.values():
        gold = [sentence.strip() for sentence in context["sentences"] if sentence.strip()]
        ends = {len(" ".join(gold[: count + 1])) for count in range(len(gold))}
        ours = {end for _, end in split_sentences(" ".join(gold))}
        marked, found, both = marked + len(ends), found + len(ours), both + len(ends & ours)
    assert both / marked > 0.99
    assert both / found > 0.99


# --- Words ---

TOKENS = [
    *("the", "The", "US", "us", "it's", "It", "don't", "can’t", "is", "e.g", "U.S.", "a.b.C", "A.Word"),
    *("dogs", "DOGS", "stopped", "calling", "cities", "studied", "glass", "boxes", "Beyoncé's", "Straße", "ΟΔΟΣ"),
    *("l'homme", "qu'il", "O'Brien", "e-mail", "email", "mail", "state-of-the-art", "a-b-c-d-e-f-g-h-i-j"),
    *("1,200.50", "1200.5", "007", "0.0", "3,5", "1.2.3", "1.200.000", "2nd", "1990s", "5km", "km", "B12"),
    *("東京都", "東", "ｶﾞｲﾄﾞ", "ガイド", "서울은", "กขค", "e\u0301te\u0301", "so\u00adft", "東京Tower3"),
]
FUNCTION_WORDS = {
    "a",
    "ca",
    "d",
    "did",
    "do",
    "don",
    "eg",
    "i",
    "ie",
    "in",
    "is",
    "isn",
    "it",
    "m",
    "of",
    "re",
    "s",
    "t",
    "the",
    "us",
}
PIECES = st.sampled_from([*TOKENS, *" .,-'’_\n", " ", " "])
ODD_WORDS = st.text("xqkdgsinezé'’-.,019X 東ガ서\u0301\u00ad", max_size=30)
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.lists(PIECES, max_size=12).map(" ".join) | ODD_WORDS


# --- Support ---


def test_support_by_hand() -> None:
    # Points: the 1, tower 5, opened 5, in 1, 1889 10, and four pairs of neighbours: 26. The first source has tower,
    # opened, the, and the pair "the tower"; the second has in, 1889 and their pair; together, all but two pairs.
    sources = ["The opening of the tower", "in 1,889"]
    assert word_support(["The tower opened in 1889."], [sources]) == [
        [WordShare(12, 26), WordShare(12, 26), WordShare(24, 26)],
    ]
    assert WordShare(12, 26).share == 12 / 26


def test_a_text_without_content_words_has_no_share() -> None:
    assert word_support(["It is.", ""], [["It is."], []]) == [[(0, 0), (0, 0)], [(0, 0)]]
    assert WordShare(0, 0).share is None


def test_each_text_has_its_sources() -> None:
    shares = word_support(["cat", "dog", "cat"], [["cat"], ["cat"], ["dog", "cat"]])
    assert shares == [[(5, 5), (5, 5)], [(0, 5), (0, 5)], [(0, 5), (5, 5), (5, 5)]]


def test_as_many_sources_as_texts_are_needed() -> None:
    with pytest.raises(ValueError, match="there are 2 texts, but sources for 1"):
        word_support(["a", "b"], [["c"]])


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=3)), max_size=3), st.integers(1, 3))
def test_support_equals_the_reference(searches: list[tuple[str, list[str]]], threads: int) -> None:
    texts, sources = [text for text, _ in searches], [found_in for _, found_in in searches]
    expected = [
        [share_words(text, places, FUNCTION_WORDS) for places in [*([place] for place in found_in), found_in]]
        for text, found_in in searches
    ]
    assert word_support(texts, sources, threads=threads) == expected


@given(st.text(st.characters(), max_size=40), st.lists(st.text(st.characters(), max_size=40), max_size=3))
def test_every_text_is_found_in_itself(text: str, others: list[str]) -> None:
    [[*shares, own, together]] = word_support([text], [[*others, text]])
    assert own.found == own.total == together.found
    assert all(0 <= share.found <= share.total == own.total for share in shares)


# --- Names ---


def test_names_by_hand() -> None:
    text = "However, Barack Obama's team met the U.N. on August 4, 1961, in New York. It cost $3.50 million, or 15%."
    assert names(text) == ["Barack Obama", "UN", "4 August 1961", "New York", "$3.5 million", "15%"]


def test_a_name_is_given_once_and_dates_in_one_form() -> None:
    assert names("In Paris on 12 May 1999. Later in Paris: 1999-05-12, May 12th, 1999.") == ["Paris", "12 May 1999"]


@pytest.mark.parametrize("text", ["", "no names here", "NO NAMES HERE", "東京は大きい。"])
def test_texts_without_names(text: str) -> None:
    assert names(text) == []


@given(st.text(st.characters(), max_size=60) | st.text("aAB .&'-of15,%$", max_size=60))
def test_names_are_distinct_and_not_blank(text: str) -> None:
    found = names(text)
    assert len(set(found)) == len(found)
    assert all(name.strip() for name in found)


# --- Support of sentences ---


def test_a_sentence_has_its_best_source_and_the_sentence_there_that_has_most() -> None:
    (found,) = sentence_support(["Yes. Cats chase mice. It is."], [["Dogs bark.", "Mice hide. Cats chase mice."]])
    # cats 5, chase 5, mice 5, two pairs
    whole = WordShare(17, 17)
    assert found[1] == SentenceSupport(5, 21, whole, whole, 1, (11, 27))
    assert (found[2].together.total, found[2].source, found[2].evidence) == (0, None, None)


TEXTS = st.text("aAbé0 .-\U0001f600\ud800", max_size=40)


@given(TEXTS, st.lists(TEXTS, max_size=3), st.integers(1, 3))
def test_sentences_are_supported_as_each_by_itself(text: str, sources: list[str], threads: int) -> None:
    expected = []
    for start, end in split_sentences(text):
        (shares,) = word_support([text[start:end]], [sources])
        found = [share.found for share in shares[:-1]]
        source = found.index(max(found)) if any(found) else None
        alone, evidence = WordShare(0, 0), None
        if source is not None:
            alone, places = shares[source], split_sentences(sources[source])
            (parts,) = word_support([text[start:end]], [[sources[source][begin:stop] for begin, stop in places]])
            most = [share.found for share in parts[:-1]]
            evidence = places[most.index(max(most))] if any(most) else None
        expected.append(SentenceSupport(start, end, alone, shares[-1], source, evidence))
    assert sentence_support([text], [sources], threads=threads) == [expected]
