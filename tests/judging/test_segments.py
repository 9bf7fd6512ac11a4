""""""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Criterion
from rageval_spec.data.samples import Sample
from rageval_spec.judging.segments import (
    Ruler,
    Segment,
    complete_claim,
    count_treebank_tokens,
    count_words,
    describe_blank,
    fill_windows,
    find_evidence,
    find_verbatim,
    is_blank,
    list_pieces,
    place_claim,
    slide_windows,
    split_segments,
)

FAITHFULNESS = Criterion("faithfulness", "support", "Is it supported?")
TEXTS = st.lists(
    st.lists(st.integers(1, 30).map(lambda length: "A" + "b" * length + "."), max_size=8).map(" ".join), max_size=3
)


def test_segments_have_correct_offsets_beyond_ascii() -> None:
    text = " 🙂 Größe zählt. Ça va?"
    segments = split_segments(text, 3)
    assert [segment.text for segment in segments] == ["🙂 Größe zählt.", "Ça va?"]
    assert [text[segment.start : segment.end] for segment in segments] == [segment.text for segment in segments]
    assert {segment.source for segment in segments} == {3}


@given(TEXTS, st.integers(1, 4))
def test_sliding_windows_are_all_short_runs_of_sentences_within_a_text(texts: list[str], width: int) -> None:
    expected = []
    for source, text in enumerate(texts):
        sentences = split_segments(text)
        for first in range(len(sentences)):
            for last in range(first, min(first + width, len(sentences))):
                start, end = sentences[first].start, sentences[last].end
                expected.append(Segment(text[start:end], start, end, source))
    assert sorted(map(repr, slide_windows(texts, width))) == sorted(map(repr, expected))


@given(TEXTS, st.integers(5, 60), st.integers(0, 3))
def test_filled_windows_contain_every_sentence_and_stay_within_the_limit(
    texts: list[str], characters: int, overlap: int
) -> None:
    windows = fill_windows(texts, characters, overlap)
    for source, text in enumerate(texts):
        sentences = split_segments(text)
        own = [window for window in windows if window.source == source]
        assert all(any(w.start <= s.start and s.end <= w.end for w in own) for s in sentences)
        counts = [sum(w.start <= s.start and s.end <= w.end for s in sentences) for w in own]
        assert all(len(w.text) <= characters or count == 1 for w, count in zip(own, counts, strict=True))
        assert all(text[w.start : w.end] == w.text for w in own)
        for before, after in pairwise(own):
            assert before.start < after.start
            assert before.end < after.end
            shared = sum(after.start <= s.start and s.end <= before.end for s in sentences)
            assert shared <= overlap


def test_neighbouring_windows_share_sentences_if_there_is_room() -> None:
    text = "Aa. Bb. Cc. Dd. Ee."
    assert [window.text for window in fill_windows([text], 11, 1)] == ["Aa. Bb. Cc.", "Cc. Dd. Ee."]
    assert [window.text for window in fill_windows([text], 11, 0)] == ["Aa. Bb. Cc.", "Dd. Ee."]
    assert [window.text for window in fill_windows(["Aa. Bb. Cccccccc."], 9, 1)] == ["Aa. Bb.", "Cccccccc."]
    assert fill_windows(["", " "], 50, 1) == []


def test_rulers_bound_windows_beside_characters() -> None:
    text = "Aa bb. Cc. Dd. Ee."
    words = Ruler(3, lambda texts: [len(one.split()) for one in texts])
    assert [window.text for window in fill_windows([text], None, 0, [words])] == ["Aa bb. Cc.", "Dd. Ee."]
    assert [window.text for window in fill_windows([text], 7, 0, [words])] == ["Aa bb.", "Cc. Dd.", "Ee."]
    assert [window.text for window in fill_windows([text], None, 1, [words])] == ["Aa bb. Cc.", "Cc. Dd. Ee."]
    narrow = Ruler(1, words.measure)
    assert [window.text for window in fill_windows([text], None, 0, [words, narrow])] == ["Aa bb.", "Cc.", "Dd.", "Ee."]


def test_a_text_with_no_more_bytes_than_the_limit_is_not_measured() -> None:
    def refuse(texts: Sequence[str]) -> Sequence[int]:
        raise AssertionError(texts)

    assert len(fill_windows(["Aa. Bb."], None, 0, [Ruler(7, refuse)])) == 1
    with pytest.raises(AssertionError):
        fill_windows(["Aa. Bb."], None, 0, [Ruler(6, refuse)])


def test_pieces_have_the_offsets_of_the_joined_text() -> None:
    criterion = replace(FAITHFULNESS, kind="usefulness", text="contexts", against="question")
    sample = Sample("q", "Why?", contexts=("one", "", "two words"))
    text = criterion.text_of(sample)
    pieces = list_pieces(criterion, sample)
    assert [text[piece.start : piece.end] for piece in pieces] == ["one", "", "two words"]
    assert [piece.source for piece in pieces] == [0, 1, 2]


@pytest.mark.parametrize(
    ("claim", "shown"),
    [
        ("In 1999.", "When? In 1999."),
        ("It opened in late 1999.", "It opened in late 1999."),
        ("柏林是首都", "When? 柏林是首都"),
        ("柏林是德国的首都和最大城市", "柏林是德国的首都和最大城市"),
    ],
)
def test_fragments_are_read_after_their_question(claim: str, shown: str) -> None:
    sample = Sample("q", " When? ", answer=claim)
    assert complete_claim(claim, FAITHFULNESS, sample) == shown
    assert complete_claim(claim, replace(FAITHFULNESS, against="question"), sample) == claim
    assert complete_claim(claim, replace(FAITHFULNESS, text="contexts"), sample) == claim
    assert complete_claim(claim, FAITHFULNESS, replace(sample, question="")) == claim


def windows_of(*texts: str) -> list[Segment]:
    return [Segment(text, 0, len(text), source) for source, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("claim", "window", "is_there"),
    [
        ("No.", "no", True),
        ("No.", "No, the sun is hot.", False),
        ("“Mark  Twain”", "(mark\nTwain).", True),
        ("Mark Twain", "It was written by Mark Twain.", False),
        ("The sun is very hot.", "Some say the sun is very hot, and dry.", True),
        ("The sun is very hot.", "The sun is very hot?", False),
        ("The bridge cost 5 million.", "The bridge cost 5 millions of pounds.", False),
        ("The rate is now at 5.", "The rate is now at 5.3.", False),
        ("The rate is now at 5.", "The rate is now at 5%.", False),
        ("5", "-5", False),
        ("In the north of Paris", "In the north of Paris-Est.", False),
        ("GRÖSSE ist hier nicht alles", "Größe ist hier nicht alles!", True),
        ("柏林是德国的首都和最大城市。", "柏林是德国的首都和最大城市", True),
        ("柏林是德国的首都和最大城市", "有人说柏林是德国的首都和最大城市", False),
        ("...", "...", True),
        ("...", "The sun is hot.", False),
        ("...", "?", False),
    ],
)
def test_a_claim_is_found_in_a_window_word_for_word(claim: str, window: str, is_there: bool) -> None:
    assert find_verbatim(windows_of(claim), windows_of("...!", window)) == [1 if is_there else None]


def test_a_window_equal_to_the_claim_is_preferred_to_one_that_contains_it() -> None:
    longer, same = "Once the cat sat on the mat.", "The cat sat on the mat."
    claims = windows_of(same, "A dog sat on the mat.", longer)
    assert find_verbatim(claims, windows_of(longer, same, same)) == [1, None, 0]
    assert find_verbatim(claims, []) == [None, None, None]


def test_words_are_counted_and_blank_texts_are_recognised() -> None:
    assert [count_words(text) for text in ("", "one two", "首都柏林", "Tokio 東京都庁")] == [0, 2, 3, 4]
    assert is_blank(["", " \n"])
    assert not is_blank(["", "a"])
    assert describe_blank("reference_contexts") == "the reference contexts have no text"
    assert describe_blank("answer") == "the answer has no text"


TEXT = "Ada Lovelace wrote the first program. She was born in London in 1815, and died there."


def place(text: str, sentence: int | None) -> str:
    claim = place_claim(text, sentence, split_segments(TEXT))
    assert claim.text == text
    return TEXT[claim.start : claim.end]


def test_a_claim_marks_the_sentence_that_it_cites() -> None:
    assert place("Ada died in London.", 2) == "She was born in London in 1815, and died there."


@pytest.mark.parametrize("number", [None, 0, 3, -1])
def test_a_claim_that_cites_no_sentence_marks_the_most_similar_one(number: int | None) -> None:
    assert place("The first program was written by Ada Lovelace", number).startswith("Ada Lovelace wrote")
    assert place("Ada Lovelace was born in 1815", number).startswith("She was born")


def test_a_claim_in_the_words_of_the_text_marks_them() -> None:
    assert place("born in London in 1815", 2) == "born in London in 1815"
    assert place("Ada Lovelace wrote the first program.", 1) == "Ada Lovelace wrote the first program."


def test_a_full_stop_that_is_not_in_the_text_is_not_marked() -> None:
    assert place("She was born in London in 1815.", 2) == "She was born in London in 1815"
    assert place("...", 1) == "Ada Lovelace wrote the first program."


SOURCES = ("The tower is 330 m tall. It was built in 1889.", "Paris has a tower;\nit was built in 1889.")


@pytest.mark.parametrize(
    ("evidence", "named", "found"),
    [
        ("The tower is 330 m tall.", 0, 0),
        ("the TOWER  is 330 m\ntall", 1, 0),
        ("it was built in 1889.", 1, 1),
        ("it was built in 1889.", 0, 0),
        ('"Paris has a tower; it was built"', 0, 1),
        ("The tower ... was built in 1889", -1, 0),
        ("was built … The tower", 0, None),
        ("The tower is 331 m tall.", 0, None),
        ("", 0, None),
        ("...", 0, None),
        ("The tower [...] in 1889", 0, 0),
        ("tower [ … ] in 1889", 0, None),
        ("no" + " " * 1_000_000 + "tower", 0, None),
        ("The" + " " * 1_000_000 + "tower" + " " * 1_000_000 + "...", 0, 0),
        ("Paris", 7, 1),
    ],
)
def test_evidence_counts_only_if_a_source_contains_it(evidence: str, named: int, found: int | None) -> None:
    assert find_evidence(evidence, named, SOURCES) == found


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("", 0),
        ("The cat sat.", 4),
        ("don't (now).", 6),
        ("I can't, I won't -- I'm Verana's.", 13),
        ("It cost $3,360.50 (about 1:30 p.m.), i.e. 5%!", 14),
        ("\"Why?\" she said: 'no'...", 11),
        ("We cannot; they're gonna", 8),
        ("Die Gebühr beträgt „12,50“ Euro.", 8),
    ],
)
def test_treebank_tokens_are_those_of_nltk(sentence: str, tokens: int) -> None:
    assert count_treebank_tokens(sentence) == tokens
