from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evidence.passages import Chunk, Passage
from rageval_spec.errors import DataError
from rageval_spec.reading.quote_search import (
    SIMILAR,
    PassageFinder,
    PassageIndex,
    SearchedText,
    find_run,
    is_similar,
)

GUIDE = (
    "# Refunds\n\nRefunds take **14 days**. After that, we charge a fee of 5 €.\n\n"
    "Café au lait — “the best” — is not refunded. Parcels are insured up to 500 euros.\n"
)


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("we charge a fee", "we charge a fee"),
        ("WE  charge\na fee", "we charge a fee"),
        ("refunds take 14 days", "Refunds take **14 days"),
        ('cafe\u0301 au lait - "the best" - is', "Café au lait — “the best” — is"),
        ("Parcels were insured up to 500 Euro.", "d. Parcels are insured up to 500 euro"),
    ],
)
def test_a_quote_is_found_as_it_is_then_without_form_then_with_edits(quote: str, expected: str) -> None:
    found = SearchedText(GUIDE).find(quote)
    assert found is not None and is_similar(quote, found)
    assert GUIDE[found.start : found.end] == expected


def test_texts_about_other_things_are_not_similar_and_short_ones_need_their_letters() -> None:
    text = SearchedText(GUIDE)
    assert not is_similar("Bring the service book to the workshop", text.find("Bring the service book to the workshop"))
    near = text.find("fee of 6")
    assert near is not None and near.similarity > SIMILAR and not is_similar("fee of 6", near)
    assert SearchedText("").find("a fee") is None and SearchedText(GUIDE).find("…!?…") is None


def test_a_quote_that_repeats_is_found_at_its_first_place() -> None:
    found = SearchedText("A fee. A fee! a fee").find("a FEE")
    assert found == (0, 5, 1.0, 3)


def finder(text: str = GUIDE) -> PassageFinder:
    return PassageFinder({"guide.md": SearchedText(text)})


def test_a_chunk_is_where_its_offsets_say_or_where_its_text_stands() -> None:
    start = GUIDE.index("After")
    passage = Passage("guide.md", start, start + 30)
    assert finder().locate(passage, Chunk("guide.md", start + 10, start + 90)) == (10, 30)
    assert finder().locate(passage, Chunk("guide.md", 0, start)) is None
    assert finder().locate(passage, Chunk("other.md", 0, 900, GUIDE)) is None
    assert finder().locate(passage, Chunk(text=GUIDE.upper()[start + 10 :])) == (10, 30)
    with_header = Chunk(text=f"Handbook, page 3\n{GUIDE[start : start + 30]}")
    assert finder().locate(passage, with_header) == (0, 30), "a header of its own is not in the document"


def test_without_the_document_a_quote_is_looked_for_in_the_chunk() -> None:
    quote = "Refunds take 14 days. After that, we charge a fee of 5 euros."
    passage, bare = Passage("guide.md", quote=quote), PassageFinder({})
    assert bare.locate(passage, Chunk(text=f"x {quote.lower()} y")) == (0, len(quote))
    first = bare.locate(passage, Chunk(text="Before it. Refunds take 14 days."))
    assert first is not None and quote[slice(*first)] == "Refunds take 14 days. "
    last = bare.locate(passage, Chunk(text="we charge a fee of 5 euros. And after it."))
    assert last is not None and quote[slice(*last)].strip(" ,") == "we charge a fee of 5 euros."
    middle = bare.locate(passage, Chunk(text="days. After that, we"))
    assert middle is not None and quote[slice(*middle)].strip() == "days. After that, we"
    assert bare.locate(passage, Chunk(text="Euros are coins. Days are long.")) is None
    assert bare.locate(Passage("a", quote="€"), Chunk(text="5 €")) == (0, 1)


def test_offsets_without_a_text_cannot_be_compared_with_texts() -> None:
    passage = Passage("guide.md", 3, 9, place="golden.jsonl:4")
    with pytest.raises(DataError, match=r"^golden.jsonl:4: the text of 'guide.md' is not known.*name the documents"):
        PassageFinder({}).locate(passage, Chunk(text="some text"))
    assert PassageFinder({}).locate(passage, Chunk("guide.md", 6, 20)) == (3, 6)


WORDS = st.lists(st.sampled_from(["fee", "of", "the", "Straße", "a", "— ", "5", "days.", "refund"]), max_size=30)


@given(WORDS, st.data())
def test_a_part_of_a_text_is_found_where_it_stands(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    found = SearchedText(text).find(text[start:end])
    assert found is not None and text[found.start : found.end] == text[start:end] and found.similarity == 1
    folded = SearchedText(text[start:end].swapcase())
    if folded.letters:
        again = SearchedText(text).find(folded.text)
        assert again is not None and again.similarity == 1
        assert SearchedText(text[again.start : again.end]).letters == folded.letters


@given(WORDS, WORDS, WORDS)
def test_hostile_chunks_give_parts_of_the_passage_or_nothing(
    quote: list[str], one: list[str], other: list[str]
) -> None:
    passage = Passage("a", quote=" ".join(quote) or "x")
    found = PassageFinder({}).locate(passage, Chunk(text=" ".join([*one, *quote[len(quote) // 2 :], *other])))
    assert found is None or 0 <= found[0] < found[1] <= passage.length


def test_overlaps_of_long_repetitive_texts_are_found_at_once() -> None:
    """Comparing each length with each place would take hours."""
    found = PassageFinder({}).locate(Passage("a", quote="ab" * 200_000 + "c"), Chunk(text="x" + "ab" * 150_000))
    assert found == (0, 300_000)


def test_a_text_that_repeats_without_end_is_looked_up_at_once() -> None:
    passage = Passage("guide.md", 5000, 6000)
    assert finder("a" * 200_000).locate(passage, Chunk(text="a" * 1000)) == (0, 1000)
    assert finder("a" * 200_000).locate(passage, Chunk(text="a" * 3000)) == (0, 1000)


def test_an_index_names_the_queries_whose_passages_a_chunk_may_touch() -> None:
    fee, parcels = GUIDE.index("After"), GUIDE.index("Parcels")
    passages = {"q1": [Passage("guide.md", fee, fee + 38)], "q2": [Passage("guide.md", parcels, len(GUIDE))]}
    index = PassageIndex(passages, finder())
    assert index.list_candidates(Chunk("guide.md")) == ["q1", "q2"]
    assert index.list_candidates(Chunk("other.md", text=GUIDE)) == []
    assert index.list_candidates(Chunk(text=GUIDE[parcels:])) == ["q2"]
    assert index.list_candidates(Chunk(text="Bring the service book to the workshop.")) == []
    assert PassageIndex({"q3": [Passage("a", quote="42")]}, finder()).list_candidates(Chunk(text="x")) == ["q3"]


def test_quotes_with_small_edits_are_found_in_published_texts(shared_data: Path) -> None:
    """Of 200 places in XQuAD's paragraphs, with 5 % of their characters replaced, and of texts of other paragraphs."""
    lines = (shared_data / "retrieval/xquad_en/corpus.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    draw = random.Random(7)
    found = absent = 0
    for text, other in pairwise(texts[:201]):
        start = draw.randrange(max(1, len(text) - 120))
        quote = text[start : start + 120]
        edited = "".join("#" if draw.random() < 0.05 else letter for letter in quote)
        place = SearchedText(text).find(edited)
        assert place is not None
        found += is_similar(edited, place) and abs(place.start - start) <= 15
        absent += is_similar(quote, SearchedText(other).find(quote))
    assert (found, absent) == (200, 0)


def test_whole_words_come_before_parts_of_words() -> None:
    text = SearchedText("It costs 15 euros. Later, it costs 5 euros, and in May 5 euros.")
    found = text.find("5 euros")
    assert found is not None
    assert (text.text[found.start - 6 : found.end], found.occurrences) == ("costs 5 euros", 2)
    near = text.find("5 EUROS", near=60)
    assert near is not None and (near.start, near.occurrences) == (text.text.rindex("5 euros"), 1)
    part = SearchedText("It costs 15 euros.").find("5 euros")
    assert part is not None and part.start == 10  # better than nothing


@given(st.text("ab", min_size=30, max_size=80), st.text("ab", min_size=30, max_size=80))
def test_a_run_stands_in_both_texts_and_cannot_be_longer(text: str, other: str) -> None:
    at, there, length = find_run(text, other)
    assert text[at : at + length] == other[there : there + length]
    assert length == 0 or length >= 12
    assert not text[:at] or not other[:there] or not length or text[at - 1] != other[there - 1]
